#include <algorithm>

#include <kernels/steps/dense_blocks/dense_blocks.hpp>

#include "core/parallel.hpp"
#include "core/team.hpp"

namespace rmsp::kernels {
namespace host {
namespace {

template <class T>
void multiply_blocks(const T* blocks, int size, std::int64_t rows, const T* r, T* z, const double* skip,
                     const Context& context)
{
    if (skip != nullptr && *skip != 0) {
        return;
    }
    const std::int64_t count = (rows + size - 1) / size;
    const auto multiply = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t b = begin; b < end; ++b) {
            const std::int64_t first = b * size;
            const std::int64_t n = std::min<std::int64_t>(size, rows - first);
            const T* const block = blocks + first * size;
            T sums[most_block_rows] = {};
            for (std::int64_t k = 0; k < n; ++k) {
                for (std::int64_t i = 0; i < n; ++i) {
                    sums[i] += block[k * size + i] * r[first + k];
                }
            }
            std::copy_n(sums, n, z + first);
        }
    };
    constexpr std::int64_t least = 4096;  // entries of blocks
    const std::int64_t entries = std::int64_t{size} * size;
    core::share_ranges(count, context.threads, std::max<std::int64_t>(least / entries, 1),
                       count * entries >= core::least_parallel, multiply);
}

void load_dense_blocks(const Context& /*context*/) {}

}  // namespace
}  // namespace host

RMSP_ROW(DenseBlockLoading, host, .load_dense_blocks = host::load_dense_blocks)

RMSP_VALUE_ROW(DenseBlocks, host, .multiply_blocks = host::multiply_blocks<T>)

}  // namespace rmsp::kernels
