#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>
#include <kernels/spmv/spmv.hpp>

#include "matrices.hpp"
#include "test_device.hpp"

namespace rmsp::kernels::test {
namespace {

enum class Offsets { i32, i64 };

template <class T>
std::vector<T> narrowed(const std::vector<std::int64_t>& v)
{
    return {v.begin(), v.end()};
}

/// Rows [first, end) of a matrix on the device. `shift` entries lie before columns and values, to try arrays that are not aligned.
template <class T>
struct DeviceCsr {
    DeviceCsr(TestDevice& device, const HostCsr<T>& a, Offsets offsets, std::int64_t first, std::int64_t end,
              std::size_t shift = 0)
    {
        const std::int64_t begin_nnz = a.row_ptr[static_cast<std::size_t>(first)];
        const std::int64_t end_nnz = a.row_ptr[static_cast<std::size_t>(end)];
        for (std::int64_t row = first; row <= end; ++row) {
            row_ptr.push_back(a.row_ptr[static_cast<std::size_t>(row)] - begin_nnz);
        }
        ptr32 = upload(device, narrowed<std::int32_t>(row_ptr));
        ptr64 = upload(device, row_ptr);
        std::vector<std::int32_t> shifted_columns(shift, -1);
        shifted_columns.insert(shifted_columns.end(), a.col_idx.begin() + begin_nnz, a.col_idx.begin() + end_nnz);
        std::vector<T> shifted_values(shift, std::numeric_limits<T>::quiet_NaN());
        shifted_values.insert(shifted_values.end(), a.values.begin() + begin_nnz, a.values.begin() + end_nnz);
        columns = upload(device, shifted_columns);
        values = upload(device, shifted_values);
        shard.rows = end - first;
        shard.cols = a.cols;
        shard.nnz = end_nnz - begin_nnz;
        shard.row_ptr = offsets == Offsets::i32 ? IndexView(ptr32.data()) : IndexView(ptr64.data());
        shard.col_idx = columns.data() + (columns.data() != nullptr ? shift : 0);
        shard.values = values.data() + (values.data() != nullptr ? shift : 0);
    }
    DeviceCsr(TestDevice& device, const HostCsr<T>& a, Offsets offsets) : DeviceCsr(device, a, offsets, 0, a.rows) {}

