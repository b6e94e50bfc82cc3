#include <rmsp/matrix.hpp>

#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>

#include <core/value_types.hpp>
#include <rmsp/error.hpp>

#include "core/parallel.hpp"

namespace rmsp {
namespace {

constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

// First line (row of CSR, column of CSC) whose end lies before its start, or `none`.
std::int64_t first_falling_line(std::int64_t lines, IndexView pointers)
{
    std::int64_t first = none;
    pointers.visit([&](const auto* p) {
#pragma omp parallel for schedule(static) reduction(min : first) if (lines > core::least_parallel)
        for (std::int64_t i = 0; i < lines; ++i) {
            if (p[i + 1] < p[i] && i < first) {
                first = i;
            }
        }
    });
    return first;
}

// First entry whose index is outside [0, bound), or `none`.
std::int64_t first_bad_index(std::int64_t nnz, std::int64_t bound, IndexView indices)
{
    std::int64_t first = none;
    indices.visit([&](const auto* p) {
#pragma omp parallel for schedule(static) reduction(min : first) if (nnz > core::least_parallel)
        for (std::int64_t i = 0; i < nnz; ++i) {
            const std::int64_t index = p[i];
            if ((index < 0 || index >= bound) && i < first) {
                first = i;
            }
        }
    });
    return first;
}

[[noreturn]] void invalid(Format format, std::int64_t rows, std::int64_t cols, std::int64_t nnz,
                          const std::string& what)
{
    const char* const name = format == Format::csr ? "CSR" : format == Format::csc ? "CSC" : "COO";
    throw Error(ErrorCode::usage,
                fmt::format("invalid {} x {} {} matrix with {} nonzeros: {}", rows, cols, name, nnz, what));
}

template <class Fail>
void check_base(const Fail& fail, int base)
{
    if (base != 0) {
        fail(fmt::format(
            "its indices count from {} (base); only Runtime and SparseProduct take those that count from 1", base));
    }
}

// CSR as it is, CSC as the CSR of its transpose under the names of CSC.
template <class T>
void validate_compressed(const CsrView<T>& a, Format format)
{
    const bool csr = format == Format::csr;
    const char* const line = csr ? "row" : "column";
    const char* const other = csr ? "column" : "row";
    const char* const pointers = csr ? "row_ptr" : "col_ptr";
    const auto fail = [&](const std::string& what) {
        invalid(format, csr ? a.rows : a.cols, csr ? a.cols : a.rows, a.nnz, what);
    };
    if (a.rows < 0 || a.cols < 0 || a.nnz < 0) {
        fail("sizes must not be negative");
    }
    check_base(fail, a.base);
    if (a.row_ptr.data() == nullptr) {
        fail(fmt::format("the {} pointers are null", line));
    }
    if (a.nnz > 0 && (a.col_idx.data() == nullptr || a.values == nullptr)) {
        fail(a.values == nullptr ? "the values are null" : fmt::format("the {} indices are null", other));
    }
    if (a.row_ptr[0] != 0) {
        fail(fmt::format("{}[0] is {}, not 0 (indices are zero-based)", pointers, a.row_ptr[0]));
    }
    const std::int64_t falling = first_falling_line(a.rows, a.row_ptr);
    if (falling != none) {
        fail(fmt::format("{} {} starts at entry {} and ends at entry {}", line, falling, a.row_ptr[falling],
                         a.row_ptr[falling + 1]));
    }
    if (a.row_ptr[a.rows] != a.nnz) {
        fail(fmt::format("{}[{}] is {}", pointers, a.rows, a.row_ptr[a.rows]));
    }
    const std::int64_t entry = first_bad_index(a.nnz, a.cols, a.col_idx);
    if (entry != none) {
        const std::int64_t holder = a.row_ptr.visit(
            [&](const auto* p) -> std::int64_t { return std::upper_bound(p, p + a.rows + 1, entry) - p - 1; });
        fail(fmt::format("entry {} (entry {} of {} {}) has {} {}", entry, entry - a.row_ptr[holder], line, holder,
                         other, a.col_idx[entry]));
    }
}

}  // namespace

template <class T>
void validate(const CsrView<T>& a)
{
    validate_compressed(a, Format::csr);
}

template <class T>
void validate(const CscView<T>& a)
{
    validate_compressed(CsrView<T>{a.cols, a.rows, a.nnz, a.col_ptr, a.row_idx, a.values, a.base}, Format::csc);
}

template <class T>
void validate(const CooView<T>& a)
{
    const auto fail = [&](const std::string& what) { invalid(Format::coo, a.rows, a.cols, a.nnz, what); };
    if (a.rows < 0 || a.cols < 0 || a.nnz < 0) {
        fail("sizes must not be negative");
    }
    check_base(fail, a.base);
    if (a.nnz == 0) {
        return;
    }
    if (a.values == nullptr || a.row_idx.data() == nullptr || a.col_idx.data() == nullptr) {
        fail(a.values == nullptr
                 ? "the values are null"
                 : fmt::format("the {} indices are null", a.row_idx.data() == nullptr ? "row" : "column"));
    }
    const std::int64_t row_entry = first_bad_index(a.nnz, a.rows, a.row_idx);
    const std::int64_t column_entry = first_bad_index(a.nnz, a.cols, a.col_idx);
    const std::int64_t entry = std::min(row_entry, column_entry);
    if (entry != none) {
        fail(fmt::format("entry {} is at row {}, column {}", entry, a.row_idx[entry], a.col_idx[entry]));
    }
}

#define RMSP_INSTANTIATE(T)                    \
    template void validate(const CsrView<T>&); \
    template void validate(const CscView<T>&); \
    template void validate(const CooView<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp
