// SpMV of CSC and COO shards against a serial sum over coordinates that shares nothing with the kernels.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include <gtest/gtest.h>
#include <kernels/spmv/formats.hpp>

#include "spmv_fixtures.hpp"

namespace rmsp::kernels::test {
namespace {

template <class T>
struct Wide;
template <>
struct Wide<float> {
    using type = double;
};
template <>
struct Wide<double> {
    using type = long double;
};

/// Coordinates in some order.
template <class T>
struct HostCoo {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    CooOrder order = CooOrder::by_row;
    std::vector<std::int32_t> row;
    std::vector<std::int32_t> col;
    std::vector<T> values;

    std::int64_t nnz() const { return static_cast<std::int64_t>(values.size()); }
};

template <class T>
HostCoo<T> make_coordinates(const Shape& shape, std::uint64_t seed)
{
    const HostCsr<T> a = make_matrix<T>(shape, seed);
    HostCoo<T> coo{a.rows, a.cols, CooOrder::by_row, {}, a.col_idx, a.values};
    for (std::size_t i = 0; i < shape.lengths.size(); ++i) {
        coo.row.insert(coo.row.end(), static_cast<std::size_t>(shape.lengths[i]), static_cast<std::int32_t>(i));
    }
    return coo;
}

/// The same matrix with entry i at place to[i].
template <class T>
HostCoo<T> reordered(const HostCoo<T>& a, CooOrder order, const std::vector<std::size_t>& from)
{
    HostCoo<T> b = a;
    b.order = order;
    for (std::size_t i = 0; i < from.size(); ++i) {
        b.row[i] = a.row[from[i]];
        b.col[i] = a.col[from[i]];
        b.values[i] = a.values[from[i]];
    }
    return b;
}

template <class T>
HostCoo<T> in_order(const HostCoo<T>& a, CooOrder order)
{
    std::vector<std::size_t> from(a.values.size());
    std::iota(from.begin(), from.end(), std::size_t{0});
    if (order == CooOrder::by_column) {
        std::stable_sort(from.begin(), from.end(), [&](std::size_t i, std::size_t j) { return a.col[i] < a.col[j]; });
    } else if (order == CooOrder::unsorted) {
        const std::vector<double> keys = random_vector<double>(a.nnz(), 99);
        std::sort(from.begin(), from.end(), [&](std::size_t i, std::size_t j) { return keys[i] < keys[j]; });
    }
    return reordered(a, order, from);
}

template <class T>
HostCoo<T> transposed(HostCoo<T> a)
{
    std::swap(a.rows, a.cols);
    std::swap(a.row, a.col);
    a.order = CooOrder::by_column;
    return a;
}

template <class T>
void expect_product(const HostCoo<T>& a, T alpha, const std::vector<T>& x, T beta, const std::vector<T>& y_in,
                    const std::vector<T>& y)
{
    using Sum = typename Wide<T>::type;
    const auto n = static_cast<std::size_t>(a.rows);
    std::vector<Sum> sum(n, 0);
    std::vector<Sum> magnitude(n, 0);
    std::vector<int> length(n, 0);
    for (std::size_t i = 0; i < a.values.size(); ++i) {
        const auto row = static_cast<std::size_t>(a.row[i]);
        const Sum product = Sum{a.values[i]} * Sum{x[static_cast<std::size_t>(a.col[i])]};
        sum[row] += product;
        magnitude[row] += std::abs(product);
        ++length[row];
    }
    ASSERT_EQ(y.size(), n);
    for (std::size_t row = 0; row < n; ++row) {
        const Sum old = beta == T{0} ? Sum{0} : Sum{beta} * Sum{y_in[row]};
        const Sum expected = Sum{alpha} * sum[row] + old;
        const Sum bound = static_cast<Sum>(length[row] + 4) * Sum{std::numeric_limits<T>::epsilon()} *
                          (std::abs(Sum{alpha}) * magnitude[row] + std::abs(old));
        ASSERT_TRUE(std::abs(Sum{y[row]} - expected) <= bound)
            << "row " << row << " of " << n << " with " << length[row] << " entries: " << y[row] << ", not "
            << static_cast<T>(expected);
    }
}

template <class T>
struct DeviceCsc {
    /// Row indices on the device count from first_row.
    DeviceCsc(TestDevice& device, const HostCoo<T>& by_column, bool wide, std::int32_t first_row)
    {
        std::vector<std::int64_t> pointers(static_cast<std::size_t>(by_column.cols) + 1, 0);
        for (const std::int32_t col : by_column.col) {
            ++pointers[static_cast<std::size_t>(col) + 1];
        }
        std::partial_sum(pointers.begin(), pointers.end(), pointers.begin());
        ptr64 = upload(device, pointers);
        ptr32 = upload(device, std::vector<std::int32_t>(pointers.begin(), pointers.end()));
        std::vector<std::int32_t> shifted(by_column.row);
        for (std::int32_t& row : shifted) {
            row += first_row;
        }
        rows = upload(device, shifted);
        values = upload(device, by_column.values);
        shard = {
            by_column.rows, by_column.cols, by_column.nnz(), wide ? IndexView(ptr64.data()) : IndexView(ptr32.data()),
            rows.data(),    values.data(),  first_row};
    }