    std::vector<std::int64_t> row_ptr;
    DeviceArray<std::int32_t> ptr32;
    DeviceArray<std::int64_t> ptr64;
    DeviceArray<std::int32_t> columns;
    DeviceArray<T> values;
    CsrShard<T> shard;
};

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
    prepare_reference(shard, statistics(a.row_ptr), Context{})->apply(alpha, x.data(), beta, e.y.data(), Context{});
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

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b)
{
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
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

#ifdef RMSP_HAVE_CUDA
constexpr bool has_cuda = true;
#else
constexpr bool has_cuda = false;
#endif

std::vector<std::string> names_of_kind()
{
    std::vector<std::string> names;
    for (const auto& kernel : spmv_kernels<double>()) {
        // BSR refuses what has no blocks: cusparse_test.cpp. A build without CUDA lists its kernels, to skip them.
        const bool listed = kernel.info.compiled || (kernel.info.device == DeviceKind::cuda && !has_cuda);
        if (kernel.info.device == device_kind() && listed && kernel.info.name != "cusparse-bsr") {
            names.push_back(kernel.info.name);
        }
    }
    return names;
}

class SpmvKernels : public testing::TestWithParam<std::tuple<std::string, bool>> {
protected:
    void SetUp() override
    {
        if (!device_missing().empty()) {
            GTEST_SKIP() << device_missing();
        }
        device_ = open_device();
    }

    /// Calls f(kernel) with the kernel in the precision of this test.
    template <class F>
    void visit(F&& f)
    {
        if (std::get<1>(GetParam())) {
            f(find<float>());
        } else {
            f(find<double>());
        }
    }

    template <class T>
    const SpmvKernel<T>& find() const
    {
        for (const auto& kernel : spmv_kernels<T>()) {
            if (kernel.info.device == device_kind() && kernel.info.name == std::get<0>(GetParam())) {
                return kernel;
            }
        }
        throw std::logic_error("not in the registry");
    }

    std::unique_ptr<TestDevice> device_;
};

TEST_P(SpmvKernels, AgreesWithTheReference)
{
    visit([&]<class T>(const SpmvKernel<T>& kernel) {
        for (const Shape& shape : shapes()) {
            SCOPED_TRACE(shape.name);
            const HostCsr<T> a = make_matrix<T>(shape, 11);
            if (kernel.unsupported != nullptr && kernel.unsupported(a.rows, a.cols, a.nnz()) != nullptr) {
                continue;
            }
            const std::vector<T> x = random_vector<T>(a.cols, 12);
            const std::vector<T> y = random_vector<T>(a.rows, 13);
            const std::vector<T> nan(y.size(), std::numeric_limits<T>::quiet_NaN());
            for (const Offsets offsets : {Offsets::i32, Offsets::i64}) {
                SCOPED_TRACE(offsets == Offsets::i32 ? "32-bit row pointers" : "64-bit row pointers");
                const DeviceCsr<T> d(*device_, a, offsets);
                const auto op = kernel.prepare(d.shard, statistics(d.row_ptr), device_->context());
                EXPECT_GE(op->workspace_bytes(), 0);
                const std::vector<T> once = apply(*device_, *op, T{1}, x, T{0}, nan);
                expect_close(once, expect(a, T{1}, x, T{0}, nan));
                const std::vector<T> scaled = apply(*device_, *op, T{-2.5}, x, T{0.75}, y);
                expect_close(scaled, expect(a, T{-2.5}, x, T{0.75}, y));
                if (kernel.info.determinism >= Determinism::run) {
                    EXPECT_TRUE(same_bits(once, apply(*device_, *op, T{1}, x, T{0}, nan)));
                    EXPECT_TRUE(same_bits(scaled, apply(*device_, *op, T{-2.5}, x, T{0.75}, y)));
                }
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    });
}

TEST_P(SpmvKernels, TakesArraysThatAreNotAligned)
{
    visit([&]<class T>(const SpmvKernel<T>& kernel) {
        if (kernel.info.name.starts_with("cusparse")) {
            GTEST_SKIP() << "cuSPARSE asks for aligned arrays";
        }
        for (const std::size_t shift : {1, 2, 3}) {
            const HostCsr<T> a = make_matrix<T>({"", 1000, {3, 0, 700, 1, 5000, 0, 27, 4}}, 21);
            const std::vector<T> x = random_vector<T>(a.cols, 22);
            const std::vector<T> y = random_vector<T>(a.rows, 23);
            const DeviceCsr<T> d(*device_, a, Offsets::i32, 0, a.rows, shift);
            const auto op = kernel.prepare(d.shard, statistics(d.row_ptr), device_->context());
            expect_close(apply(*device_, *op, T{1}, x, T{1}, y), expect(a, T{1}, x, T{1}, y));
        }
    });
}

TEST_P(SpmvKernels, OverwritesYWhereBetaIsZero)
{
    visit([&]<class T>(const SpmvKernel<T>& kernel) {
        const HostCsr<T> a = make_matrix<T>({"", 10, {0, 2, 0, 9, 0}}, 31);
        const DeviceCsr<T> d(*device_, a, Offsets::i32);
        const auto op = kernel.prepare(d.shard, statistics(d.row_ptr), device_->context());
        const std::vector<T> x = random_vector<T>(a.cols, 32);
        const std::vector<T> y =
            apply(*device_, *op, T{1}, x, T{0}, std::vector<T>(5, std::numeric_limits<T>::infinity()));
        EXPECT_EQ(y[0], T{0});
        EXPECT_EQ(y[2], T{0});
        EXPECT_EQ(y[4], T{0});
        EXPECT_TRUE(std::isfinite(y[1]) && std::isfinite(y[3]));
    });
}

TEST_P(SpmvKernels, ReadsOnlyTheEntriesOfXThatItNeeds)
{
    visit([&]<class T>(const SpmvKernel<T>& kernel) {
        // A NaN in column 0, which no row uses, and an infinity where exactly one row does.
        HostCsr<T> a = make_matrix<T>({"", 5000, {40, 3, 0, 3000, 5}}, 41);
        for (std::int32_t& column : a.col_idx) {
            column = 2 + column % 4998;
        }
        a.col_idx[41] = 1;
        std::vector<T> x = random_vector<T>(a.cols, 42);
        x[0] = std::numeric_limits<T>::quiet_NaN();
        x[1] = std::numeric_limits<T>::infinity();
        const DeviceCsr<T> d(*device_, a, Offsets::i32);
        const auto op = kernel.prepare(d.shard, statistics(d.row_ptr), device_->context());
        const std::vector<T> y = apply(*device_, *op, T{1}, x, T{0}, std::vector<T>(5, T{0}));
        EXPECT_TRUE(std::isfinite(y[0]) && std::isfinite(y[3]) && std::isfinite(y[4]));
        EXPECT_TRUE(std::isinf(y[1]));
    });
}

TEST_P(SpmvKernels, MultipliesSomeOfTheRowsAsItMultipliesAll)
{
    visit([&]<class T>(const SpmvKernel<T>& kernel) {
        Shape shape{"", 4000, {}};
        for (std::int64_t row = 0; row < 5000; ++row) {
            shape.lengths.push_back(row == 2500 ? 3000 : 20 + row % 13);
        }
        const HostCsr<T> a = make_matrix<T>(shape, 81);
        const DeviceCsr<T> d(*device_, a, Offsets::i32);
        const auto op = kernel.prepare(d.shard, statistics(d.row_ptr), device_->context());
        const std::int64_t granule = op->row_granule();
        if (granule == 0) {
            GTEST_SKIP() << "multiplies whole shards only";
        }
        const std::vector<T> x = random_vector<T>(a.cols, 82);
        const std::vector<T> y = random_vector<T>(a.rows, 83);
        const std::vector<T> whole = apply(*device_, *op, T{2}, x, T{0.5f}, y);
        const DeviceArray<T> device_x = upload(*device_, x);
        const DeviceArray<T> device_y = upload(*device_, y);
        const std::int64_t first = (1000 + granule - 1) / granule * granule;
        const std::int64_t end = 4700 / granule * granule;
        const auto rows = [&](std::int64_t begin, std::int64_t stop) {
            op->apply_rows(begin, stop, T{2}, device_x.data(), T{0.5f}, device_y.data(), device_->context());
        };
        rows(first, end);
        std::vector<T> expected = y;
        std::copy(whole.begin() + first, whole.begin() + end, expected.begin() + first);
        EXPECT_TRUE(same_bits(expected, download(*device_, device_y.data(), y.size())));
        rows(0, first);
        rows(end, a.rows);
        rows(0, 0);
        EXPECT_TRUE(same_bits(whole, download(*device_, device_y.data(), y.size())));
    });
}

TEST_P(SpmvKernels, SeesNewValues)
{
    visit([&]<class T>(const SpmvKernel<T>& kernel) {
        HostCsr<T> a = make_matrix<T>({"", 3000, {3, 0, 6000, 1, 27, 0}}, 51);
        const std::vector<T> x = random_vector<T>(a.cols, 52);
        const std::vector<T> y(6, T{0});
        const DeviceCsr<T> d(*device_, a, Offsets::i32);
        const auto op = kernel.prepare(d.shard, statistics(d.row_ptr), device_->context());
        expect_close(apply(*device_, *op, T{1}, x, T{0}, y), expect(a, T{1}, x, T{0}, y));
        a.values = random_vector<T>(a.nnz(), 53);
        device_->copy_in(d.values.data(), a.values.data(), a.values.size() * sizeof(T));
        op->update_values(device_->context());
        expect_close(apply(*device_, *op, T{1}, x, T{0}, y), expect(a, T{1}, x, T{0}, y));
    });
}

TEST_P(SpmvKernels, ReadsFloatsInProductsOfDoubles)
{
    const SpmvKernel<double>& kernel = find<double>();
    if (std::get<1>(GetParam()) || !kernel.stores_floats) {
        GTEST_SKIP() << "keeps values as they are";
    }
    for (const Shape& shape : shapes()) {
        SCOPED_TRACE(shape.name);
        HostCsr<double> a = make_matrix<double>(shape, 55);
        const auto x = random_vector<double>(a.cols, 56);
        const auto y = random_vector<double>(a.rows, 57);
        DeviceCsr<double> d(*device_, a, Offsets::i32);
        d.shard.floats = true;
        std::unique_ptr<SpmvOperator<double>> op;
        for (const double factor : {1.0, 0.3}) {
            for (double& v : a.values) {
                v = static_cast<double>(static_cast<float>(factor * v));
            }
            if (!a.values.empty()) {
                device_->copy_in(d.values.data(), a.values.data(), a.values.size() * sizeof(double));
            }
            if (op) {
                op->update_values(device_->context());
            } else {
                op = kernel.prepare(d.shard, statistics(d.row_ptr), device_->context());
            }
            expect_close(apply(*device_, *op, 1.5, x, -0.5, y), expect(a, 1.5, x, -0.5, y));
        }
    }
}

TEST_P(SpmvKernels, KeepsItsBitsOnAnyNumberOfDevices)
{
    visit([&]<class T>(const SpmvKernel<T>& kernel) {
        if (kernel.info.determinism < Determinism::device_count) {
            GTEST_SKIP() << "keeps determinism \"" << to_string(kernel.info.determinism) << "\" only";
        }
        const HostCsr<T> a = make_matrix<T>({"", 900, {5, 9000, 0, 70, 12289, 3, 4096, 4097, 1, 20000, 0}}, 61);
        const std::vector<T> x = random_vector<T>(a.cols, 62);
        const std::vector<T> y = random_vector<T>(a.rows, 63);
        std::vector<T> whole;
        for (const int parts : {1, 2, 3, 11}) {
            std::vector<T> joined;
            for (int part = 0; part < parts; ++part) {
                const std::int64_t first = a.rows * part / parts;
                const std::int64_t end = a.rows * (part + 1) / parts;
                device_->context().threads = 1 + (part + parts) % 7;
                const DeviceCsr<T> d(*device_, a, Offsets::i32, first, end);
                const auto op = kernel.prepare(d.shard, statistics(d.row_ptr), device_->context());
                const std::vector<T> slice =
                    apply(*device_, *op, T{3}, x, T{0.3f}, std::vector<T>(y.begin() + first, y.begin() + end));
                joined.insert(joined.end(), slice.begin(), slice.end());
            }
            whole = parts == 1 ? joined : whole;
            EXPECT_TRUE(same_bits(whole, joined)) << parts << " parts";
        }
    });
}

TEST_P(SpmvKernels, AnyNumberOfThreads)
{
    if (device_kind() != DeviceKind::host) {
        GTEST_SKIP() << "threads belong to host devices";
    }
    visit([&]<class T>(const SpmvKernel<T>& kernel) {
        for (const Shape& shape : {Shape{"", 100, {20000}}, Shape{"", 100, {4096, 4096, 8192}},
                                   Shape{"", 100, {1, 2, 30000, 0, 0, 40000}}, Shape{"", 100, {}}}) {
            const HostCsr<T> a = make_matrix<T>(shape, 71);
            const std::vector<T> x = random_vector<T>(a.cols, 72);
            const std::vector<T> y = random_vector<T>(a.rows, 73);
            const DeviceCsr<T> d(*device_, a, Offsets::i64);
            for (const int threads : {0, 1, 2, 5, 16, 64}) {
                device_->context().threads = threads;
                const auto op = kernel.prepare(d.shard, statistics(d.row_ptr), device_->context());
                expect_close(apply(*device_, *op, T{1}, x, T{2}, y), expect(a, T{1}, x, T{2}, y));
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(All, SpmvKernels, testing::Combine(testing::ValuesIn(names_of_kind()), testing::Bool()),
                         [](const auto& test) {
                             std::string name =
                                 std::get<0>(test.param) + (std::get<1>(test.param) ? "_float" : "_double");
                             for (char& c : name) {
                                 c = c == '-' ? '_' : c;
                             }
                             return name;
                         });

}  // namespace
}  // namespace rmsp::kernels::test
