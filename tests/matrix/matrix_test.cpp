#include <rmsp/matrix.hpp>

#include <complex>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/error.hpp>

namespace rmsp {
namespace {

using ::testing::HasSubstr;

template <class T>
class Validate : public ::testing::Test {
protected:
    // Rows of 2, 0 and 2 entries
    std::vector<std::int64_t> row_ptr{0, 2, 2, 4};
    std::vector<std::int32_t> col_idx{3, 0, 1, 1};
    std::vector<T> values{1, 2, 3, 4};
    CsrView<T> view{3, 4, 4, row_ptr.data(), col_idx.data(), values.data()};

    std::string complaint() const
    {
        try {
            validate(view);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::usage);
            return error.what();
        }
        return "valid";
    }
};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Validate, Types);

TYPED_TEST(Validate, AcceptsUnsortedAndRepeatedColumns) { EXPECT_EQ(this->complaint(), "valid"); }

TYPED_TEST(Validate, AcceptsEmptyMatrices)
{
    const std::vector<std::int32_t> zeros(4, 0);
    this->view = {0, 0, 0, zeros.data(), IndexView(), nullptr};
    EXPECT_EQ(this->complaint(), "valid");
    this->view = {3, 0, 0, zeros.data(), IndexView(), nullptr};
    EXPECT_EQ(this->complaint(), "valid");
}

TYPED_TEST(Validate, NamesSizesThatDoNotFit)
{
    this->view.nnz = 5;
    EXPECT_THAT(this->complaint(), HasSubstr("3 x 4 CSR matrix with 5 nonzeros: row_ptr[3] is 4"));
    this->view.nnz = -1;
    EXPECT_THAT(this->complaint(), HasSubstr("negative"));
    this->view.nnz = 4;
    this->view.values = nullptr;
    EXPECT_THAT(this->complaint(), HasSubstr("values are null"));
    this->view.values = this->values.data();
    this->view.col_idx = IndexView();
    EXPECT_THAT(this->complaint(), HasSubstr("column indices are null"));
    this->view.row_ptr = IndexView();
    this->view.col_idx = this->col_idx.data();
    EXPECT_THAT(this->complaint(), HasSubstr("row pointers are null"));
    this->view = {};  // no rows have one pointer
    EXPECT_THAT(this->complaint(), HasSubstr("row pointers are null"));
}

TYPED_TEST(Validate, NamesTheFirstRowThatFalls)
{
    this->row_ptr = {0, 3, 2, 4};
    EXPECT_THAT(this->complaint(), HasSubstr("row 1 starts at entry 3 and ends at entry 2"));
    this->row_ptr = {1, 2, 2, 4};
    EXPECT_THAT(this->complaint(), HasSubstr("row_ptr[0] is 1, not 0"));
}

TYPED_TEST(Validate, NamesTheFirstColumnOutOfRange)
{
    this->col_idx[3] = 4;
    EXPECT_THAT(this->complaint(), HasSubstr("entry 3 (entry 1 of row 2) has column 4"));
    this->col_idx[2] = -1;
    EXPECT_THAT(this->complaint(), HasSubstr("entry 2 (entry 0 of row 2) has column -1"));
    this->view.cols = 0;
    EXPECT_THAT(this->complaint(), HasSubstr("entry 0 (entry 0 of row 0) has column 3"));
}

TEST(ValidateInParallel, NamesTheFirstOfManyErrors)
{
    constexpr std::int64_t rows = 200000;
    std::vector<std::int32_t> row_ptr(rows + 1);
    for (std::size_t i = 0; i < row_ptr.size(); ++i) {
        row_ptr[i] = static_cast<std::int32_t>(i);
    }
    std::vector<std::int64_t> col_idx(rows, 7);
    const std::vector<float> values(rows, 1.0F);
    const CsrView<float> view{rows, 8, rows, row_ptr.data(), col_idx.data(), values.data()};
    EXPECT_NO_THROW(validate(view));
    for (const std::size_t bad : {199999U, 150000U, 77777U}) {
        col_idx[bad] = 8;
        try {
            validate(view);
            FAIL() << "no exception";
        } catch (const Error& error) {
            EXPECT_THAT(error.what(),
                        HasSubstr("entry " + std::to_string(bad) + " (entry 0 of row " + std::to_string(bad)));
        }
    }
}

static_assert(is_value_type<float> && is_value_type<double>);
static_assert(!is_value_type<long double> && !is_value_type<int> && !is_value_type<std::complex<double>>);
static_assert(is_index_type<int> && is_index_type<long> && is_index_type<long long>);
static_assert(!is_index_type<unsigned> && !is_index_type<std::size_t> && !is_index_type<short> &&
              !is_index_type<double>);
static_assert(!std::is_same_v<long, long long>);

template <class I>
class Indices : public ::testing::Test {
};
using IndexTypes = ::testing::Types<int, long, long long>;
TYPED_TEST_SUITE(Indices, IndexTypes);

TYPED_TEST(Indices, AreReadWhereTheyAre)
{
    const std::vector<TypeParam> row_ptr{0, 2, 3};
    const std::vector<TypeParam> col_idx{1, 0, 1};
    const std::vector<double> values{1, 2, 3};
    const CsrView<double> a{2, 2, 3, row_ptr.data(), col_idx.data(), values.data()};
    validate(a);
    EXPECT_EQ(a.row_ptr.type(), sizeof(TypeParam) == 4 ? IndexType::i32 : IndexType::i64);
    EXPECT_EQ(a.row_ptr.data(), row_ptr.data());
    EXPECT_EQ(a.row_ptr[1], 2);
    EXPECT_EQ(a.col_idx[2], 1);
    EXPECT_EQ(a.col_idx.visit([](const auto* column) { return std::int64_t{column[0]}; }), 1);
}

TEST(Names, OfCodesAndFormats)
{
    EXPECT_STREQ(to_string(ErrorCode::internal), "internal");
    EXPECT_STREQ(to_string(ErrorCode::usage), "usage");
    EXPECT_STREQ(to_string(ErrorCode::io), "io");
    EXPECT_STREQ(to_string(ErrorCode::out_of_memory), "out_of_memory");
    EXPECT_STREQ(to_string(ErrorCode::device), "device");
    EXPECT_STREQ(to_string(ErrorCode::not_converged), "not_converged");
    EXPECT_STREQ(to_string(ErrorCode::verification), "verification");
    EXPECT_STREQ(to_string(Format::csr), "csr");
    EXPECT_STREQ(to_string(Format::csc), "csc");
    EXPECT_STREQ(to_string(Format::coo), "coo");
}

}  // namespace
}  // namespace rmsp
