#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <rmsp/export.hpp>
#include <rmsp/report.hpp>
#include <rmsp/runtime.hpp>
#include <rmsp/sequence.hpp>

/// Preconditioners of the solvers in <rmsp/solver.hpp>: by name, and of one's own.
namespace rmsp {

/// One matrix of multigrid, the finest first.
struct MultigridLevel {
    std::int64_t rows = 0;
    std::int64_t nonzeros = 0;
    std::int64_t interpolation_nonzeros = 0;  ///< of P, from the next level; 0: it is the last
    int devices = 0;                          ///< that have rows
    /// Of the matrix (the first level's only where it is a copy of the caller's), P, R, A P and R A P, on all devices.
    std::int64_t device_bytes = 0;
};

/// What a preconditioner cost.
struct PreconditionerReport {
    std::string name;
    double seconds = 0;                ///< of the set-up, or of the last renew(): download of A, host work, upload
    std::int64_t device_bytes = 0;     ///< on all devices together
    std::int64_t host_bytes = 0;       ///< of what stays in host memory for renew()
    std::vector<std::string> notes{};  ///< sentences: what was shifted, replaced, or depends on the number of devices
    std::vector<MultigridLevel> levels{};  ///< of multigrid
    std::vector<PhaseTimes> phases{};      ///< of multigrid's `seconds`
    /// What a set-up's phases consist of where matrices are distributed and multiplied, "A P/symbolic": seconds of the
    /// slowest device, of all levels together.
    std::vector<PhaseTimes> steps{};

