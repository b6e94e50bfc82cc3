#pragma once

#include <memory>
#include <vector>

#include "runtime/engine/device.hpp"
#include "runtime/engine/rendezvous.hpp"

namespace rmsp::engine {

/// Orders "every device writes something, then every device reads what the others wrote", repeated any number of times,
/// on the devices' streams: no thread waits for a device. Each worker of a job queues its writes and calls publish(),
/// queues its reads and calls end(), queues what else it has to do, and calls settle(), after which what was read may
/// be overwritten. The meetings in between are of host threads only: they make sure that an event has been recorded
/// before another device's stream is told to wait for it.
class HandOver {
public:
    explicit HandOver(int devices) : written_(devices), read_(devices) {}
    HandOver(const HandOver&) = delete;
    HandOver& operator=(const HandOver&) = delete;

    /// Makes the events of one device; once, on its worker.
    void open(int rank, Device& device)
    {
        written_[rank] = device.make_event(false);
        read_[rank] = device.make_event(false);
    }
    /// Frees them again; on the worker, or after it has stopped.
    void close(int rank)
    {
        written_[rank].reset();
        read_[rank].reset();
    }

    /// Reads queued after this wait until every device has written.
    void publish(int rank, Stream& stream, Rendezvous& meeting)
    {
        stream.record(*written_[rank]);
        meeting.arrive_and_wait();
        wait_for_others(rank, stream, written_);
    }
    void end(int rank, Stream& stream) { stream.record(*read_[rank]); }
    /// Work queued after this waits until every device has read.
    void settle(int rank, Stream& stream, Rendezvous& meeting)
    {
        meeting.arrive_and_wait();
        wait_for_others(rank, stream, read_);
    }

private:
    static void wait_for_others(int rank, Stream& stream, const std::vector<std::unique_ptr<Event>>& events)
    {
        for (int other = 0; other < static_cast<int>(events.size()); ++other) {
            if (other != rank) {
                stream.wait(*events[other]);
            }
        }
    }

    std::vector<std::unique_ptr<Event>> written_;
    std::vector<std::unique_ptr<Event>> read_;
};

}  // namespace rmsp::engine
