#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "runtime/preconditioners/base.hpp"

namespace rmsp::preconditioners {

/// factor / a_ii as a vector on the devices, in each order that is asked for. Entries that are zero or not finite count
/// as 1.
template <class T>
class DiagonalScale {
public:
    explicit DiagonalScale(const DistributedMatrix<T>& matrix) : matrix_(matrix) {}

    /// Takes the diagonal from the devices; blocks. Vectors that are there are not written yet.
    void read() { read(matrix_.diagonal()); }
    /// Takes other numbers than the diagonal's.
    void read(const DistributedVector<T>& divisors)
    {
        entries_.resize(static_cast<std::size_t>(matrix_.rows()));
        divisors.download(entries_.data());
        const auto rows = static_cast<std::int64_t>(entries_.size());
        std::int64_t replaced = 0;
        std::int64_t first = rows;
#pragma omp parallel for schedule(static) reduction(+ : replaced) reduction(min : first)
        for (std::int64_t i = 0; i < rows; ++i) {
            T& entry = entries_[static_cast<std::size_t>(i)];
            if (entry == T{0} || !std::isfinite(entry)) {
                entry = T{1};
                first = std::min(first, i);
                ++replaced;
            }
        }
        replaced_ = replaced;
        first_replaced_ = replaced > 0 ? first : -1;
    }
    /// Writes factor / a_ii to the vectors; blocks.
    void write(double factor)
    {
        const auto rows = static_cast<std::int64_t>(entries_.size());
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < rows; ++i) {
            T& entry = entries_[static_cast<std::size_t>(i)];
            entry = static_cast<T>(factor / double{entry});
        }
        for (auto* const vector : {&by_matrix_, &by_kernel_}) {
            if (*vector) {
                (*vector)->vector().upload(entries_.data());
            }
        }
    }
    /// The one in the order of another vector; blocks the first time.
    const Vec<T>& like(const Vec<T>& other)
    {
        const bool kernel = other.state()->order.has_value();
        std::optional<Vec<T>>& vector = kernel ? by_kernel_ : by_matrix_;
        if (!vector) {
            auto made = matrix_.make_y(kernel ? Order::kernel : Order::matrix);
            made.upload(entries_.data());
            vector.emplace(made);
        }
        return *vector;
    }
    std::int64_t bytes() const { return bytes_of(entries_); }
    /// A sentence on entries that were replaced; empty: none was.
    std::string note() const
    {
        return replaced_ == 0 ? std::string()
                              : fmt::format(
                                    "{} of {} diagonal entries are zero or not finite, the first in row {}: "
                                    "they count as 1",
                                    replaced_, entries_.size(), first_replaced_);
    }

private:
    DistributedMatrix<T> matrix_;
    HostVector<T> entries_;
    std::int64_t replaced_ = 0;
    std::int64_t first_replaced_ = -1;
    std::optional<Vec<T>> by_matrix_;
    std::optional<Vec<T>> by_kernel_;
};

}  // namespace rmsp::preconditioners