    /// Nonzeros, or rows, of all levels over those of the first; 0 without levels.
    RMSP_API double operator_complexity() const;
    RMSP_API double grid_complexity() const;
};

/// z = M r with M about A^-1: derive to use one of your own. Shared between solvers; used by one solve at a time.
template <class T>
class Preconditioner {
public:
    virtual ~Preconditioner() = default;
    /// Appends what computes z = M r; r is left as it is, and is not z. Vectors are sliced as those of the matrix's
    /// make_y(). Nothing need be done where the iteration has stopped.
    virtual void append(Sequence& sequence, const Vec<T>& z, const Vec<T>& r) = 0;
    /// Appends what computes z = M^T r, for methods with SolverInfo::transposed that take a preconditioner.
    /// \throws Error(usage) unless it is overridden; a symmetric one calls append()
    RMSP_API virtual void append_transposed(Sequence& sequence, const Vec<T>& z, const Vec<T>& r);
    /// The values of the matrix are new, its structure is what it was. Blocks. What sequences have recorded stays
    /// valid, unless generation() changes. If it throws, the preconditioner is what it was before.
    virtual void renew() {}
    /// How often renew() was followed by a need to record append() again, which solvers do.
    virtual std::int64_t generation() const { return 0; }
    /// A solve with it, of a Solver, has ended after so many iterations.
    virtual void solved(std::int64_t /*iterations*/, bool /*converged*/) {}
    /// Names it, for reports.
    virtual std::string name() const = 0;
    /// Whether append() takes vectors in Order::kernel of the matrix as well.
    virtual bool takes_kernel_order() const { return false; }
    /// What it cost; the name alone unless it is overridden.
    virtual PreconditionerReport report() const { return {.name = name()}; }
    /// Whether M differs from one application to the next, which takes a method with SolverInfo::flexible.
    virtual bool varies() const { return false; }
};

/// Of amg and sa-amg (docs/multigrid.md).
struct MultigridOptions {
    /// From which share on an entry is strong, 0 to 1. Below 0: 0.25; of sa-amg 0.08, half of that on each further
    /// level. sa-amg also counts what is a quarter of the largest entry beside the diagonal of both its rows.
    double threshold = -1;
    /// "auto", the first one. amg: "extended" or "direct"; sa-amg: "smoothed" or "tentative", which is plain
    /// aggregation.
    std::string interpolation = "auto";
    double truncation = 0;                   ///< amg: entries of P below this times the largest of their row go; 0 to 1
    std::int64_t interpolation_entries = 4;  ///< amg: most entries of a row of P; 0: all
    /// amg: so many first levels are coarsened twice at once, which takes less memory and more iterations; with
    /// interpolation "extended". From 0.
    int aggressive_levels = 0;
    /// "v", "w", "f", with which M is not symmetric, or "k": two iterations of flexible conjugate gradients on each
    /// coarser level, for symmetric positive definite matrices, so that M differs from one application to the next.
    std::string cycle = "v";
    /// A name of list_preconditioners() other than "none", "amg" and "sa-amg", with the options of that name.
    std::string smoother = "l1-jacobi";
    int sweeps = 1;                   ///< of the smoother before, and after, the coarser levels, 1 to 100
    std::int64_t coarse_rows = 256;   ///< a matrix of at most so many rows is inverted, 1 to 4096
    int levels = 25;                  ///< most, 1 to 100
    bool keep_interpolation = false;  ///< renew() leaves P as it is
    /// renew() makes all levels anew where the last solve took more than this times the iterations of the first one
    /// after the levels were made, which counts as 5 at least, or did not converge as that one had; 0: never; else at
    /// least 1. Solves of Solver count, not those inside inner_solver().
    double rebuild_factor = 2;
    int unknowns = 1;  ///< sa-amg: rows of a node, which stay together, 1 to 16
    /// sa-amg: vectors that the matrix maps to nearly nothing, by rows, `near_null_vectors` numbers each; empty: a
    /// constant for each of the unknowns. See rigid_body_modes().
    std::vector<double> near_nullspace{};
    int near_null_vectors = 0;
};

/// The translations and rotations of a body, for MultigridOptions::near_nullspace of elasticity: 3 vectors in 2
/// dimensions, 6 in 3. `coordinates`: `dimensions` numbers of each node; rows of the matrix are the displacements of
/// each node in turn.
/// \throws Error(usage) for other dimensions, or a number of coordinates that is not a multiple
[[nodiscard]] RMSP_API std::vector<double> rigid_body_modes(int dimensions, std::span<const double> coordinates);

struct PreconditionerOptions {
    int block_size = 8;  ///< block-jacobi: rows of a block, 1 to 32
    /// spai, isai, fsai: M has the pattern of A^pattern_power, from 0, the diagonal alone, to 8.
    int pattern_power = 1;
    /// spai, isai, fsai: most entries of a row of M; those fewer steps away in A's graph, then the larger ones, stay.
    std::int64_t most_entries = 128;
    int degree = 4;  ///< polynomial: products with A, 0 to 64
    /// polynomial: the largest eigenvalue over the smallest one that it is made for; above 1.
    double eigenvalue_ratio = 30;
    int fill_level = 1;  ///< schwarz-iluk: levels of fill of its factors, 0 to 16
    MultigridOptions multigrid{};
};

/// One of list_preconditioners().
struct PreconditionerInfo {
    std::string_view name;
    std::string_view description;
    bool symmetric = false;  ///< M is symmetric where A is
    bool definite = false;   ///< M is positive definite where A is, as conjugate gradients need it
};
/// All of them. The names are those of SolverOptions::preconditioner; "none", the first one, does nothing.
/// \throws std::bad_alloc in the first call
RMSP_API std::span<const PreconditionerInfo> list_preconditioners();

/// A preconditioner for a matrix, which it shares; made from the values that the devices hold, on the host by all
/// threads, or, of amg and sa-amg, where one GPU has all rows; spai and isai on the devices. Null for "none". Blocks.
/// \throws Error(usage) for an unknown name or option, a matrix that is not square, and factors that do not exist: a
///         pivot of schwarz-ilu0 or schwarz-iluk is zero, or one of schwarz-ic0 not positive, with the largest shift
///         too; Error(out_of_memory)
template <class T>
[[nodiscard]] RMSP_API std::shared_ptr<Preconditioner<T>> make_preconditioner(
    const DistributedMatrix<T>& matrix, const std::string& name, const PreconditionerOptions& options = {});

/// What computes a device's slice of z of the same slice of r, both in that device's memory: queued on call.stream, or
/// done at once on a host device, where slices of several devices are done at the same time.
template <class T>
using LocalPreconditioner = std::function<void(const DeviceCall& call, std::span<const T> r, std::span<T> z)>;

/// A preconditioner of a function on local slices. It is called on the thread of each device as iterations are queued.
/// renew() does nothing: a function that depends on the matrix's values holds what it needs of them.
/// \throws Error(usage) for an empty function, and a matrix that is not square
template <class T>
[[nodiscard]] RMSP_API std::shared_ptr<Preconditioner<T>> make_preconditioner(
    const DistributedMatrix<T>& matrix, std::type_identity_t<LocalPreconditioner<T>> apply);

}  // namespace rmsp
