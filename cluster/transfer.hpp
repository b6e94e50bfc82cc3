#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cluster/communicator.hpp"

namespace rmsp::cluster {

/// Arrays of any length that processes send each other, in any number of messages. Each process makes one where the
/// others do; arrays between two of them are received in the order in which they are sent.
class Transfer {
public:
    explicit Transfer(Communicator& processes) : processes_(processes), tag_(processes.next_tag()) {}

    void send(const void* data, std::int64_t bytes, int to)
    {
        for (std::int64_t at = 0; at < bytes; at += most_bytes) {
            processes_.check(MPI_Isend(static_cast<const std::byte*>(data) + at, size(bytes - at), MPI_BYTE, to, tag_,
                                       processes_.handle(), &requests_.emplace_back(MPI_REQUEST_NULL)),
                             "MPI_Isend");
        }
    }
    void receive(void* data, std::int64_t bytes, int from)
    {
        for (std::int64_t at = 0; at < bytes; at += most_bytes) {
            processes_.check(MPI_Irecv(static_cast<std::byte*>(data) + at, size(bytes - at), MPI_BYTE, from, tag_,
                                       processes_.handle(), &requests_.emplace_back(MPI_REQUEST_NULL)),
                             "MPI_Irecv");
        }
    }
    /// \param seconds  as Communicator::wait_for()
    void wait(double seconds = 0) { processes_.wait(requests_, seconds); }
    /// Waits for nothing any more.
    void give_up() noexcept { Communicator::give_up(requests_); }

private:
    /// MPI counts in int.
    static constexpr std::int64_t most_bytes = std::int64_t{1} << 30;
    static int size(std::int64_t bytes) { return static_cast<int>(std::min(bytes, most_bytes)); }

    Communicator& processes_;
    const int tag_;
    std::vector<MPI_Request> requests_;
};

}  // namespace rmsp::cluster
