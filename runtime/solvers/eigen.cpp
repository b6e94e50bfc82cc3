#include <rmsp/eigen.hpp>

#include <mutex>

#include <core/value_types.hpp>
#include <rmsp/vector_operations.hpp>

#include "core/edit_distance.hpp"
#include "core/enumerator.hpp"
#include "runtime/solvers/lanczos.hpp"
#include "runtime/solvers/lobpcg.hpp"
#include "runtime/solvers/solver_state.hpp"

namespace rmsp {
namespace {

using Clock = std::chrono::steady_clock;

template <class T>
solvers::EigenMatrix<T> checked_matrix(solvers::EigenMatrix<T> matrix, const EigenOptions& options, bool preconditioned)
{
    if (options.method != "lobpcg" && options.method != "lanczos") {
        throw Error(ErrorCode::usage, core::unknown_name("eigensolver", options.method, {"lobpcg", "lanczos"}));
    }
    core::require_enumerator("EigenOptions::which", options.which, Spectrum::largest);
    if (matrix.here.rows() != matrix.here.cols()) {
        throw Error(ErrorCode::usage, fmt::format("eigenpairs are those of a square matrix; this one is {} x {}",
                                                  matrix.here.rows(), matrix.here.cols()));
    }
    if (preconditioned && options.method == "lanczos") {
        throw Error(ErrorCode::usage, "eigensolver \"lanczos\" takes no preconditioner");
    }
    const auto require = [](bool good, const char* what, const auto& value, const std::string& wants) {
        if (!good) {
            throw Error(ErrorCode::usage,
                        fmt::format("eigensolver option {} is {}, it must be {}", what, value, wants));
        }
    };
    const std::int64_t most = std::min<std::int64_t>(16, matrix.rows);
    require(options.count >= 1 && options.count <= most, "count", options.count, fmt::format("1 to {}", most));
    require(options.tolerance >= 0, "tolerance", options.tolerance, "at least 0");
    require(options.max_iterations >= 1, "max_iterations", options.max_iterations, "at least 1");
    require(options.max_seconds > 0, "max_seconds", options.max_seconds, "above 0");
    require(options.basis == 0 || (options.basis > options.count && options.basis <= 120), "basis", options.basis,
            "0, or above count and at most 120");
    return matrix;
}

}  // namespace

namespace detail {

template <class T>
struct EigenState {
    EigenState(solvers::EigenMatrix<T> matrix_, const EigenOptions& options_,
               std::shared_ptr<Preconditioner<T>> preconditioner_)
        : matrix(checked_matrix(std::move(matrix_), options_, preconditioner_ != nullptr)),
          options(options_),
          preconditioner(std::move(preconditioner_)),
          scalars(make_scalars(matrix)),
          residual(matrix.vector()),
          vector(matrix.vector()),
          lambda(scalars.make()),
          square(scalars.make()),
          check(scalars)
    {
        matrix.multiply(check, vector, residual);
        check.pass(residual -= lambda * vector, square = dot(residual, residual));
        // Three blocks of vectors of a small matrix cannot be independent; a basis of all its rows is no work.
        const auto block = static_cast<std::int64_t>(solvers::Lobpcg<T>::block_of(options));
        if (options.method == "lanczos" || matrix.rows < 5 * block) {
            method = std::make_unique<solvers::Lanczos<T>>(matrix, options, scalars);
        } else {
            method = std::make_unique<solvers::Lobpcg<T>>(matrix, preconditioner.get(), options, scalars);
        }
    }

    static Scalars make_scalars(const solvers::EigenMatrix<T>& matrix)
    {
        const auto& state = *checked(MatrixAccess::state(matrix.here));
        auto bank = std::make_shared<ScalarsState>(state.runtime, kernels::most_scalars,
                                                   solvers::devices_with_parts(matrix.here),
                                                   state.options.determinism == Determinism::device_count);
        bank->outside = matrix.ghosted ? matrix.ghosted->outside : nullptr;
        return SequenceAccess::handle(std::move(bank));
    }

