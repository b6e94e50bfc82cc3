#pragma once

#include <vector>

#include <rmsp/runtime.hpp>

#include "runtime/node/node.hpp"
#include "runtime/plan/stored.hpp"

/// From a matrix and the options to who multiplies what, with which kernel.
namespace rmsp::plan {

/// Splits, chooses kernels and counts bytes; touches no device. `weights` of the devices that get a part take the place
/// of RuntimeOptions::weights, unless empty. *split_seconds: what the split alone took, without the scans of rows and
/// columns.
template <class T>
Plan make_plan(const detail::RuntimeState& runtime, const Stored<T>& a, const DistributeOptions& options,
               const std::vector<double>& weights = {}, double* split_seconds = nullptr);

/// Whether the cuts of such a matrix may be moved to where its parts take equal time.
inline bool can_move_cuts(Format format, const DistributeOptions& options)
{
    return options.mode == Mode::resident && format == Format::csr && options.strategy == PartitionStrategy::nonzeros;
}

}  // namespace rmsp::plan
