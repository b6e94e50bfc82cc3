#pragma once

#include "matrix/sparse_inverse.hpp"
#include "runtime/matrix/distribute_like.hpp"
#include "runtime/matrix/update.hpp"
#include "runtime/preconditioners/base.hpp"

namespace rmsp::preconditioners {

using distributed::device_bytes;
using distributed::distribute_like;

/// New values of a matrix that distribute_like() made.
template <class T>
void update_inverse(const DistributedMatrix<T>& there, const CsrMatrix<T>& m)
{
    distributed::update_values(detail::MatrixAccess::state(there), m.values.data());
}

/// \throws Error(usage) for options that are out of range
inline matrix::InversePattern pattern_of(const PreconditionerOptions& options)
{
    require_option(options.pattern_power >= 0 && options.pattern_power <= 8, "pattern_power", options.pattern_power,
                   "0 to 8");
    require_option(options.most_entries >= 1, "most_entries", options.most_entries, "at least 1");
    matrix::InversePattern pattern;
    pattern.power = options.pattern_power;
    pattern.most_entries = options.most_entries;
    return pattern;
}

/// What is said of rows that had no solution of their own.
inline std::vector<std::string> notes_of(const matrix::InverseStatus& status, std::int64_t rows)
{
    if (status.singular_rows == 0) {
        return {};
    }
    return {fmt::format("{} of {} rows have singular systems, the first is row {}: they have a diagonal entry alone",
                        status.singular_rows, rows, status.first_singular)};
}

}  // namespace rmsp::preconditioners