    const solvers::EigenMatrix<T> matrix;
    const EigenOptions options;
    const std::shared_ptr<Preconditioner<T>> preconditioner;
    Scalars scalars;
    const Vec<T> residual;
    const Vec<T> vector;
    const Scalar lambda;
    const Scalar square;
    Sequence check;  ///< |A v - lambda v|^2
    std::unique_ptr<solvers::EigenMethod<T>> method;
    std::mutex solving;
};

}  // namespace detail

template <class T>
EigenSolver<T>::EigenSolver(const DistributedMatrix<T>& matrix, const EigenOptions& options,
                            std::shared_ptr<Preconditioner<T>> preconditioner)
    : state_(
          std::make_shared<detail::EigenState<T>>(solvers::EigenMatrix<T>(matrix), options, std::move(preconditioner)))
{
}

template <class T>
EigenSolver<T>::EigenSolver(const GhostedMatrix<T>& matrix, const EigenOptions& options,
                            std::shared_ptr<Preconditioner<T>> preconditioner)
{
    const auto& ghosted = detail::GhostedAccess::state(matrix);
    std::lock_guard lock(ghosted->using_);
    state_ =
        std::make_shared<detail::EigenState<T>>(solvers::EigenMatrix<T>(ghosted), options, std::move(preconditioner));
}

template <class T>
EigenResult<T> EigenSolver<T>::solve()
{
    detail::EigenState<T>& s = *state_;
    const auto exchanging =
        s.matrix.ghosted ? std::unique_lock(s.matrix.ghosted->using_) : std::unique_lock<std::mutex>();
    std::lock_guard lock(s.solving);
    const auto began = Clock::now();
    const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - began).count(); };
    EigenResult<T> result;
    solvers::EigenProgress progress;
    s.scalars.restart();
    s.method->start();
    while (true) {
        if (!s.method->iterate(progress)) {
            const bool finite = std::isfinite(progress.residual) && std::isfinite(progress.target);
            result.outcome = finite && progress.iterations > 0 ? Outcome::breakdown : Outcome::not_finite;
            result.reason = result.outcome == Outcome::breakdown
                                ? "the vectors of the search space are not independent any more: that may be all that "
                                  "the precision allows"
                                : "what is computed is not finite: look for NaN and infinities in the matrix";
            break;
        }
        if (progress.converged) {
            result.outcome = Outcome::converged;
            break;
        }
        // Clocks and callbacks are the first process's.
        const double now = s.matrix.of_first(seconds());
        if (s.matrix.of_first(s.options.callback && !s.options.callback({progress.iterations, progress.residual,
                                                                         progress.target, now})) != 0) {
            result.outcome = Outcome::cancelled;
            result.reason = "the callback cancelled";
            break;
        }
        if (progress.iterations >= s.options.max_iterations || now > s.options.max_seconds) {
            const bool late = progress.iterations < s.options.max_iterations;
            result.outcome = late ? Outcome::time : Outcome::iterations;
            result.reason = fmt::format("{} after {} iterations; the residual is {:.3g}, {:.3g} was asked for",
                                        late ? "the time was over" : "stopped", progress.iterations, progress.residual,
                                        progress.target);
            break;
        }
    }
    result.iterations = progress.iterations;
    result.target = progress.target;
    if (result.outcome != Outcome::not_finite) {
        std::vector<Vec<T>> vectors;
        for (int k = 0; k < s.options.count; ++k) {
            result.vectors.push_back(s.matrix.here.make_x(Layout::rows));
            vectors.emplace_back(result.vectors.back());
        }
        result.values = s.method->pairs(vectors);
        DistributedVector<T> checked = s.vector.vector();
        for (std::size_t k = 0; k < vectors.size(); ++k) {
            copy(result.vectors[k], checked);
            s.scalars.set(s.lambda, result.values[k]);
            s.check.run();
            result.residuals.push_back(std::sqrt(s.scalars.get(s.square)));
            // What the method reckons with may differ by as much from the truth.
            constexpr double slack = 1.1;
            if (result.converged() && !(result.residuals.back() <= slack * result.target)) {
                result.outcome = Outcome::stagnation;
                result.reason = fmt::format(
                    "a residual stays at {:.3g} where {:.3g} was asked for: that may be all that "
                    "the precision allows",
                    result.residuals.back(), result.target);
            }
        }
    }
    result.seconds = seconds();
    return result;
}

#define RMSP_INSTANTIATE(T) template class EigenSolver<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
