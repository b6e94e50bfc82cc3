#pragma once

#include "runtime/engine/rendezvous.hpp"
#include "runtime/engine/worker.hpp"
#include "runtime/matrix/operands.hpp"
#include "runtime/matrix/phase_probe.hpp"

namespace rmsp::distributed {

/// y = alpha A x + beta y for one matrix A, or for its transpose: what the devices have for it besides their parts of
/// the matrix.
template <class T>
class Product {
public:
    Product() = default;
    virtual ~Product() = default;
    Product(const Product&) = delete;
    Product& operator=(const Product&) = delete;

    /// Makes room and kernels ready on all devices, unless they are; not on a worker, blocks.
    /// \throws Error(usage) if no kernel keeps the determinism asked for, Error(out_of_memory), Error(device)
    void prepare()
    {
        if (!ready_) {
            make_ready();
            ready_ = true;
        }
    }
    /// Queues one worker's part of an apply. Every worker of the job calls it.
    virtual void apply(engine::Worker& worker, engine::Rendezvous& meeting, T alpha, const Source<T>& x, T beta,
                       const Target<T>& y, PhaseProbe* probe) = 0;
    /// The worker's next applies, until this is called with null, leave sums of x[i] y[i] at `sums`, with vectors that
    /// the devices hold by rows. Returns how many, at most
    /// one for 32 rows of the device, and one; 0: none, this product cannot.
    virtual std::int64_t leave_sums(int /*rank*/, double* /*sums*/) { return 0; }
    /// What is left to do with a host y when all devices are done.
    virtual void finish_host_y(T* y) const = 0;
    /// Puts into the plan of the matrix what races of kernels have found so far. By any thread.
    virtual void note_races(Plan& /*plan*/) const {}
    /// The values of the worker's part changed in place.
    virtual void update_values(engine::Worker& worker) = 0;
    /// Frees what a device has; on its worker, or after that has stopped. The matrix may be gone.
    virtual void close(int rank) noexcept = 0;

private:
    virtual void make_ready() = 0;

    bool ready_ = false;
};

}  // namespace rmsp::distributed
