#pragma once

#include <functional>
#include <string>
#include <vector>

#include <rmsp/config.hpp>
#include <rmsp/solver.hpp>

/// Plans of a dry run: on several numbers of devices, of generated matrices that are too large to be worth
/// generating, and of clusters.
namespace rmsp::mspmv {

/// Plans for one matrix, as often as it is asked to.
using Planner = std::function<Plan(const DistributeOptions&)>;
template <class T>
using PlannerOf = std::function<Planner(const CsrMatrix<T>&)>;

/// The plan, with predictions for 1, 2, 4, 8 and 16 of the runtime's devices. A generated matrix of more than about 4
/// million nonzeros is not made: two of its kind are, of about 1 and 2 million, and what depends on the size is
/// extrapolated from their plans; a note says so. The bandwidth of this machine's devices is
/// measured where it is not known.
///
/// Where the configuration names several machines ("16 x dgx-h200") it is the plan of one of them, with Plan::cluster:
/// of a product or, where `method` is not null, of an iteration of the configuration's solver. `*method` is then that
/// solver's, and of "auto" what that becomes.
/// \throws what load_matrix() and the planner throw, Error(usage) for what clusters do not do
template <class T>
Plan dry_plan(const Config& config, Runtime& runtime, DistributeOptions options, const PlannerOf<T>& planner,
              std::vector<std::string>& notes, MethodChoice* method = nullptr);

}  // namespace rmsp::mspmv
