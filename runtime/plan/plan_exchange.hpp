#pragma once

#include <cstdint>
#include <vector>

#include <rmsp/runtime.hpp>

#include "runtime/node/node.hpp"
#include "runtime/plan/stored.hpp"

/// What is known of the exchange of an x by rows before a matrix is distributed.
namespace rmsp::plan {

/// Whether the devices may number the columns of such a matrix anew, as an exchange by entries does.
inline bool may_number_anew(Format format, const DistributeOptions& options)
{
    return options.mode == Mode::resident && !options.borrow && !options.transposed && format == Format::csr;
}

/// Most entries that a device receives at an apply with x by rows.
std::int64_t largest_halo(const Plan& plan);

/// Exchange by entries, of which each device receives so many; `slices` of x.
void set_ghosts(Plan& plan, const std::vector<std::int64_t>& slices, const std::vector<std::int64_t>& ghosts);

/// Whether an x by rows will be exchanged by entries, as choose_exchange() finds on the devices, and how many each
/// device receives; reads every column.
template <class T>
void plan_exchange(Plan& plan, const detail::RuntimeState& runtime, const Stored<T>& a,
                   const DistributeOptions& options);

}  // namespace rmsp::plan
