#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ghosted/ghosted_state.hpp"
#include "runtime/multigrid/hierarchy.hpp"
#include "runtime/multigrid/linked_rows.hpp"

namespace rmsp::multigrid {

/// A matrix of several processes, and what leads to the next one.
template <class T>
struct LinkedLevel {
    GhostedMatrix<T> a;
    std::vector<std::int64_t> first_rows;         ///< of each process, and their number
    std::int64_t nonzeros = 0;                    ///< of `a`, on all processes
    std::int64_t p_nonzeros = 0;                  ///< of `p`, on all processes; 0: the last level
    std::shared_ptr<Preconditioner<T>> smoother;  ///< null where nothing is smoothed
    std::optional<Vec<T>> residual;
    std::optional<Vec<T>> correction;
    std::optional<Vec<T>> x;  ///< but of the first level
    std::optional<Vec<T>> b;
    GhostedMatrix<T> p;    ///< to the next level, R is its transpose
    bool gathers = false;  ///< the next level is this one, on one process
};

/// Algebraic multigrid of a matrix that several processes have: what Hierarchy is for one. Levels of few rows are on
/// fewer processes, and the last one, if it is inverted, on one. Every process makes it, with the same options, and
/// appends it where the others do.
template <class T>
class LinkedHierarchy {
public:
    /// Collective. \throws Error(usage) as Hierarchy does, for cycle "k" and aggressive levels, and for nodes of
    /// several unknowns that processes cut
    LinkedHierarchy(const GhostedMatrix<T>& matrix, const GhostedNumbers& numbers,
                    std::shared_ptr<LinkedProcesses> processes, Method method, const MultigridOptions& options,
                    MakeSmoother<T> make_smoother);

    /// As Hierarchy::append().
    void append(Sequence& sequence, const Vec<T>& x, const Vec<T>& b) const;
    const PreconditionerReport& report() const { return report_; }

private:
    WholeColumns<T> download_first(const GhostedNumbers& numbers) const;
    void begin_near_nullspace();
    bool coarsen(WholeColumns<T>& rows);
    void gather(WholeColumns<T>& rows);
    void add_level(WholeColumns<T>& rows, const WholeColumns<T>& p, std::vector<std::int64_t> first_rows);
    WholeColumns<T> galerkin(const WholeColumns<T>& rows, const WholeColumns<T>& p, const Known& known,
                             const std::vector<std::int64_t>& first_rows) const;
    GhostedMatrix<T> distribute(const WholeColumns<T>& rows, const std::vector<std::int64_t>& first_rows) const;
    std::vector<std::int64_t> on_fewer(const std::vector<std::int64_t>& first_rows) const;
    void invert(const WholeColumns<T>& rows);
    void smooth(LinkedLevel<T>& level, const WholeColumns<T>& rows);
    void make_vectors();
    void describe(double seconds);

    void append_cycle(Sequence& sequence, std::size_t number, const Vec<T>& x, const Vec<T>& b, bool from_zero,
                      char cycle) const;
    void append_smoothing(Sequence& sequence, const LinkedLevel<T>& level, const Vec<T>& x, const Vec<T>& b,
                          bool from_zero, int sweeps) const;
    void append_residual(Sequence& sequence, const LinkedLevel<T>& level, const Vec<T>& x, const Vec<T>& b) const;

    const Links links_;
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
};

}  // namespace rmsp::multigrid
