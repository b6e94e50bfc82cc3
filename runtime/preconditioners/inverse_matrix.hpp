#pragma once

#include "matrix/sparse_inverse.hpp"
#include "runtime/matrix/distribute.hpp"
#include "runtime/matrix/update.hpp"
#include "runtime/preconditioners/base.hpp"

namespace rmsp::preconditioners {

/// Distributes a matrix so that its rows, and with them its vectors, are cut where those of `like` are.
template <class T>
DistributedMatrix<T> distribute_like(const MatrixState<T>& like, const CsrView<T>& m)
{
    plan::Stored<T> stored = plan::stored(m);
    stored.first_rows = distributed::x_side(like, true).slices;
    DistributeOptions options;
    options.devices = like.plan.devices;
    options.balance = Balance::nonzeros;
    options.determinism = like.options.determinism;
    options.expected_applies = like.options.expected_applies;
    options.transposed = like.options.transposed;
    return detail::MatrixAccess::handle(distributed::distribute(like.runtime, stored, options));
}

/// New values of a matrix that distribute_like() made.
template <class T>
void update_inverse(const DistributedMatrix<T>& there, const CsrMatrix<T>& m)
{
    distributed::update_values(detail::MatrixAccess::state(there), m.values.data());
}

template <class T>
std::int64_t device_bytes(const DistributedMatrix<T>& there)
{
    std::int64_t bytes = 0;
    for (const ShardPlan& shard : there.plan().shards) {
        bytes += shard.matrix_bytes;
    }
    return bytes;
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
