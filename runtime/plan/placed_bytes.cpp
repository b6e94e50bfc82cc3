#include "runtime/plan/placed_bytes.hpp"

#include <algorithm>
#include <limits>

#include <core/value_types.hpp>

#include "runtime/plan/merge.hpp"
#include "runtime/plan/streamed_kernels.hpp"

namespace rmsp::plan {
namespace {

using transport::Range;

/// Such arrays begin at a whole line.
std::int64_t length(const Range& range)
{
    constexpr std::int64_t line = 32;
    return range.empty() ? 0 : range.end - range.first / line * line;
}

/// Entries of what a product by columns keeps on a device: its x and all of its y that it has to do with, or, where the
/// devices share their memory, what it adds to y later.
std::int64_t column_entries(const Side& x, const Side& y, std::size_t i, std::size_t devices, bool shared_memory)
{
    if (shared_memory) {
        return devices > 1 ? length(y.touched[i]) : 0;
    }
    const Range all = devices == 1 ? Range{0, y.size()} : hull({y.slices[i], y.slices[i + 1]}, y.touched[i]);
    return length(x.touched[i]) + length(all);
}

}  // namespace

template <class T>
std::vector<std::int64_t> placed_bytes(const Plan& plan, const Stored<T>& m, const DistributeOptions& options,
                                       bool shared_memory, const transport::Transport* transport)
{
    constexpr std::int64_t value = sizeof(T);
    constexpr std::int64_t index = sizeof(std::int32_t);
    // As StreamedPart has them.
    constexpr std::int64_t slots = 6;
    const bool streamed = options.mode == Mode::streamed;
    const bool in_place =
        shared_memory && m.col_idx.type() == IndexType::i32 && (!m.coordinates || m.row_idx.type() == IndexType::i32);
    const bool borrowed = in_place && m.device_values == nullptr && (options.borrow || streamed);
    const std::size_t devices = plan.shards.size();
    const Side rows = row_side(plan);
    Side columns = column_side(plan);
    columns.slices = column_slices(plan, m);
    std::vector<std::int64_t> bytes(devices, 0);
    for (std::size_t i = 0; i < devices; ++i) {
        const PartialCsr& part = plan.shards[i].part;
        const std::int64_t carry = part.start_flag ? 1 : 0;
        std::int64_t& needed = bytes[i];
        if (streamed && !in_place) {
            needed += slots * std::min(least_chunk_bytes, part.nnz() * (value + index));
        } else {
            // The entries of the row that the part shares with its predecessor are filled up to whole lines.
            const std::int64_t entries = part.nnz() + carry * (whole_lines(1) - 1);
            needed += borrowed ? 0 : entries * (value + (m.coordinates ? 2 : 1) * index);
            if (!m.coordinates) {
                const std::int64_t pointer = part.nnz() > std::numeric_limits<std::int32_t>::max() ? 8 : 4;
                needed += (part.owned_rows() + 1) * pointer;
                if (!shared_memory && options.row_pointers == RowPointers::device) {
                    needed += (part.owned_rows() + 1) * static_cast<std::int64_t>(m.row_ptr.element_bytes());
                }
            }
            needed += carry * 2 * static_cast<std::int64_t>(sizeof(std::int64_t));
        }
        for (const bool of_transpose : {false, true}) {
            if (of_transpose && !options.transposed) {
                continue;
            }
            const bool swapped = of_transpose != transposed(plan);
            const bool by_rows = multiplies_by_rows(plan, of_transpose);
            if (transport != nullptr) {
                const Side& y = swapped ? columns : rows;
                const std::int64_t most = by_rows ? columns.size() : std::max(rows.size(), columns.size());
                const std::int64_t received = by_rows ? 0 : received_bytes(y, value)[i];
                needed +=
                    transport->channel_bytes(static_cast<int>(devices), most * value, by_rows ? nullptr : &received);
            }
            if (by_rows) {
                const bool vectors = !shared_memory && !m.from_devices();
                needed += carry * value + (vectors ? (columns.size() + part.owned_rows()) * value : 0);
            } else {
                needed += value *
                          column_entries(swapped ? rows : columns, swapped ? columns : rows, i, devices, shared_memory);
            }
        }
    }
    return bytes;
}

#define RMSP_INSTANTIATE(T)                                                                                        \
    template std::vector<std::int64_t> placed_bytes(const Plan&, const Stored<T>&, const DistributeOptions&, bool, \
                                                    const transport::Transport*);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::plan
