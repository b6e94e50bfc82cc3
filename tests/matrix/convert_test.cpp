#include <rmsp/convert.hpp>

#include <algorithm>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/error.hpp>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace rmsp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::int64_t> list(IndexView view, std::int64_t n)
{
    std::vector<std::int64_t> result;
    for (std::int64_t i = 0; i < n; ++i) {
        result.push_back(view[i]);
    }
    return result;
}

template <class T>
std::vector<std::int64_t> list(const HostVector<T>& v)
{
    return {v.begin(), v.end()};
}

// Entry i of coordinates has value i + 1, so that a value tells where an entry came from.
struct Coordinates {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::vector<std::int64_t> row;
    std::vector<std::int32_t> col;
    std::vector<double> values;

    CooView<double> view() const
    {
        return {rows, cols, static_cast<std::int64_t>(row.size()), row.data(), col.data(), values.data()};
    }
};

Coordinates random_coordinates(std::int64_t rows, std::int64_t cols, std::int64_t nnz, unsigned seed)
{
    std::mt19937 random(seed);
    Coordinates a{rows, cols, {}, {}, {}};
    for (std::int64_t i = 0; i < nnz; ++i) {
        // Every fourth entry in one row, every fifth in one column: dense lines, and many duplicates.
        const auto row = static_cast<std::int64_t>(random()) % rows;
        const auto col = static_cast<std::int64_t>(random()) % cols;
        a.row.push_back(i % 4 == 0 ? rows / 2 : row);
        a.col.push_back(static_cast<std::int32_t>(i % 5 == 0 ? cols / 3 : col));
        a.values.push_back(static_cast<double>(i + 1));
    }
    return a;
}

// Positions of the entries in a stable sort by the given key.
template <class Key>
std::vector<std::size_t> stable_order(const std::vector<Key>& key)
{
    std::vector<std::size_t> order(key.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return key[i] < key[j]; });
    return order;
}

template <class From>
std::vector<std::int64_t> permuted(const std::vector<From>& v, const std::vector<std::size_t>& order)
{
    std::vector<std::int64_t> result;
    for (const std::size_t i : order) {
        result.push_back(static_cast<std::int64_t>(v[i]));
    }
    return result;
}

template <class Key>
std::vector<std::int64_t> pointers(const std::vector<Key>& key, std::int64_t lines)
{
    std::vector<std::int64_t> result(static_cast<std::size_t>(lines) + 1, 0);
    for (const Key k : key) {
        ++result[static_cast<std::size_t>(k) + 1];
    }
    std::partial_sum(result.begin(), result.end(), result.begin());
    return result;
}

TEST(Convert, ByHand)
{
    // 3 x 4; row 1 is empty, column 2 is empty, (2, 3) comes twice, columns of row 2 are not sorted
    const std::vector<std::int32_t> row_ptr{0, 2, 2, 6};
    const std::vector<std::int64_t> col_idx{1, 0, 3, 1, 3, 0};
    const std::vector<float> values{1, 2, 3, 4, 5, 6};
    const CsrView<float> a{3, 4, 6, row_ptr.data(), col_idx.data(), values.data()};

    const CscMatrix<float> csc = to_csc(a);
    EXPECT_THAT(csc.col_ptr, ElementsAre(0, 2, 4, 4, 6));
    EXPECT_THAT(list(csc.row_idx.view(), 6), ElementsAre(0, 2, 0, 2, 2, 2));
    EXPECT_THAT(csc.values, ElementsAre(2, 6, 1, 4, 3, 5));
    EXPECT_EQ(csc.row_idx.type(), IndexType::i32);

    const CsrMatrix<float> csr = to_csr(csc.view());
    EXPECT_THAT(csr.row_ptr, ElementsAre(0, 2, 2, 6));
    EXPECT_THAT(list(csr.col_idx.view(), 6), ElementsAre(0, 1, 0, 1, 3, 3));
    EXPECT_THAT(csr.values, ElementsAre(2, 1, 6, 4, 3, 5));

    const CooMatrix<float> by_row = to_coo(a);
    EXPECT_THAT(list(by_row.row_idx.view(), 6), ElementsAre(0, 0, 2, 2, 2, 2));
    EXPECT_THAT(list(by_row.col_idx.view(), 6), ElementsAre(1, 0, 3, 1, 3, 0));
    EXPECT_THAT(by_row.values, ElementsAre(1, 2, 3, 4, 5, 6));

    const CooMatrix<float> by_column = to_coo(csc.view());
    EXPECT_THAT(list(by_column.col_idx.view(), 6), ElementsAre(0, 0, 1, 1, 3, 3));
    EXPECT_THAT(list(by_column.row_idx.view(), 6), ElementsAre(0, 2, 0, 2, 2, 2));
}

