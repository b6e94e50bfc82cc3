#include "apps/mspmv/solve_advice.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rmsp/spgemm.hpp>
#include <rmsp/value_types.hpp>

namespace rmsp::mspmv {
namespace {

/// What the rows of a matrix have in common.
struct Rows {
    bool sum_to_zero = true;
    std::int64_t not_positive = 0;  ///< entries of the diagonal that are not above 0
    std::int64_t not_finite = 0;    ///< entries
    std::int64_t weak = 0;          ///< entries of the diagonal below a tenth of the magnitudes beside them
};

template <class T>
Rows look_at(const CsrMatrix<T>& a)
{
    Rows rows;
    for (std::int64_t row = 0; row < a.rows; ++row) {
        double sum = 0;
        double magnitude = 0;
        double diagonal = 0;
        const auto begin = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(row)]);
        const auto end = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(row) + 1]);
        for (std::size_t k = begin; k < end; ++k) {
            const auto value = static_cast<double>(a.values[k]);
            rows.not_finite += std::isfinite(value) ? 0 : 1;
            sum += value;
            magnitude += std::abs(value);
            diagonal += a.col_idx[static_cast<std::int64_t>(k)] == row ? value : 0;
        }
        // Rounding of the sum alone.
        const double bound =
            (static_cast<double>(end - begin) + 4) * double{std::numeric_limits<T>::epsilon()} * magnitude;
        rows.sum_to_zero = rows.sum_to_zero && std::abs(sum) <= bound;
        rows.not_positive += diagonal > 0 ? 0 : 1;
        rows.weak += std::abs(diagonal) < 0.1 * (magnitude - std::abs(diagonal)) ? 1 : 0;
    }
    return rows;
}

/// "a, b, c": methods that ask for less.
template <class F>
std::string methods_where(const F& f)
{
    std::vector<std::string_view> names;
    for (const SolverInfo& solver : list_solvers()) {
        if (f(solver)) {
            names.push_back(solver.name);
        }
    }
    return names.empty() ? "" : fmt::format("; methods that need less: {}", fmt::join(names, ", "));
}

}  // namespace

template <class T>
bool is_symmetric(const CsrMatrix<T>& a)
{
    if (a.rows != a.cols) {
        return false;
    }
    // Transposed twice, its rows are sorted, as those of the transpose are.
    const CsrMatrix<T> t = transposed<T>(a.view());
    const CsrMatrix<T> sorted = transposed<T>(t.view());
    bool same = sorted.row_ptr == t.row_ptr && sorted.values == t.values;
    for (std::int64_t k = 0; same && k < t.nnz(); ++k) {
        same = sorted.col_idx[k] == t.col_idx[k];
    }
    return same;
}

template <class T>
std::vector<std::string> solve_advice(const CsrMatrix<T>& a, std::span<const T> b, const SolverOptions& options,
                                      const SolveResult& result)
{
    const std::string& method = options.method;
    std::vector<std::string> notes;
    if (result.converged() || result.outcome == Outcome::cancelled) {
        return notes;
    }
    const auto infos = list_solvers();
    const auto info =
        std::find_if(infos.begin(), infos.end(), [&](const SolverInfo& solver) { return solver.name == method; });
    const Rows rows = look_at(a);
    const auto bad = std::count_if(b.begin(), b.end(), [](T entry) { return !std::isfinite(entry); });
    if (rows.not_finite > 0 || bad > 0) {
        notes.push_back(fmt::format("{} entries of the matrix and {} of b are NaN or infinite", rows.not_finite, bad));
        return notes;
    }
    const bool symmetric = is_symmetric(a);
    if (rows.sum_to_zero && a.rows > 0) {
        double sum = 0;
        double norm = 0;
        for (const T entry : b) {
            sum += static_cast<double>(entry);
            norm = std::hypot(norm, static_cast<double>(entry));
        }
        std::string note = "the rows of the matrix sum to zero, so it is singular: a constant may be added to any x";
        if (symmetric && norm > 0) {
            const double share = std::abs(sum) / (norm * std::sqrt(static_cast<double>(a.rows)));
            note += fmt::format(
                ". A x = b has a solution only where the entries of b sum to zero; the constant part of this b is "
                "{:.3g} of |b|, below which no residual can be. Take it from b, or fix x somewhere",
                share);
        }
        notes.push_back(std::move(note));
    }
    if (info != infos.end() && info->symmetric && !symmetric) {
        notes.push_back(fmt::format("{} needs a symmetric matrix, which this one is not{}", method,
                                    methods_where([](const SolverInfo& solver) { return !solver.symmetric; })));
    } else if (info != infos.end() && info->definite && rows.not_positive > 0) {
        notes.push_back(
            fmt::format("{} needs a positive definite matrix, but {} entries of the diagonal are not above 0{}", method,
                        rows.not_positive, methods_where([](const SolverInfo& solver) { return !solver.definite; })));
    }
    if (!symmetric && a.rows == a.cols) {
        std::string note = "the matrix is not symmetric";
        // From a hundredth of the rows on they are more than a boundary.
        if (100 * rows.weak >= a.rows) {
            note += fmt::format(
                ", and {} of {} entries of its diagonal are below a tenth of what is beside them, as those of the "
                "pressure in a flow: jacobi, block-jacobi and schwarz-ilu0 are not for such rows",
                rows.weak, a.rows);
        }
        std::vector<std::string_view> left;
        if (options.preconditioner != "schwarz-iluk") {
            left.emplace_back("--preconditioner schwarz-iluk, with gmres, bicgstab or idr, on few devices");
        }
        if (method != "idr" || options.preconditioner != "spai") {
            left.emplace_back("--method idr --preconditioner spai, where incomplete factors are unstable");
        }
        notes.push_back(fmt::format("{}. Try {}", note, fmt::join(left, "; then ")));
    }
    const auto kinds = list_preconditioners();
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const PreconditionerInfo& preconditioner) {
        return preconditioner.name == options.preconditioner;
    });
    if (info != infos.end() && kind != kinds.end() &&
        ((info->symmetric && !kind->symmetric) || (info->definite && !kind->definite))) {
        notes.push_back(fmt::format("{} needs a symmetric positive definite preconditioner, which {} need not be",
                                    method, options.preconditioner));
    }
    return notes;
}

#define RMSP_INSTANTIATE(T)                                                                                       \
    template std::vector<std::string> solve_advice(const CsrMatrix<T>&, std::span<const T>, const SolverOptions&, \
                                                   const SolveResult&);                                           \
    template bool is_symmetric(const CsrMatrix<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::mspmv
