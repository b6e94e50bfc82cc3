#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rmsp/export.hpp>
#include <rmsp/ghosted.hpp>
#include <rmsp/preconditioner.hpp>
#include <rmsp/report.hpp>
#include <rmsp/runtime.hpp>
#include <rmsp/sequence.hpp>

/// Iterative solvers of A x = b on all devices of a runtime.
namespace rmsp {

/// How a solve ended. Numerical failure is an outcome, never an exception.
enum class Outcome : std::uint8_t {
    converged = 1,  ///< the residual that was asked for is reached, and the true residual says so too; lsqr: or x is a
                    ///< least squares solution, whose residual may be any (SolveResult::normal_residual)
    iterations,     ///< max_iterations were done
    time,           ///< max_seconds were over
    stagnation,     ///< the residual has not become smaller for long, or its recurrence and the truth disagree
    breakdown,      ///< the method cannot go on: a division by zero, or a matrix that is not what the method needs
    diverged,       ///< the residual grew beyond SolverOptions::divergence times the first one
    not_finite,     ///< the residual is NaN or infinite: the matrix, b, x or the preconditioner may hold such numbers
    cancelled,      ///< by the callback
};
RMSP_API const char* to_string(Outcome outcome) noexcept;

/// One method of list_solvers().
struct SolverInfo {
    std::string_view name;
    std::string_view description;  ///< what it is, and for which matrices
    bool symmetric = false;        ///< needs A = A^T
    bool definite = false;         ///< needs A, and the preconditioner, to be positive definite besides
    bool transposed = false;       ///< multiplies by A^T, and the preconditioner's transpose, as well
    bool rectangular = false;      ///< minimises |b - A x| of matrices that need not be square
    bool flexible = false;         ///< takes a preconditioner that differs from one iteration to the next
    bool automatic = false;        ///< "auto" may become it
    int turn = 1;                  ///< after so many iterations vectors are replaced by what they stand for; 1: never
};
/// All methods. The names are those of SolverOptions::method. \throws std::bad_alloc in the first call
RMSP_API std::span<const SolverInfo> list_solvers();

/// What the callback of a solve is told.
struct SolverProgress {
    std::int64_t iteration = 0;
    double residual = 0;  ///< |b - A x|, as the method's recurrence has it
    double target = 0;    ///< which residual is asked for
    double seconds = 0;   ///< since the solve began
};

struct SolverOptions {
    /// A name of list_solvers(); "auto": a variant of conjugate gradients, see choose_method().
    std::string method = "cg";
    /// Stops where |b - A x| <= max(tolerance |b|, absolute_tolerance), in the Euclidean norm.
    double tolerance = 1e-8;
    double absolute_tolerance = 0;
    std::int64_t max_iterations = 10000;
    double max_seconds = std::numeric_limits<double>::infinity();
    /// Outcome::diverged where the residual exceeds this times the first one.
    double divergence = 1e8;
    /// Outcome::stagnation after so many iterations without a smaller residual; 0: never.
    std::int64_t stagnation_window = 2000;
    /// lsqr: also stops where |A^T r| <= normal_tolerance |A| |r| with r = b - A x: x is then a least squares solution.
    double normal_tolerance = 1e-8;
    /// chebyshev: an interval with the eigenvalues of M A; 0: estimated.
    double smallest_eigenvalue = 0;
    double largest_eigenvalue = 0;
    double relaxation = 1;  ///< ir: x += relaxation M (b - A x)
    int restart = 30;       ///< gmres: iterations after which it begins again
    int shadow = 4;         ///< idr: dimension s of the shadow space
    bool history = true;    ///< SolveResult::history is kept
    /// A, which is symmetric, maps constants to zero, as that of a Neumann problem: b is solved for without its mean, x
    /// is given without.
    bool project_constants = false;
    /// A name of list_preconditioners(), for a solver that is given no preconditioner.
    std::string preconditioner = "none";
    PreconditionerOptions preconditioner_options{};
    /// Called on the thread of the solve, now and then, with the newest iteration; false cancels the solve. The devices
    /// are some iterations further by then.
    std::function<bool(const SolverProgress&)> callback{};
};

/// A method that "auto" weighed, and what an iteration of it is expected to take, in seconds.
struct MethodCandidate {
    std::string method;
    double seconds = 0;  ///< all of it, without the work of a preconditioner, which is the same for all
    double product_seconds = 0;
    double vector_seconds = 0;
    double launch_seconds = 0;
    double sum_seconds = 0;  ///< waiting for sums over devices and processes
};
/// What "auto" became.
struct MethodChoice {
    std::string method;
    std::string reason;                       ///< a sentence; empty: the method was named
    std::vector<MethodCandidate> candidates;  ///< empty where there was no choice
};
/// What "auto" becomes with a matrix of that plan: cg, cg_single or cg_pipelined, by the bytes that an iteration of
/// each moves, what it launches, and how often it waits for sums over the devices (docs/solvers.md). One that is
/// likely to take more iterations has to be faster by as much. With Determinism::device_count it is cg. A method that
/// was named is what was named. \throws std::bad_alloc
[[nodiscard]] RMSP_API MethodChoice choose_method(const Runtime& runtime, const Plan& plan,
                                                  const SolverOptions& options,
                                                  Determinism determinism = Determinism::none);
/// What "auto" becomes by times that are known: one for each SolverInfo::automatic, in the order of list_solvers().
/// \throws Error(usage) for others
[[nodiscard]] RMSP_API MethodChoice choose_method(std::vector<MethodCandidate> candidates);

struct SolveResult {
    std::string method;  ///< what solved: of "auto" what that became
    Outcome outcome = Outcome::iterations;
    std::int64_t iterations = 0;
    double rhs_norm = 0;         ///< |b|
    double target = 0;           ///< which residual was asked for
    double residual = 0;         ///< that of the last iteration, by the method's recurrence
    double true_residual = 0;    ///< |b - A x|, computed from the x that is returned
    double normal_residual = 0;  ///< lsqr: |A^T (b - A x)|, computed from the x that is returned; others: 0
    /// The residual before the first iteration, then after each; empty without SolverOptions::history.
    std::vector<double> history;
    /// How often the method began again because its recurrence had lost the true residual, or broke down.
    int restarts = 0;
    double seconds = 0;  ///< the whole call
    /// What all devices together have to read and write in an iteration at least (Sequence::bytes()), the mean of a
    /// cycle; without what a caller's preconditioner does not tell.
    double iteration_bytes = 0;
    std::vector<PhaseTimes> phases;
    std::string reason;  ///< a sentence on an outcome other than converged