TEST(Convert, TransposesWithoutACopy)
{
    const Coordinates a = random_coordinates(5, 7, 20, 3);
    const CsrMatrix<double> csr = to_csr(a.view());
    const CscView<double> t = transpose(csr.view());
    EXPECT_EQ(t.rows, 7);
    EXPECT_EQ(t.cols, 5);
    EXPECT_EQ(t.col_ptr.data(), csr.row_ptr.data());
    const CsrView<double> back = transpose(t);
    EXPECT_EQ(back.rows, 5);
    EXPECT_EQ(back.values, csr.values.data());
    EXPECT_EQ(transpose(a.view()).row_idx.data(), a.col.data());
}

TEST(Convert, EmptyMatrices)
{
    for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>{0, 0}, {0, 5}, {5, 0}, {1, 1}}) {
        const CooView<double> coo{rows, cols, 0, IndexView(), IndexView(), nullptr};
        const CsrMatrix<double> csr = to_csr(coo);
        const CscMatrix<double> csc = to_csc(coo);
        EXPECT_EQ(csr.row_ptr.size(), static_cast<std::size_t>(rows) + 1);
        EXPECT_EQ(csc.col_ptr.size(), static_cast<std::size_t>(cols) + 1);
        EXPECT_EQ(to_csc(csr.view()).col_ptr, csc.col_ptr);
        EXPECT_EQ(to_csr(csc.view()).row_ptr, csr.row_ptr);
        EXPECT_EQ(to_coo(csr.view()).nnz(), 0);
        EXPECT_EQ(sort_by_row(coo).rows, rows);
        EXPECT_EQ(sort_by_column(coo).cols, cols);
    }
}

class ConvertRandom : public ::testing::TestWithParam<std::tuple<std::int64_t, std::int64_t, std::int64_t>> {};

TEST_P(ConvertRandom, IsTheStableSort)
{
    const auto [rows, cols, nnz] = GetParam();
    const Coordinates a = random_coordinates(rows, cols, nnz, 17);
    const auto by_row = stable_order(a.row);
    const auto by_col = stable_order(a.col);
#ifdef _OPENMP
    const int before = omp_get_max_threads();
    for (const int threads : {1, 2, 5, 16}) {
        omp_set_num_threads(threads);
#else
    {
#endif
        const CsrMatrix<double> csr = to_csr(a.view());
        ASSERT_EQ(list(csr.row_ptr), pointers(a.row, rows));
        ASSERT_EQ(list(csr.col_idx.view(), nnz), permuted(a.col, by_row));
        ASSERT_EQ(list(csr.values), permuted(a.values, by_row));

        const CscMatrix<double> csc = to_csc(a.view());
        ASSERT_EQ(list(csc.col_ptr), pointers(a.col, cols));
        ASSERT_EQ(list(csc.row_idx.view(), nnz), permuted(a.row, by_col));
        ASSERT_EQ(list(csc.values), permuted(a.values, by_col));

        const CooMatrix<double> sorted = sort_by_row(a.view());
        ASSERT_EQ(list(sorted.row_idx.view(), nnz), permuted(a.row, by_row));
        ASSERT_EQ(list(sorted.col_idx.view(), nnz), permuted(a.col, by_row));
        ASSERT_EQ(list(sorted.values), permuted(a.values, by_row));
        const CooMatrix<double> columns = sort_by_column(a.view());
        ASSERT_EQ(list(columns.row_idx.view(), nnz), permuted(a.row, by_col));
        ASSERT_EQ(list(columns.col_idx.view(), nnz), permuted(a.col, by_col));

        // Through the compressed formats: sorting the sorted by the other index.
        const CscMatrix<double> again = to_csc(csr.view());
        ASSERT_EQ(again.col_ptr, csc.col_ptr);
        ASSERT_EQ(list(again.values), list(to_csc(sorted.view()).values));
        ASSERT_EQ(list(again.row_idx.view(), nnz), list(to_csc(sorted.view()).row_idx.view(), nnz));
        ASSERT_EQ(list(to_csr(csc.view()).values), list(to_csr(columns.view()).values));
        const CooMatrix<double> expanded = to_coo(csr.view());
        ASSERT_EQ(list(expanded.row_idx.view(), nnz), permuted(a.row, by_row));
        ASSERT_EQ(list(expanded.values), permuted(a.values, by_row));
        ASSERT_EQ(list(to_coo(csc.view()).col_idx.view(), nnz), permuted(a.col, by_col));
    }
#ifdef _OPENMP
    omp_set_num_threads(before);
#endif
}

INSTANTIATE_TEST_SUITE_P(Sizes, ConvertRandom,
                         ::testing::Values(std::tuple{1, 1, 1}, std::tuple{1, 1, 7}, std::tuple{1, 9, 30},
                                           std::tuple{9, 1, 30}, std::tuple{13, 7, 100}, std::tuple{100, 3000, 500},
                                           std::tuple{1000, 700, 200003}, std::tuple{3, 150001, 200003},
                                           std::tuple{150001, 3, 200003}));

template <class F>
std::string complaint(const F& f)
{
    try {
        f();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::usage);
        return error.what();
    }
    return "nothing";
}

