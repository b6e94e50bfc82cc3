#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <kernels/spmv/spmv.hpp>

#include "kernel_test.hpp"
#include "spmv_fixtures.hpp"

namespace rmsp::kernels::test {
namespace {

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

struct SpmvFamily {
    template <class T>
    static auto kernels()
    {
        return spmv_kernels<T>();
    }
};

class SpmvKernels : public KernelTest<SpmvFamily> {};

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
        for (const Shape& shape : {Shape{"", 1000, {3, 0, 700, 1, 5000, 0, 27, 4}}, Shape{"", 1000, {9000, 5, 7000}}}) {
            for (const std::size_t shift : {1, 2, 3}) {
                const HostCsr<T> a = make_matrix<T>(shape, 21);
                const std::vector<T> x = random_vector<T>(a.cols, 22);
                const std::vector<T> y = random_vector<T>(a.rows, 23);
                const DeviceCsr<T> d(*device_, a, Offsets::i32, 0, a.rows, shift);
                const auto op = kernel.prepare(d.shard, statistics(d.row_ptr), device_->context());
                expect_close(apply(*device_, *op, T{1}, x, T{1}, y), expect(a, T{1}, x, T{1}, y));
            }
        }
    });
}

TEST_P(SpmvKernels, KeepsTheNaNsOfARowToIt)
{
    visit([&]<class T>(const SpmvKernel<T>& kernel) {
        if (!kernel.info.name.starts_with("csr-")) {
            GTEST_SKIP() << "not on the CSR arrays";
        }
        for (const std::int64_t length : {1, 3, 12, 33}) {
            Shape shape{"", 1000, std::vector<std::int64_t>(301, length)};
            shape.lengths[7] += 1;  // so that rows begin at odd places and at even ones
            const HostCsr<T> a = make_matrix<T>(shape, 25);
            HostCsr<T> with_nans = a;
            const auto odd = [](std::size_t row) { return row % 2 != 0; };
            for (std::size_t row = 0; row < shape.lengths.size(); ++row) {
                for (std::int64_t i = a.row_ptr[row]; odd(row) && i < a.row_ptr[row + 1]; ++i) {
                    with_nans.values[static_cast<std::size_t>(i)] = std::numeric_limits<T>::quiet_NaN();
                }
            }
            const std::vector<T> x = random_vector<T>(a.cols, 26);
            const std::vector<T> y(static_cast<std::size_t>(a.rows), T{0});
            const DeviceCsr<T> d(*device_, with_nans, Offsets::i32);
            const auto op = kernel.prepare(d.shard, statistics(d.row_ptr), device_->context());
            const std::vector<T> found = apply(*device_, *op, T{1}, x, T{0}, y);
            const DeviceCsr<T> clean(*device_, a, Offsets::i32);
            const auto clean_op = kernel.prepare(clean.shard, statistics(clean.row_ptr), device_->context());
            const std::vector<T> expected = apply(*device_, *clean_op, T{1}, x, T{0}, y);
            for (std::size_t row = 0; row < found.size(); ++row) {
                EXPECT_TRUE(odd(row) ? std::isnan(found[row]) : found[row] == expected[row]) << "row " << row;
            }
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

// With a checker of memory accesses: x is no longer than that.
TEST_P(SpmvKernels, ReadsNoMoreOfXThanTheShardTouches)
{
    visit([&]<class T>(const SpmvKernel<T>& kernel) {
        // Rows of a larger matrix, whose own columns begin at 500: a badly numbered grid of 30 x 30 points.
        constexpr std::int64_t side = 30;
        constexpr std::int64_t points = side * side;
        constexpr std::int64_t diagonal = 500;
        const auto neighbours = [](std::int64_t row) {
            const std::int64_t point = row * 643 % points;
            std::vector<std::int32_t> columns;
            for (std::int64_t i = std::max<std::int64_t>(point / side - 1, 0);
                 i <= std::min(point / side + 1, side - 1); ++i) {
                for (std::int64_t j = std::max<std::int64_t>(point % side - 1, 0);
                     j <= std::min(point % side + 1, side - 1); ++j) {
                    columns.push_back(static_cast<std::int32_t>(diagonal + (i * side + j) * 7 % points));
                }
            }
            return columns;
        };
        // Columns of other rows on both sides; and rows and columns without entries at both ends.
        const auto more = [&](std::int64_t row) {
            auto columns = neighbours(row);
            if (row == 5 || row == 7) {
                columns.push_back(row == 5 ? 450 : 1450);
            }
            return columns;
        };
        const auto fewer = [&](std::int64_t row) {
            auto columns = neighbours(row);
            std::erase_if(columns, [&](std::int32_t c) { return row < 60 || row >= 800 || c < 560 || c >= 1300; });
            return columns;
        };
        for (const Columns& columns : {Columns(more), Columns(fewer)}) {
            HostCsr<T> a = matrix_of_rows<T>(0, points, 2000, columns);
            renew_values(a, 3);
            DeviceCsr<T> d(*device_, a, Offsets::i64);
            d.shard.diagonal = diagonal;
            device_->context().threads = 2;
            const auto op = kernel.prepare(d.shard, statistics(a.row_ptr), device_->context());
            const auto [least, most] = std::minmax_element(a.col_idx.begin(), a.col_idx.end());
            const auto x = small_integers<T>(a.cols);
            const auto there = upload(*device_, std::vector<T>(x.begin() + *least, x.begin() + *most + 1));
            const auto y = upload(*device_, hundreds<T>(a.rows));
            op->apply(T{2}, there.data() - *least, T{-3}, y.data(), device_->context());
            EXPECT_TRUE(is_exact(download(*device_, y.data(), static_cast<std::size_t>(a.rows)), a, x));
        }
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
        rows(a.rows, a.rows);
        EXPECT_TRUE(same_bits(whole, download(*device_, device_y.data(), y.size())));
    });
}

TEST_P(SpmvKernels, SeesNewValues)
{
    visit([&]<class T>(const SpmvKernel<T>& kernel) {
        HostCsr<T> a = make_matrix<T>({"", 3000, {3, 0, 6000, 1, 27, 0}}, 51);
        const std::vector<T> x = random_vector<T>(a.cols, 52);
        const std::vector<T> y(6, T{0});
        DeviceCsr<T> d(*device_, a, Offsets::i32);
        const auto op = kernel.prepare(d.shard, statistics(d.row_ptr), device_->context());
        expect_close(apply(*device_, *op, T{1}, x, T{0}, y), expect(a, T{1}, x, T{0}, y));
        a.values = random_vector<T>(a.nnz(), 53);
        d.renew(*device_, a);
        op->update_values(device_->context());
        expect_close(apply(*device_, *op, T{1}, x, T{0}, y), expect(a, T{1}, x, T{0}, y));
    });
}

TEST_P(SpmvKernels, ReadsFloatsInProductsOfDoubles)
{
    const SpmvKernel<double>& kernel = find<double>();
    if (std::get<1>(GetParam()) || !kernel.info.keeps_floats) {
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
            d.renew(*device_, a);
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
