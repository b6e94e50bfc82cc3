#pragma once

#include <numeric>
#include <utility>

#include <kernels/steps/support/support.hpp>
#include <kernels/steps/triangular/triangular.hpp>

#include "core/device_kind.hpp"
#include "matrix/incomplete.hpp"
#include "matrix/levels.hpp"
#include "runtime/preconditioners/base.hpp"

namespace rmsp::preconditioners {

/// Which factors a device makes of its block.
template <class T>
struct Factors {
    const char* name;
    matrix::FactorStatus (*factor)(matrix::SquareBlock<T>& block, int threads);
    matrix::Triangle forward;
    matrix::Triangle backward;
    bool symmetric;            ///< M is, whatever A is
    bool outside_on_diagonal;  ///< matrix::add_outside_norms() before they are made
    bool fills = false;        ///< takes levels of fill
};
template <class T>
inline constexpr Factors<T> ilu0{
    "schwarz-ilu0", matrix::factor_ilu0<T>, matrix::Triangle::unit_lower, matrix::Triangle::upper, false, false};
template <class T>
inline constexpr Factors<T> iluk{
    "schwarz-iluk", matrix::factor_ilu0<T>, matrix::Triangle::unit_lower, matrix::Triangle::upper, false, false, true};
template <class T>
inline constexpr Factors<T> ic0{
    "schwarz-ic0", matrix::factor_ic0<T>, matrix::Triangle::lower, matrix::Triangle::transposed_lower, true, false};
template <class T>
inline constexpr Factors<T> gauss_seidel{
    "gauss-seidel", matrix::factor_gauss_seidel<T>, matrix::Triangle::unit_lower, matrix::Triangle::upper, false, true};

/// Additive Schwarz without overlap: each device solves with incomplete factors of the square block of its own rows, by
/// levels, forward and backward. What couples the devices is left out, so that the number of iterations grows with the
/// number of devices. With the factors of Gauss-Seidel that is the hybrid smoother of multigrid: exact sweeps of the
/// rows of a device, and Jacobi's method between devices.
template <class T>
class Schwarz final : public Base<T> {
public:
    /// \param fill_level  of factors that take one
    /// \throws Error(usage) if that is not 0 to 16, and as make_preconditioner()
    Schwarz(const DistributedMatrix<T>& matrix, const Factors<T>& factors, int fill_level)
        : Base<T>(matrix, factors.name),
          factors_(factors),
          fill_level_(factors.fills ? checked(fill_level) : 0),
          blocks_(this->slices().size() - 1),
          there_(std::make_shared<PerDevice<Pair>>(this->state_->runtime))
    {
        make(true);
    }
    void append(Sequence& sequence, const Vec<T>& z, const Vec<T>& r) override
    {
        this->check_vectors(z, r);
        sequence.call(
            [there = there_, z = z.state(), r = r.state()](const DeviceCall& call) {
                const auto rank = static_cast<std::size_t>(call.device);
                const Pair& own = there->parts[rank];
                const kernels::Context context{call.kind, call.stream, call.threads};
                const T* const from = r->slices[rank];
                T* const to = z->slices[rank];
                void* const workspace = own.workspace.data();
                kernels::solve_levels(own.forward.shard, from, to, workspace, call.stopped, context);
                kernels::solve_levels(own.backward.shard, static_cast<const T*>(to), to, workspace, call.stopped,
                                      context);
            },
            this->report_.device_bytes + 4 * r.state()->size * static_cast<std::int64_t>(sizeof(T)));
    }
    void append_transposed(Sequence& sequence, const Vec<T>& z, const Vec<T>& r) override
    {
        if (factors_.symmetric) {
            append(sequence, z, r);
        } else {
            Base<T>::append_transposed(sequence, z, r);
        }
    }
    void renew() override { make(false); }

private:
    /// Of one device, in host memory, for renew().
    struct Block {
        matrix::SquareBlock<T> factors;
        matrix::LevelTriangle<T> forward;
        matrix::LevelTriangle<T> backward;
    };
    /// In the device's memory.
    struct There {
        kernels::DeviceArray<std::int32_t> rows;
        kernels::DeviceArray<std::int64_t> row_ptr;
        kernels::DeviceArray<std::int32_t> col_idx;
        kernels::DeviceArray<T> values;
        kernels::DeviceArray<T> inverse_diagonal;
        kernels::DeviceArray<std::int64_t> levels;
        kernels::TriangleShard<T> shard;
    };
    struct Pair {
        There forward;
        There backward;
        kernels::DeviceArray<double> workspace;
    };

    static int checked(int fill_level)
    {
        if (fill_level < 0 || fill_level > 16) {
            throw Error(ErrorCode::usage,
                        fmt::format("preconditioner option fill_level is {}, it must be 0 to 16", fill_level));
        }
        return fill_level;
    }

