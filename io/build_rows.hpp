#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/io.hpp>

#include "core/enumerator.hpp"
#include "core/parallel.hpp"
#include "core/wide.hpp"
#include "io/random.hpp"
#include "io/row_patterns.hpp"
#include "matrix/csr_build.hpp"

/// Makes matrices of the patterns of generators.
namespace rmsp::io {

inline void require_at_least(std::int64_t least, const char* generator,
                             std::initializer_list<std::pair<const char*, std::int64_t>> arguments)
{
    for (const auto& [name, value] : arguments) {
        if (value < least) {
            throw Error(ErrorCode::usage,
                        fmt::format("{}: {} is {}, it must be at least {}", generator, name, value, least));
        }
    }
}

/// For products of counts that may not fit 64 bits.
inline core::uint128 wide(std::int64_t n) { return static_cast<core::uint128>(n); }

/// \throws Error(usage) if a count cannot be a 64-bit number
inline std::int64_t checked_count(core::uint128 count, const char* generator, const char* what)
{
    if (count >= static_cast<core::uint128>(INT64_MAX)) {
        throw Error(ErrorCode::usage,
                    fmt::format("{}: about {:.3g} {} do not fit 64 bits", generator, static_cast<double>(count), what));
    }
    return static_cast<std::int64_t>(count);
}

/// `neighbours`: entries beside the diagonal of a row that misses none, for ValueKind::poisson.
template <class T, class C>
void fill_values(const GenerateOptions& options, std::int64_t neighbours, const HostVector<std::int64_t>& row_ptr,
                 const C* col, T* values, std::int64_t begin, std::int64_t end, std::int64_t end_entry)
{
    const std::int64_t begin_entry = row_ptr[static_cast<std::size_t>(begin)];
    switch (options.values) {
        case ValueKind::ones:
            std::fill(values + begin_entry, values + end_entry, T{1});
            break;
        case ValueKind::random: {
            const io::RandomStream random(options.seed, value_stream);
            for (std::int64_t k = begin_entry; k < end_entry; ++k) {
                values[k] = random.signed_unit<T>(static_cast<std::uint64_t>(k));
            }
            break;
        }
        case ValueKind::laplace:
        case ValueKind::poisson:
            for (std::int64_t r = begin; r < end; ++r) {
                const std::int64_t first = row_ptr[static_cast<std::size_t>(r)];
                const std::int64_t last = r + 1 < end ? row_ptr[static_cast<std::size_t>(r) + 1] : end_entry;
                const std::int64_t diagonal = options.values == ValueKind::poisson ? neighbours : last - first - 1;
                for (std::int64_t k = first; k < last; ++k) {
                    values[k] = static_cast<std::int64_t>(col[k]) == r ? static_cast<T>(diagonal) : T{-1};
                }
            }
            break;
    }
}

/// Builds a matrix whose row pointers are known in closed form, in one pass. `pattern.start(r)` is the first entry of
/// row r; `pattern.fill(begin, end, col)` writes the columns of these rows from `col` on. `neighbours`: see
/// fill_values().
template <class T, class Pattern>
CsrMatrix<T> build_rows(const Pattern& pattern, std::int64_t rows, std::int64_t cols, const GenerateOptions& options,
                        std::int64_t neighbours = 0)
{
    const std::int64_t nnz = pattern.start(rows);
    CsrMatrix<T> a = matrix::allocate_csr<T>(rows, cols, nnz);
    a.row_ptr.back() = nnz;
    core::ProgressMeter meter(options.progress, "generate", nnz);
    a.col_idx.visit([&](auto& col) {
        core::parallel_for(core::thread_count(0), (rows + rows_each - 1) / rows_each, [&](std::int64_t b) {
            const std::int64_t begin = b * rows_each;
            const std::int64_t end = std::min(rows, begin + rows_each);
            for (std::int64_t r = begin; r < end; ++r) {
                a.row_ptr[static_cast<std::size_t>(r)] = pattern.start(r);
            }
            const std::int64_t first = a.row_ptr[static_cast<std::size_t>(begin)];
            const std::int64_t last = pattern.start(end);
            pattern.fill(begin, end, col.data() + first);
            fill_values(options, neighbours, a.row_ptr, col.data(), a.values.data(), begin, end, last);
            meter.advance(last - first);
        });
    });
    return a;
}

inline bool of_grids(ValueKind kind) { return kind == ValueKind::laplace || kind == ValueKind::poisson; }

inline const char* name_of_grids(ValueKind kind) { return kind == ValueKind::laplace ? "laplace" : "poisson"; }

/// \throws Error(usage) for a kind of values that there is not
inline void require_values(const GenerateOptions& options)
{
    core::require_enumerator("GenerateOptions::values", options.values, ValueKind::poisson);
}

inline void refuse_values_of_grids(const GenerateOptions& options, const char* generator)
{
    require_values(options);
    if (of_grids(options.values)) {
        throw Error(ErrorCode::usage, fmt::format("{}: values \"{}\" are for stencil7 and stencil27 only", generator,
                                                  name_of_grids(options.values)));
    }
}

}  // namespace rmsp::io
