#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <kernels/context.hpp>
#include <rmsp/error.hpp>
#include <rmsp/preconditioner.hpp>

#include "core/clock.hpp"
#include "runtime/matrix/download.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/matrix/vector_state.hpp"
#include "runtime/node/per_device.hpp"

/// What preconditioners have in common.
namespace rmsp::preconditioners {

using detail::MatrixState;
using detail::RuntimeState;
using detail::VectorState;
using node::PerDevice;

/// Copies an array to the worker's device, into room that is made the first time; the array may go when the job has
/// ended. Returns the bytes.
template <class X, class Host>
std::int64_t put(engine::Worker& worker, kernels::DeviceArray<X>& to, const Host& from)
{
    if (to.size() != from.size()) {
        to = kernels::DeviceArray<X>(worker.device(), from.size());
    }
    if (!from.empty()) {
        worker.device().upload(worker.stream(), to.data(), from.data(), from.size() * sizeof(X));
    }
    return static_cast<std::int64_t>(from.size() * sizeof(X));
}

template <class X>
std::int64_t bytes_of(const HostVector<X>& array)
{
    return static_cast<std::int64_t>(array.size() * sizeof(X));
}
template <class T>
std::int64_t bytes_of(const CsrMatrix<T>& a)
{
    const std::int64_t entry_bytes = std::int64_t{sizeof(T)} + a.col_idx.view().element_bytes();
    return bytes_of(a.row_ptr) + static_cast<std::int64_t>(a.values.size()) * entry_bytes;
}

/// Holds the matrix, and the report. Derived ones say in renew() what their set-up does, too.
template <class T>
class Base : public Preconditioner<T> {
public:
    /// \throws Error(usage) if the matrix is not square
    Base(const DistributedMatrix<T>& matrix, std::string name)
        : matrix_(matrix), state_(detail::checked(detail::MatrixAccess::state(matrix)))
    {
        report_.name = std::move(name);
        if (matrix.rows() != matrix.cols()) {
            throw Error(ErrorCode::usage,
                        fmt::format("preconditioner \"{}\" needs a square matrix; this one is {} x {}", report_.name,
                                    matrix.rows(), matrix.cols()));
        }
    }
    std::string name() const override { return report_.name; }
    PreconditionerReport report() const override { return report_; }

protected:
    /// \throws Error(usage) for vectors that are not sliced as the matrix's, are the same, or in another order
    void check_vectors(const Vec<T>& z, const Vec<T>& r) const
    {
        for (const auto& vector : {z.state(), r.state()}) {
            if (vector->runtime != state_->runtime || vector->layout != Layout::rows || vector->offsets != slices()) {
                throw Error(ErrorCode::usage,
                            fmt::format("preconditioner \"{}\" has a vector of {} entries that is not "
                                        "sliced as the matrix's rows are; make it with make_y()",
                                        report_.name, vector->size));
            }
            if (vector->order && (!this->takes_kernel_order() || vector->order->matrix != state_)) {
                throw Error(ErrorCode::usage,
                            fmt::format("preconditioner \"{}\" has a vector in the order of a kernel that it does not "
                                        "take; make it with Order::matrix",
                                        report_.name));
            }
        }
        if (z.state() == r.state()) {
            throw Error(ErrorCode::usage, fmt::format("preconditioner \"{}\" cannot leave z where r is", report_.name));
        }
    }
    /// First row of each device, and the number of rows at the end.
    const std::vector<std::int64_t>& slices() const { return distributed::x_side(*state_, true).slices; }

    DistributedMatrix<T> matrix_;
    std::shared_ptr<MatrixState<T>> state_;
    PreconditionerReport report_;
};

/// \throws Error(usage) naming an option and what it must be
template <class Value>
void require_option(bool good, const char* option, const Value& value, const char* wants)
{
    if (!good) {
        throw Error(ErrorCode::usage,
                    fmt::format("preconditioner option {} is {}, it must be {}", option, value, wants));
    }
}

}  // namespace rmsp::preconditioners