    /// From the values that the devices hold; patterns and levels the first time only. \throws before anything on the
    /// devices changes
    void make(bool first)
    {
        const auto began = core::Clock::now();
        const CsrMatrix<T> a = distributed::download_matrix(*this->state_);
        std::vector<std::string> notes;
        std::int64_t host_bytes = 0;
        for (std::size_t rank = 0; rank < blocks_.size(); ++rank) {
            Block& own = blocks_[rank];
            const std::int64_t first_row = this->slices()[rank];
            if (first) {
                own.factors = matrix::square_block(a.view(), first_row, this->slices()[rank + 1]);
                matrix::add_fill(own.factors, fill_level_);
            } else {
                matrix::renew(a.view(), first_row, own.factors);
            }
            if (factors_.outside_on_diagonal) {
                matrix::add_outside_norms(a.view(), first_row, own.factors);
            }
            factor(own.factors, rank, notes);
            if (first) {
                own.forward = matrix::level_triangle(own.factors, factors_.forward);
                own.backward = matrix::level_triangle(own.factors, factors_.backward);
            } else {
                matrix::renew(own.factors, factors_.forward, own.forward);
                matrix::renew(own.factors, factors_.backward, own.backward);
            }
            host_bytes += bytes_of(own.factors.row_ptr) + bytes_of(own.factors.col_idx) +
                          bytes_of(own.factors.diagonal) + bytes_of(own.factors.values) + bytes(own.forward) +
                          bytes(own.backward);
        }
        std::vector<std::int64_t> device_bytes(blocks_.size());
        this->state_->runtime
            ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
                const auto rank = static_cast<std::size_t>(worker.rank());
                const Block& own = blocks_[rank];
                Pair& there = there_->parts[rank];
                send(worker, own.forward, there.forward, first);
                send(worker, own.backward, there.backward, first);
                if (first) {
                    make_workspace(worker, own.factors.rows, there);
                }
                device_bytes[rank] = bytes(own.forward) + bytes(own.backward) +
                                     static_cast<std::int64_t>(there.workspace.size() * sizeof(double));
            })
            .get();
        PreconditionerReport& report = this->report_;
        report.device_bytes = std::accumulate(device_bytes.begin(), device_bytes.end(), std::int64_t{0});
        report.host_bytes = host_bytes;
        report.notes = std::move(notes);
        if (this->state_->plan.devices > 1) {
            report.notes.push_back(fmt::format(
                "a block for each of {} devices, {}: fewer devices take fewer iterations", this->state_->plan.devices,
                factors_.outside_on_diagonal ? "what couples them added to its diagonal"
                                             : "without what couples them"));
        }
        report.seconds = core::seconds_since(began);
    }

    void factor(matrix::SquareBlock<T>& block, std::size_t rank, std::vector<std::string>& notes) const
    {
        const matrix::FactorStatus status = factors_.factor(block, 0);
        const std::int64_t row = this->slices()[rank] + status.row;
        if (!status.complete) {
            throw Error(ErrorCode::usage,
                        fmt::format("preconditioner \"{}\" does not exist: of rows {} to {}, those of device {}, the "
                                    "pivot of row {} is {}, after {} attempts with shifts of up to {}",
                                    factors_.name, this->slices()[rank], this->slices()[rank + 1] - 1, rank, row,
                                    factors_.symmetric ? "not positive: the matrix is not positive definite"
                                                       : "zero or not finite",
                                    status.attempts, status.shift));
        }
        if (status.replaced > 0) {
            notes.push_back(fmt::format("{} diagonal entr{} of device {} that {} zero count{} as 1", status.replaced,
                                        status.replaced == 1 ? "y" : "ies", rank, status.replaced == 1 ? "is" : "are",
                                        status.replaced == 1 ? "s" : ""));
        }
        if (status.shift > 0) {
            notes.push_back(
                fmt::format("the factors of device {} are those of a matrix whose diagonal is larger by {}: "
                            "without, the pivot of row {} is {}",
                            rank, status.shift, row, factors_.symmetric ? "not positive" : "too small"));
        }
    }

    static std::int64_t bytes(const matrix::LevelTriangle<T>& triangle)
    {
        return bytes_of(triangle.rows) + bytes_of(triangle.row_ptr) + bytes_of(triangle.col_idx) +
               bytes_of(triangle.values) + bytes_of(triangle.inverse_diagonal) + bytes_of(triangle.levels);
    }

    static void send(engine::Worker& worker, const matrix::LevelTriangle<T>& from, There& to, bool first)
    {
        put(worker, to.values, from.values);
        put(worker, to.inverse_diagonal, from.inverse_diagonal);
        if (!first) {
            return;
        }
        put(worker, to.rows, from.rows);
        put(worker, to.row_ptr, from.row_ptr);
        put(worker, to.col_idx, from.col_idx);
        put(worker, to.levels, from.levels);
        to.shard.rows = from.size();
        to.shard.nnz = static_cast<std::int64_t>(from.values.size());
        to.shard.row = to.rows.data();
        to.shard.row_ptr = to.row_ptr.data();
        to.shard.col_idx = to.col_idx.data();
        to.shard.values = to.values.data();
        to.shard.inverse_diagonal = to.inverse_diagonal.data();
        to.shard.levels = to.levels.data();
        to.shard.level_count = from.level_count();
    }

    static void make_workspace(engine::Worker& worker, std::int64_t rows, Pair& there)
    {
        const auto context = worker.context();
        kernels::load_triangular(context);
        if (core::shares_host_memory(context.kind)) {
            return;  // host devices solve without
        }
        const std::int64_t doubles = (kernels::solve_workspace_bytes<T>(rows) + 7) / 8;
        there.workspace = kernels::DeviceArray<double>(worker.device(), static_cast<std::size_t>(doubles));
        kernels::fill(there.workspace.data(), doubles, 0.0, context);
    }

    const Factors<T>& factors_;
    const int fill_level_;
    std::vector<Block> blocks_;
    std::shared_ptr<PerDevice<Pair>> there_;
};

}  // namespace rmsp::preconditioners
