#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rmsp/spgemm.hpp>

#include "runtime/spgemm/factors.hpp"
#include "runtime/spgemm/part.hpp"

namespace rmsp::detail {

/// What a SparseProduct points to.
template <class T>
struct ProductState {
    explicit ProductState(std::size_t devices) : room(devices) {}
    ~ProductState();

    std::shared_ptr<RuntimeState> runtime;
    spgemm::Factors<T> factors;
    /// Of factors whose values were in GPU memory of the caller's: the matrices made of them.
    std::shared_ptr<MatrixState<T>> made_a;
    std::shared_ptr<MatrixState<T>> made_b;
    std::vector<IndexArray> kept;    ///< indices of the caller's that were renumbered
    std::int64_t round = 0;          ///< how often C was computed
    std::atomic<int> borrowers = 0;  ///< products of which this C is a factor
    SpgemmPlan plan;
    std::vector<std::unique_ptr<spgemm::ProductPart<T>>> parts;  ///< of each device
    engine::Tasks room;                                          ///< to free them
    std::vector<PhaseTimes> phases;
    bool computed = false;
    /// One product multiplies by C, once: devices that have copied what it needs free C and all that it was made from.
    bool once = false;

    /// In the place of the times that the phase had before.
    void set_phase(const char* name, std::vector<double> seconds);
};

/// What a product's handle points to.
struct ProductAccess {
    template <class T>
    static const std::shared_ptr<ProductState<T>>& state(const SparseProduct<T>& product)
    {
        return product.state_;
    }
    /// Of which renew() is called once.
    template <class T>
    static TripleProduct<T> triple_once(const std::shared_ptr<RuntimeState>& runtime, const SpgemmOperand<T>& r,
                                        const SpgemmOperand<T>& a, const SpgemmOperand<T>& p,
                                        const SpgemmOptions& options)
    {
        TripleProduct<T> made;
        made.open(runtime, r, a, p, options, true);
        return made;
    }
    /// A P of R A P.
    template <class T>
    static const SparseProduct<T>& inner(const TripleProduct<T>& galerkin)
    {
        return galerkin.ap_;
    }
    /// As SparseProduct's constructor, without a handle of the runtime.
    template <class T>
    static SparseProduct<T> product(const std::shared_ptr<RuntimeState>& runtime, const SpgemmOperand<T>& a,
                                    const SpgemmOperand<T>& b, const SpgemmOptions& options)
    {
        return SparseProduct<T>(runtime, a, b, options);
    }
};

}  // namespace rmsp::detail

/// A product of two matrices on all devices of a runtime. What is called here blocks, and belongs to the caller's
/// thread.
namespace rmsp::spgemm {

using detail::ProductState;

/// \throws Error(usage) for a product that was never made
template <class T>
ProductState<T>& checked(const std::shared_ptr<ProductState<T>>& state);

/// Work on one device's part; every worker of the job calls it.
template <class T>
using DeviceBody = std::function<void(engine::Worker&, ProductPart<T>&, engine::Rendezvous&)>;

/// Runs the body on every device, waits, and returns how long each took. `may_end_early`: see
/// engine::JobTerms.
template <class T>
std::vector<double> on_devices(ProductState<T>& state, const DeviceBody<T>& body, bool may_end_early = false);

/// Plans the product of state.factors, and makes the parts.
template <class T>
void build(ProductState<T>& state);

/// C from the values that A and B have now.
template <class T>
void compute(ProductState<T>& state, T alpha);

/// C is not computed again: what only that needs is freed on the devices, copies of the factors too.
template <class T>
void finish(ProductState<T>& state);

/// Whether C has been computed from the values that its factors on the devices have now.
template <class T>
bool is_current(const ProductState<T>& state);

/// New values of the caller's arrays; null: as before.
/// \throws Error(usage) for a factor that is on the devices, unless it was made of arrays in GPU memory
template <class T>
void update_values(ProductState<T>& state, const T* a_values, const T* b_values);

}  // namespace rmsp::spgemm
