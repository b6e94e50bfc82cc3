#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>
#include <kernels/spgemm/spgemm.hpp>
#include <rmsp/error.hpp>

#include "device_csr.hpp"
#include "kernel_test.hpp"
#include "spgemm_matrices.hpp"
#include "spgemm_reference.hpp"

namespace rmsp::kernels::test {
namespace {

template <class T>
std::vector<T> unpadded(const std::vector<T>& padded, std::size_t padding, T guard)
{
    for (std::size_t i = 0; i < padding; ++i) {
        EXPECT_EQ(padded[i], guard) << "before the array";
        EXPECT_EQ(padded[padded.size() - 1 - i], guard) << "behind the array";
    }
    return {padded.begin() + static_cast<std::ptrdiff_t>(padding), padded.end() - static_cast<std::ptrdiff_t>(padding)};
}

/// C on the host; entries around its arrays must stay as they are.
template <class T>
HostCsr<T> fill_product(TestDevice& device, SpgemmOperator<T>& op, const DeviceCsr<T>& a, const DeviceCsr<T>& b,
                        T alpha)
{
    constexpr std::size_t padding = 32;
    HostCsr<T> c;
    c.rows = a.shard.rows;
    c.cols = b.shard.cols;
    c.row_ptr = download(device, op.row_ptr(), static_cast<std::size_t>(c.rows) + 1);
    const auto n = static_cast<std::size_t>(op.nnz());
    const auto columns = upload(device, std::vector<std::int32_t>(n + 2 * padding, -7));
    const auto values = upload(device, std::vector<T>(n + 2 * padding, T{-7}));
    op.fill(alpha, a.values.data(), b.values.data(), columns.data() + padding, values.data() + padding,
            device.context());
    c.col_idx = unpadded(download(device, columns.data(), n + 2 * padding), padding, std::int32_t{-7});
    c.values = unpadded(download(device, values.data(), n + 2 * padding), padding, T{-7});
    return c;
}

/// The values of numeric().
template <class T>
std::vector<T> renew(TestDevice& device, SpgemmOperator<T>& op, const DeviceCsr<T>& a, const DeviceCsr<T>& b, T alpha,
                     const HostCsr<T>& c)
{
    const auto columns = upload(device, c.col_idx);
    const auto values = upload(device, std::vector<T>(c.values.size(), std::numeric_limits<T>::quiet_NaN()));
    op.numeric(alpha, a.values.data(), b.values.data(), columns.data(), values.data(), device.context());
    return download(device, values.data(), c.values.size());
}

/// A product, the same one of new values, and what is expected of both.
template <class T>
struct Product {
    std::string name;
    HostCsr<T> a;
    HostCsr<T> b;
    HostCsr<T> new_a;
    HostCsr<T> new_b;
    std::vector<std::vector<Entry>> rows;
    std::vector<std::vector<Entry>> renewed_rows;
};

/// Those of pairs(), made once: what is expected takes longer than the products of any kernel.
/// \param unique  each column of a row once and in order
template <class T>
const std::vector<Product<T>>& products(bool unique)
{
    static std::map<bool, std::vector<Product<T>>> made;
    auto& all = made[unique];
    if (all.empty()) {
        for (const Pair<T>& pair : pairs<T>()) {
            Product<T> p;
            p.name = pair.name;
            p.a = unique ? sorted_unique(pair.a) : pair.a;
            p.b = unique ? sorted_unique(pair.b) : pair.b;
            p.new_a = p.a;
            p.new_b = p.b;
            p.new_a.values = random_vector<T>(p.a.nnz(), 91);
            p.new_b.values = random_vector<T>(p.b.nnz(), 92);
            p.rows = expected_rows(p.a, p.b);
            p.renewed_rows = expected_rows(p.new_a, p.new_b);
            all.push_back(std::move(p));
        }
    }
    return all;
}

std::vector<std::string> product_names_of_kind()
{
    std::vector<std::string> names;
    for (const auto& kernel : spgemm_kernels<double>()) {
        if (kernel.info.device == device_kind()) {
            names.push_back(kernel.info.name);
        }
    }
    return names;
}

struct SpgemmFamily {
    template <class T>
    static auto kernels()
    {
        return spgemm_kernels<T>();
    }
};

class SpgemmKernels : public KernelTest<SpgemmFamily> {
protected:
    bool vendor() const { return std::get<0>(GetParam()).starts_with("cusparse"); }

