#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kernels/steps/diagonal/diagonal.hpp>

#include "runtime/preconditioners/base.hpp"

namespace rmsp::preconditioners {

/// factor / a_ii as a vector on the devices, in each order that is asked for. Entries that are zero or not finite count
/// as 1.
template <class T>
class DiagonalScale {
public:
    explicit DiagonalScale(const DistributedMatrix<T>& matrix) : matrix_(matrix) {}

    /// Takes the diagonal, which is on the devices; blocks. Vectors that like() gave have the new numbers then.
    void take(double factor) { take(factor, matrix_.diagonal()); }
    /// Takes other numbers than the diagonal's, in a vector that nobody else keeps.
    void take(double factor, const DistributedVector<T>& divisors)
    {
        if (!by_matrix_) {
            by_matrix_.emplace(divisors);
        }
        const auto& from = detail::VectorAccess::state(divisors);
        const auto& to = by_matrix_->state();
        std::vector<kernels::NoDivisors> replaced(from->slices.size());
        from->runtime
            ->submit(
                [&](engine::Worker& worker, engine::Rendezvous&) {
                    const auto rank = static_cast<std::size_t>(worker.rank());
                    const std::int64_t n = from->offsets[rank + 1] - from->offsets[rank];
                    replaced[rank] = kernels::divide_by(factor, static_cast<const T*>(from->slices[rank]), n,
                                                        to->slices[rank], worker.context());
                },
                {}, from->terms())
            .get();
        replaced_ = 0;
        first_replaced_ = -1;
        for (std::size_t rank = 0; rank < replaced.size(); ++rank) {
            if (replaced[rank].count > 0 && replaced_ == 0) {
                first_replaced_ = from->offsets[rank] + replaced[rank].first;
            }
            replaced_ += replaced[rank].count;
        }
        write_by_kernel();
    }
    /// The one in the order of another vector; blocks the first time.
    const Vec<T>& like(const Vec<T>& other)
    {
        if (!other.state()->order.has_value()) {
            return *by_matrix_;
        }
        if (!by_kernel_) {
            by_kernel_.emplace(matrix_.make_y(Order::kernel));
            write_by_kernel();
        }
        return *by_kernel_;
    }
    /// On the devices.
    std::int64_t bytes() const { return (by_kernel_ ? 2 : 1) * matrix_.rows() * static_cast<std::int64_t>(sizeof(T)); }
    /// A sentence on entries that were replaced; empty: none was.
    std::string note() const
    {
        return replaced_ == 0 ? std::string()
                              : fmt::format(
                                    "{} of {} diagonal entries are zero or not finite, the first in row {}: "
                                    "they count as 1",
                                    replaced_, matrix_.rows(), first_replaced_);
    }

private:
    void write_by_kernel()
    {
        if (by_kernel_) {
            HostVector<T> entries(static_cast<std::size_t>(matrix_.rows()));
            by_matrix_->vector().download(entries.data());
            by_kernel_->vector().upload(entries.data());
        }
    }

    DistributedMatrix<T> matrix_;
    std::int64_t replaced_ = 0;
    std::int64_t first_replaced_ = -1;
    std::optional<Vec<T>> by_matrix_;
    std::optional<Vec<T>> by_kernel_;
};

}  // namespace rmsp::preconditioners
