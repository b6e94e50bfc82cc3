#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>
#include <kernels/steps/ghosts/ghosts.hpp>
#include <kernels/steps/support/support.hpp>

#include "matrices.hpp"
#include "test_device.hpp"

namespace rmsp::kernels::test {
namespace {

class Support : public testing::Test {
protected:
    void SetUp() override
    {
        if (!device_missing().empty()) {
            GTEST_SKIP() << device_missing();
        }
        device_ = open_device();
    }

    template <class In, class Out>
    std::vector<Out> localized(const std::vector<In>& row_ptr, std::int64_t start, std::int64_t nnz)
    {
        const DeviceArray<In> in = upload(*device_, row_ptr);
        const DeviceArray<Out> out(*device_->context().memory, row_ptr.size());
        localize_row_ptr(IndexView(in.data()), static_cast<std::int64_t>(row_ptr.size()) - 1, start, nnz, out.data(),
                         device_->context());
        return download(*device_, out.data(), row_ptr.size());
    }

    std::unique_ptr<TestDevice> device_;
};

TEST_F(Support, LocalizesRowPointers)
{
    // The part holds nonzeros 4 to 9 of rows that begin at 2, 5, 5 and 8 and end at 12.
    EXPECT_EQ((localized<std::int32_t, std::int32_t>({2, 5, 5, 8, 12}, 4, 5)),
              (std::vector<std::int32_t>{0, 1, 1, 4, 5}));
    EXPECT_EQ((localized<std::int64_t, std::int32_t>({2, 5, 5, 8, 12}, 4, 5)),
              (std::vector<std::int32_t>{0, 1, 1, 4, 5}));
    EXPECT_EQ((localized<std::int32_t, std::int64_t>({2, 5, 5, 8, 12}, 4, 5)),
              (std::vector<std::int64_t>{0, 1, 1, 4, 5}));
    EXPECT_EQ((localized<std::int64_t, std::int64_t>({7}, 7, 0)), (std::vector<std::int64_t>{0}));
}

TEST_F(Support, LocalizesRowPointersAbove32Bits)
{
    const std::int64_t far = std::int64_t{5} << 40;
    EXPECT_EQ((localized<std::int64_t, std::int32_t>({far - 3, far + 2, far + 9}, far, 8)),
              (std::vector<std::int32_t>{0, 2, 8}));
    EXPECT_EQ((localized<std::int64_t, std::int64_t>({0, far, 2 * far}, 1, far)),
              (std::vector<std::int64_t>{0, far - 1, far}));
}

TEST_F(Support, SpreadsRowPointers)
{
    // Rows 2 to 4 of six have entries 5 to 9; those before and behind are empty.
    const DeviceArray<std::int64_t> in = upload(*device_, std::vector<std::int64_t>{5, 5, 8, 10});
    const DeviceArray<std::int32_t> out(*device_->context().memory, 7);
    spread_row_ptr(IndexView(in.data()), 2, 3, 6, 5, 5, out.data(), device_->context());
    EXPECT_EQ(download(*device_, out.data(), 7), (std::vector<std::int32_t>{0, 0, 0, 0, 3, 5, 5}));
    // All of them, and none.
    spread_row_ptr(IndexView(in.data()), 0, 3, 3, 5, 5, out.data(), device_->context());
    EXPECT_EQ(download(*device_, out.data(), 4), (std::vector<std::int32_t>{0, 0, 3, 5}));
    spread_row_ptr(IndexView(in.data()), 0, 0, 2, 0, 0, out.data(), device_->context());
    EXPECT_EQ(download(*device_, out.data(), 3), (std::vector<std::int32_t>{0, 0, 0}));
}

TEST_F(Support, NarrowsIndices)
{
    std::vector<std::int64_t> wide(100001);
    std::iota(wide.begin(), wide.end(), std::int64_t{std::numeric_limits<std::int32_t>::max()} - 100000);
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, wide.size()}) {
        const DeviceArray<std::int64_t> in = upload(*device_, wide);
        const DeviceArray<std::int32_t> out(*device_->context().memory, wide.size());
        narrow_indices(in.data(), static_cast<std::int64_t>(n), out.data(), device_->context());
        const std::vector<std::int32_t> got = download(*device_, out.data(), n);
        EXPECT_TRUE(std::equal(got.begin(), got.end(), wide.begin()));
    }
}

