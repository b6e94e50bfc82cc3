#pragma once

#include <cstdint>

namespace rmsp::kernels {

/// One row while a thread adds it up, as a sum of matrix/interpolation_row.hpp, in room for its entries. Entry i of
/// neighbouring threads is in neighbouring places, so that threads that go through their lists together share lines.
class ThreadSum {
public:
    /// \param columns, values  of this thread: entry i is `stride` times i behind them
    constexpr ThreadSum(std::int32_t* columns, double* values, std::int64_t stride)
        : columns_(columns), values_(values), stride_(stride)
    {
    }
    constexpr void clear() { size_ = 0; }
    constexpr std::int64_t size() const { return size_; }
    constexpr std::int32_t column(std::int64_t i) const { return columns_[i * stride_]; }
    constexpr double entry(std::int64_t i) const { return values_[i * stride_]; }
    constexpr void set(std::int64_t i, std::int32_t column, double value)
    {
        columns_[i * stride_] = column;
        values_[i * stride_] = value;
    }
    constexpr void resize(std::int64_t n) { size_ = static_cast<std::int32_t>(n); }
    constexpr bool has(std::int32_t column) const { return place(column) < size_; }
    /// 0 where there is none.
    constexpr double value(std::int32_t column) const
    {
        const std::int32_t i = place(column);
        return i < size_ ? entry(i) : 0.0;
    }
    constexpr void add(std::int32_t column, double value)
    {
        const std::int32_t i = place(column);
        if (i == size_) {
            set(i, column, 0.0);
            ++size_;
        }
        values_[i * stride_] += value;
    }

private:
    /// size_ where there is none.
    constexpr std::int32_t place(std::int32_t column) const
    {
        std::int32_t i = 0;
        while (i < size_ && columns_[i * stride_] != column) {
            ++i;
        }
        return i;
    }

    std::int32_t* columns_;
    double* values_;
    std::int64_t stride_;
    std::int32_t size_ = 0;
};

}  // namespace rmsp::kernels
