#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <kernels/spmv/spmv.hpp>
#include <kernels/wider.hpp>

namespace rmsp::kernels {

/// The definition of y = alpha A x + beta y where entries come in any order of rows: a sum for each row in the next
/// wider type, one entry after the other.
template <class T>
class ReferenceSums : public SpmvOperator<T> {
public:
    explicit ReferenceSums(std::int64_t rows) : sums_(static_cast<std::size_t>(rows)) {}

    void apply(T alpha, const T* x, T beta, T* y, const Context& /*context*/) final
    {
        std::fill(sums_.begin(), sums_.end(), Sum{0});
        add_entries(x, sums_.data());
        for (std::size_t row = 0; row < sums_.size(); ++row) {
            const Sum sum = Sum{alpha} * sums_[row];
            y[row] = static_cast<T>(beta == T{0} ? sum : sum + Sum{beta} * Sum{y[row]});
        }
    }

    std::int64_t workspace_bytes() const final { return static_cast<std::int64_t>(sums_.size() * sizeof(Sum)); }

protected:
    using Sum = typename Wider<T>::type;

private:
    /// Adds each entry times its entry of x to the sum of its row.
    virtual void add_entries(const T* x, Sum* sums) const = 0;

    std::vector<Sum> sums_;
};

}  // namespace rmsp::kernels
