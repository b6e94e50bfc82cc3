#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <kernels/spmv/spmv.hpp>

#include "device_csr.hpp"

/// What the tests of SpMV kernels share.
namespace rmsp::kernels::test {

/// A suite typed by precision, which is all that its fixture is for.
template <class T>
class PrecisionTest : public DeviceTest<> {
};
using Precisions = testing::Types<float, double>;

/// What the kernel of that name, for the devices under test, makes of a shard.
template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_named(const char* name, const CsrShard<T>& shard, const RowStatistics& rows,
                                               const Context& context)
{
    for (const SpmvKernel<T>& kernel : spmv_kernels<T>()) {
        if (kernel.info.device == device_kind() && kernel.info.name == name) {
            return kernel.prepare(shard, rows, context);
        }
    }
    throw Error(ErrorCode::usage, name);
}

/// Applies once; entries around y must stay as they are.
template <class T>
std::vector<T> apply(TestDevice& device, SpmvOperator<T>& op, T alpha, const std::vector<T>& x, T beta,
                     const std::vector<T>& y)
{
    constexpr std::size_t padding = 33;
    constexpr T guard = 12345;
    std::vector<T> padded(padding, guard);
    padded.insert(padded.end(), y.begin(), y.end());
    padded.insert(padded.end(), padding, guard);
    const DeviceArray<T> device_x = upload(device, x);
    const DeviceArray<T> device_y = upload(device, padded);
    op.apply(alpha, device_x.data(), beta, device_y.data() + padding, device.context());
    const std::vector<T> out = download(device, device_y.data(), padded.size());
    for (std::size_t i = 0; i < padding; ++i) {
        EXPECT_EQ(out[i], guard) << "y[" << static_cast<std::int64_t>(i) - static_cast<std::int64_t>(padding)
                                 << "] was overwritten";
        EXPECT_EQ(out[padding + y.size() + i], guard) << "y[" << y.size() + i << "] was overwritten";
    }
    return {out.begin() + padding, out.end() - padding};
}

/// alpha A x + beta y, and how far a result may be from it in each row.
template <class T>
struct Expected {
    std::vector<T> y;
    std::vector<double> bound;
};

template <class T>
Expected<T> expect(const HostCsr<T>& a, T alpha, const std::vector<T>& x, T beta, const std::vector<T>& y)
{
    Expected<T> e{y, {}};
    CsrShard<T> shard{a.rows, a.cols, a.nnz(), IndexView(a.row_ptr.data()), a.col_idx.data(), a.values.data()};
    const RowStatistics rows = statistics(a.row_ptr);
    choose_spmv<T>(DeviceKind::host, "csr-reference", Determinism::none, rows, a.cols)
        .prepare(shard, rows, Context{})
        ->apply(alpha, x.data(), beta, e.y.data(), Context{});
    for (std::size_t row = 0; row < y.size(); ++row) {
        double magnitude = 0;
        for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
            const auto k = static_cast<std::size_t>(i);
            magnitude += std::abs(static_cast<double>(a.values[k]) *
                                  static_cast<double>(x[static_cast<std::size_t>(a.col_idx[k])]));
        }
        magnitude *= std::abs(static_cast<double>(alpha));
        if (beta != T{0}) {
            magnitude += std::abs(static_cast<double>(beta) * static_cast<double>(y[row]));
        }
        const auto length = static_cast<double>(a.row_ptr[row + 1] - a.row_ptr[row]);
        e.bound.push_back((length + 4) * std::numeric_limits<T>::epsilon() * magnitude);
    }
    return e;
}

template <class T>
void expect_close(const std::vector<T>& y, const Expected<T>& expected)
{
    ASSERT_EQ(y.size(), expected.y.size());
    for (std::size_t row = 0; row < y.size(); ++row) {
        const double error = std::abs(static_cast<double>(y[row]) - static_cast<double>(expected.y[row]));
        ASSERT_TRUE(error <= expected.bound[row])
            << "row " << row << " of " << y.size() << ": " << y[row] << ", reference " << expected.y[row] << ", bound "
            << expected.bound[row];
    }
}

// Products of small integers, which are exact in any order.

/// The columns of a row's entries.
using Columns = std::function<std::vector<std::int32_t>(std::int64_t row)>;

/// Rows [first, end) of a matrix; the values are 0.
template <class T>
HostCsr<T> matrix_of_rows(std::int64_t first, std::int64_t end, std::int64_t cols, const Columns& columns_of)
{
    HostCsr<T> a;
    a.rows = end - first;
    a.cols = cols;
    for (std::int64_t row = first; row < end; ++row) {
        const auto columns = columns_of(row);
        a.col_idx.insert(a.col_idx.end(), columns.begin(), columns.end());
        a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
    }
    a.values.resize(a.col_idx.size());
    return a;
}

/// A number that is not a float if T is double.
template <class T>
T wide(std::int64_t n)
{
    return sizeof(T) == sizeof(double) ? static_cast<T>(n) * static_cast<T>(1 + 0x1p-24) : static_cast<T>(n);
}

/// Values that can be stored in fewer bytes, and such that cannot.
enum class Stored { constant, floats, whole };

template <class T>
void renew_values(HostCsr<T>& a, std::int64_t seed, Stored stored = Stored::floats)
{
    for (std::size_t i = 0; i < a.values.size(); ++i) {
        const std::int64_t n = stored == Stored::constant ? seed : (static_cast<std::int64_t>(i) * 7 + seed) % 9 - 4;
        a.values[i] = stored == Stored::floats ? static_cast<T>(n) : wide<T>(n);
    }
}

template <class T>
T small_integer(std::int64_t i)
{
    return static_cast<T>(i * 5 % 17 - 8);
}

template <class T>
std::vector<T> small_integers(std::int64_t n)
{
    std::vector<T> x(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
        x[static_cast<std::size_t>(i)] = small_integer<T>(i);
    }
    return x;
}

/// What y holds before exact products 2 A x - 3 y.
template <class T>
std::vector<T> hundreds(std::int64_t rows)
{
    return std::vector<T>(static_cast<std::size_t>(rows), T{100});
}

template <class T>
testing::AssertionResult is_exact(const std::vector<T>& y, const HostCsr<T>& a, const std::vector<T>& x)
{
    for (std::size_t row = 0; row < y.size(); ++row) {
        T sum = 0;
        for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
            const auto k = static_cast<std::size_t>(i);
            sum += a.values[k] * x[static_cast<std::size_t>(a.col_idx[k])];
        }
        const T expected = 2 * sum - 300;
        if (y[row] != expected && !(std::isnan(y[row]) && std::isnan(expected))) {
            return testing::AssertionFailure() << "row " << row << ": " << y[row] << ", not " << expected;
        }
    }
    return testing::AssertionSuccess();
}

/// Whether an operator's 2 A x - 3 y is.
template <class T>
testing::AssertionResult multiplies_exactly(TestDevice& device, SpmvOperator<T>& op, const HostCsr<T>& a,
                                            const std::vector<T>& x)
{
    return is_exact(apply(device, op, T{2}, x, T{-3}, hundreds<T>(a.rows)), a, x);
}

}  // namespace rmsp::kernels::test
