#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ghosted/ghosted_state.hpp"
#include "runtime/multigrid/hierarchy.hpp"
#include "runtime/multigrid/linked_galerkin.hpp"
#include "runtime/multigrid/linked_rows.hpp"
#include "runtime/multigrid/linked_transfer.hpp"

namespace rmsp::multigrid {

/// A matrix of several processes, and what leads to the next one.
template <class T>
struct LinkedLevel {
    GhostedMatrix<T> a;
    std::vector<std::int64_t> first_rows;         ///< of each process, and their number
    std::int64_t nonzeros = 0;                    ///< of `a`, on all processes
    std::int64_t p_nonzeros = 0;                  ///< of `p`, on all processes; 0: the last level
    std::shared_ptr<Preconditioner<T>> smoother;  ///< null where nothing is smoothed
    DistributedMatrix<T> smoothed;                ///< what it was made of
    std::optional<Vec<T>> residual;
    std::optional<Vec<T>> correction;
    std::optional<Vec<T>> x;  ///< but of the first level
    std::optional<Vec<T>> b;
    std::vector<Vec<T>> krylov;  ///< of a K cycle, as Level has them
    std::vector<Scalar> krylov_scalars;
    GhostedMatrix<T> p;                           ///< to the next level, R is its transpose
    bool gathers = false;                         ///< the next level is this one, on one process
    std::unique_ptr<LinkedTransfer<T>> transfer;  ///< null: on the last level, and where it gathers
    /// R A P for other values; made by the first renewal.
    std::unique_ptr<LinkedGalerkin<T>> galerkin;
};

/// Algebraic multigrid of a matrix that several processes have: what Hierarchy is for one. Levels of few rows are on
/// fewer processes, and the last one, if it is inverted, on one. Every process makes it, with the same options, and
/// appends it where the others do.
template <class T>
class LinkedHierarchy {
public:
    /// Collective. \throws Error(usage) as Hierarchy does, and for nodes of several unknowns that processes cut
    LinkedHierarchy(const GhostedMatrix<T>& matrix, const GhostedNumbers& numbers,
                    std::shared_ptr<LinkedProcesses> processes, Method method, const MultigridOptions& options,
                    MakeSmoother<T> make_smoother);

    /// As those of Hierarchy; renew() and rebuild() are collective.
    void renew();
    void rebuild();
    void append(Sequence& sequence, const Vec<T>& x, const Vec<T>& b);
    bool varies() const { return options_.cycle == "k"; }
    const PreconditionerReport& report() const { return report_; }

private:
    WholeColumns<T> download_first() const;
    void begin_near_nullspace();
    bool coarsen(WholeColumns<T>& rows);
    void gather(WholeColumns<T>& rows);
    void add_level(WholeColumns<T>& rows, const WholeColumns<T>& p, std::vector<std::int64_t> first_rows);
    std::unique_ptr<LinkedGalerkin<T>> make_galerkin(const LinkedLevel<T>& level, const WholeColumns<T>& rows,
                                                     const WholeColumns<T>& p,
                                                     const std::vector<std::int64_t>& coarse_first_rows) const;
    WholeColumns<T> identity(const LinkedLevel<T>& level) const;
    void find_sign(const LinkedLevel<T>& level, const WholeColumns<T>& rows);
    GhostedMatrix<T> distribute(const WholeColumns<T>& rows, const std::vector<std::int64_t>& first_rows) const;
    std::vector<std::int64_t> on_fewer(const std::vector<std::int64_t>& first_rows) const;
    CsrMatrix<T> inverse_of(const WholeColumns<T>& rows);
    CsrMatrix<T> smoothed_part(const LinkedLevel<T>& level, const WholeColumns<T>& rows) const;
    void smooth(LinkedLevel<T>& level, const WholeColumns<T>& rows);
    void make_vectors();
    void describe(double seconds);

    Links links_;
    GhostedNumbers numbers_;  ///< of the first level
    Method method_;
    MultigridOptions options_;
    MakeSmoother<T> make_smoother_;
    std::vector<LinkedLevel<T>> levels_;
    matrix::NearNullspace near_;                   ///< of the own rows of the last level
    double sign_ = 0;                              ///< of the diagonal of the level before the last one
    std::optional<DistributedMatrix<T>> inverse_;  ///< of the last level's own rows, which one process has
    std::string inverse_note_;
    std::string stalled_;
    PreconditionerReport report_;
    std::optional<Scalars> scalars_;  ///< of a K cycle
};

}  // namespace rmsp::multigrid
