#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "runtime/matrix/products.hpp"
#include "runtime/sequence/sequence_state.hpp"
#include "runtime/solvers/choose_method.hpp"
#include "runtime/solvers/recipe.hpp"

/// What a solver's handle points to.
namespace rmsp::solvers {

/// Checks what every method needs.
template <class T>
const DistributedMatrix<T>& checked_matrix(const DistributedMatrix<T>& matrix, const SolverOptions& options)
{
    const SolverInfo& info = method_named<T>(options.method).info;
    if (matrix.rows() != matrix.cols() && !info.rectangular) {
        throw Error(ErrorCode::usage, fmt::format("solver \"{}\" needs a square matrix; this one is {} x {}",
                                                  options.method, matrix.rows(), matrix.cols()));
    }
    const auto require = [](bool good, const char* what, const auto& value, const char* wants) {
        if (!good) {
            throw Error(ErrorCode::usage, fmt::format("solver option {} is {}, it must be {}", what, value, wants));
        }
    };
    require(options.tolerance >= 0, "tolerance", options.tolerance, "at least 0");
    require(options.absolute_tolerance >= 0, "absolute_tolerance", options.absolute_tolerance, "at least 0");
    require(options.max_iterations >= 0, "max_iterations", options.max_iterations, "at least 0");
    require(options.max_seconds > 0, "max_seconds", options.max_seconds, "above 0");
    require(options.divergence > 1, "divergence", options.divergence, "above 1");
    require(options.stagnation_window >= 0, "stagnation_window", options.stagnation_window, "at least 0");
    require(options.normal_tolerance >= 0, "normal_tolerance", options.normal_tolerance, "at least 0");
    require(options.smallest_eigenvalue >= 0, "smallest_eigenvalue", options.smallest_eigenvalue, "at least 0");
    require(options.largest_eigenvalue >= 0, "largest_eigenvalue", options.largest_eigenvalue, "at least 0");
    require(std::isfinite(options.relaxation), "relaxation", options.relaxation, "finite");
    require(options.restart >= 1 && options.restart <= 100, "restart", options.restart, "1 to 100");
    require(options.shadow >= 1 && options.shadow <= 8, "shadow", options.shadow, "1 to 8");
    return matrix;
}

/// \throws Error(usage) where the preconditioner varies and the method does not allow for it
template <class T>
void check_preconditioner(const Preconditioner<T>* preconditioner, const SolverInfo& info)
{
    if (preconditioner == nullptr || !preconditioner->varies() || info.flexible) {
        return;
    }
    std::string others;
    for (const SolverInfo& other : list_solvers()) {
        if (other.flexible) {
            others += fmt::format("{}\"{}\"", others.empty() ? "" : " or ", other.name);
        }
    }
    throw Error(ErrorCode::usage,
                fmt::format("preconditioner \"{}\" differs from one iteration to the next with these options, which "
                            "solver \"{}\" does not allow for: take {}",
                            preconditioner->name(), info.name, others));
}

/// The devices that have parts: the first ones.
template <class T>
int devices_with_parts(const DistributedMatrix<T>& matrix)
{
    const auto& state = *detail::checked(detail::MatrixAccess::state(matrix));
    int used = 1;
    for (const auto* const side : {&state.rows, &state.columns}) {
        for (std::size_t rank = 0; rank + 1 < side->slices.size(); ++rank) {
            if (side->slices[rank + 1] > side->slices[rank]) {
                used = std::max(used, static_cast<int>(rank) + 1);
            }
        }
    }
    return used;
}

/// The options with what "auto" becomes.
struct Chosen {
    std::shared_ptr<const SolverOptions> options;
    MethodChoice choice;
};
/// \param preconditioner  made, if there is a choice, where it is null and the options name one
/// \param ghosted         null: all rows are of this process; else every process calls this, and what the first one
///                        finds is taken
/// \throws Error(usage) for a matrix or a preconditioner that "auto" is not for
template <class T>
Chosen choose_for(const DistributedMatrix<T>& matrix, SolverOptions options,
                  std::shared_ptr<Preconditioner<T>>& preconditioner, detail::GhostedState<T>* ghosted = nullptr)
{
    MethodChoice choice{.method = options.method, .reason = {}, .candidates = {}};
    if (options.method == automatic) {
        checked_matrix(matrix, options);
        if (!preconditioner) {
            preconditioner = make_preconditioner(matrix, options.preconditioner, options.preconditioner_options);
        }
        check_preconditioner(preconditioner.get(), method_named<T>(options.method).info);
        const auto& state = *detail::checked(detail::MatrixAccess::state(matrix));
        const Determinism determinism = state.options.determinism;
        const Plan plan = matrix.plan();
        StepFacts facts = step_facts(plan, *state.runtime, preconditioner != nullptr);
        if (ghosted != nullptr) {
            facts.processes = true;
            // What is measured differs from run to run.
            facts.outside_seconds =
                determinism == Determinism::none ? ghosted->outside->sum_seconds() : assumed_outside_seconds;
        }
        choice = choose(facts, determinism);
        if (ghosted != nullptr && !choice.candidates.empty()) {
            take(choice, static_cast<std::size_t>(ghosted->outside->of_first(static_cast<double>(position(choice)))));
        }
        options.method = choice.method;
    }
    return {std::make_shared<const SolverOptions>(std::move(options)), std::move(choice)};
}

}  // namespace rmsp::solvers