TEST_F(Support, ShiftsIndices)
{
    std::vector<std::int32_t> indices(100001);
    std::iota(indices.begin(), indices.end(), -50000);
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, indices.size()}) {
        const DeviceArray<std::int32_t> in = upload(*device_, indices);
        shift_indices(in.data(), static_cast<std::int64_t>(n), 70000, in.data(), device_->context());
        std::vector<std::int32_t> expected = indices;
        std::for_each_n(expected.begin(), n, [](std::int32_t& index) { index += 70000; });
        EXPECT_EQ(download(*device_, in.data(), indices.size()), expected);
    }
}

TEST_F(Support, Fills)
{
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{255}, std::size_t{300001}}) {
        const DeviceArray<double> y = upload(*device_, std::vector<double>(n + 1, -1.0));
        fill(y.data(), static_cast<std::int64_t>(n), 2.5, device_->context());
        std::vector<double> expected(n, 2.5);
        expected.push_back(-1.0);
        EXPECT_EQ(download(*device_, y.data(), n + 1), expected);
    }
    const DeviceArray<float> y = upload(*device_, std::vector<float>(3, std::numeric_limits<float>::quiet_NaN()));
    fill(y.data(), 2, 1.0F, device_->context());
    EXPECT_TRUE(std::isnan(download(*device_, y.data(), 3)[2]));
    EXPECT_EQ(download(*device_, y.data(), 2), (std::vector<float>{1, 1}));
}

TEST_F(Support, CopiesPartsOfAnyWords)
{
    constexpr std::size_t words = 5000;
    std::vector<std::int32_t> from(words);
    std::iota(from.begin(), from.end(), 1);
    const DeviceArray<std::int32_t> in = upload(*device_, from);
    struct Part {
        std::size_t first, count;
    };
    // Ends anywhere between two multiples of 16 bytes, parts shorter than that, one beside the other.
    const std::vector<Part> parts{{0, 4}, {4, 1}, {5, 2}, {7, 3}, {10, 997}, {1007, 998}, {2005, 999}, {3010, 1000}};
    std::vector<std::int32_t> expected(words, -1);
    const DeviceArray<std::int32_t> out = upload(*device_, expected);
    std::vector<CopyPart> copies;
    for (const Part& part : parts) {
        copies.push_back({out.data() + part.first, in.data() + part.first,
                          static_cast<std::int64_t>(part.count * sizeof(std::int32_t))});
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(part.first), part.count,
                    expected.begin() + static_cast<std::ptrdiff_t>(part.first));
    }
    copy_parts(copies.data(), static_cast<int>(copies.size()), device_->context());
    EXPECT_EQ(download(*device_, out.data(), words), expected);
}

TEST_F(Support, AddsCarriesInOrder)
{
    // In this order and no other, the ones are lost one by one.
    const DeviceArray<float> y = upload(*device_, std::vector<float>{0x1p24F, 7});
    const DeviceArray<float> carries = upload(*device_, std::vector<float>{1, 1, 1, -0x1p24F, 3});
    add_carries(y.data(), carries.data(), 5, device_->context());
    EXPECT_EQ(download(*device_, y.data(), 2), (std::vector<float>{3, 7}));
    add_carries(y.data(), carries.data(), 0, device_->context());
    EXPECT_EQ(download(*device_, y.data(), 2), (std::vector<float>{3, 7}));
}

TEST_F(Support, AddsPartialSumsInOrderWhereTheyAre)
{
    // In this order and no other, the ones of the second part are lost.
    const DeviceArray<float> y = upload(*device_, std::vector<float>{9, 2, 2, 2, 9});
    const DeviceArray<float> large = upload(*device_, std::vector<float>{0x1p24F, 0x1p24F});
    const DeviceArray<float> ones = upload(*device_, std::vector<float>(3, 1.0F));
    const DeviceArray<float> less = upload(*device_, std::vector<float>{-0x1p24F});
    // Entries 1 and 2, 1 to 3, and 2: each with room that begins at its first entry.
    const PartialSums<float> parts[] = {{large.data() - 1, 1, 3}, {ones.data() - 1, 1, 4}, {less.data() - 2, 2, 3}};
    add_partials(y.data(), 1, 4, 0.0F, parts, 3, device_->context());
    EXPECT_EQ(download(*device_, y.data(), 5), (std::vector<float>{9, 0x1p24F, 0, 1, 9}));
    add_partials(y.data(), 2, 4, 3.0F, parts, 2, device_->context());
    EXPECT_EQ(download(*device_, y.data(), 5), (std::vector<float>{9, 0x1p24F, 0x1p24F, 4, 9}));
    add_partials(y.data(), 0, 1, 2.0F, nullptr, 0, device_->context());
    add_partials(y.data(), 4, 5, 0.0F, nullptr, 0, device_->context());
    EXPECT_EQ(download(*device_, y.data(), 5), (std::vector<float>{18, 0x1p24F, 0x1p24F, 4, 0}));
}