TEST(Convert, RefusesWhatIsNotValid)
{
    Coordinates a = random_coordinates(5, 7, 20, 3);
    a.col[11] = 7;
    EXPECT_THAT(complaint([&] { to_csr(a.view()); }),
                HasSubstr("invalid 5 x 7 COO matrix with 20 nonzeros: entry 11 is at row " + std::to_string(a.row[11]) +
                          ", column 7"));
    a.row[4] = -1;
    EXPECT_THAT(complaint([&] { to_csc(a.view()); }), HasSubstr("entry 4 is at row -1"));
    CooView<double> view = a.view();
    view.values = nullptr;
    EXPECT_THAT(complaint([&] { validate(view); }), HasSubstr("values are null"));
    view = a.view();
    view.row_idx = IndexView();
    EXPECT_THAT(complaint([&] { validate(view); }), HasSubstr("row indices are null"));
    view.nnz = -2;
    EXPECT_THAT(complaint([&] { validate(view); }), HasSubstr("negative"));

    const std::vector<std::int32_t> col_ptr{0, 2, 1};
    const std::vector<std::int32_t> row_idx{0, 5};
    const std::vector<double> values{1, 2};
    CscView<double> csc{5, 2, 2, col_ptr.data(), row_idx.data(), values.data()};
    EXPECT_THAT(complaint([&] { to_csr(csc); }),
                HasSubstr("invalid 5 x 2 CSC matrix with 2 nonzeros: column 1 starts at entry 2 and ends at entry 1"));
    csc.cols = 1;
    EXPECT_THAT(complaint([&] { to_coo(csc); }), HasSubstr("entry 1 (entry 1 of column 0) has row 5"));
    csc.nnz = 3;
    EXPECT_THAT(complaint([&] { validate(csc); }), HasSubstr("col_ptr[1] is 2"));
    csc.col_ptr = IndexView();
    EXPECT_THAT(complaint([&] { validate(csc); }), HasSubstr("the column pointers are null"));
}

TEST(CooOrder, IsDetected)
{
    const std::vector<std::int32_t> up{0, 1, 1, 4};
    const std::vector<std::int64_t> down{3, 2, 2, 0};
    EXPECT_EQ(coo_order(4, up.data(), down.data()), CooOrder::by_row);
    EXPECT_EQ(coo_order(4, down.data(), up.data()), CooOrder::by_column);
    EXPECT_EQ(coo_order(4, down.data(), down.data()), CooOrder::unsorted);
    EXPECT_EQ(coo_order(4, up.data(), up.data()), CooOrder::by_row);
    EXPECT_EQ(coo_order(1, down.data(), down.data()), CooOrder::by_row);
    EXPECT_EQ(coo_order(0, IndexView(), IndexView()), CooOrder::by_row);
    std::vector<std::int32_t> long_one(300000, 5);
    EXPECT_EQ(coo_order(300000, long_one.data(), long_one.data()), CooOrder::by_row);
    long_one[199999] = 4;
    EXPECT_EQ(coo_order(300000, long_one.data(), long_one.data()), CooOrder::unsorted);
    EXPECT_STREQ(to_string(CooOrder::by_row), "by_row");
    EXPECT_STREQ(to_string(CooOrder::by_column), "by_column");
    EXPECT_STREQ(to_string(CooOrder::unsorted), "unsorted");
}

}  // namespace
}  // namespace rmsp
