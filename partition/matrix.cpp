#include <rmsp/matrix.hpp>

#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>

#include <rmsp/error.hpp>

namespace rmsp {
namespace {

constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();

// First row whose end lies before its start, or `none`.
std::int64_t first_falling_row(std::int64_t rows, IndexView row_ptr)
{
    std::int64_t first = none;
    row_ptr.visit([&](const auto* p) {
#pragma omp parallel for schedule(static) reduction(min : first) if (rows > 65536)
        for (std::int64_t i = 0; i < rows; ++i) {
            if (p[i + 1] < p[i] && i < first) {
                first = i;
            }
        }
    });
    return first;
}

// First entry whose column is outside [0, cols), or `none`.
std::int64_t first_bad_column(std::int64_t nnz, std::int64_t cols, IndexView col_idx)
{
    std::int64_t first = none;
    col_idx.visit([&](const auto* c) {
#pragma omp parallel for schedule(static) reduction(min : first) if (nnz > 65536)
        for (std::int64_t i = 0; i < nnz; ++i) {
            const std::int64_t column = c[i];
            if ((column < 0 || column >= cols) && i < first) {
                first = i;
            }
        }
    });
    return first;
}

}  // namespace

const char* to_string(ErrorCode code) noexcept
{
    switch (code) {
        case ErrorCode::internal:
            return "internal";
        case ErrorCode::usage:
            return "usage";
        case ErrorCode::io:
            return "io";
        case ErrorCode::out_of_memory:
            return "out_of_memory";
        case ErrorCode::device:
            return "device";
        case ErrorCode::not_converged:
            return "not_converged";
        case ErrorCode::verification:
            return "verification";
    }
    return "unknown";
}

const char* to_string(Format format) noexcept
{
    switch (format) {
        case Format::csr:
            return "csr";
        case Format::csc:
            return "csc";
        case Format::coo:
            return "coo";
    }
    return "unknown";
}

template <class T>
void validate(const CsrView<T>& a)
{
    const auto fail = [&](const std::string& what) {
        throw Error(ErrorCode::usage,
                    fmt::format("invalid {} x {} CSR matrix with {} nonzeros: {}", a.rows, a.cols, a.nnz, what));
    };
    if (a.rows < 0 || a.cols < 0 || a.nnz < 0) {
        fail("sizes must not be negative");
    }
    if (a.rows > 0 && a.row_ptr.data() == nullptr) {
        fail("the row pointers are null");
    }
    if (a.nnz > 0 && (a.col_idx.data() == nullptr || a.values == nullptr)) {
        fail(a.values == nullptr ? "the values are null" : "the column indices are null");
    }
    if (a.row_ptr.data() != nullptr) {
        if (a.row_ptr[0] != 0) {
            fail(fmt::format("row_ptr[0] is {}, not 0", a.row_ptr[0]));
        }
        const std::int64_t row = first_falling_row(a.rows, a.row_ptr);
        if (row != none) {
            fail(
                fmt::format("row {} starts at entry {} and ends at entry {}", row, a.row_ptr[row], a.row_ptr[row + 1]));
        }
    }
    const std::int64_t last = a.row_ptr.data() == nullptr ? 0 : a.row_ptr[a.rows];
    if (last != a.nnz) {
        fail(fmt::format("row_ptr[{}] is {}", a.rows, last));
    }
    const std::int64_t entry = first_bad_column(a.nnz, a.cols, a.col_idx);
    if (entry != none) {
        const std::int64_t row = a.row_ptr.visit(
            [&](const auto* p) -> std::int64_t { return std::upper_bound(p, p + a.rows + 1, entry) - p - 1; });
        fail(fmt::format("entry {} (entry {} of row {}) has column {}", entry, entry - a.row_ptr[row], row,
                         a.col_idx[entry]));
    }
}

template void validate(const CsrView<float>&);
template void validate(const CsrView<double>&);

}  // namespace rmsp
