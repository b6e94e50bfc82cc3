#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <kernels/steps/sparse_inverse/sparse_inverse.hpp>
#include <rmsp/io.hpp>

#include "device_csr.hpp"
#include "matrices.hpp"
#include "test_device.hpp"

/// Values of sparse inverses on a device, against those by hand and those of the plain code for the host.
namespace rmsp::kernels::test {
namespace {

using matrix::InversePattern;
using matrix::InverseStatus;
using matrix::SparseInverse;

template <class T>
class SparseInverseSteps : public DeviceTest<> {
protected:
    struct Filled {
        std::vector<T> values;  ///< of rows [first, end) of M
        InverseStatus status;
        InverseClasses classes;
    };

    /// Rows [first, end) of M, of the rows of A in [lowest, highest] that they name.
    Filled filled(const CsrMatrix<T>& a, SparseInverse kind, const CsrMatrix<T>& m, std::int64_t first,
                  std::int64_t end, Offsets offsets = Offsets::i64)
    {
        const std::vector<std::int32_t> columns = columns_of(m, m.row_ptr[at(first)], m.row_ptr[at(end)]);
        const std::int64_t lowest = columns.empty() ? 0 : *std::min_element(columns.begin(), columns.end());
        const std::int64_t highest = columns.empty() ? -1 : *std::max_element(columns.begin(), columns.end());
        const auto a_ptr = pointers(a, lowest, highest + 1);
        const auto m_ptr = pointers(m, first, end);
        const DeviceArray<std::int64_t> a_ptr_64 = upload(*device_, a_ptr);
        const DeviceArray<std::int64_t> m_ptr_64 = upload(*device_, m_ptr);
        const DeviceArray<std::int32_t> a_ptr_32 =
            upload(*device_, std::vector<std::int32_t>(a_ptr.begin(), a_ptr.end()));
        const DeviceArray<std::int32_t> m_ptr_32 =
            upload(*device_, std::vector<std::int32_t>(m_ptr.begin(), m_ptr.end()));
        const std::int64_t a_begin = a.row_ptr[at(lowest)];
        const DeviceArray<std::int32_t> a_columns = upload(*device_, columns_of(a, a_begin, a_begin + a_ptr.back()));
        const DeviceArray<T> a_values =
            upload(*device_, std::vector<T>(a.values.begin() + a_begin, a.values.begin() + a_begin + a_ptr.back()));
        const DeviceArray<std::int32_t> m_columns = upload(*device_, columns);
        const bool narrow = offsets == Offsets::i32;
        const InverseSource<T> from{lowest, narrow ? IndexView(a_ptr_32.data()) : IndexView(a_ptr_64.data()),
                                    a_columns.data(), a_values.data()};
        const InverseRows rows{first, end - first, narrow ? IndexView(m_ptr_32.data()) : IndexView(m_ptr_64.data()),
                               m_columns.data()};
        const DeviceArray<T> values = upload(*device_, std::vector<T>(columns.size() + 1, T{7}));
        Filled out;
        const Context& context = device_->context();
        out.classes = classify_inverse_rows(from, kind, rows, context);
        if (out.classes.refused > 0) {
            return out;
        }
        out.status = fill_inverse_rows(from, kind, rows, out.classes, values.data(), context);
        out.values = download(*device_, values.data(), columns.size() + 1);
        EXPECT_EQ(out.values.back(), T{7});
        out.values.pop_back();
        return out;
    }
    /// Rows [first, end) of M are those of the host to rounding, and the same bits each time; the systems are well
    /// conditioned.
    Filled expect_host(const CsrMatrix<T>& a, SparseInverse kind, const InversePattern& pattern, std::int64_t first,
                       std::int64_t end, Offsets offsets = Offsets::i64)
    {
        CsrMatrix<T> m = matrix::inverse_pattern(a.view(), kind, pattern);
        Filled got = filled(a, kind, m, first, end, offsets);
        EXPECT_EQ(got.classes.refused, 0);
        const std::int64_t begin = m.row_ptr[at(first)];
        const InverseStatus status = matrix::fill_inverse_rows(
            a.view(), 0, kind, {first, end - first, m.row_ptr.data() + first, m.col_idx.view()}, m.values.data(), 1);
        EXPECT_EQ(got.status.singular_rows, status.singular_rows);
        EXPECT_EQ(got.status.first_singular, status.first_singular);
        for (std::int64_t row = first; row < end; ++row) {
            T largest = 0;
            for (auto k = m.row_ptr[at(row)]; k < m.row_ptr[at(row) + 1]; ++k) {
                largest = std::max(largest, std::fabs(m.values[at(k)]));
            }
            for (auto k = m.row_ptr[at(row)]; k < m.row_ptr[at(row) + 1]; ++k) {
                const double tolerance =
                    static_cast<double>(largest) * (2.0 * std::numeric_limits<T>::epsilon() + 1e-12);
                EXPECT_NEAR(got.values[at(k - begin)], m.values[at(k)], tolerance) << row << " " << k;
            }
        }
        EXPECT_TRUE(same_bits(got.values, filled(a, kind, m, first, end, offsets).values));
        return got;
    }

