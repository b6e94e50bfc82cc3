#pragma once

#include <cstddef>
#include <vector>

#include <kernels/steps/coarsening/coarsening.hpp>

#include "runtime/spgemm/slice_exchange.hpp"

namespace rmsp::multigrid {

/// Estimates the largest eigenvalue of D^-1 A_F, from below, as matrix::smoothed_prolongator() does: rows are
/// multiplied where they are, and devices get what they need of the vector from each other.
template <class T>
class PowerMethod {
public:
    /// \param devices  of the runtime \param goes_on  later estimates go on from the vector of the one before
    PowerMethod(std::size_t devices, bool goes_on) : goes_on_(goes_on), last_steps_(devices) {}

    /// An estimate, the same on all devices, whose workers all call it. Waits. \param a  the worker's rows
    /// \param inverse  of filtered_inverse() \param along_rows  of vectors along all rows
    /// \param v  what the device has of the last vector; empty at first, and where none is gone on from
    double operator()(engine::Worker& worker, engine::Rendezvous& meeting, const kernels::AggregatedRows<T>& a,
                      const double* inverse, spgemm::SliceExchange& along_rows, kernels::DeviceArray<double>& v);

private:
    const bool goes_on_;
    bool has_vector_ = false;  ///< to go on from
    /// Squares, added up over a device's entries, of the vectors before the last step and after it.
    struct LastStep {
        double before = 0;
        double after = 0;
    };
    std::vector<LastStep> last_steps_;
};

}  // namespace rmsp::multigrid
