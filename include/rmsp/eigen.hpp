#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <rmsp/export.hpp>
#include <rmsp/runtime.hpp>
#include <rmsp/solver.hpp>

/// A few extreme eigenpairs of symmetric matrices, A v = lambda v, on all devices of a runtime.
namespace rmsp {

enum class Spectrum : std::uint8_t {
    smallest,  ///< the algebraically smallest eigenvalues
    largest,   ///< the algebraically largest ones
};

struct EigenOptions {
    /// "lobpcg": locally optimal blocks of conjugate gradients, which a preconditioner makes faster (smallest
    /// eigenvalues of positive definite matrices); "lanczos": thick-restart Lanczos, which takes none.
    std::string method = "lobpcg";
    Spectrum which = Spectrum::smallest;
    int count = 4;  ///< eigenpairs, 1 to 16 and at most as many as rows
    /// Stops where |A v - lambda v| <= tolerance |A| for each pair, with |v| = 1 and the largest magnitude of a Ritz
    /// value for |A|.
    double tolerance = 1e-8;
    std::int64_t max_iterations = 1000;  ///< lobpcg: products with `count` vectors; lanczos: products with one
    double max_seconds = std::numeric_limits<double>::infinity();
    /// lanczos: vectors that are kept, more than count and at most 120; 0: 20, or 2 count + 10 if that is more.
    int basis = 0;
    /// Called between iterations on the thread of the solve, with the largest residual; false cancels.
    std::function<bool(const SolverProgress&)> callback{};
};

/// How a solve ended, and what it found besides the vectors.
struct EigenSummary {
    Outcome outcome = Outcome::iterations;
    std::int64_t iterations = 0;
    std::vector<double> values;     ///< what was asked for first: the smallest, or the largest
    std::vector<double> residuals;  ///< |A v - lambda v|, computed from what is returned
    double target = 0;              ///< which residual was asked for
    double seconds = 0;
    std::string reason;  ///< a sentence on an outcome other than converged

    bool converged() const noexcept { return outcome == Outcome::converged; }
};

template <class T>
struct EigenResult : EigenSummary {
    /// Of length 1, each of rows() entries, by rows, as the matrix's make_x(Layout::rows) makes them.
    std::vector<DistributedVector<T>> vectors;
};

namespace detail {
template <class T>
struct EigenState;
}  // namespace detail

/// Begins with random vectors from a fixed seed, so that the same call finds the same pairs. That A is symmetric is the
/// caller's word. Converged pairs are eigenpairs; that none between them was missed is likely, not certain.
template <class T>
class EigenSolver {
    static_assert(is_value_type<T>, "librmsp solves in float and double");

public:
    /// Blocks. `preconditioner`: for lobpcg, about A^-1; may be null.
    /// \throws Error(usage) for an unknown method, wrong options, a matrix that is not square, or a preconditioner with
    ///         lanczos, Error(out_of_memory)
    RMSP_API explicit EigenSolver(const DistributedMatrix<T>& matrix, const EigenOptions& options = {},
                                  std::shared_ptr<Preconditioner<T>> preconditioner = nullptr);
    /// A solver for rows of this process; vectors are its entries, `preconditioner` is for GhostedMatrix::own(), values
    /// and residuals are of all processes. Clocks and callbacks count on the first. Collective, as solve() then is:
    /// every process with the same options.
    RMSP_API explicit EigenSolver(const GhostedMatrix<T>& matrix, const EigenOptions& options = {},
                                  std::shared_ptr<Preconditioner<T>> preconditioner = nullptr);
    /// Blocks. The host takes part in each iteration. \throws what a device threw
    RMSP_API EigenResult<T> solve();

private:
    std::shared_ptr<detail::EigenState<T>> state_;
};

}  // namespace rmsp