    static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
    static std::vector<std::int32_t> columns_of(const CsrMatrix<T>& a, std::int64_t begin, std::int64_t end)
    {
        std::vector<std::int32_t> out;
        for (std::int64_t k = begin; k < end; ++k) {
            out.push_back(static_cast<std::int32_t>(a.col_idx[k]));
        }
        return out;
    }
    static std::vector<std::int64_t> pointers(const CsrMatrix<T>& a, std::int64_t first, std::int64_t end)
    {
        std::vector<std::int64_t> out;
        for (std::int64_t row = first; row <= end; ++row) {
            out.push_back(a.row_ptr[at(row)] - a.row_ptr[at(first)]);
        }
        return out;
    }
};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(SparseInverseSteps, Reals);

template <class T>
CsrMatrix<T> of_rows(const std::vector<std::map<std::int32_t, T>>& rows)
{
    CsrMatrix<T> a;
    a.rows = a.cols = static_cast<std::int64_t>(rows.size());
    a.row_ptr.push_back(0);
    HostVector<std::int32_t> columns;
    for (const auto& row : rows) {
        for (const auto& [column, value] : row) {
            columns.push_back(column);
            a.values.push_back(value);
        }
        a.row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
    }
    a.col_idx = std::move(columns);
    return a;
}

/// Rows of `entries` entries and a diagonal as large as all of them.
template <class T>
CsrMatrix<T> random_dominant(std::int32_t n, int entries, std::uint64_t seed)
{
    std::mt19937_64 random(seed);
    std::vector<std::map<std::int32_t, T>> rows(static_cast<std::size_t>(n));
    for (std::int32_t row = 0; row < n; ++row) {
        auto& own = rows[static_cast<std::size_t>(row)];
        for (int k = 1; k < entries; ++k) {
            own[static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n))] =
                static_cast<T>(static_cast<double>(random() % 2001) / 1000 - 1);
        }
        own[row] = static_cast<T>(entries);
    }
    return of_rows(rows);
}

TYPED_TEST(SparseInverseSteps, OfATriangleByHand)
{
    using T = TypeParam;
    // What the host's test of the same matrix derives.
    const CsrMatrix<T> a = of_rows<T>({{{0, T{2}}}, {{0, T{1}}, {1, T{2}}}, {{1, T{1}}, {2, T{2}}}});
    const CsrMatrix<T> m = matrix::inverse_pattern(a.view(), SparseInverse::spai);
    const double spai[] = {0.5, -0.25, 0.5, -4.0 / 21, 10.0 / 21};
    const double isai[] = {0.5, -0.25, 0.5, -0.25, 0.5};
    for (const bool squares : {true, false}) {
        const auto got = this->filled(a, squares ? SparseInverse::spai : SparseInverse::isai, m, 0, 3);
        EXPECT_EQ(got.status.singular_rows, 0);
        EXPECT_EQ(got.status.first_singular, -1);
        ASSERT_EQ(got.values.size(), 5u);
        for (std::size_t k = 0; k < 5; ++k) {
            EXPECT_NEAR(got.values[k], squares ? spai[k] : isai[k], std::numeric_limits<T>::epsilon());
        }
    }
}

TYPED_TEST(SparseInverseSteps, AreThoseOfTheHost)
{
    using T = TypeParam;
    const auto seven = stencil7<T>(5, 4, 3, {.values = ValueKind::poisson});
    const auto nine = stencil27<T>(7, 6, 1, {.values = ValueKind::poisson});
    const auto random = random_dominant<T>(60, 5, 1);
    for (const SparseInverse kind : {SparseInverse::spai, SparseInverse::isai}) {
        for (const Offsets offsets : {Offsets::i32, Offsets::i64}) {
            this->expect_host(seven, kind, {}, 0, seven.rows, offsets);
        }
        this->expect_host(seven, kind, {.power = 0}, 0, seven.rows);
        this->expect_host(nine, kind, {}, 0, nine.rows);
        this->expect_host(random, kind, {.power = 2}, 0, random.rows);
    }
}

