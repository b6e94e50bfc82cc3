#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rmsp/preconditioner.hpp>
#include <rmsp/sequence.hpp>
#include <rmsp/spgemm.hpp>

#include "runtime/multigrid/galerkin.hpp"
#include "runtime/multigrid/transfer.hpp"

/// Algebraic multigrid: ever smaller matrices R A P with R = P^T, and what goes from one to the next.
namespace rmsp::multigrid {

/// Makes what one sweep of smoothing does, z = M r, for the matrix of a level.
template <class T>
using MakeSmoother = std::function<std::shared_ptr<Preconditioner<T>>(const DistributedMatrix<T>& matrix)>;

/// A matrix, and what leads to the next one. On the devices.
template <class T>
struct Level {
    DistributedMatrix<T> a;
    std::shared_ptr<Preconditioner<T>> smoother;  ///< null where there is an inverse
    std::optional<Vec<T>> residual;
    std::optional<Vec<T>> correction;  ///< what the smoother makes of the residual
    std::optional<Vec<T>> x;           ///< but of the first level, whose x and b are the caller's
    std::optional<Vec<T>> b;
    std::vector<Vec<T>>
        krylov;  ///< of a K cycle, but of the first level and one with an inverse: 2 iterates, A times each
    std::vector<Scalar> krylov_scalars;

    // To the next level; empty on the last one.
    std::unique_ptr<Transfer<T>> transfer;
    DistributedMatrix<T> p;
    DistributedMatrix<T> r;
    static constexpr bool gathers = false;  ///< as LinkedLevel's may
    std::optional<GalerkinProduct<T>> galerkin;
};

/// All levels of a matrix.
template <class T>
class Hierarchy {
public:
    /// Coarsens until a matrix has at most options.coarse_rows rows, and inverts that. Where coarsening stalls before,
    /// the last level is inverted if it has at most 4096 rows, and else only smoothed, which a note says. Blocks.
    /// \throws Error(usage) for options out of range; Error(out_of_memory)
    Hierarchy(const DistributedMatrix<T>& matrix, Method method, const MultigridOptions& options,
              MakeSmoother<T> make_smoother);

    /// For new values of the matrix: the structure of all levels stays. Blocks.
    void renew();
    /// For new values of the matrix: all levels are made anew, and what was appended is not of use any more. If it
    /// throws, the hierarchy is what it was. Blocks.
    void rebuild();
    /// Appends a cycle that computes x, from nothing, for a right-hand side; both are sliced as vectors of the matrix.
    void append(Sequence& sequence, const Vec<T>& x, const Vec<T>& b);
    /// Whether a cycle is not a linear function of its right-hand side.
    bool varies() const { return options_.cycle == "k"; }
    /// Of the last set-up or renewal.
    const PreconditionerReport& report() const { return report_; }

private:
    struct Inverse {
        CsrMatrix<T> matrix;
        std::string note;  ///< empty: as it should be
    };

    CsrMatrix<T> download(const DistributedMatrix<T>& matrix);
    bool coarsen(std::size_t number);
    std::unique_ptr<Transfer<T>> make_transfer(std::size_t number);
    bool make(Transfer<T>& transfer, std::size_t number);
    void renew_transfer(Level<T>& level);
    void finish();
    double sign_before_last() const;
    /// Of the last level's matrix, found by another thread of the host while the devices have other work: its phase in
    /// the report is what is waited for.
    std::future<Inverse> invert_last();
    void make_vectors(std::size_t number);
    void describe(double seconds);

    /// Adds to the report's steps what a phase has done.
    void note_steps(const char* phase, const std::vector<PhaseTimes>& steps);
    /// Of both products of R A P.
    void note_products(const TripleProduct<T>& galerkin);
    /// Adds the seconds of f to a phase.
    template <class F>
    decltype(auto) timed(const char* phase, const F& f);

    Method method_;
    MultigridOptions options_;
    MakeSmoother<T> make_smoother_;
    std::vector<Level<T>> levels_;
    /// The caller's matrix, if products of matrices do not take it: the first level then has a copy.
    std::optional<DistributedMatrix<T>> source_;
    Near near_nullspace_;                          ///< of the last level
    std::optional<DistributedMatrix<T>> inverse_;  ///< of the last level's matrix
    std::string inverse_note_;
    std::string stalled_;       ///< a note; empty: it did not
    std::string made_on_host_;  ///< why, where a device lacked room
    PreconditionerReport report_;
    std::optional<Scalars> scalars_;  ///< of a K cycle
};

}  // namespace rmsp::multigrid
