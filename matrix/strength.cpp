#include "matrix/strength.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/value_types.hpp"
#include "matrix/for_each_row.hpp"

namespace rmsp::matrix {
namespace {

template <class T>
void check(const CsrView<T>& a, double threshold)
{
    if (a.rows != a.cols || a.rows > std::numeric_limits<std::int32_t>::max()) {
        throw Error(ErrorCode::usage,
                    fmt::format("multigrid coarsens square matrices of fewer than 2^31 rows; this one is {} x {}",
                                a.rows, a.cols));
    }
    if (!(threshold >= 0 && threshold <= 1)) {
        throw Error(ErrorCode::usage, fmt::format("a strength threshold of {}: it must be 0 to 1", threshold));
    }
}

/// Turns counts, each one place behind its row, into row pointers.
void sum_up(HostVector<std::int64_t>& row_ptr) { std::partial_sum(row_ptr.begin(), row_ptr.end(), row_ptr.begin()); }

}  // namespace

template <class T>
HostVector<std::uint8_t> strong_entries(const CsrView<T>& a, Strength kind, double threshold)
{
    check(a, threshold);
    HostVector<std::uint8_t> marks(static_cast<std::size_t>(a.nnz));
    HostVector<double> diagonal(static_cast<std::size_t>(a.rows));
    HostVector<double> largest(static_cast<std::size_t>(a.rows));
    const auto of = [](const HostVector<double>& rows, std::int64_t row) {
        return rows[static_cast<std::size_t>(row)];
    };
    a.col_idx.visit([&](const auto* columns) {
        // How much an entry counts: of the classical measure, as far as its sign is not the diagonal's.
        const auto weight = [&](std::int64_t row, std::int64_t k) {
            const double value{a.values[k]};
            return columns[k] == row || !std::isfinite(value) ? 0.0
                   : kind == Strength::symmetric              ? std::fabs(value)
                   : of(diagonal, row) < 0                    ? value
                                                              : -value;
        };
        for_each_row(a.rows, [&](std::int64_t row) {
            double found = 0;
            for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
                found = columns[k] == row ? double{a.values[k]} : found;
            }
            diagonal[static_cast<std::size_t>(row)] = found;
            double most = 0;
            for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
                most = std::max(most, weight(row, k));
            }
            largest[static_cast<std::size_t>(row)] = most;
        });
        const auto judged = [&](std::int64_t row, std::int64_t k) {
            const double w = weight(row, k);
            if (!(w > 0)) {
                return mark::weak;
            }
            if (kind == Strength::classical) {
                return w >= threshold * of(largest, row) ? mark::strong : mark::weak;
            }
            const std::int64_t column = columns[k];
            const double own = share_of_largest * of(largest, row);
            const bool counts = w >= threshold * std::sqrt(std::fabs(of(diagonal, row) * of(diagonal, column)));
            return counts || w >= std::max(own, share_of_largest * of(largest, column)) ? mark::strong
                   : w >= own                                                           ? mark::one_sided
                                                                                        : mark::weak;
        };
        for_each_row(a.rows, [&](std::int64_t row) {
            for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
                marks[static_cast<std::size_t>(k)] = judged(row, k);
            }
        });
    });
    return marks;
}

template <class T>
Graph strong_graph(const CsrView<T>& a, std::span<const std::uint8_t> marks)
{
    Graph graph;
    graph.row_ptr.resize(static_cast<std::size_t>(a.rows) + 1);
    graph.row_ptr[0] = 0;
    const auto counts = [&](std::int64_t k) { return marks[static_cast<std::size_t>(k)] == mark::strong; };
    for_each_row(a.rows, [&](std::int64_t row) {
        std::int64_t count = 0;
        for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
            count += counts(k) ? 1 : 0;
        }
        graph.row_ptr[static_cast<std::size_t>(row) + 1] = count;
    });
    sum_up(graph.row_ptr);
    graph.col_idx.resize(static_cast<std::size_t>(graph.row_ptr.back()));
    for_each_row(a.rows, [&](std::int64_t row) {
        auto to = static_cast<std::size_t>(graph.row_ptr[static_cast<std::size_t>(row)]);
        for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
            if (counts(k)) {
                graph.col_idx[to++] = static_cast<std::int32_t>(a.col_idx[k]);
            }
        }
    });
    return graph;
}

HostVector<std::int32_t> in_degrees(const Graph& graph)
{
    HostVector<std::int32_t> degrees(static_cast<std::size_t>(graph.rows()));
    std::fill(degrees.begin(), degrees.end(), 0);
    for (const std::int32_t column : graph.col_idx) {
        ++degrees[static_cast<std::size_t>(column)];
    }
    return degrees;
}