    /// As matrices are, and as if small ones were large, which one kernel treats in another way.
    std::vector<SpgemmOptions> small_and_large(SpgemmOptions options = {}) const
    {
        std::vector<SpgemmOptions> all{options};
        if (std::get<0>(GetParam()) == "spgemm") {
            options.small_products = 0;
            all.push_back(options);
        }
        return all;
    }

    /// The same products with row pointers of each width.
    template <class T>
    void check(const SpgemmKernel<T>& kernel, const Product<T>& product, const SpgemmOptions& options,
               std::initializer_list<Offsets> widths)
    {
        const auto& [name, a, b, new_a, new_b, rows, renewed_rows] = product;
        SCOPED_TRACE(name);
        for (const Offsets offsets : widths) {
            DeviceCsr<T> da(*device_, a, offsets);
            DeviceCsr<T> db(*device_, b, offsets);
            if (kernel.unsupported != nullptr && kernel.unsupported(da.shard, db.shard) != nullptr) {
                continue;
            }
            const auto op = kernel.prepare(da.shard, db.shard, options, device_->context());
            EXPECT_GE(op->workspace_bytes(), 0);
            const HostCsr<T> c = fill_product(*device_, *op, da, db, T{1});
            expect_rows(c, rows, T{1});
            if (HasFatalFailure()) {
                return;
            }
            expect_rows(fill_product(*device_, *op, da, db, T{-2.5}), rows, T{-2.5});
            da.renew(*device_, new_a);
            db.renew(*device_, new_b);
            HostCsr<T> renewed = c;
            // The first call may keep what later ones read.
            for (int round = 0; round < 2; ++round) {
                renewed.values = renew(*device_, *op, da, db, T{3}, c);
                expect_rows(renewed, renewed_rows, T{3});
                if (HasFatalFailure()) {
                    return;
                }
            }
            if (kernel.info.determinism >= Determinism::run) {
                EXPECT_TRUE(same_bits(renewed.values, renew(*device_, *op, da, db, T{3}, c)));
                EXPECT_TRUE(same_bits(renewed.values, fill_product(*device_, *op, da, db, T{3}).values));
            }
        }
    }
};

TEST_P(SpgemmKernels, MultipliesHardMatrices)
{
    visit([&]<class T>(const SpgemmKernel<T>& kernel) {
        for (const Product<T>& product : products<T>(vendor())) {
            for (const SpgemmOptions& options : small_and_large()) {
                check(kernel, product, options, {Offsets::i32, Offsets::i64});
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
    });
}

TEST_P(SpgemmKernels, EachAccumulator)
{
    visit([&]<class T>(const SpgemmKernel<T>& kernel) {
        for (const Product<T>& product : products<T>(vendor())) {
            if (product.b.cols > 60'000) {
                continue;  // only what "auto" takes for them is meant to cope
            }
            for (const char* const accumulator : spgemm_accumulators()) {
                SCOPED_TRACE(accumulator);
                SpgemmOptions options;
                options.accumulator = accumulator;
                try {
                    check(kernel, product, options, {Offsets::i64});
                } catch (const Error& e) {
                    // Kernels need not have all of them.
                    ASSERT_EQ(e.code(), ErrorCode::usage) << e.what();
                    EXPECT_NE(std::string(e.what()).find(accumulator), std::string::npos) << e.what();
                }
                if (HasFatalFailure()) {
                    return;
                }
            }
        }
        SpgemmOptions options;
        options.accumulator = "abacus";
        const HostCsr<T> a = band<T>(9, 9, 1, 1);
        const DeviceCsr<T> d(*device_, a, Offsets::i32);
        EXPECT_THROW(kernel.prepare(d.shard, d.shard, options, device_->context()), Error);
    });
}

TEST_P(SpgemmKernels, SmallProductByHand)
{
    visit([&]<class T>(const SpgemmKernel<T>& kernel) {
        // [1 2; 0 0; 0 3] * [4 0 5; 0 6 -1]
        HostCsr<T> a;
        a.rows = 3;
        a.cols = 2;
        a.row_ptr = {0, 2, 2, 3};
        a.col_idx = {0, 1, 1};
        a.values = {1, 2, 3};
        HostCsr<T> b;
        b.rows = 2;
        b.cols = 3;
        b.row_ptr = {0, 2, 4};
        b.col_idx = {0, 2, 1, 2};
        b.values = {4, 5, 6, -1};
        const DeviceCsr<T> da(*device_, a, Offsets::i32);
        const DeviceCsr<T> db(*device_, b, Offsets::i32);
        const auto op = kernel.prepare(da.shard, db.shard, {}, device_->context());
        EXPECT_EQ(op->products(), 6);
        const HostCsr<T> c = fill_product(*device_, *op, da, db, T{2});
        EXPECT_EQ(c.row_ptr, (std::vector<std::int64_t>{0, 3, 3, 5}));
        EXPECT_EQ(c.col_idx, (std::vector<std::int32_t>{0, 1, 2, 1, 2}));
        EXPECT_EQ(c.values, (std::vector<T>{8, 24, 6, 36, -6}));
    });
}

/// A is some rows of a square matrix, and B those that they touch, with empty rows before and behind: a device's part
/// of a square.
TEST_P(SpgemmKernels, RowsOfASquareWithinTheRowsOfBThatTheyTouch)
{
    visit([&]<class T>(const SpgemmKernel<T>& kernel) {
        for (const bool twins : {false, true}) {
            HostCsr<T> square;
            square.rows = square.cols = 600;
            for (std::int64_t row = 0; row < square.rows; ++row) {
                const std::int64_t middle = twins ? row / 3 * 3 : row;
                for (std::int64_t column = std::max<std::int64_t>(middle - 20, 0);
                     column < std::min<std::int64_t>(middle + 21, square.cols); ++column) {
                    square.col_idx.push_back(static_cast<std::int32_t>(column));
                }
                square.row_ptr.push_back(static_cast<std::int64_t>(square.col_idx.size()));
            }
            square.values = random_vector<T>(static_cast<std::int64_t>(square.col_idx.size()), 7);
            const std::size_t first = 211;  // the third of three twins
            const std::size_t end = 400;
            SpgemmOptions options;
            options.touched = {211 - 22, 400 + 21};
            options.touched_rows = options.touched.end - options.touched.first;
            options.a_in_b = first;
            const auto before = square.row_ptr[static_cast<std::size_t>(options.touched.first)];
            const auto after = square.row_ptr[static_cast<std::size_t>(options.touched.end)];
            HostCsr<T> b = square;
            for (std::int64_t& at : b.row_ptr) {
                at = std::clamp(at, before, after) - before;
            }
            b.col_idx = {square.col_idx.begin() + before, square.col_idx.begin() + after};
            b.values = {square.values.begin() + before, square.values.begin() + after};
            HostCsr<T> a;
            a.rows = static_cast<std::int64_t>(end - first);
            a.cols = square.cols;
            for (std::size_t row = first; row < end; ++row) {
                a.row_ptr.push_back(square.row_ptr[row + 1] - square.row_ptr[first]);
            }
            a.col_idx = {square.col_idx.begin() + square.row_ptr[first], square.col_idx.begin() + square.row_ptr[end]};
            a.values = {square.values.begin() + square.row_ptr[first], square.values.begin() + square.row_ptr[end]};
            DeviceCsr<T> da(*device_, a, Offsets::i32);
            const DeviceCsr<T> db(*device_, b, Offsets::i32);
            da.shard.col_idx = db.shard.col_idx + b.row_ptr[first];
            if (kernel.unsupported != nullptr && kernel.unsupported(da.shard, db.shard) != nullptr) {
                continue;
            }
            for (const SpgemmOptions& of_size : small_and_large(options)) {
                const auto op = kernel.prepare(da.shard, db.shard, of_size, device_->context());
                expect_product(fill_product(*device_, *op, da, db, T{1}), a, b, T{1});
            }
        }
    });
}

TEST_P(SpgemmKernels, CountsProducts)
{
    visit([&]<class T>(const SpgemmKernel<T>&) {
        for (const Pair<T>& pair : pairs<T>()) {
            SCOPED_TRACE(pair.name);
            const DeviceCsr<T> a(*device_, pair.a, Offsets::i32);
            const DeviceCsr<T> b(*device_, pair.b, Offsets::i64);
            const DeviceArray<std::int64_t> out(*device_->context().memory, static_cast<std::size_t>(pair.a.rows));
            count_products(a.shard, b.shard, out.data(), device_->context());
            const auto counts = download(*device_, out.data(), out.size());
            for (std::size_t row = 0; row < counts.size(); ++row) {
                std::int64_t sum = 0;
                for (std::int64_t i = pair.a.row_ptr[row]; i < pair.a.row_ptr[row + 1]; ++i) {
                    const auto k = static_cast<std::size_t>(pair.a.col_idx[static_cast<std::size_t>(i)]);
                    sum += pair.b.row_ptr[k + 1] - pair.b.row_ptr[k];
                }
                ASSERT_EQ(counts[row], sum) << "row " << row;
            }
        }
    });
}

TEST_P(SpgemmKernels, KeepsEntriesThatCancelAndPropagatesNan)
{
    visit([&]<class T>(const SpgemmKernel<T>& kernel) {
        HostCsr<T> a;
        a.rows = 3;
        a.cols = 2;
        a.row_ptr = {0, 2, 3, 4};
        a.col_idx = {0, 1, 0, 1};
        a.values = {1, -1, 0, std::numeric_limits<T>::infinity()};
        HostCsr<T> b;
        b.rows = 2;
        b.cols = 2;
        b.row_ptr = {0, 2, 4};
        b.col_idx = {0, 1, 0, 1};
        b.values = {3, std::numeric_limits<T>::quiet_NaN(), 3, 4};
        const DeviceCsr<T> da(*device_, a, Offsets::i32);
        const DeviceCsr<T> db(*device_, b, Offsets::i32);
        const auto op = kernel.prepare(da.shard, db.shard, {}, device_->context());
        const HostCsr<T> c = fill_product(*device_, *op, da, db, T{1});
        ASSERT_EQ(c.row_ptr, (std::vector<std::int64_t>{0, 2, 4, 6}));
        EXPECT_EQ(c.values[0], T{0});
        EXPECT_TRUE(std::isnan(c.values[1]));
        EXPECT_EQ(c.values[2], T{0});
        EXPECT_TRUE(std::isnan(c.values[3]));
        EXPECT_TRUE(std::isinf(c.values[4]) && std::isinf(c.values[5]));
    });
}

TEST_P(SpgemmKernels, KeepsToTheWorkspaceLimitOrSaysWhatItNeeds)
{
    visit([&]<class T>(const SpgemmKernel<T>& kernel) {
        if (kernel.info.name == "spgemm-reference" || vendor()) {
            GTEST_SKIP() << "takes what it takes";
        }
        const HostCsr<T> a = make_matrix<T>({"", 2000, lengths(2000, 40, 3)}, 1);
        const DeviceCsr<T> d(*device_, a, Offsets::i32);
        SpgemmOptions options;
        options.workspace_limit = 1000;
        try {
            kernel.prepare(d.shard, d.shard, options, device_->context());
            ADD_FAILURE() << "no error";
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::out_of_memory);
            EXPECT_NE(std::string(e.what()).find("bytes"), std::string::npos) << e.what();
        }
        options.workspace_limit = std::int64_t{1} << 30;
        const auto op = kernel.prepare(d.shard, d.shard, options, device_->context());
        EXPECT_LE(op->workspace_bytes(), options.workspace_limit);
        expect_product(fill_product(*device_, *op, d, d, T{1}), a, a, T{1});
    });
}

TEST_P(SpgemmKernels, RoomForWordsIsWhatASampleOfTheRowsTakes)
{
    visit([&]<class T>(const SpgemmKernel<T>& kernel) {
        if (kernel.info.name != "spgemm") {
            GTEST_SKIP() << "keeps no words";
        }
        // Most of 8.7 million products are entries of their own, and most of these words of their own.
        const HostCsr<T> a = matrix<T>(24'000, std::vector<std::int64_t>(24'000, 19), 1);
        const auto rows = expected_rows(a, a);
        const DeviceCsr<T> d(*device_, a, Offsets::i32);
        const auto least_bytes = std::int64_t{6'000'000} * 8;
        const auto op = kernel.prepare(d.shard, d.shard, {}, device_->context());
        EXPECT_GT(op->workspace_bytes(), least_bytes);
        expect_rows(fill_product(*device_, *op, d, d, T{1}), rows, T{1});
        SpgemmOptions options;
        options.workspace_limit = least_bytes / 2;
        const auto limited = kernel.prepare(d.shard, d.shard, options, device_->context());
        EXPECT_LE(limited->workspace_bytes(), options.workspace_limit);
        expect_rows(fill_product(*device_, *limited, d, d, T{1}), rows, T{1});
    });
}

/// From the second time on, where products are listed.
TEST_P(SpgemmKernels, RepeatedValuesKeepTheirBits)
{
    visit([&]<class T>(const SpgemmKernel<T>& kernel) {
        if (vendor()) {
            GTEST_SKIP() << "does not say so";
        }
        // Long rows, and a million products without.
        for (const auto& [count, longest, length] : {std::array{5000, 3000, 2}, std::array{26'000, 100, 40}}) {
            std::vector<std::int64_t> rows(static_cast<std::size_t>(count), 1);
            std::fill(rows.begin() + 100, rows.begin() + 110, longest);
            const HostCsr<T> a = matrix<T>(4000, rows, 1);
            const HostCsr<T> b = matrix<T>(50, std::vector<std::int64_t>(4000, length), 2);
            const DeviceCsr<T> da(*device_, a, Offsets::i32);
            const DeviceCsr<T> db(*device_, b, Offsets::i64);
            for (const SpgemmOptions& options : small_and_large()) {
                const auto op = kernel.prepare(da.shard, db.shard, options, device_->context());
                HostCsr<T> c = fill_product(*device_, *op, da, db, T{1});
                c.values = renew(*device_, *op, da, db, T{3}, c);
                expect_product(c, a, b, T{3});
                for (int round = 0; round < 5; ++round) {
                    EXPECT_TRUE(same_bits(c.values, renew(*device_, *op, da, db, T{3}, c)));
                }
            }
        }
    });
}

/// The first time a kernel may still have what it found of the structure.
TEST_P(SpgemmKernels, RowsOfFewProductsHaveTheSameBitsEachTime)
{
    visit([&]<class T>(const SpgemmKernel<T>& kernel) {
        if (vendor()) {
            GTEST_SKIP() << "does not say so";
        }
        constexpr std::int64_t inner = 2000;
        // Far apart, near each other, and in the same columns again and again.
        for (const std::int64_t columns : {200'000, 4'000, 100}) {
            for (const std::int64_t length : {1, 2, 4, 5, 8, 11}) {
                SCOPED_TRACE(testing::Message() << length << " entries, " << columns << " columns");
                std::vector<std::int64_t> lengths(3001, length);
                lengths[17] = 0;
                lengths[1000] = 40;  // among others that a warp has
                const HostCsr<T> a = matrix<T>(inner, lengths, 1);
                const HostCsr<T> b = matrix<T>(columns, std::vector<std::int64_t>(inner, length), 2);
                const DeviceCsr<T> da(*device_, a, Offsets::i32);
                const DeviceCsr<T> db(*device_, b, Offsets::i64);
                for (const SpgemmOptions& options : small_and_large()) {
                    const auto op = kernel.prepare(da.shard, db.shard, options, device_->context());
                    const HostCsr<T> once = fill_product(*device_, *op, da, db, T{3});
                    expect_product(once, a, b, T{3});
                    const HostCsr<T> again = fill_product(*device_, *op, da, db, T{3});
                    EXPECT_EQ(once.col_idx, again.col_idx);
                    EXPECT_TRUE(same_bits(once.values, again.values));
                }
            }
        }
    });
}

TEST_P(SpgemmKernels, KeepsItsBitsOnAnyNumberOfDevices)
{
    visit([&]<class T>(const SpgemmKernel<T>& kernel) {
        if (kernel.info.determinism < Determinism::device_count) {
            GTEST_SKIP() << "keeps determinism \"" << to_string(kernel.info.determinism) << "\" only";
        }
        const HostCsr<T> a = make_matrix<T>({"", 800, power_law(800, 500, 3)}, 1);
        const DeviceCsr<T> db(*device_, a, Offsets::i64);
        std::vector<T> whole;
        for (const int parts : {1, 2, 3, 7}) {
            std::vector<T> joined;
            for (int part = 0; part < parts; ++part) {
                const auto first = static_cast<std::size_t>(a.rows * part / parts);
                const auto end = static_cast<std::size_t>(a.rows * (part + 1) / parts);
                HostCsr<T> rows;
                rows.rows = static_cast<std::int64_t>(end - first);
                rows.cols = a.cols;
                rows.row_ptr.clear();
                for (std::size_t row = first; row <= end; ++row) {
                    rows.row_ptr.push_back(a.row_ptr[row] - a.row_ptr[first]);
                }
                rows.col_idx.assign(a.col_idx.begin() + a.row_ptr[first], a.col_idx.begin() + a.row_ptr[end]);
                rows.values.assign(a.values.begin() + a.row_ptr[first], a.values.begin() + a.row_ptr[end]);
                device_->context().threads = 1 + (part + parts) % 5;
                const DeviceCsr<T> da(*device_, rows, Offsets::i32);
                const auto op = kernel.prepare(da.shard, db.shard, {}, device_->context());
                const HostCsr<T> c = fill_product(*device_, *op, da, db, T{3});
                joined.insert(joined.end(), c.values.begin(), c.values.end());
            }
            whole = parts == 1 ? joined : whole;
            EXPECT_TRUE(same_bits(whole, joined)) << parts << " parts";
        }
    });
}

INSTANTIATE_TEST_SUITE_P(All, SpgemmKernels,
                         testing::Combine(testing::ValuesIn(product_names_of_kind()), testing::Bool()),
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
