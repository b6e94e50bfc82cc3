#include <kernels/spmv/ehyb/host_layout.hpp>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <core/subscript.hpp>
#include <kernels/spmv/ehyb/graph_parts.hpp>
#include <kernels/spmv/ehyb/host_pool.hpp>
#include <kernels/spmv/ehyb/lay_out.hpp>
#include <kernels/spmv/ehyb/mesh_parts.hpp>

namespace rmsp::kernels::ehyb {
namespace {

using core::at;

Structure structure_of(const Pattern& a)
{
    return {a.rows, a.cols, a.diagonal, a.row_ptr.data(), a.row_ptr.type() == IndexType::i64, a.col_idx, a.nnz()};
}

/// The row whose part has a column, or -1.
std::int64_t row_of_column(const Pattern& a, std::int32_t column)
{
    const std::int64_t row = column - a.diagonal;
    return row >= 0 && row < a.rows ? row : -1;
}

/// Rows of one vertex at most: far fewer than those of a part, which METIS could not balance otherwise.
constexpr std::int32_t most_unknowns = 8;

/// A + A^T, as far as columns belong to rows, with one vertex for each run of rows of the same neighbours: the unknowns
/// of a node of a mesh. METIS needs a fraction of the time then.
struct Graph {
    std::vector<std::int32_t> vertex;  ///< of each row
    std::vector<std::int32_t> rows;    ///< of each vertex
    std::vector<std::int64_t> first;   ///< neighbour of each vertex; and the end
    std::vector<std::int32_t> neighbours;
};

Graph symmetrised(const Pattern& a, int threads)
{
    const auto each_other = [&](std::int64_t row, auto&& f) {
        for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
            const std::int64_t other = row_of_column(a, a.col_idx[i]);
            if (other >= 0 && other != row) {
                f(other);
            }
        }
    };
    // Each row's own number is among its neighbours here, so that rows of one node have the same ones.
    std::vector<std::int64_t> first(at(a.rows + 1), 1);
    first[0] = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1024)
    for (std::int64_t row = 0; row < a.rows; ++row) {
        each_other(row, [&](std::int64_t other) {
            std::int64_t& own = first[at(row + 1)];
            std::int64_t& others = first[at(other + 1)];
#pragma omp atomic
            ++own;
#pragma omp atomic
            ++others;
        });
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<std::int64_t> next(first.begin(), first.end() - 1);
    HostVector<std::int32_t> neighbours(at(first.back()));
    const auto append = [&](std::int64_t row, std::int64_t other) {
        std::int64_t place = 0;
        std::int64_t& end = next[at(row)];
#pragma omp atomic capture
        place = end++;
        neighbours[at(place)] = static_cast<std::int32_t>(other);
    };
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1024)
    for (std::int64_t row = 0; row < a.rows; ++row) {
        append(row, row);
        each_other(row, [&](std::int64_t other) {
            append(row, other);
            append(other, row);
        });
    }
    // Both directions of an entry may be there, and entries may be repeated.
    const auto begin_of = [&](std::int64_t row) { return neighbours.begin() + first[at(row)]; };
    const auto end_of = [&](std::int64_t row) { return neighbours.begin() + next[at(row)]; };
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1024)
    for (std::int64_t row = 0; row < a.rows; ++row) {
        std::sort(begin_of(row), end_of(row));
        next[at(row)] = std::unique(begin_of(row), end_of(row)) - neighbours.begin();
    }
    Graph g;
    g.vertex.resize(at(a.rows));
    std::vector<std::int64_t> row_of;
    for (std::int64_t row = 0; row < a.rows; ++row) {
        if (row == 0 || g.rows.back() == most_unknowns ||
            !std::equal(begin_of(row), end_of(row), begin_of(row - 1), end_of(row - 1))) {
            row_of.push_back(row);
            g.rows.push_back(0);
        }
        ++g.rows.back();
        g.vertex[at(row)] = static_cast<std::int32_t>(row_of.size() - 1);
    }
    g.first.push_back(0);
    for (std::size_t v = 0; v < row_of.size(); ++v) {
        std::int32_t last = -1;
        std::for_each(begin_of(row_of[v]), end_of(row_of[v]), [&](std::int32_t row) {
            const std::int32_t other = g.vertex[at(row)];
            if (other != last && other != static_cast<std::int32_t>(v)) {
                g.neighbours.push_back(other);
            }
            last = other;
        });
        g.first.push_back(static_cast<std::int64_t>(g.neighbours.size()));
    }
    return g;
}

}  // namespace

void require_metis(const char* kernel)
{
    if (!has_metis()) {
        throw NotCompiled(fmt::format("SpMV kernel \"{}\" (METIS)", kernel));
    }
}

HostVector<std::int32_t> parts_of_rows(const Pattern& a, std::int64_t parts, EhybOrder order, int threads)
{
    HostVector<std::int32_t> part(at(a.rows));
    if (order == EhybOrder::metis && parts > 1) {
        const Graph g = symmetrised(a, std::max(threads, 1));
        const auto part_of_vertex = graph_parts(g.first, g.neighbours, g.rows, parts, imbalance_per_mille);
        std::transform(g.vertex.begin(), g.vertex.end(), part.begin(),
                       [&](std::int32_t vertex) { return part_of_vertex[at(vertex)]; });
    } else if (order == EhybOrder::mesh) {
        mesh_parts(HostPool(threads), structure_of(a), parts, part.data(), mesh_parts_tuning, [](const char*) {});
    } else {
        natural_parts(HostPool(threads), a.rows, parts, part.data());
    }
    return part;
}

Layout make_layout(const Pattern& a, std::span<const std::int32_t> part, std::int64_t parts, std::int64_t columns,
                   int vector, int threads, const EhybGhosts& ghosts, const EhybTuning& tuning)
{
    return lay_out(HostPool(threads), structure_of(a), part.data(), parts, columns, vector, ghosts, tuning);
}

}  // namespace rmsp::kernels::ehyb
