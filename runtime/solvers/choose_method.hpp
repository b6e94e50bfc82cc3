#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include <rmsp/plan.hpp>
#include <rmsp/solver.hpp>

#include "runtime/node/node.hpp"

/// Which variant of conjugate gradients "auto" is: by what an iteration of each moves, launches and waits for.
namespace rmsp::solvers {

inline constexpr std::string_view automatic = "auto";

/// What an iteration does besides the work of its preconditioner. Held to what sequences count by a test.
struct StepModel {
    std::string_view method;
    double products;       ///< with A, those of vectors that are replaced now and then included
    int entries;           ///< of vectors, read or written for each row
    int passes;            ///< over vectors
    int sums;              ///< groups of inner products that are waited for, one after the other
    bool beside;           ///< they are added beside the product
    int more_entries;      ///< of vectors, for each row, with a preconditioner other than none
    int more_passes;       ///< over vectors, with a preconditioner other than none
    double worth;          ///< chosen where every simpler variant takes so many times as long
    std::string_view why;  ///< it is not simply the fastest
};
/// In the order of what rounding does to them. `worth` is the most iterations, over those of cg, that the matrices of
/// docs/solvers.md took: what is won in an iteration is not to be lost by more of them.
inline constexpr std::array<StepModel, 3> step_models{{
    {"cg", 1, 10, 3, 2, false, 2, 1, 1, ""},
    {"cg_single", 1, 13, 3, 1, false, 1, 0, 1.05, "its recurrences may take up to 1.03 times the iterations"},
    {"cg_pipelined", 1.08, 16, 2, 1, true, 6, 1, 1.5, "its recurrences may take up to 1.5 times the iterations"},
}};

/// Seconds of what no bytes explain.
struct StepCosts {
    double launch;  ///< of a pass, or a product, that has nothing to do
    double sum;     ///< until all devices have the sums of all
    double device;  ///< of each device more
};
/// Host devices, which meet; GPUs that add sums through each other's memory, and through the host.
inline constexpr StepCosts host_costs{3e-6, 4e-6, 1e-6};
inline constexpr StepCosts peer_costs{5e-6, 2.5e-6, 0.2e-6};
inline constexpr StepCosts copy_costs{5e-6, 30e-6, 0.2e-6};

/// Of a sum over processes that is not measured.
inline constexpr double assumed_outside_seconds = 20e-6;

/// Of one iteration, on the slowest device.
struct StepFacts {
    double product_seconds = 0;
    double entries_seconds = 0;  ///< of a vector's entries, read or written once
    int devices = 1;             ///< with rows
    StepCosts costs = host_costs;
    bool preconditioned = false;
    bool processes = false;      ///< there are others
    double outside_seconds = 0;  ///< of a sum, or an exchange, over processes
};
StepFacts step_facts(const Plan& plan, const detail::RuntimeState& runtime, bool preconditioned);

/// By the times of the variants in the order of step_models: the position of the one that is taken.
std::size_t choose_among(const std::array<double, step_models.size()>& seconds);
/// Where in step_models the choice is.
std::size_t position(const MethodChoice& choice);
/// Makes the choice that one, and says why.
void take(MethodChoice& choice, std::size_t position);
/// With what each variant is expected to take.
MethodChoice choose(const StepFacts& facts, Determinism determinism);

}  // namespace rmsp::solvers