Graph symmetrised(const Graph& graph)
{
    const std::int64_t rows = graph.rows();
    // The transpose, whose columns rise since rows come in order.
    Graph back;
    back.row_ptr.resize(static_cast<std::size_t>(rows) + 1);
    std::fill(back.row_ptr.begin(), back.row_ptr.end(), 0);
    for (const std::int32_t column : graph.col_idx) {
        ++back.row_ptr[static_cast<std::size_t>(column) + 1];
    }
    sum_up(back.row_ptr);
    back.col_idx.resize(graph.col_idx.size());
    HostVector<std::int64_t> place(back.row_ptr.begin(), back.row_ptr.end() - 1);
    for (std::int64_t row = 0; row < rows; ++row) {
        for (const std::int32_t column : graph.neighbours(row)) {
            back.col_idx[static_cast<std::size_t>(place[static_cast<std::size_t>(column)]++)] =
                static_cast<std::int32_t>(row);
        }
    }
    const auto both = [&](std::int64_t row, auto to) {
        const auto a = graph.neighbours(row);
        const auto b = back.neighbours(row);
        return std::set_union(a.begin(), a.end(), b.begin(), b.end(), to);
    };
    Graph all;
    all.row_ptr.resize(static_cast<std::size_t>(rows) + 1);
    all.row_ptr[0] = 0;
    for_row_ranges(rows, 4096, [&](std::int64_t begin, std::int64_t end) {
        std::vector<std::int32_t> room;
        for (std::int64_t row = begin; row < end; ++row) {
            room.resize(graph.neighbours(row).size() + back.neighbours(row).size());
            all.row_ptr[static_cast<std::size_t>(row) + 1] = both(row, room.begin()) - room.begin();
        }
    });
    sum_up(all.row_ptr);
    all.col_idx.resize(static_cast<std::size_t>(all.row_ptr.back()));
    for_each_row(
        rows, [&](std::int64_t row) { both(row, all.col_idx.begin() + all.row_ptr[static_cast<std::size_t>(row)]); });
    return all;
}

template <class T>
bool is_canonical(const CsrView<T>& a)
{
    std::atomic<bool> good{true};
    a.col_idx.visit([&](const auto* columns) {
        for_each_row(a.rows, [&](std::int64_t row) {
            for (std::int64_t k = a.row_ptr[row] + 1; k < a.row_ptr[row + 1]; ++k) {
                if (columns[k] <= columns[k - 1]) {
                    good.store(false, std::memory_order_relaxed);
                }
            }
        });
    });
    return good;
}

template <class T>
CsrMatrix<double> block_norms(const CsrView<T>& a, int size)
{
    if (size < 1 || a.rows % size != 0 || a.cols != a.rows) {
        throw Error(ErrorCode::usage,
                    fmt::format("a matrix of {} x {} has no blocks of {} unknowns a node", a.rows, a.cols, size));
    }
    const std::int64_t nodes = a.rows / size;
    // Sums of squares of a block row, by its rising columns.
    const auto block_row = [&](std::int64_t node, std::vector<std::pair<std::int64_t, double>>& sums) {
        sums.clear();
        for (std::int64_t k = a.row_ptr[node * size]; k < a.row_ptr[(node + 1) * size]; ++k) {
            const double value{a.values[k]};
            sums.emplace_back(a.col_idx[k] / size, value * value);
        }
        std::sort(sums.begin(), sums.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
        std::size_t count = 0;
        for (const auto& sum : sums) {
            if (count > 0 && sums[count - 1].first == sum.first) {
                sums[count - 1].second += sum.second;
            } else {
                sums[count++] = sum;
            }
        }
        sums.resize(count);
    };
    CsrMatrix<double> norms;
    norms.rows = norms.cols = nodes;
    norms.row_ptr.resize(static_cast<std::size_t>(nodes) + 1);
    norms.row_ptr[0] = 0;
    const auto for_block_rows = [&](const auto& f) {
        for_row_ranges(nodes, 1024, [&](std::int64_t begin, std::int64_t end) {
            std::vector<std::pair<std::int64_t, double>> sums;
            for (std::int64_t node = begin; node < end; ++node) {
                block_row(node, sums);
                f(node, sums);
            }
        });
    };
    for_block_rows([&](std::int64_t node, const auto& sums) {
        norms.row_ptr[static_cast<std::size_t>(node) + 1] = static_cast<std::int64_t>(sums.size());
    });
    sum_up(norms.row_ptr);
    const auto entries = static_cast<std::size_t>(norms.row_ptr.back());
    HostVector<std::int32_t> columns(entries);
    norms.values.resize(entries);
    for_block_rows([&](std::int64_t node, const auto& sums) {
        auto to = static_cast<std::size_t>(norms.row_ptr[static_cast<std::size_t>(node)]);
        for (const auto& [column, sum] : sums) {
            columns[to] = static_cast<std::int32_t>(column);
            norms.values[to++] = std::sqrt(sum);
        }
    });
    norms.col_idx = std::move(columns);
    return norms;
}

template <class T>
HostVector<std::uint8_t> of_blocks(const CsrView<T>& a, int size, const CsrView<double>& blocks,
                                   std::span<const std::uint8_t> strong)
{
    HostVector<std::uint8_t> marks(static_cast<std::size_t>(a.nnz));
    for_each_row(a.rows, [&](std::int64_t row) {
        const std::int64_t node = row / size;
        for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
            const std::int64_t column = a.col_idx[k];
            std::int64_t first = blocks.row_ptr[node];
            std::int64_t last = blocks.row_ptr[node + 1];
            while (last - first > 1) {
                const std::int64_t middle = (first + last) / 2;
                (blocks.col_idx[middle] <= column / size ? first : last) = middle;
            }
            const bool inside = column / size == node && column != row;
            marks[static_cast<std::size_t>(k)] = inside ? 1 : strong[static_cast<std::size_t>(first)];
        }
    });
    return marks;
}

#define RMSP_INSTANTIATE(T)                                                                     \
    template HostVector<std::uint8_t> strong_entries(const CsrView<T>&, Strength, double);      \
    template Graph strong_graph(const CsrView<T>&, std::span<const std::uint8_t>);              \
    template bool is_canonical(const CsrView<T>&);                                              \
    template CsrMatrix<double> block_norms(const CsrView<T>&, int);                             \
    template HostVector<std::uint8_t> of_blocks(const CsrView<T>&, int, const CsrView<double>&, \
                                                std::span<const std::uint8_t>);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::matrix