    DeviceArray<std::int32_t> ptr32;
    DeviceArray<std::int64_t> ptr64;
    DeviceArray<std::int32_t> rows;
    DeviceArray<T> values;
    CscShard<T> shard;
};

template <class T>
struct DeviceCoo {
    /// Row indices on the device count from first_row.
    DeviceCoo(TestDevice& device, const HostCoo<T>& a, std::int32_t first_row)
    {
        std::vector<std::int32_t> shifted(a.row);
        for (std::int32_t& row : shifted) {
            row += first_row;
        }
        rows = upload(device, shifted);
        columns = upload(device, a.col);
        values = upload(device, a.values);
        shard = {a.rows, a.cols, a.nnz(), a.order, first_row, rows.data(), columns.data(), values.data()};
    }

    DeviceArray<std::int32_t> rows;
    DeviceArray<std::int32_t> columns;
    DeviceArray<T> values;
    CooShard<T> shard;
};

/// The orders that a kernel takes: columns for the CSC kernels.
struct Case {
    std::string kernel;
    CooOrder order;
    bool csc;
};

std::vector<Case> cases()
{
    std::vector<Case> all;
    for (const auto& kernel : spmv_csc_kernels<double>()) {
        if (kernel.info.device == device_kind()) {
            all.push_back({kernel.info.name, CooOrder::by_column, true});
        }
    }
    for (const auto& kernel : spmv_coo_kernels<double>()) {
        if (kernel.info.device == device_kind()) {
            all.push_back({kernel.info.name, CooOrder::by_row, false});
            if (kernel.supports(CooOrder::unsorted)) {
                all.push_back({kernel.info.name, CooOrder::by_column, false});
                all.push_back({kernel.info.name, CooOrder::unsorted, false});
            }
        }
    }
    return all;
}

class SpmvFormats : public DeviceTest<testing::TestWithParam<std::tuple<Case, bool>>> {
protected:
    /// Calls f.template operator()<T>() in the precision of this test.
    template <class F>
    void in_precision(const F& f) const
    {
        if (std::get<1>(GetParam())) {
            f(float{});
        } else {
            f(double{});
        }
    }

    const Case& which() const { return std::get<0>(GetParam()); }

    template <class T>
    Determinism level() const
    {
        return which().csc ? choose_spmv_csc<T>(device_kind(), which().kernel, Determinism::none).info.determinism
                           : choose_spmv_coo<T>(device_kind(), which().kernel, Determinism::none, which().order)
                                 .info.determinism;
    }