TEST_F(Support, AddsPartialSumsOfAnyRanges)
{
    constexpr std::int64_t n = 5000;
    std::vector<double> expected(n);
    std::iota(expected.begin(), expected.end(), 1.0);
    const DeviceArray<double> y = upload(*device_, expected);
    std::vector<DeviceArray<double>> sums;
    std::vector<PartialSums<double>> parts;
    for (int p = 0; p < most_partials; ++p) {
        const std::int64_t first = 137 * p;
        const std::int64_t end = std::min<std::int64_t>(n, first + 31 * p * p);
        std::vector<double> part(static_cast<std::size_t>(std::max<std::int64_t>(0, end - first)), p + 0.25);
        sums.push_back(upload(*device_, part));
        parts.push_back({sums.back().data() - first, first, end});
        for (std::int64_t i = std::max<std::int64_t>(first, 700); i < std::min<std::int64_t>(end, 4321); ++i) {
            expected[static_cast<std::size_t>(i)] += p + 0.25;
        }
    }
    // All numbers are multiples of a quarter, so no order rounds; beta == 1 leaves the rest unread.
    add_partials(y.data(), 700, 4321, 1.0, parts.data(), most_partials, device_->context());
    EXPECT_EQ(download(*device_, y.data(), n), expected);
}

TEST_F(Support, FindsTheRowsInside)
{
    const auto found = [&](std::vector<std::int32_t> row_ptr, const std::vector<std::int32_t>& columns) {
        const auto rows = static_cast<std::int64_t>(row_ptr.size()) - 1;
        const DeviceArray<std::int32_t> pointers = upload(*device_, row_ptr);
        const DeviceArray<std::int32_t> col_idx = upload(*device_, columns);
        const DeviceArray<std::int64_t> run(*device_->context().memory, 2);
        interior_rows(IndexView(pointers.data()), rows, col_idx.data(), 10, 20, run.data(), device_->context());
        return download(*device_, run.data(), 2);
    };
    using Run = std::vector<std::int64_t>;
    EXPECT_EQ(found({0}, {}), (Run{0, 0}));
    EXPECT_EQ(found({0, 0, 0}, {}), (Run{0, 2}));
    EXPECT_EQ(found({0, 1, 2, 3, 4}, {10, 19, 12, 13}), (Run{0, 4}));
    EXPECT_EQ(found({0, 1, 2, 3, 4}, {9, 19, 12, 20}), (Run{1, 3}));
    EXPECT_EQ(found({0, 1, 2, 3, 5}, {9, 9, 12, 15, 3}), (Run{2, 3}));
    EXPECT_EQ(found({0, 1, 2, 3, 4}, {15, 15, 30, 15}), (Run{0, 2}));
    std::vector<std::int32_t> row_ptr{0};
    std::vector<std::int32_t> columns;
    for (std::int32_t row = 0; row < 5000; ++row) {
        for (std::int32_t k = 0; k < 40; ++k) {
            columns.push_back((row == 77 || row == 4001) && k == 39 ? 9 : 10 + k % 10);
        }
        row_ptr.push_back(static_cast<std::int32_t>(columns.size()));
    }
    EXPECT_EQ(found(row_ptr, columns), (Run{78, 4001}));
}

