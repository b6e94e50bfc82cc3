// Matrices whose indices count from 1, and matrices in blocks.

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "caller_arrays.hpp"

namespace rmsp::test {
namespace {

TEST(Base, IndicesFromOne)
{
    Runtime runtime({.devices = "host:2x1"});
    for (const auto& [name, a] : hard_matrices<double>()) {
        const std::int64_t nnz = a.nnz();
        const auto row_ptr = from_one<std::int32_t>(IndexView(a.row_ptr.data()), a.rows + 1);
        const auto col_idx = from_one<std::int64_t>(a.col_idx.view(), nnz);
        const CsrView<double> csr{a.rows, a.cols, nnz, row_ptr.data(), col_idx.data(), a.values.data(), 1};
        for (const DistributeOptions& options :
             {DistributeOptions{}, DistributeOptions{.borrow = true}, DistributeOptions{.mode = Mode::streamed}}) {
            auto matrix = runtime.distribute(csr, options);
            check_product(matrix, a, name);
        }
        EXPECT_EQ(runtime.plan(csr).nnz, nnz);
        const auto c = to_csc(a.view());
        const auto col_ptr = from_one<std::int64_t>(IndexView(c.col_ptr.data()), a.cols + 1);
        const auto row_idx = from_one<std::int32_t>(c.row_idx.view(), nnz);
        auto csc = runtime.distribute(
            CscView<double>{a.rows, a.cols, nnz, col_ptr.data(), row_idx.data(), c.values.data(), 1});
        check_product(csc, a, name);
        const auto coo = to_coo(a.view());
        const auto rows = from_one<std::int32_t>(coo.row_idx.view(), nnz);
        const auto columns = from_one<std::int32_t>(coo.col_idx.view(), nnz);
        auto coordinates =
            runtime.distribute(CooView<double>{a.rows, a.cols, nnz, rows.data(), columns.data(), coo.values.data(), 1});
        check_product(coordinates, a, name);
    }
}

TEST(Base, WrongOnes)
{
    Runtime runtime({.devices = "host:1"});
    const std::vector<int> row_ptr{1, 2, 3};
    const std::vector<int> col_idx{1, 2};
    const std::vector<double> values{1, 2};
    CsrView<double> a{2, 2, 2, row_ptr.data(), col_idx.data(), values.data(), 2};
    EXPECT_EQ(usage_message([&] { static_cast<void>(runtime.distribute(a)); }),
              "base of a 2 x 2 matrix is 2; indices count from 0 or 1");
    a.base = 1;
    EXPECT_EQ(
        usage_message([&] { static_cast<void>(to_csc(a)); }),
        "invalid 2 x 2 CSR matrix with 2 nonzeros: its indices count from 1 (base); only Runtime and SparseProduct "
        "take those that count from 1");
    EXPECT_EQ(transpose(a).base, 1);
    a.base = 0;
    EXPECT_NE(usage_message([&] { static_cast<void>(runtime.distribute(a)); }).find("row_ptr[0] is 1"),
              std::string::npos);
    const std::vector<int> below{0, 2};
    a = {2, 2, 2, row_ptr.data(), below.data(), values.data(), 1};
    EXPECT_NE(usage_message([&] { static_cast<void>(runtime.distribute(a)); }).find("entry 0"), std::string::npos);
}

TEST(BlockRows, AreAllTheirValues)
{
    const Blocks blocks;
    for (const BlockOrder order : {BlockOrder::by_row, BlockOrder::by_column}) {
        const auto a = to_csr(blocks.view(order));
        EXPECT_EQ(a.rows, 6);
        EXPECT_EQ(a.cols, 6);
        EXPECT_EQ((std::vector<std::int64_t>(a.row_ptr.begin(), a.row_ptr.end())),
                  (std::vector<std::int64_t>{0, 6, 12, 12, 12, 15, 18}));
        const std::vector<std::int64_t> columns{3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 3, 4, 5};
        const std::vector<double> values{0,   1,   2,   100, 101, 102, 10,  11,  12,
                                         110, 111, 112, 200, 201, 202, 210, 211, 212};
        for (std::size_t i = 0; i < values.size(); ++i) {
            EXPECT_EQ(a.col_idx[static_cast<std::int64_t>(i)], columns[i]) << i;
            EXPECT_EQ(a.values[i], values[i]) << i;
        }
    }
}

TEST(BlockRows, OnDevices)
{
    Runtime runtime({.devices = "host:2x1"});
    const Blocks blocks;
    for (const BlockOrder order : {BlockOrder::by_row, BlockOrder::by_column}) {
        const BsrView<double> view = blocks.view(order);
        auto matrix = runtime.distribute(view, {.borrow = true});
        EXPECT_EQ(runtime.plan(view).rows, 6);
        auto a = to_csr(view);
        check_product(matrix, a, "blocks");
        std::vector<double> twice(view.values, view.values + 18);
        for (double& value : twice) {
            value *= 2;
        }
        matrix.update_values(twice.data());
        for (double& value : a.values) {
            value *= 2;
        }
        check_product(matrix, a, "new values of blocks");
    }
}

TEST(BlockRows, WrongOnes)
{
    Runtime runtime({.devices = "host:1"});
    const Blocks blocks;
    const auto message = [&](auto change) {
        BsrView<double> view = blocks.view(BlockOrder::by_row);
        change(view);
        return usage_message([&] { static_cast<void>(runtime.distribute(view)); });
    };
    const std::string begin = "invalid BSR matrix of 3 x 2 blocks of 2 x 3, 3 stored: ";
    EXPECT_EQ(message([](auto& a) { a.base = -1; }), begin + "base is -1; indices count from 0 or 1");
    EXPECT_EQ(message([](auto& a) { a.base = 0; }), begin + "row_ptr[0] is 1, not 0");
    EXPECT_EQ(message([](auto& a) { a.values = nullptr; }), begin + "the values are null");
    const std::vector<std::int64_t> beyond{2, 3, 2};
    EXPECT_EQ(message([&](auto& a) { a.col_idx = beyond.data(); }), begin + "block 1 has column 3");
    const std::vector<int> falling{1, 3, 2, 4};
    EXPECT_EQ(message([&](auto& a) { a.row_ptr = falling.data(); }),
              begin + "row 1 of blocks starts at block 3 and ends at block 2");
    EXPECT_NE(message([](auto& a) { a.width = 0; }).find("at least one row and column"), std::string::npos);
    EXPECT_NE(message([](auto& a) { a.height = std::int64_t{1} << 62; }).find("too large"), std::string::npos);
    BsrView<double> view = blocks.view(BlockOrder::by_row);
    EXPECT_NE(usage_message([&] {
                  static_cast<void>(runtime.distribute(view, {.mode = Mode::streamed}));
              }).find("not streamed"),
              std::string::npos);
}

}  // namespace
}  // namespace rmsp::test