namespace rmsp::detail {

template <class T>
struct SolverState {
    SolverState(const DistributedMatrix<T>& matrix_, std::shared_ptr<const SolverOptions> options_,
                std::shared_ptr<Preconditioner<T>> preconditioner_, bool any_order = true,
                std::shared_ptr<GhostedState<T>> ghosted_ = nullptr)
        : matrix(solvers::checked_matrix(matrix_, *options_)),
          shared_options(std::move(options_)),
          options(*shared_options),
          preconditioner(preconditioner_
                             ? std::move(preconditioner_)
                             : make_preconditioner(matrix_, options.preconditioner, options.preconditioner_options)),
          method(solvers::method_named<T>(options.method)),
          ghosted(std::move(ghosted_)),
          rhs(matrix.make_y(any_order && matrix.rows() == matrix.cols() && !method.info.transposed &&
                                    (preconditioner == nullptr || preconditioner->takes_kernel_order())
                                ? Order::kernel
                                : Order::matrix)),
          scalars(make_scalars()),
          recipe(matrix, preconditioner.get(), options, scalars, Vec<T>(matrix.make_x(Layout::rows, rhs.order())),
                 Vec<T>(rhs), rhs.order(), ghosted),
          check(scalars),
          check_norm(scalars.make()),
          check_normal(scalars.make()),
          rhs_norm(scalars.make())
    {
        solvers::check_preconditioner(preconditioner.get(), method.info);
        if (options.project_constants && matrix.rows() != matrix.cols()) {
            throw Error(ErrorCode::usage, fmt::format("solver option project_constants is for square matrices; this "
                                                      "one is {} x {}",
                                                      matrix.rows(), matrix.cols()));
        }
        if (method.info.transposed) {
            distributed::prepare_apply(*checked(MatrixAccess::state(matrix)), true);
        }
        const std::optional<Vec<T>> constant = constant_vector();
        if (constant) {
            append_without_mean(recipe.start, recipe.b, *constant);
        }
        recipe.start.pass(rhs_norm = dot(recipe.b, recipe.b));
        recipe.start.pass(rhs_norm = sqrt(rhs_norm),
                          recipe.target() = max(options.tolerance * ScalarExpression(rhs_norm),
                                                ScalarExpression(options.absolute_tolerance)));
        method.record(recipe);
        if (constant) {
            append_without_mean(recipe.finish, recipe.x, *constant);
        }
        const Vec<T> residual = recipe.vector();
        recipe.residual(check, residual);
        check.pass_always(check_norm = dot(residual, residual), check_norm = sqrt(check_norm));
        if (recipe.matrix_norm) {
            const Vec<T> normal = recipe.column_vector();
            recipe.multiply_transposed(check, residual, normal);
            check.pass_always(check_normal = dot(normal, normal), check_normal = sqrt(check_normal));
        }
        auto steps = std::make_shared<std::vector<std::shared_ptr<SequenceState>>>();
        for (const Sequence& step : recipe.cycle) {
            steps->push_back(SequenceAccess::state(step));
        }
        cycle = std::move(steps);
        prepare();
    }

    Scalars make_scalars() const
    {
        const auto& state = *checked(MatrixAccess::state(matrix));
        auto bank =
            std::make_shared<ScalarsState>(state.runtime, method.scalars(options), solvers::devices_with_parts(matrix),
                                           state.options.determinism == Determinism::device_count);
        bank->outside = ghosted ? ghosted->outside : nullptr;
        return SequenceAccess::handle(std::move(bank));
    }

    /// All ones, if constants are projected out.
    std::optional<Vec<T>> constant_vector()
    {
        if (!options.project_constants) {
            return std::nullopt;
        }
        const Vec<T> constant = recipe.vector();
        constant.vector().fill(T{1});
        return constant;
    }
    void append_without_mean(Sequence& sequence, const Vec<T>& v, const Vec<T>& constant)
    {
        const Scalar mean = scalars.make();
        const Scalar size = scalars.make();
        sequence.pass(mean = dot(v, constant), size = dot(constant, constant), mean = mean / max(size, 1.0));
        sequence.pass(v -= mean * constant);
    }

    void prepare() const
    {
        if (recipe.prepare) {
            recipe.prepare();
        }
    }

    const DistributedMatrix<T> matrix;  ///< of a ghosted one: GhostedState::own
    const std::shared_ptr<const SolverOptions> shared_options;
    const SolverOptions& options;
    const std::shared_ptr<Preconditioner<T>> preconditioner;
    const solvers::Method<T>& method;
    const std::shared_ptr<GhostedState<T>> ghosted;  ///< null: all rows are of this process
    const DistributedVector<T> rhs;  ///< b; the other vectors are in its order: the kernel's where that has one
    Scalars scalars;
    solvers::Recipe<T> recipe;
    Sequence check;  ///< the true residual's norm
    const Scalar check_norm;
    const Scalar check_normal;  ///< that of A^T times it, for methods with Recipe::matrix_norm
    const Scalar rhs_norm;
    std::shared_ptr<const std::vector<std::shared_ptr<SequenceState>>> cycle;
};

/// What all copies of a solver share. Its state is made again where the preconditioner has to be recorded again.
template <class T>
struct SharedSolver {
    SharedSolver(std::unique_ptr<SolverState<T>> made, MethodChoice choice_)
        : ghosted(made->ghosted),
          options(made->shared_options),
          choice(std::move(choice_)),
          state(std::move(made)),
          generation(generation_now())
    {
    }

    std::int64_t generation_now() const { return state->preconditioner ? state->preconditioner->generation() : 0; }
    /// What was recorded of the preconditioner as it is. The caller holds `solving`.
    SolverState<T>& current()
    {
        if (generation_now() != generation) {
            state = std::make_unique<SolverState<T>>(state->matrix, options, state->preconditioner, !ghosted, ghosted);
            generation = generation_now();
        }
        return *state;
    }
    /// Held while processes speak of the matrix.
    std::unique_lock<std::mutex> lock_ghosted() const
    {
        return ghosted ? std::unique_lock(ghosted->using_) : std::unique_lock<std::mutex>();
    }

    const std::shared_ptr<GhostedState<T>> ghosted;
    const std::shared_ptr<const SolverOptions> options;
    const MethodChoice choice;
    std::unique_ptr<SolverState<T>> state;
    std::int64_t generation;  ///< of the preconditioner, when it was recorded
    std::mutex solving;
};

}  // namespace rmsp::detail
