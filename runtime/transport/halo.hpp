#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rmsp::transport {

/// How the entries of x travel that a device needs of the others' slices, where they are exchanged one by one: each
/// device packs what another needs of its slice into a buffer of its own; there they arrive behind the slice, its
/// *ghosts*, in the order of their columns, which is also that of their owners.
class Halo {
public:
    Halo() = default;
    /// From ghosts of each device, ascending, and the slices of x. Entries have `entry_bytes` bytes; an x that receives
    /// them begins aligned to 16 bytes as entry slices[device] of an aligned array would be. `before`: so many other
    /// ghosts of each device come between its slice and these; empty: none.
    Halo(std::span<const std::vector<std::int32_t>> ghosts, std::span<const std::int64_t> slices,
         std::size_t entry_bytes, std::span<const std::int64_t> before = {});

    /// Entries that `to` receives from `from`.
    std::int64_t count(int from, int to) const { return pair(from, to).count; }
    /// Where they begin in the buffer of `from`; aligned to 16 bytes as they will be where they arrive.
    std::int64_t sent_at(int from, int to) const { return pair(from, to).sent_at; }
    /// Where they arrive, counted from the first entry of the slice of `to`.
    std::int64_t received_at(int from, int to) const { return pair(from, to).received_at; }
    /// Entries of the whole buffer of a device.
    std::int64_t buffer_entries(int device) const { return buffer_[static_cast<std::size_t>(device)]; }
    /// What a device packs into its buffer, counted from the first entry of its slice; 0 where the buffer has gaps.
    std::vector<std::int32_t> packed(int device, std::span<const std::vector<std::int32_t>> ghosts,
                                     std::span<const std::int64_t> slices) const;

private:
    struct Pair {
        std::int64_t count = 0;
        std::int64_t first_ghost = 0;  ///< among the ghosts of the receiver
        std::int64_t sent_at = 0;
        std::int64_t received_at = 0;
    };
    const Pair& pair(int from, int to) const
    {
        return pairs_[static_cast<std::size_t>(from) * buffer_.size() + static_cast<std::size_t>(to)];
    }

    std::vector<Pair> pairs_;
    std::vector<std::int64_t> buffer_;
};

/// Whether entries are worth their packing: `entries` and `range` are the most that a device receives, one by one or as
/// the range of columns from the first to the last.
bool entries_pay(std::int64_t entries, std::int64_t range, std::size_t entry_bytes);

/// Whether moving so many entries to a device takes long enough to be hidden behind the columns that need none of them:
/// a product in two steps takes somewhat longer.
bool entries_worth_hiding(std::int64_t entries, std::size_t entry_bytes);
/// Most popular ghosts of a device, which arrive before it multiplies at all.
std::int64_t most_popular_ghosts(std::size_t entry_bytes);

}  // namespace rmsp::transport
