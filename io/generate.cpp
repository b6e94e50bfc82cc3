#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/io.hpp>

#include "core/enumerator.hpp"
#include "core/parallel.hpp"
#include "core/value_types.hpp"
#include "io/build_rows.hpp"
#include "io/random.hpp"
#include "io/row_patterns.hpp"
#include "matrix/csr_build.hpp"

namespace rmsp {
namespace {

using io::Band;
using io::build_rows;
using io::checked_count;
using io::edge_stream;
using io::fill_values;
using io::name_of_grids;
using io::of_grids;
using io::PowerLawRows;
using io::refuse_values_of_grids;
using io::require_at_least;
using io::require_values;
using io::rows_each;
using io::Stencil;
using io::UniformRows;

template <class T>
CsrMatrix<T> stencil(const char* name, bool box, std::int64_t nx, std::int64_t ny, std::int64_t nz,
                     const GenerateOptions& options)
{
    require_values(options);
    require_at_least(0, name, {{"nx", nx}, {"ny", ny}, {"nz", nz}});
    if (nx == 0 || ny == 0 || nz == 0) {
        return build_rows<T>(Stencil(0, 0, 0, box), 0, 0, options);
    }
    const std::int64_t plane =
        checked_count(static_cast<core::uint128>(nx) * static_cast<core::uint128>(ny), name, "points in a plane");
    const std::int64_t rows =
        checked_count(static_cast<core::uint128>(plane) * static_cast<core::uint128>(nz), name, "points");
    checked_count(static_cast<core::uint128>(rows) * 27, name, "nonzeros");
    return build_rows<T>(Stencil(nx, ny, nz, box), rows, rows, options, box ? 26 : 6);
}

/// Chakrabarti, Zhan, Faloutsos: "R-MAT: a recursive model for graph mining", SDM 2004. An edge is row << scale |
/// column.
std::vector<HostVector<std::uint64_t>> rmat_edges(int scale, std::int64_t edges, std::uint64_t seed, int threads,
                                                  core::ProgressMeter& meter)
{
    constexpr std::int64_t edges_each = std::int64_t{1} << 18;
    // Quadrant probabilities of Graph500, as 32-bit fractions.
    constexpr auto a = static_cast<std::uint32_t>(0.57 * 0x1p32);
    constexpr auto ab = static_cast<std::uint32_t>((0.57 + 0.19) * 0x1p32);
    constexpr auto abc = static_cast<std::uint32_t>((0.57 + 0.19 + 0.19) * 0x1p32);
    std::vector<HostVector<std::uint64_t>> chunks(static_cast<std::size_t>((edges + edges_each - 1) / edges_each));
    core::parallel_for(threads, static_cast<std::int64_t>(chunks.size()), [&](std::int64_t b) {
        auto& chunk = chunks[static_cast<std::size_t>(b)];
        const std::int64_t first = b * edges_each;
        chunk.resize(static_cast<std::size_t>(std::min(edges_each, edges - first)));
        for (std::size_t i = 0; i < chunk.size(); ++i) {
            const io::RandomStream random(io::mix(seed + edge_stream), static_cast<std::uint64_t>(first) + i);
            std::uint64_t row = 0;
            std::uint64_t col = 0;
            for (int level = 0; level < scale; ++level) {
                // One 64-bit number serves two levels.
                const std::uint64_t word = random.at(static_cast<std::uint64_t>(level / 2));
                const auto draw = static_cast<std::uint32_t>(level % 2 == 0 ? word : word >> 32);
                row = row << 1 | static_cast<std::uint64_t>(draw >= ab);
                col = col << 1 | static_cast<std::uint64_t>((draw >= a && draw < ab) || draw >= abc);
            }
            chunk[i] = row << scale | col;
        }
        meter.advance(static_cast<std::int64_t>(chunk.size()));
    });
    return chunks;
}

template <class T>
CsrMatrix<T> rmat_matrix(int scale, std::int64_t edges, const GenerateOptions& options)
{
    const int threads = core::thread_count(0);
    const std::int64_t rows = std::int64_t{1} << scale;
    core::ProgressMeter meter(options.progress, "generate", 2 * edges);
    auto chunks = rmat_edges(scale, edges, options.seed, threads, meter);
    auto blocks = matrix::scatter_by_row(
        chunks, rows, threads, [&](std::uint64_t e) { return static_cast<std::int64_t>(e >> scale); }, meter);

    std::vector<std::int64_t> start(blocks.start.size(), 0);
    core::parallel_for(threads, blocks.blocks(), [&](std::int64_t b) {
        const auto begin = blocks.items.begin() + blocks.start[static_cast<std::size_t>(b)];
        const auto end = blocks.items.begin() + blocks.start[static_cast<std::size_t>(b) + 1];
        std::sort(begin, end);
        start[static_cast<std::size_t>(b) + 1] = std::unique(begin, end) - begin;
    });
    for (std::size_t b = 1; b < start.size(); ++b) {
        start[b] += start[b - 1];
    }
    CsrMatrix<T> m = matrix::allocate_csr<T>(rows, rows, start.back());
    m.row_ptr.back() = start.back();
    m.col_idx.visit([&](auto& col) {
        using C = typename std::decay_t<decltype(col)>::value_type;
        core::parallel_for(threads, blocks.blocks(), [&](std::int64_t b) {
            const std::uint64_t* edge = blocks.items.data() + blocks.start[static_cast<std::size_t>(b)];
            const std::int64_t first = blocks.first_row(b, rows);
            const std::int64_t last = blocks.first_row(b + 1, rows);
            const std::int64_t end = start[static_cast<std::size_t>(b) + 1];
            std::int64_t k = start[static_cast<std::size_t>(b)];
            for (std::int64_t r = first; r < last; ++r) {
                m.row_ptr[static_cast<std::size_t>(r)] = k;
                for (; k < end && static_cast<std::int64_t>(*edge >> scale) == r; ++k, ++edge) {
                    col[static_cast<std::size_t>(k)] = static_cast<C>(*edge & static_cast<std::uint64_t>(rows - 1));
                }
            }
            fill_values(options, 0, m.row_ptr, col.data(), m.values.data(), first, last, end);
        });
    });
    return m;
}

/// The most entries that a row has beside the diagonal.
/// \throws Error(usage) if all rows have as many
template <class T>
std::int64_t most_neighbours(const CsrMatrix<T>& a)
{
    std::int64_t most = 0;
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    a.view().col_idx.visit([&](const auto* col) {
        const std::int64_t* const row_ptr = a.row_ptr.data();
#pragma omp parallel for schedule(static) reduction(max : most) reduction(min : fewest)
        for (std::int64_t r = 0; r < a.rows; ++r) {
            const auto beside = static_cast<std::int64_t>(
                std::count_if(col + row_ptr[r], col + row_ptr[r + 1], [r](auto c) { return c != r; }));
            most = std::max(most, beside);
            fewest = std::min(fewest, beside);
        }
    });
    if (a.rows > 0 && most == fewest) {
        throw Error(ErrorCode::usage,
                    fmt::format("values \"poisson\": each of the {} rows has {} entries beside the diagonal, so all "
                                "would sum to zero and the matrix would be singular",
                                a.rows, most));
    }
    return most;
}

}  // namespace

template <class T>
CsrMatrix<T> stencil7(std::int64_t nx, std::int64_t ny, std::int64_t nz, const GenerateOptions& options)
{
    return stencil<T>("stencil7", false, nx, ny, nz, options);
}

template <class T>
CsrMatrix<T> stencil27(std::int64_t nx, std::int64_t ny, std::int64_t nz, const GenerateOptions& options)
{
    return stencil<T>("stencil27", true, nx, ny, nz, options);
}

template <class T>
CsrMatrix<T> banded(std::int64_t rows, std::int64_t half_band, const GenerateOptions& options)
{
    require_at_least(0, "banded", {{"rows", rows}, {"half_band", half_band}});
    refuse_values_of_grids(options, "banded");
    const std::int64_t half = std::clamp<std::int64_t>(half_band, 0, std::max<std::int64_t>(rows - 1, 0));
    checked_count(static_cast<core::uint128>(rows) * (2 * static_cast<core::uint128>(half) + 1), "banded", "nonzeros");
    return build_rows<T>(Band{rows, half}, rows, rows, options);
}

template <class T>
CsrMatrix<T> rmat(int scale, int edge_factor, const GenerateOptions& options)
{
    require_at_least(0, "rmat", {{"scale", scale}, {"edge_factor", edge_factor}});
    refuse_values_of_grids(options, "rmat");
    if (scale > 31) {
        throw Error(ErrorCode::usage,
                    fmt::format("rmat: scale is {}, it must be at most 31 (an edge is one 64-bit number)", scale));
    }
    const std::int64_t edges = static_cast<std::int64_t>(edge_factor) << scale;
    core::require_memory(static_cast<core::uint128>(edges) * 16,
                         fmt::format("rmat: {} edges and their sorted copy", edges));
    return rmat_matrix<T>(scale, edges, options);
}

template <class T>
CsrMatrix<T> random_uniform(std::int64_t rows, std::int64_t cols, std::int64_t per_row, const GenerateOptions& options)
{
    require_at_least(0, "random", {{"rows", rows}, {"cols", cols}, {"per_row", per_row}});
    refuse_values_of_grids(options, "random");
    const std::int64_t each = std::min(per_row, cols);
    checked_count(static_cast<core::uint128>(rows) * static_cast<core::uint128>(std::max<std::int64_t>(each, 1)),
                  "random", "nonzeros");
    return build_rows<T>(UniformRows{cols, each, options.seed}, rows, cols, options);
}

template <class T>
CsrMatrix<T> power_law(std::int64_t rows, std::int64_t per_row, double exponent, const GenerateOptions& options)
{
    require_at_least(0, "powerlaw", {{"rows", rows}, {"per_row", per_row}});
    refuse_values_of_grids(options, "powerlaw");
    if (!(exponent >= 1 && exponent <= 4)) {
        throw Error(ErrorCode::usage, fmt::format("powerlaw: exponent is {}, it must be from 1 to 4", exponent));
    }
    checked_count(static_cast<core::uint128>(rows) * static_cast<core::uint128>(std::min(per_row, rows) + 1),
                  "powerlaw", "nonzeros");
    core::require_memory(static_cast<core::uint128>(rows) * 16, fmt::format("powerlaw: lengths of {} rows", rows));
    return build_rows<T>(PowerLawRows(rows, per_row, exponent, options.seed), rows, rows, options);
}

template <class T>
void set_values(CsrMatrix<T>& a, ValueKind kind, std::uint64_t seed)
{
    core::require_enumerator("kind", kind, ValueKind::poisson);
    if (of_grids(kind) && a.rows != a.cols) {
        throw Error(ErrorCode::usage, fmt::format("values \"{}\" need a square matrix; this one is {} x {}",
                                                  name_of_grids(kind), a.rows, a.cols));
    }
    const std::int64_t neighbours = kind == ValueKind::poisson ? most_neighbours(a) : 0;
    GenerateOptions options;
    options.seed = seed;
    options.values = kind;
    a.col_idx.visit([&](auto& col) {
        core::parallel_for(core::thread_count(0), (a.rows + rows_each - 1) / rows_each, [&](std::int64_t b) {
            const std::int64_t end = std::min(a.rows, (b + 1) * rows_each);
            fill_values(options, neighbours, a.row_ptr, col.data(), a.values.data(), b * rows_each, end,
                        a.row_ptr[static_cast<std::size_t>(end)]);
        });
    });
}

#define RMSP_INSTANTIATE(T)                                                                                 \
    template CsrMatrix<T> stencil7(std::int64_t, std::int64_t, std::int64_t, const GenerateOptions&);       \
    template CsrMatrix<T> stencil27(std::int64_t, std::int64_t, std::int64_t, const GenerateOptions&);      \
    template CsrMatrix<T> banded(std::int64_t, std::int64_t, const GenerateOptions&);                       \
    template CsrMatrix<T> rmat(int, int, const GenerateOptions&);                                           \
    template CsrMatrix<T> random_uniform(std::int64_t, std::int64_t, std::int64_t, const GenerateOptions&); \
    template CsrMatrix<T> power_law(std::int64_t, std::int64_t, double, const GenerateOptions&);            \
    template void set_values(CsrMatrix<T>&, ValueKind, std::uint64_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp
