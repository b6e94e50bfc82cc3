#include <mutex>
#include <utility>

#include <rmsp/solve_report.hpp>
#include <rmsp/solver.hpp>

#include "capi/handles.hpp"

namespace rmsp::capi {

/// A solver with what its reports tell.
template <class T>
struct PreparedSolver {
    DistributedMatrix<T> matrix;
    std::shared_ptr<Preconditioner<T>> preconditioner;
    Solver<T> solver;
};

}  // namespace rmsp::capi

struct rmsp_solver {
    rmsp::capi::OfEither<rmsp::capi::PreparedSolver> prepared;
    std::shared_ptr<const void> arrays{};
    std::string matrix_name{};
    std::mutex mutex{};  ///< of `preconditioner`
    rmsp::PreconditionerReport preconditioner{.name = "none"};
};

struct rmsp_result {
    rmsp::SolveReport report{};
    /// Asked for its plan when a report is wanted.
    rmsp::capi::OfEither<rmsp::DistributedMatrix> matrix;
};

namespace rmsp::capi {
namespace {

SolverOptions solver_options_of(const rmsp_options* options)
{
    const Config& config = config_of(options);
    if (config.solver.inner != "none") {
        fail("solver.inner is \"" + config.solver.inner +
             "\", which needs the matrix once more, in float: mspmv solve alone does that");
    }
    SolverOptions solver = solver_options(config);
    if (options != nullptr && options->callback != nullptr) {
        solver.callback = [tell = options->callback, context = options->context](const SolverProgress& progress) {
            return tell(context, progress.iteration, progress.residual, progress.target, progress.seconds) == 0;
        };
    }
    return solver;
}

template <class T>
rmsp_solver* prepare(const rmsp_matrix& from, const DistributedMatrix<T>& matrix, const SolverOptions& options)
{
    auto preconditioner = make_preconditioner<T>(matrix, options.preconditioner, options.preconditioner_options);
    Solver<T> solver(matrix, options, preconditioner);
    auto made = std::unique_ptr<rmsp_solver>(
        new rmsp_solver{PreparedSolver<T>{matrix, preconditioner, std::move(solver)}, from.arrays, from.name});
    if (preconditioner) {
        made->preconditioner = preconditioner->report();
    }
    return made.release();
}

/// Does solve(solver) and gives what came of it.
template <class Solve>
void solved(rmsp_solver* solver, rmsp_result** result, const Solve& solve)
{
    rmsp_solver& with = required(solver, "solver");
    std::visit(
        [&]<class T>(PreparedSolver<T>& prepared) {
            std::unique_ptr<rmsp_result> kept(new rmsp_result{{}, prepared.matrix});
            SolveReport& report = kept->report;
            report.result = solve(prepared.solver);
            if (result == nullptr) {
                if (!report.result.converged()) {
                    throw Error(ErrorCode::not_converged, std::string("not converged (") +
                                                              to_string(report.result.outcome) +
                                                              "): " + report.result.reason);
                }
                return;
            }
            report.matrix = with.matrix_name;
            report.rhs = "the caller's";
            report.choice = prepared.solver.choice();
            report.method = report.choice.method;
            report.tolerance = prepared.solver.options().tolerance;
            report.absolute_tolerance = prepared.solver.options().absolute_tolerance;
            report.solved = true;
            {
                const std::lock_guard lock(with.mutex);
                report.preconditioner = with.preconditioner;
            }
            *result = kept.release();
        },
        with.prepared);
}

}  // namespace
}  // namespace rmsp::capi

using namespace rmsp::capi;

rmsp_status rmsp_solver_create(const rmsp_matrix* matrix, const rmsp_options* options, rmsp_solver** solver)
{
    return call(__func__, [&] {
        const rmsp_matrix& from = required(matrix, "matrix");
        rmsp_solver*& result = required(solver, "solver");
        std::visit([&](const auto& a) { result = prepare(from, a, solver_options_of(options)); }, from.matrix);
    });
}

void rmsp_solver_destroy(rmsp_solver* solver) { delete solver; }

