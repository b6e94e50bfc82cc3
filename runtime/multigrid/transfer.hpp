#pragma once

#include <cstdint>
#include <memory>

#include <rmsp/preconditioner.hpp>

#include "runtime/matrix/matrix_state.hpp"
#include "runtime/multigrid/near.hpp"
#include "runtime/plan/stored.hpp"

namespace rmsp::multigrid {

using detail::MatrixState;

enum class Method : std::uint8_t {
    classical,   ///< coarse points, to which other rows are interpolated
    aggregation  ///< aggregates of rows
};

/// How a level is made coarser.
struct Coarsener {
    Method method = Method::classical;
    double threshold = 0;     ///< of strength
    int unknowns = 1;         ///< rows of a node
    bool direct = false;      ///< classical: direct interpolation
    bool aggressive = false;  ///< classical: coarse points of coarse points (matrix::coarser_pmis())
    bool smooth = true;       ///< aggregation: P is smoothed
    double truncation = 0;
    std::int64_t interpolation_entries = 0;
};

/// What leads from a matrix to a coarser one, P and R = P^T, and what they were made of: renewed for other values, P
/// has entries where it had. What is found depends on the matrix alone. Called in the order of the functions; they
/// block.
template <class T>
class Transfer {
public:
    Transfer() = default;
    virtual ~Transfer() = default;
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    /// Brings A where it is worked on.
    virtual void read() = 0;
    /// Finds coarse points or aggregates. Returns the rows of the coarser matrix; -1: this matrix is not for this way
    /// of doing it. \param near  of A; may come to the host
    virtual std::int64_t coarsen(Near& near) = 0;
    /// Computes P and R; false: as -1 of coarsen(). \param near  becomes that of the coarser matrix, perhaps
    /// in memory of this object
    virtual bool interpolate(Near& near) = 0;
    /// To be distributed, until keep_distributed().
    virtual plan::Stored<T> p() = 0;
    virtual plan::Stored<T> r() = 0;
    /// P and R are on the devices: gives up what only they were made from.
    virtual void keep_distributed() = 0;

    /// Computes new values of P and R, of which P has the structure. read() was called.
    virtual void renew(const std::shared_ptr<MatrixState<T>>& p) = 0;
    /// Gives them to P and R on the devices.
    virtual void write(const std::shared_ptr<MatrixState<T>>& p, const std::shared_ptr<MatrixState<T>>& r) = 0;

    virtual std::int64_t device_bytes() const = 0;
    virtual std::int64_t host_bytes() const = 0;
};

/// On the host, by all threads: for every matrix.
template <class T>
std::unique_ptr<Transfer<T>> host_transfer(std::shared_ptr<MatrixState<T>> a, const Coarsener& coarsener);

/// On the devices, if their kind has the steps (kernels/steps/coarsening); else null. One unknown a node, not
/// aggressive.
template <class T>
std::unique_ptr<Transfer<T>> device_transfer(std::shared_ptr<MatrixState<T>> a, const Coarsener& coarsener);

/// A matrix of the devices on the host, columns rising in each row, each once.
template <class T>
CsrMatrix<T> download_canonical(const MatrixState<T>& matrix);

}  // namespace rmsp::multigrid