TEST_F(Support, FindsWhereIndicesLie)
{
    const auto extent = [&](const std::vector<std::int32_t>& indices) {
        const DeviceArray<std::int32_t> there = upload(*device_, indices);
        const DeviceArray<std::int32_t> found(*device_->context().memory, 2);
        index_extent(there.data(), static_cast<std::int64_t>(indices.size()), found.data(), device_->context());
        return download(*device_, found.data(), 2);
    };
    using Extent = std::vector<std::int32_t>;
    using Limits = std::numeric_limits<std::int32_t>;
    EXPECT_EQ(extent({}), (Extent{Limits::max(), Limits::min()}));
    EXPECT_EQ(extent({7}), (Extent{7, 7}));
    EXPECT_EQ(extent({3, 0, Limits::max(), 5}), (Extent{0, Limits::max()}));
    std::vector<std::int32_t> many(1'000'003, 40);
    many[1] = 39;
    many.back() = 41;
    EXPECT_EQ(extent(many), (Extent{39, 41}));
}

TEST_F(Support, NumbersTheColumnsOutsideASlice)
{
    const std::int64_t cols = 100000;
    const std::int64_t first = 33000;
    const std::int64_t end = 47001;
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{3000}, std::size_t{400000}}) {
        std::vector<std::int32_t> columns(n);
        std::uint32_t state = 7;
        for (std::int32_t& column : columns) {
            state = state * 1664525u + 1013904223u;
            column = static_cast<std::int32_t>((state >> 8) % (n == 3000 ? 64u : 100000u));
        }
        if (n > 1) {
            columns[0] = 99999;
            columns[1] = 33000;
        }
        std::vector<std::int32_t> outside;
        std::copy_if(columns.begin(), columns.end(), std::back_inserter(outside),
                     [&](std::int32_t column) { return column < first || column >= end; });
        std::sort(outside.begin(), outside.end());
        outside.erase(std::unique(outside.begin(), outside.end()), outside.end());
        const DeviceArray<std::int32_t> device = upload(*device_, columns);
        Context& context = device_->context();
        ColumnSet set(cols, context);
        // In two pieces, as a shard with a shared row has them.
        const auto half = static_cast<std::int64_t>(n / 2);
        add_outside(set, device.data(), half, first, end, context);
        add_outside(set, device.data() + half, static_cast<std::int64_t>(n) - half, first, end, context);
        ASSERT_EQ(count_columns(set, context), static_cast<std::int64_t>(outside.size()));
        const DeviceArray<std::int32_t> list(*context.memory, outside.size());
        list_columns(set, list.data(), context);
        EXPECT_EQ(download(*device_, list.data(), outside.size()), outside);
        renumber_columns({}, set, device.data(), static_cast<std::int64_t>(n), first, end, context);
        const std::vector<std::int32_t> numbered = download(*device_, device.data(), n);
        for (std::size_t i = 0; i < n; ++i) {
            const std::int64_t column = columns[i];
            const std::int64_t ghost = std::lower_bound(outside.begin(), outside.end(), columns[i]) - outside.begin();
            ASSERT_EQ(numbered[i], column >= first && column < end ? column - first : end - first + ghost)
                << "column " << column;
        }
        const DeviceArray<std::int32_t> restored(*context.memory, n);
        restore_columns(device.data(), static_cast<std::int64_t>(n), first, end - first, list.data(), 0,
                        restored.data(), context);
        EXPECT_EQ(download(*device_, restored.data(), n), columns);
        restore_columns(device.data(), static_cast<std::int64_t>(n), first + 5, end - first, list.data(), 5,
                        restored.data(), context);
        std::vector<std::int32_t> shifted(n);
        std::transform(columns.begin(), columns.end(), shifted.begin(), [](std::int32_t column) { return column + 5; });
        EXPECT_EQ(download(*device_, restored.data(), n), shifted);
    }
}

TEST(UseBuckets, HoldWhatIsUsedAboutAsOften)
{
    int before = -1;
    for (std::uint64_t uses = 0; uses < (std::uint64_t{1} << 32); uses += 1 + uses / 40) {
        const int bucket = use_bucket(static_cast<std::uint32_t>(uses));
        EXPECT_GE(bucket, before);
        EXPECT_LE(bucket, before + 1);
        before = bucket;
    }
    EXPECT_EQ(use_bucket(31), 31);
    EXPECT_EQ(use_bucket(~0U), use_buckets - 1);
}