rmsp_status rmsp_solver_solve(rmsp_solver* solver, const void* b, void* x, rmsp_result** result)
{
    return call(__func__, [&] {
        solved(solver, result, [&]<class T>(rmsp::Solver<T>& with) {
            return with.solve(static_cast<const T*>(b), static_cast<T*>(x));
        });
    });
}

rmsp_status rmsp_solver_solve_on_stream(rmsp_solver* solver, const void* b, void* x, void* stream, rmsp_result** result)
{
    return call(__func__, [&] {
        solved(solver, result, [&]<class T>(rmsp::Solver<T>& with) {
            return with.solve(static_cast<const T*>(b), static_cast<T*>(x), rmsp::StreamRef{stream});
        });
    });
}

rmsp_status rmsp_solver_solve_vectors(rmsp_solver* solver, const rmsp_vector* b, rmsp_vector* x, rmsp_result** result)
{
    return call(__func__, [&] {
        solved(solver, result, [&]<class T>(rmsp::Solver<T>& with) {
            return with.solve(of_type<T>(required(b, "b").vector, "b"), of_type<T>(required(x, "x").vector, "x"));
        });
    });
}

rmsp_status rmsp_solver_renew(rmsp_solver* solver)
{
    return call(__func__, [&] {
        rmsp_solver& with = required(solver, "solver");
        std::visit(
            [&](auto& prepared) {
                prepared.solver.renew();
                if (prepared.preconditioner) {
                    const std::lock_guard lock(with.mutex);
                    with.preconditioner = prepared.preconditioner->report();
                }
            },
            with.prepared);
    });
}

void rmsp_result_destroy(rmsp_result* result) { delete result; }

rmsp_status rmsp_result_outcome(const rmsp_result* result, rmsp_outcome* outcome)
{
    return call(__func__, [&] {
        required(outcome, "outcome") = static_cast<rmsp_outcome>(required(result, "result").report.result.outcome);
    });
}

rmsp_status rmsp_result_iterations(const rmsp_result* result, int64_t* iterations)
{
    return call(__func__,
                [&] { required(iterations, "iterations") = required(result, "result").report.result.iterations; });
}

rmsp_status rmsp_result_residual(const rmsp_result* result, double* residual, double* target, double* rhs_norm)
{
    return call(__func__, [&] {
        const rmsp::SolveResult& of = required(result, "result").report.result;
        set(residual, of.true_residual);
        set(target, of.target);
        set(rhs_norm, of.rhs_norm);
    });
}

rmsp_status rmsp_result_seconds(const rmsp_result* result, double* seconds)
{
    return call(__func__, [&] { required(seconds, "seconds") = required(result, "result").report.result.seconds; });
}

rmsp_status rmsp_result_history(const rmsp_result* result, const double** residuals, int64_t* count)
{
    return call(__func__, [&] {
        const auto& history = required(result, "result").report.result.history;
        const double*& place = required(residuals, "residuals");
        required(count, "count") = static_cast<int64_t>(history.size());
        place = history.data();
    });
}

rmsp_status rmsp_result_reason(const rmsp_result* result, const char** reason)
{
    return call(__func__,
                [&] { required(reason, "reason") = required(result, "result").report.result.reason.c_str(); });
}

rmsp_status rmsp_result_report(const rmsp_result* result, rmsp_text_format format, char** text)
{
    return call(__func__, [&] {
        const rmsp_result& of = required(result, "result");
        rmsp::SolveReport report = of.report;
        rmsp::Report of_matrix = std::visit([](const auto& a) { return a.report(); }, of.matrix);
        report.plan = std::move(of_matrix.plan);
        report.setup = std::move(of_matrix.setup);
        report.notes = std::move(of_matrix.notes);
        give(text, format, report);
    });
}

const char* rmsp_outcome_name(rmsp_outcome outcome)
{
    return outcome < RMSP_CONVERGED || outcome > RMSP_CANCELLED ? "unknown"
                                                                : to_string(static_cast<rmsp::Outcome>(outcome));
}
