#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/engine/task.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/spgemm/factors.hpp"

namespace rmsp::spgemm {

using detail::MatrixState;

/// C = R A P of distributed matrices, computed once and in slabs of rows, all on the devices: for factors of which A P
/// has no room. Each device makes the rows of C for which it has those of R. For each slab of them it copies the rows
/// of A that these touch, whichever devices have them, then those of P, multiplies, and frees all but the slab of C.
/// Rows between the first and the last that a slab touches are copied and multiplied, too: where rows that belong
/// together have numbers far apart this does more than A P as a whole, and saves no memory.
template <class T>
class TripleInSlabs final : public ResidentFactor<T> {
public:
    /// Computes C; blocks. Not on a worker.
    /// \param slabs  of the rows of each device, to begin with; twice as many where one has no room; 0: slabs_for()
    /// \throws Error(out_of_memory) if not even small slabs have room; Error(usage) as matrix_factor()
    TripleInSlabs(const std::shared_ptr<MatrixState<T>>& r, const std::shared_ptr<MatrixState<T>>& a,
                  const std::shared_ptr<MatrixState<T>>& p, Determinism determinism, std::int64_t slabs = 0);
    ~TripleInSlabs() override;
    TripleInSlabs(const TripleInSlabs&) = delete;
    TripleInSlabs& operator=(const TripleInSlabs&) = delete;

    /// How many slabs each device computed.
    std::int64_t slabs() const noexcept { return slabs_; }

    std::int64_t round() const override { return 0; }
    void refresh(engine::Worker& /*worker*/, engine::Rendezvous& /*meeting*/) override {}

private:
    /// Some rows of C.
    struct Slab {
        std::int64_t rows = 0;
        std::int64_t nnz = 0;
        kernels::DeviceArray<std::int64_t> row_ptr;  ///< from 0
        kernels::DeviceArray<std::int32_t> col_idx;
        kernels::DeviceArray<T> values;
    };
    /// Of one device. Memory is taken and freed on its worker.
    struct OnDevice {
        std::int64_t next = 0;  ///< row of R, of those that the device has, with which the next slab begins
        std::int64_t rows = 0;  ///< of that slab
        DeviceRows<T> r;        ///< its rows, their columns those of `a`
        DeviceRows<T> a;        ///< the rows that r touches, their columns those of `p`
        DeviceRows<T> p;        ///< the rows that a touches
        transport::Range a_rows;
        transport::Range p_rows;
        Slab made;
        std::vector<Slab> all;  ///< made before
        Slab c;                 ///< all of them

        void forget_factors()
        {
            r = {};
            a = {};
            p = {};
        }
    };
    struct Sources;

    void compute(std::int64_t slabs, const Sources& from);
    void make_slab(const Sources& from);
    void take_r(engine::Worker& worker, const Sources& from);
    void multiply(engine::Worker& worker, const Sources& from);
    void join(engine::Worker& worker);
    void clear_slab();

    std::shared_ptr<RuntimeState> runtime_;
    std::vector<std::unique_ptr<OnDevice>> devices_;
    engine::Tasks room_;  ///< to free them
    std::int64_t slabs_ = 0;
};

/// In how many slabs R A P is best computed, by the room that the devices have now and the products that rows have on
/// average; 1: as a whole.
template <class T>
std::int64_t slabs_for(const MatrixState<T>& r, const MatrixState<T>& a, const MatrixState<T>& p);

}  // namespace rmsp::spgemm