TEST_F(Support, NumbersPopularColumnsFirst)
{
    // Column c of 5,000 is used once, and 3, 1,000, 1,777, 2,031 and 4,999 more often; all in two pieces.
    const std::int64_t cols = 5000;
    const std::int32_t first = 1000;
    const std::int32_t end = 2000;
    std::vector<std::int32_t> columns;
    for (std::int32_t c = 0; c < cols; ++c) {
        columns.push_back(c);
    }
    for (int i = 0; i < 4000; ++i) {
        columns.insert(columns.end(), {1000, 4999, 1777});
        columns.insert(columns.end(), i % 4 == 0 ? 1 : 0, 3);
        columns.insert(columns.end(), i % 8 == 0 ? 1 : 0, 2031);
    }
    const auto n = static_cast<std::int64_t>(columns.size());
    for (const auto& [most, popular] : std::vector<std::pair<std::int64_t, std::vector<std::int32_t>>>{
             {0, {}}, {1, {4999}}, {2, {3, 4999}}, {10, {3, 2031, 4999}}}) {
        const DeviceArray<std::int32_t> device = upload(*device_, columns);
        Context& context = device_->context();
        ColumnSet others(cols, context);
        ColumnUses uses(cols, context);
        for (const auto& [from, to] : {std::pair<std::int64_t, std::int64_t>{0, n / 2}, {n / 2, n}}) {
            add_outside(others, device.data() + from, to - from, first, end, context);
            add_uses(uses, device.data() + from, to - from, first, end, context);
        }
        ColumnSet set(cols, context);
        take_popular(others, set, uses, most, context);
        std::vector<std::int32_t> order = popular;
        for (std::int32_t c = 0; c < cols; ++c) {
            if ((c < first || c >= end) && std::find(popular.begin(), popular.end(), c) == popular.end()) {
                order.push_back(c);
            }
        }
        const auto popular_count = static_cast<std::int64_t>(popular.size());
        ASSERT_EQ(count_columns(set, context), popular_count) << most;
        ASSERT_EQ(count_columns(others, context), static_cast<std::int64_t>(order.size()) - popular_count);
        const DeviceArray<std::int32_t> list(*context.memory, order.size());
        list_columns(set, list.data(), context);
        list_columns(others, list.data() + popular_count, context);
        EXPECT_EQ(download(*device_, list.data(), order.size()), order);
        renumber_columns(set, others, device.data(), n, first, end, context);
        const DeviceArray<std::int32_t> restored(*context.memory, columns.size());
        restore_columns(device.data(), n, first, end - first, list.data(), 0, restored.data(), context);
        EXPECT_EQ(download(*device_, restored.data(), columns.size()), columns);
    }
}

TEST_F(Support, NoColumnIsPopularWhereAllAreAlike)
{
    std::vector<std::int32_t> columns(30000);
    for (std::size_t i = 0; i < columns.size(); ++i) {
        columns[i] = static_cast<std::int32_t>(i * 7 % 10000 + (i == 0 ? 3 : 0));
    }
    const DeviceArray<std::int32_t> device = upload(*device_, columns);
    Context& context = device_->context();
    ColumnUses uses(10000, context);
    add_uses(uses, device.data(), 30000, 0, 0, context);
    ColumnSet from(10000, context);
    ColumnSet to(10000, context);
    take_popular(from, to, uses, 100, context);
    EXPECT_EQ(count_columns(to, context), 0);
}

TEST_F(Support, Packs)
{
    const std::vector<double> x{10, 11, 12, 13, 14, 15, 16};
    const std::vector<std::int32_t> list{6, 0, 3, 3, 1, 5};
    const DeviceArray<double> device_x = upload(*device_, x);
    const DeviceArray<std::int32_t> device_list = upload(*device_, list);
    const DeviceArray<double> out = upload(*device_, std::vector<double>(7, -1.0));
    pack(device_x.data(), device_list.data(), 6, out.data(), device_->context());
    EXPECT_EQ(download(*device_, out.data(), 7), (std::vector<double>{16, 10, 13, 13, 11, 15, -1}));
    std::vector<float> many(100001);
    std::vector<std::int32_t> reversed(many.size());
    for (std::size_t i = 0; i < many.size(); ++i) {
        many[i] = static_cast<float>(i);
        reversed[i] = static_cast<std::int32_t>(many.size() - 1 - i);
    }
    const DeviceArray<float> device_many = upload(*device_, many);
    const DeviceArray<std::int32_t> device_reversed = upload(*device_, reversed);
    const DeviceArray<float> turned(*device_->context().memory, many.size());
    pack(device_many.data(), device_reversed.data(), static_cast<std::int64_t>(many.size()), turned.data(),
         device_->context());
    std::reverse(many.begin(), many.end());
    EXPECT_EQ(download(*device_, turned.data(), many.size()), many);
}