TYPED_TEST(SparseInverseSteps, OfSomeRows)
{
    using T = TypeParam;
    const auto a = stencil7<T>(4, 4, 6, {.values = ValueKind::poisson});
    for (const SparseInverse kind : {SparseInverse::spai, SparseInverse::isai}) {
        const auto all = this->expect_host(a, kind, {}, 0, a.rows);
        std::vector<T> joined;
        const std::int64_t cuts[] = {0, 1, 33, 33, 95, 96};
        for (int part = 0; part < 5; ++part) {
            const auto some = this->expect_host(a, kind, {}, cuts[part], cuts[part + 1]);
            joined.insert(joined.end(), some.values.begin(), some.values.end());
        }
        // What a row becomes does not depend on where the devices' parts are cut.
        EXPECT_TRUE(same_bits(joined, all.values));
    }
}

TYPED_TEST(SparseInverseSteps, OfEverySize)
{
    using T = TypeParam;
    // Systems of each class of kernels: 27 and 125, 60 and about 100, 128 and 500 columns and rows.
    const auto cube = stencil27<T>(6, 6, 6, {.values = ValueKind::poisson});
    const auto middle = random_dominant<T>(100, 60, 2);
    const auto large = random_dominant<T>(500, 16, 3);
    const auto of_cube = this->expect_host(cube, SparseInverse::spai, {}, 80, 90);
    const auto of_middle = this->expect_host(middle, SparseInverse::spai, {}, 50, 52);
    const auto of_large = this->expect_host(large, SparseInverse::spai, {.power = 2}, 300, 301);
    this->expect_host(cube, SparseInverse::isai, {}, 80, 90);
    this->expect_host(large, SparseInverse::isai, {.power = 2}, 300, 302);
    if (device_kind() == DeviceKind::host) {
        return;
    }
    EXPECT_EQ(of_cube.classes.begin[3] - of_cube.classes.begin[2], 10);
    EXPECT_EQ(of_middle.classes.begin[4] - of_middle.classes.begin[3], 2);
    EXPECT_EQ(of_large.classes.begin[5] - of_large.classes.begin[4], 1);
}

TYPED_TEST(SparseInverseSteps, SingularSystemsAreNamed)
{
    using T = TypeParam;
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    // Row 1 is empty but for a zero, row 3 is not finite, rows 4 and 5 are the same.
    const CsrMatrix<T> a = of_rows<T>({{{0, T{2}}, {2, T{1}}},
                                       {{1, T{0}}},
                                       {{2, T{4}}},
                                       {{3, nan}},
                                       {{4, T{1}}, {5, T{2}}},
                                       {{4, T{1}}, {5, T{2}}},
                                       {{0, T{3}}}});
    for (const SparseInverse kind : {SparseInverse::spai, SparseInverse::isai}) {
        const auto got = this->expect_host(a, kind, {}, 0, a.rows);
        EXPECT_GE(got.status.singular_rows, 4);
        EXPECT_EQ(got.status.first_singular, 1);
        // The diagonal of row 4, which stands behind 2 + 1 + 1 + 1 entries: a_44 / |a_4|^2.
        EXPECT_NEAR(got.values[5], 0.2, std::numeric_limits<T>::epsilon());
        EXPECT_EQ(got.values[6], T{0});
        EXPECT_EQ(got.values[2], T{1});
    }
}

TYPED_TEST(SparseInverseSteps, RefuseWhatIsTooLarge)
{
    using T = TypeParam;
    if (device_kind() == DeviceKind::host) {
        GTEST_SKIP() << "host devices take systems of any size";
    }
    // A row that fills the hash table of a system: more than 2^25 slots.
    constexpr std::int32_t n = 17000000;
    CsrMatrix<T> a;
    a.rows = a.cols = n;
    a.row_ptr.assign(static_cast<std::size_t>(n) + 1, n);
    a.row_ptr[0] = 0;
    HostVector<std::int32_t> columns(static_cast<std::size_t>(n));
    for (std::int32_t i = 0; i < n; ++i) {
        columns[static_cast<std::size_t>(i)] = i;
    }
    a.col_idx = std::move(columns);
    a.values.assign(static_cast<std::size_t>(n), T{1});
    CsrMatrix<T> m = of_rows<T>({{{0, T{1}}}});
    const auto refused = this->filled(a, SparseInverse::spai, m, 0, 1);
    EXPECT_EQ(refused.classes.refused, 1);
    EXPECT_EQ(refused.classes.first_refused, 0);
}

}  // namespace
}  // namespace rmsp::kernels::test
