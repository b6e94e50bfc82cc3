#include "matrix/diagonal.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/value_types.hpp"
#include "matrix/dense.hpp"
#include "matrix/for_each_row.hpp"

namespace rmsp::matrix {

template <class T>
HostVector<T> diagonal(const CsrView<T>& a)
{
    HostVector<T> out(static_cast<std::size_t>(std::min(a.rows, a.cols)));
    a.col_idx.visit([&](const auto* col) {
        for_each_row(static_cast<std::int64_t>(out.size()), [&](std::int64_t row) {
            T sum = 0;
            for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
                sum += col[k] == row ? a.values[k] : T{0};
            }
            out[static_cast<std::size_t>(row)] = sum;
        });
    });
    return out;
}

template <class T>
HostVector<T> row_norms(const CsrView<T>& a)
{
    HostVector<T> norms(static_cast<std::size_t>(a.rows));
    a.col_idx.visit([&](const auto* col) {
        for_each_row(a.rows, [&](std::int64_t row) {
            double sum = 0;
            double diagonal = 0;
            for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
                sum += std::fabs(double{a.values[k]});
                diagonal += col[k] == row ? double{a.values[k]} : 0.0;
            }
            norms[static_cast<std::size_t>(row)] = static_cast<T>(diagonal < 0 ? -sum : sum);
        });
    });
    return norms;
}

template <class T>
BlockInverses<T> block_inverses(const CsrView<T>& a, int size, std::int64_t first, std::int64_t end)
{
    constexpr int most = 64;
    if (size < 1 || size > most) {
        throw Error(ErrorCode::usage, fmt::format("diagonal blocks of {} rows: from 1 to {}", size, most));
    }
    if (first < 0 || first > end || end > std::min(a.rows, a.cols)) {
        throw Error(ErrorCode::usage,
                    fmt::format("diagonal blocks of rows {} to {} of a {} x {} matrix", first, end, a.rows, a.cols));
    }
    BlockInverses<T> out;
    out.rows = end - first;
    out.size = size;
    const std::int64_t count = (out.rows + size - 1) / size;
    const std::int64_t entries = std::int64_t{size} * size;
    out.blocks.resize(static_cast<std::size_t>(count * entries));
    std::atomic<std::int64_t> singular{0};
    std::atomic<std::int64_t> first_singular{std::numeric_limits<std::int64_t>::max()};
    for_row_ranges(count, 256, [&](std::int64_t begin_block, std::int64_t end_block) {
        std::vector<double> block(static_cast<std::size_t>(entries));
        std::vector<double> inverse(static_cast<std::size_t>(entries));
        std::vector<double> own(static_cast<std::size_t>(size));
        for (std::int64_t b = begin_block; b < end_block; ++b) {
            std::fill(block.begin(), block.end(), 0.0);
            const std::int64_t from = first + b * size;
            for (std::int64_t i = 0; i < size; ++i) {
                const std::int64_t row = from + i;
                if (row >= end) {
                    block[static_cast<std::size_t>(i * size + i)] = 1;
                    continue;
                }
                for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
                    const std::int64_t j = a.col_idx[k] - from;
                    if (j >= 0 && j < size && from + j < end) {
                        block[static_cast<std::size_t>(j * size + i)] += static_cast<double>(a.values[k]);
                    }
                }
            }
            for (std::int64_t i = 0; i < size; ++i) {
                own[static_cast<std::size_t>(i)] = block[static_cast<std::size_t>(i * size + i)];
            }
            if (!invert(block, size, inverse)) {
                ++singular;
                std::int64_t seen = first_singular;
                while (b < seen && !first_singular.compare_exchange_weak(seen, b)) {
                }
                std::fill(inverse.begin(), inverse.end(), 0.0);
                for (std::int64_t i = 0; i < size; ++i) {
                    const double entry = own[static_cast<std::size_t>(i)];
                    inverse[static_cast<std::size_t>(i * size + i)] =
                        std::isfinite(entry) && entry != 0 ? 1 / entry : 1;
                }
            }
            std::transform(inverse.begin(), inverse.end(), out.blocks.begin() + b * entries,
                           [](double v) { return static_cast<T>(v); });
        }
    });
    out.singular = singular;
    out.first_singular = singular > 0 ? first_singular.load() : -1;
    return out;
}

#define RMSP_INSTANTIATE(T)                              \
    template HostVector<T> diagonal(const CsrView<T>&);  \
    template HostVector<T> row_norms(const CsrView<T>&); \
    template BlockInverses<T> block_inverses(const CsrView<T>&, int, std::int64_t, std::int64_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::matrix
