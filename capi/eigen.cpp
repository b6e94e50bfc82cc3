#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <rmsp/eigen_report.hpp>

#include "capi/handles.hpp"

namespace rmsp::capi {

/// The matrix, asked for its plan when a report is wanted, and the vectors found.
template <class T>
struct Found {
    DistributedMatrix<T> matrix;
    std::vector<DistributedVector<T>> vectors;
};

}  // namespace rmsp::capi

struct rmsp_eigen {
    rmsp::EigenReport report{};
    rmsp::capi::OfEither<rmsp::capi::Found> found;
};

namespace rmsp::capi {
namespace {

template <class T>
rmsp_eigen* solved(const DistributedMatrix<T>& matrix, const std::string& name, const rmsp_options* options)
{
    const Config& config = config_of(options);
    EigenOptions how = eigen_options(config);
    if (options != nullptr && options->callback != nullptr) {
        how.callback = [tell = options->callback, context = options->context](const SolverProgress& progress) {
            return tell(context, progress.iteration, progress.residual, progress.target, progress.seconds) == 0;
        };
    }
    auto preconditioner =
        make_preconditioner<T>(matrix, config.eigen.preconditioner, solver_options(config).preconditioner_options);
    EigenSolver<T> solver(matrix, how, preconditioner);
    EigenResult<T> result = solver.solve();
    std::unique_ptr<rmsp_eigen> made(new rmsp_eigen{{}, Found<T>{matrix, std::move(result.vectors)}});
    EigenReport& report = made->report;
    report.matrix = name;
    report.method = how.method;
    report.which = how.which;
    report.count = how.count;
    report.tolerance = how.tolerance;
    report.solved = true;
    if (preconditioner) {
        report.preconditioner = preconditioner->report();
    }
    report.result = std::move(static_cast<EigenSummary&>(result));
    return made.release();
}

}  // namespace
}  // namespace rmsp::capi

using namespace rmsp::capi;

rmsp_status rmsp_eigen_solve(const rmsp_matrix* matrix, const rmsp_options* options, rmsp_eigen** eigen)
{
    return call(__func__, [&] {
        const rmsp_matrix& of = required(matrix, "matrix");
        rmsp_eigen*& result = required(eigen, "eigen");
        std::visit([&](const auto& a) { result = solved(a, of.name, options); }, of.matrix);
    });
}

void rmsp_eigen_destroy(rmsp_eigen* eigen) { delete eigen; }

rmsp_status rmsp_eigen_outcome(const rmsp_eigen* eigen, rmsp_outcome* outcome)
{
    return call(__func__, [&] {
        required(outcome, "outcome") = static_cast<rmsp_outcome>(required(eigen, "eigen").report.result.outcome);
    });
}

rmsp_status rmsp_eigen_iterations(const rmsp_eigen* eigen, int64_t* iterations)
{
    return call(__func__,
                [&] { required(iterations, "iterations") = required(eigen, "eigen").report.result.iterations; });
}

rmsp_status rmsp_eigen_values(const rmsp_eigen* eigen, const double** values, const double** residuals, int* count)
{
    return call(__func__, [&] {
        const rmsp::EigenSummary& of = required(eigen, "eigen").report.result;
        required(count, "count") = static_cast<int>(of.values.size());
        if (values != nullptr) {
            *values = of.values.data();
        }
        if (residuals != nullptr) {
            *residuals = of.residuals.data();
        }
    });
}

rmsp_status rmsp_eigen_vector(const rmsp_eigen* eigen, int index, rmsp_vector** vector)
{
    return call(__func__, [&] {
        rmsp_vector*& result = required(vector, "vector");
        std::visit(
            [&](const auto& found) {
                const std::size_t count = found.vectors.size();
                if (index < 0 || static_cast<std::size_t>(index) >= count) {
                    fail("there are " + std::to_string(count) + " eigenvectors, and none of number " +
                         std::to_string(index) + ", counted from 0");
                }
                result = new rmsp_vector{found.vectors[static_cast<std::size_t>(index)]};
            },
            required(eigen, "eigen").found);
    });
}

rmsp_status rmsp_eigen_reason(const rmsp_eigen* eigen, const char** reason)
{
    return call(__func__, [&] { required(reason, "reason") = required(eigen, "eigen").report.result.reason.c_str(); });
}

rmsp_status rmsp_eigen_report(const rmsp_eigen* eigen, rmsp_text_format format, char** text)
{
    return call(__func__, [&] {
        const rmsp_eigen& of = required(eigen, "eigen");
        rmsp::EigenReport report = of.report;
        rmsp::Report of_matrix = std::visit([](const auto& found) { return found.matrix.report(); }, of.found);
        report.plan = std::move(of_matrix.plan);
        report.setup = std::move(of_matrix.setup);
        report.notes = std::move(of_matrix.notes);
        give(text, format, report);
    });
}
