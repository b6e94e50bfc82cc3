#include "runtime/transport/halo.hpp"

#include <algorithm>

namespace rmsp::transport {

Halo::Halo(std::span<const std::vector<std::int32_t>> ghosts, std::span<const std::int64_t> slices,
           std::size_t entry_bytes, std::span<const std::int64_t> before)
    : pairs_(ghosts.size() * ghosts.size()), buffer_(ghosts.size())
{
    constexpr std::size_t vector_bytes = 16;
    const auto aligned = static_cast<std::int64_t>(vector_bytes / entry_bytes);
    const std::size_t devices = ghosts.size();
    for (std::size_t from = 0; from < devices; ++from) {
        std::int64_t position = 0;
        for (std::size_t to = 0; to < devices; ++to) {
            const auto& list = ghosts[to];
            const auto first = std::lower_bound(list.begin(), list.end(), slices[from]);
            const auto end = std::lower_bound(first, list.end(), slices[from + 1]);
            Pair& pair = pairs_[from * devices + to];
            pair.count = end - first;
            pair.first_ghost = first - list.begin();
            pair.received_at = slices[to + 1] - slices[to] + (before.empty() ? 0 : before[to]) + pair.first_ghost;
            if (pair.count > 0) {
                const std::int64_t phase = (slices[to] + pair.received_at) % aligned;
                pair.sent_at = position + (phase - position % aligned + aligned) % aligned;
                position = pair.sent_at + pair.count;
            }
        }
        buffer_[from] = position;
    }
}

std::vector<std::int32_t> Halo::packed(int device, std::span<const std::vector<std::int32_t>> ghosts,
                                       std::span<const std::int64_t> slices) const
{
    std::vector<std::int32_t> list(static_cast<std::size_t>(buffer_entries(device)), 0);
    for (int to = 0; to < static_cast<int>(ghosts.size()); ++to) {
        const Pair& sent = pair(device, to);
        const auto* const first = ghosts[static_cast<std::size_t>(to)].data() + sent.first_ghost;
        std::transform(first, first + sent.count, list.begin() + sent.sent_at, [&](std::int32_t column) {
            return static_cast<std::int32_t>(column - slices[static_cast<std::size_t>(device)]);
        });
    }
    return list;
}

bool entries_pay(std::int64_t entries, std::int64_t range, std::size_t entry_bytes)
{
    // Each entry costs the read of an index; and nothing is gained where a range is so short that the link's latency is
    // most of its time.
    constexpr std::int64_t least_bytes = std::int64_t{1} << 17;
    return 2 * entries + least_bytes / static_cast<std::int64_t>(entry_bytes) <= range;
}

bool entries_worth_hiding(std::int64_t entries, std::size_t entry_bytes)
{
    // What a link carries in the time that the second step of such an exchange costs. (Fitted to R-MAT 22 on two H200.)
    constexpr std::int64_t least_bytes = std::int64_t{6} << 20;
    return entries * static_cast<std::int64_t>(entry_bytes) >= least_bytes;
}

std::int64_t most_popular_ghosts(std::size_t entry_bytes)
{
    // Nothing is multiplied while they come, so they are no more than travels by lines to four devices out of one
    // slice.
    constexpr std::int64_t most_bytes = std::int64_t{512} << 10;
    return most_bytes / static_cast<std::int64_t>(entry_bytes);
}

}  // namespace rmsp::transport
