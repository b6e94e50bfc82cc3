#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <kernels/context.hpp>
#include <kernels/spgemm/device.cuh>

/// Rows of C with so many products that a block for each would keep all others waiting: hub rows of graphs and of
/// linear programmes. Many blocks take such a row, which share a bitmap in global memory, and add up in C itself.
namespace rmsp::kernels::spgemm {

struct SpreadRows {
    SpreadRows() = default;
    explicit SpreadRows(DeviceArray<std::int32_t> room_of_list) : list(std::move(room_of_list)) {}

    std::int32_t above = most_products_unspread;  ///< is_spread()
    int count = 0;
    int blocks = 1;                  ///< for each row
    std::int64_t words = 0;          ///< room of a row in `ranks`
    DeviceArray<std::int32_t> list;  ///< of rows
    DeviceArray<uint2>
        ranks;  ///< of each row, for each word of 32 columns of its span: which are there, entries before

    /// Room for as many rows as were found, within so many bytes and if the device has them; whether there is.
    bool make_room(const Counters& found, std::int64_t most_bytes, int units, const Context& context);
    std::size_t bytes() const { return list.size() * sizeof(std::int32_t) + ranks.size() * sizeof(uint2); }
};

/// The rows that is_spread() says of, in `list` as far as it has room; how many and how wide: counters->spread and
/// counters->spread_words.
void find_spread(const RowBounds* bounds, std::int64_t rows, std::int32_t above, Counters* counters,
                 const DeviceArray<std::int32_t>& list, cudaStream_t stream);
/// Entries and words of these rows to job.row_nnz and job.stored, with no place in the pool; rows.ranks.
void count_spread(const StructureJob& job, const SpreadRows& rows, cudaStream_t stream);
/// Their entries of C; also the columns, if job.fills.
template <class T>
void run_numeric_spread(const NumericJob<T>& job, Work work, const SpreadRows& rows, cudaStream_t stream);

}  // namespace rmsp::kernels::spgemm
