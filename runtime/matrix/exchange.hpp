#pragma once

#include "runtime/matrix/state.hpp"

namespace rmsp::detail {

/// Whether the devices may number the columns of such a matrix anew, as an exchange by entries does.
inline bool may_number_anew(Format format, const DistributeOptions& options)
{
    return options.mode == Mode::resident && !options.borrow && !options.transposed && format == Format::csr;
}

/// Most entries that a device receives at an apply with x by rows.
std::int64_t largest_halo(const Plan& plan);

/// Exchange by entries, of which each device receives so many; `slices` of x.
void set_ghosts(Plan& plan, const std::vector<std::int64_t>& slices, const std::vector<std::int64_t>& ghosts);

/// Chooses ranges or entries for the exchange of an x by rows. For entries it numbers the columns of all uploaded shards anew and
/// makes what the devices need to send and to receive them.
template <class T>
void choose_exchange(MatrixState<T>& matrix, Exchange wanted);

}  // namespace rmsp::detail