    /// A shard on the device with its operator.
    template <class T>
    struct Ready {
        std::optional<DeviceCsc<T>> csc;
        std::optional<DeviceCoo<T>> coo;
        std::unique_ptr<SpmvOperator<T>> op;
        T* values() const { return csc ? csc->values.data() : coo->values.data(); }
    };
    template <class T>
    Ready<T> prepare(const HostCoo<T>& a, bool variant = false)
    {
        Ready<T> ready;
        if (which().csc) {
            ready.csc.emplace(*device_, a, variant, variant ? 1000000 : 0);
            ready.op = choose_spmv_csc<T>(device_kind(), which().kernel, Determinism::none)
                           .prepare(ready.csc->shard, device_->context());
        } else {
            ready.coo.emplace(*device_, a, variant ? 1000000 : 0);
            ready.op = choose_spmv_coo<T>(device_kind(), which().kernel, Determinism::none, which().order)
                           .prepare(ready.coo->shard, device_->context());
        }
        return ready;
    }
};

TEST_P(SpmvFormats, AgreesWithTheSumOfItsEntries)
{
    in_precision([&]<class T>(T) {
        for (const Shape& shape : shapes()) {
            // Dense rows and dense columns.
            const HostCoo<T> a = make_coordinates<T>(shape, 11);
            for (const bool turned : {false, true}) {
                SCOPED_TRACE(shape.name + (turned ? ", transposed" : ""));
                const HostCoo<T> source = turned ? transposed(a) : a;
                const bool ready_made = turned && which().order == CooOrder::by_column;
                std::vector<std::size_t> by_row;
                HostCoo<T> b = source;
                if (turned && which().order == CooOrder::by_row) {
                    by_row.resize(source.row.size());
                    std::iota(by_row.begin(), by_row.end(), std::size_t{0});
                    std::stable_sort(by_row.begin(), by_row.end(),
                                     [&](std::size_t i, std::size_t j) { return source.row[i] < source.row[j]; });
                    b = reordered(source, CooOrder::by_row, by_row);
                } else if (!ready_made) {
                    b = in_order(source, which().order);
                }
                const std::vector<T> x = random_vector<T>(b.cols, 12);
                const std::vector<T> y = random_vector<T>(b.rows, 13);
                const std::vector<T> nan(y.size(), std::numeric_limits<T>::quiet_NaN());
                const auto ready = prepare(b, turned);
                EXPECT_GE(ready.op->workspace_bytes(), 0);
                const std::vector<T> once = apply(*device_, *ready.op, T{1}, x, T{0}, nan);
                expect_product(b, T{1}, x, T{0}, nan, once);
                const std::vector<T> scaled = apply(*device_, *ready.op, T{-2.5}, x, T{0.75}, y);
                expect_product(b, T{-2.5}, x, T{0.75}, y, scaled);
                expect_product(b, T{1}, x, T{1}, y, apply(*device_, *ready.op, T{1}, x, T{1}, y));
                if (level<T>() >= Determinism::run) {
                    EXPECT_TRUE(same_bits(once, apply(*device_, *ready.op, T{1}, x, T{0}, nan)));
                    EXPECT_TRUE(same_bits(scaled, apply(*device_, *ready.op, T{-2.5}, x, T{0.75}, y)));
                }
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    });
}

TEST_P(SpmvFormats, ByHand)
{
    in_precision([&]<class T>(T) {
        // [0 2 0; 0 0 0; 1 0 5; 0 3+4 0]
        const HostCoo<T> a{4, 3, CooOrder::by_row, {0, 2, 2, 3, 3}, {1, 2, 0, 1, 1}, {2, 5, 1, 3, 4}};
        const auto ready = prepare(in_order(a, which().order));
        EXPECT_EQ(apply(*device_, *ready.op, T{2}, {1, 10, 100}, T{-1}, {1, 2, 3, 4}),
                  (std::vector<T>{39, -2, 999, 136}));
        EXPECT_EQ(
            apply(*device_, *ready.op, T{1}, {1, 10, 100}, T{0}, std::vector<T>(4, std::numeric_limits<T>::infinity())),
            (std::vector<T>{20, 0, 501, 70}));
    });
}

TEST_P(SpmvFormats, ReadsOnlyTheEntriesOfXThatItNeeds)
{
    in_precision([&]<class T>(T) {
        HostCoo<T> a = make_coordinates<T>({"", 50, {40, 3, 0, 3000, 5}}, 41);
        for (std::int32_t& column : a.col) {
            column = 2 + column % 48;
        }
        a.col[41] = 1;
        std::vector<T> x = random_vector<T>(a.cols, 42);
        x[0] = std::numeric_limits<T>::quiet_NaN();
        x[1] = std::numeric_limits<T>::infinity();
        const auto ready = prepare(in_order(a, which().order));
        const std::vector<T> y = apply(*device_, *ready.op, T{1}, x, T{0}, std::vector<T>(5, T{0}));
        EXPECT_TRUE(std::isfinite(y[0]) && y[2] == T{0} && std::isfinite(y[3]) && std::isfinite(y[4]));
        EXPECT_TRUE(std::isinf(y[1]));
    });
}

TEST_P(SpmvFormats, SeesNewValues)
{
    in_precision([&]<class T>(T) {
        HostCoo<T> a = in_order(make_coordinates<T>({"", 300, {3, 0, 6000, 1, 27, 0}}, 51), which().order);
        const std::vector<T> x = random_vector<T>(a.cols, 52);
        const std::vector<T> y(6, T{0});
        const auto ready = prepare(a);
        expect_product(a, T{1}, x, T{0}, y, apply(*device_, *ready.op, T{1}, x, T{0}, y));
        a.values = random_vector<T>(a.nnz(), 53);
        device_->copy_in(ready.values(), a.values.data(), a.values.size() * sizeof(T));
        ready.op->update_values(device_->context());
        expect_product(a, T{1}, x, T{0}, y, apply(*device_, *ready.op, T{1}, x, T{0}, y));
    });
}

TEST_P(SpmvFormats, AnyNumberOfThreads)
{
    if (device_kind() != DeviceKind::host) {
        GTEST_SKIP() << "threads belong to host devices";
    }
    in_precision([&]<class T>(T) {
        for (const Shape& shape :
             {Shape{"", 100, {20000}}, Shape{"", 100, {4096, 4096, 8192}}, Shape{"", 100, {1, 2, 30000, 0, 0, 40000}},
              Shape{"", 100, {}}, Shape{"", 7, std::vector<std::int64_t>(3000, 1)}, Shape{"", 5, {0, 0, 3, 0}}}) {
            const HostCoo<T> a = in_order(make_coordinates<T>(shape, 71), which().order);
            const std::vector<T> x = random_vector<T>(a.cols, 72);
            const std::vector<T> y = random_vector<T>(a.rows, 73);
            for (const int threads : {0, 1, 2, 5, 16, 64}) {
                device_->context().threads = threads;
                const auto ready = prepare(a);
                expect_product(a, T{1}, x, T{2}, y, apply(*device_, *ready.op, T{1}, x, T{2}, y));
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(All, SpmvFormats, testing::Combine(testing::ValuesIn(cases()), testing::Bool()),
                         [](const auto& test) {
                             const Case& c = std::get<0>(test.param);
                             std::string name =
                                 c.kernel + "_" + to_string(c.order) + (std::get<1>(test.param) ? "_float" : "_double");
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

}  // namespace
}  // namespace rmsp::kernels::test
