#include "runtime/transport/host_transport.hpp"

#include <algorithm>
#include <vector>

#include "runtime/engine/hand_over.hpp"

namespace rmsp::transport {
namespace {

class HostChannel final : public Channel {
public:
    HostChannel(int devices, std::int64_t bytes) : bounce_(devices), bytes_(bytes), hand_over_(devices) {}

    void open(engine::Worker& worker)
    {
        // Each device writes its own slice into memory near itself, so that no NUMA node takes all of the traffic.
        bounce_[worker.rank()] = engine::PinnedBuffer(worker.device(), static_cast<std::size_t>(bytes_));
        hand_over_.open(worker.rank(), worker.device());
    }
    void close(int rank) noexcept override
    {
        bounce_[rank] = engine::PinnedBuffer();
        hand_over_.close(rank);
    }

    void gather(engine::Worker& worker, engine::Stream& stream, engine::Rendezvous& meeting, const Gather& gather,
                const std::function<void()>& write) override
    {
        const int rank = worker.rank();
        write();
        gather.pack(worker, stream);
        // What serves everyone crosses this device's link once, as much at a time as the pinned memory takes.
        std::vector<std::span<const std::byte>> sent;
        std::size_t most = 1;
        for (int device = 0; device < gather.devices(); ++device) {
            sent.push_back(gather.sent(device));
            most = std::max(most, sent.back().size());
        }
        const auto window = static_cast<std::size_t>(std::max<std::int64_t>(bytes_, 1));
        for (std::size_t begin = 0; begin < most; begin += window) {
            if (begin > 0) {
                hand_over_.settle(rank, stream, meeting);
            }
            const auto now = [&](int device) {
                const auto& all = sent[static_cast<std::size_t>(device)];
                return begin < all.size() ? all.subspan(begin, std::min(window, all.size() - begin))
                                          : std::span<const std::byte>();
            };
            stream.copy(bounce_[static_cast<std::size_t>(rank)].data(), now(rank).data(), now(rank).size());
            hand_over_.publish(rank, stream, meeting);
            for (int step = 1; step < gather.devices(); ++step) {
                const int other = (rank + step) % gather.devices();
                const Transfer in = gather.transfer(other, rank);
                const auto there = now(other);
                if (in.empty() || there.empty()) {
                    continue;
                }
                const std::byte* const first = std::max(in.from, there.data());
                const std::byte* const end = std::min(in.from + in.bytes, there.data() + there.size());
                if (first < end) {
                    const auto* const bounced =
                        static_cast<std::byte*>(bounce_[static_cast<std::size_t>(other)].data());
                    stream.copy(in.to + (first - in.from), bounced + (first - there.data()),
                                static_cast<std::size_t>(end - first));
                }
            }
            hand_over_.end(rank, stream);
        }
    }
    void settle(engine::Worker& worker, engine::Stream& stream, engine::Rendezvous& meeting) override
    {
        hand_over_.settle(worker.rank(), stream, meeting);
    }
    void reduce_scatter(engine::Worker& worker, engine::Rendezvous& meeting, const Reduce& reduce) override
    {
        const int rank = worker.rank();
        engine::Stream& stream = worker.stream();
        // What others need lies before and behind the device's own slice.
        const Range own = reduce.slice(rank);
        const Range touched = reduce.touched[static_cast<std::size_t>(rank)];
        for (const Range& out : {Range{touched.first, std::min(touched.end, own.first)},
                                 Range{std::max(touched.first, own.end), touched.end}}) {
            stream.copy(sums_of(rank, reduce) + reduce.offset(out.first), reduce.place(rank, out.first),
                        reduce.bytes(out));
        }
        hand_over_.publish(rank, stream, meeting);
        // The others' are read where they are: in pinned memory, which a kernel reads at the speed of the link.
        std::vector<void*> readable(reduce.partials.begin(), reduce.partials.end());
        for (int from = 0; from < reduce.devices(); ++from) {
            if (from != rank) {
                readable[static_cast<std::size_t>(from)] = sums_of(from, reduce);
            }
        }
        Reduce through_host = reduce;
        through_host.partials = readable;
        add_sums(worker, reduce, through_host.sums(rank));
        hand_over_.end(rank, stream);
    }

private:
    /// Where entry 0 of a device's sums would be in its pinned memory.
    std::byte* sums_of(int rank, const Reduce& reduce) const
    {
        return static_cast<std::byte*>(bounce_[static_cast<std::size_t>(rank)].data()) -
               reduce.offset(reduce.touched[static_cast<std::size_t>(rank)].first);
    }

    std::vector<engine::PinnedBuffer> bounce_;
    std::int64_t bytes_;
    engine::HandOver hand_over_;
};

class HostTransport final : public Transport {
public:
    std::string name() const override { return "host"; }
    std::unique_ptr<Channel> make_channel(int devices, std::int64_t bytes, std::vector<std::int64_t>) override
    {
        return std::make_unique<HostChannel>(devices, bytes);
    }
    void open(Channel& channel, engine::Worker& worker) override { dynamic_cast<HostChannel&>(channel).open(worker); }
};

}  // namespace

std::unique_ptr<Transport> connect_host_transport(std::span<const std::unique_ptr<engine::Worker>>,
                                                  const ConnectOptions&)
{
    return std::make_unique<HostTransport>();
}

}  // namespace rmsp::transport