TEST_F(Support, AddsAtListedEntriesAndSumsWhatThatAdds)
{
    // Small integers, whose sums are exact in any order.
    constexpr std::size_t rows = 300010;
    std::vector<double> x(rows);
    std::vector<double> w(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        x[i] = static_cast<double>(i % 13);
        w[i] = static_cast<double>(i % 7) - 3;
    }
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{256}, std::size_t{100003}}) {
        std::vector<std::int32_t> list;
        std::vector<double> in;
        std::vector<double> wanted = x;
        double added = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t at = 3 * i + 1;
            list.push_back(static_cast<std::int32_t>(at));
            in.push_back(static_cast<double>(i % 5) - 1);
            added += w[at] * in.back();
            wanted[at] += in.back();
        }
        const auto count = static_cast<std::int64_t>(n);
        const DeviceArray<std::int32_t> device_list = upload(*device_, list);
        const DeviceArray<double> device_in = upload(*device_, in);
        const DeviceArray<double> device_w = upload(*device_, w);
        const DeviceArray<double> alone = upload(*device_, x);
        add_at(device_in.data(), device_list.data(), count, alone.data(), device_->context());
        EXPECT_EQ(download(*device_, alone.data(), rows), wanted);
        const DeviceArray<double> out = upload(*device_, x);
        const DeviceArray<double> sums = upload(*device_, std::vector<double>(add_at_sums, -1.0));
        add_at_with(device_in.data(), device_list.data(), count, out.data(), device_w.data(), sums.data(),
                    device_->context());
        EXPECT_EQ(download(*device_, out.data(), rows), wanted);
        const std::vector<double> found = download(*device_, sums.data(), add_at_sums);
        EXPECT_EQ(std::accumulate(found.begin(), found.end(), 0.0), added);
    }
}

/// Ghosts' sums are added behind products, in floats as well: with the bits of adding, whether sums are left or not.
TEST_F(Support, AddsTheSameBitsWithAndWithoutSums)
{
    constexpr std::size_t n = 5000;
    std::vector<float> x(n);
    std::vector<float> in(n);
    std::vector<std::int32_t> list(n);
    for (std::size_t i = 0; i < n; ++i) {
        x[i] = 1.0F / static_cast<float>(i + 3);
        in[i] = 1.0F / static_cast<float>(2 * i + 7);
        list[i] = static_cast<std::int32_t>(n - 1 - i);
    }
    const DeviceArray<std::int32_t> device_list = upload(*device_, list);
    const DeviceArray<float> device_in = upload(*device_, in);
    const DeviceArray<float> alone = upload(*device_, x);
    const DeviceArray<float> out = upload(*device_, x);
    const DeviceArray<float> w = upload(*device_, x);
    const DeviceArray<double> sums(*device_->context().memory, add_at_sums);
    add_at(device_in.data(), device_list.data(), std::int64_t{n}, alone.data(), device_->context());
    add_at_with(device_in.data(), device_list.data(), std::int64_t{n}, out.data(), w.data(), sums.data(),
                device_->context());
    const std::vector<float> found = download(*device_, alone.data(), n);
    EXPECT_EQ(found, download(*device_, out.data(), n));
    for (std::size_t i = 0; i < n; ++i) {
        ASSERT_EQ(found[n - 1 - i], x[n - 1 - i] + in[i]);
    }
}

TEST_F(Support, ReadsEveryNumber)
{
    for (const std::int64_t n : {0, 1, 2, 3, 4095, 4096, 1000003}) {
        const DeviceArray<double> data = upload(*device_, std::vector<double>(static_cast<std::size_t>(n), 1.0));
        const DeviceArray<double> sink = upload(*device_, std::vector<double>(4096, 0.0));
        read_all(data.data(), n, sink.data(), device_->context());
        const std::vector<double> sums = download(*device_, sink.data(), 4096);
        EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), 0.0), static_cast<double>(n));
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