    bool converged() const noexcept { return outcome == Outcome::converged; }
};

/// Up to options.max_iterations iterations of a solver as a preconditioner: z is about A^-1 r, with as many digits as
/// options.tolerance asks for. `matrix`: A itself or, as floats, with its values rounded, distributed alike. The
/// devices do those iterations without the host. Methods whose preconditioner may change from one iteration to the next
/// take it: ir (which then refines iteratively) and fcg.
/// \throws Error(usage) as Solver does, and for fewer than 1 or more than 1,000 iterations; append() throws it if the
///         vectors are not sliced as those of `matrix` are
template <class T>
[[nodiscard]] RMSP_API std::shared_ptr<Preconditioner<double>> inner_solver(
    const DistributedMatrix<T>& matrix, const SolverOptions& options,
    std::shared_ptr<Preconditioner<T>> preconditioner = nullptr);

namespace detail {
template <class T>
struct SharedSolver;
}  // namespace detail

/// A method made ready for a matrix: vectors, scalars and the recorded iteration stay for any number of solves. A
/// handle, whose copies are the same solver. Solves of one solver are done one after the other, those of several
/// solvers of several threads at the same time, in turns.
template <class T>
class Solver {
    static_assert(is_value_type<T>, "librmsp solves in float and double");

public:
    /// Blocks. `preconditioner`: null for the one that the options name.
    /// \throws Error(usage) for an unknown method or a matrix or preconditioner that the method is not for, as
    ///         make_preconditioner(), Error(out_of_memory)
    RMSP_API explicit Solver(const DistributedMatrix<T>& matrix, const SolverOptions& options = {},
                             std::shared_ptr<Preconditioner<T>> preconditioner = nullptr);

    /// A solver for rows of this process; `preconditioner` is for GhostedMatrix::own(): without overlap, each process
    /// preconditions its own rows (additive Schwarz). Norms, inner products and SolveResult are of all processes;
    /// clocks and callbacks count on the first. Collective, as its other functions but options(): every process with
    /// the same options.
    RMSP_API explicit Solver(const GhostedMatrix<T>& matrix, const SolverOptions& options = {},
                             std::shared_ptr<Preconditioner<T>> preconditioner = nullptr);

    /// Solves A x = b; x is where the method begins, and the solution. Host memory of any kind, or that of a GPU of
    /// this process, where what writes it has ended: rows() entries of b, cols() of x. Blocks. \throws Error(usage) for
    /// null arrays, and what a device threw; x is then unspecified
    RMSP_API SolveResult solve(const T* b, T* x);
    /// solve() with b in the memory of a GPU, after what is on a stream of it; x is complete when it returns.
    RMSP_API SolveResult solve(const T* b, T* x, StreamRef after);
    /// solve() with vectors on the devices, that the matrix's make_y() and make_x(Layout::rows) make.
    RMSP_API SolveResult solve(const DistributedVector<T>& b, DistributedVector<T>& x);
    /// After DistributedMatrix::update_values(): renews the preconditioner; everything else stays, unless that has to
    /// be recorded again (Preconditioner::generation()). Blocks.
    RMSP_API void renew();
    /// As given, but for the method, which "auto" has become.
    RMSP_API const SolverOptions& options() const;
    /// Why it is that method.
    RMSP_API const MethodChoice& choice() const;

private:
    std::shared_ptr<detail::SharedSolver<T>> state_;
};

}  // namespace rmsp
