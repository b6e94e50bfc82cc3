#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/convert.hpp>
#include <rmsp/spgemm.hpp>

#include "matrices.hpp"
#include "runtime/matrix/download.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/node/node.hpp"
#include "runtime/spgemm/distribute.hpp"
#include "runtime/spgemm/triple_in_slabs.hpp"
#include "spgemm_fixtures.hpp"

/// R A P in slabs of rows.
namespace rmsp::test {
namespace {

DistributeOptions whole_rows()
{
    DistributeOptions options;
    options.alignment = RowAlignment::row;
    return options;
}

class TripleInSlabs : public RuntimeTest {
protected:
    template <class T>
    static const std::shared_ptr<detail::MatrixState<T>>& state(const DistributedMatrix<T>& matrix)
    {
        return detail::MatrixAccess::state(matrix);
    }

    /// Of whole numbers, so that sums are the same in any order.
    template <class T>
    void expect_triple(const CsrMatrix<T>& r, const CsrMatrix<T>& a, const CsrMatrix<T>& p, std::int64_t slabs)
    {
        SCOPED_TRACE(std::to_string(slabs) + " slabs");
        auto of_r = runtime_->distribute<T>(r.view(), whole_rows());
        auto of_a = runtime_->distribute<T>(a.view(), whole_rows());
        auto of_p = runtime_->distribute<T>(p.view(), whole_rows());
        spgemm::TripleInSlabs<T> c(state(of_r), state(of_a), state(of_p), Determinism::none, slabs);
        EXPECT_LE(c.slabs(), slabs);
        const auto runtime = detail::RuntimeAccess::state(*runtime_);
        DistributedMatrix<T> coarse = spgemm::distribute(runtime, c, DistributeOptions{});
        const CsrMatrix<T> ap = multiply<T>(*runtime_, a.view(), p.view());
        const CsrMatrix<T> expected = multiply<T>(*runtime_, r.view(), ap.view());
        const CsrMatrix<T> got = distributed::download_matrix(*state(coarse));
        EXPECT_EQ(got.row_ptr, expected.row_ptr);
        EXPECT_EQ(columns_of(got), columns_of(expected));
        EXPECT_EQ(got.values, expected.values);
    }
};

TEST_P(TripleInSlabs, OfRowsThatAreNear)
{
    auto a = stencil7<double>(9, 8, 14);
    to_whole_numbers(a);
    // Each four rows are an aggregate.
    std::vector<std::map<int, double>> entries;
    for (std::int64_t row = 0; row < a.rows; ++row) {
        entries.push_back({{static_cast<int>(row / 4), static_cast<double>(row % 3 + 1)}});
    }
    const auto p = small<double>(a.rows, a.rows / 4, entries);
    const auto r = transposed<double>(p.view());
    for (const std::int64_t slabs : {1, 2, 7, 100}) {
        expect_triple(r, a, p, slabs);
    }
}

TEST_P(TripleInSlabs, OfRowsThatAreAnywhere)
{
    // Rows of all three that are empty, among them the first and the last ones, and factors that are not square.
    auto a = with_row_lengths<float>(waves(300, 7), 200, 3);
    auto p = with_row_lengths<float>(waves(200, 3), 90, 4);
    auto r = with_row_lengths<float>(waves(120, 5), 300, 5);
    to_whole_numbers(a);
    to_whole_numbers(p);
    to_whole_numbers(r);
    for (const std::int64_t slabs : {1, 3, 120}) {
        expect_triple(r, a, p, slabs);
    }
    // Nothing in one of them.
    const auto nothing = with_row_lengths<float>(std::vector<std::int64_t>(200, 0), 90, 6);
    expect_triple(r, a, nothing, 2);
}

TEST_P(TripleInSlabs, RenewsAMatrix)
{
    auto a = stencil7<double>(6, 7, 8);
    to_whole_numbers(a);
    auto p = with_row_lengths<double>(std::vector<std::int64_t>(static_cast<std::size_t>(a.rows), 2), 60, 2);
    to_whole_numbers(p);
    const auto r = transposed<double>(p.view());
    auto of_r = runtime_->distribute<double>(r.view(), whole_rows());
    auto of_a = runtime_->distribute<double>(a.view(), whole_rows());
    auto of_p = runtime_->distribute<double>(p.view(), whole_rows());
    const auto runtime = detail::RuntimeAccess::state(*runtime_);
    DistributedMatrix<double> coarse;
    for (int round = 0; round < 2; ++round) {
        for (double& value : a.values) {
            value += round;
        }
        of_a.update_values(a.values.data());
        spgemm::TripleInSlabs<double> c(state(of_r), state(of_a), state(of_p), Determinism::none, 3);
        if (round == 0) {
            coarse = spgemm::distribute(runtime, c, DistributeOptions{});
        } else {
            spgemm::renew(*runtime, c, coarse);
        }
        const CsrMatrix<double> ap = multiply<double>(*runtime_, a.view(), p.view());
        EXPECT_EQ(distributed::download_matrix(*state(coarse)).values,
                  multiply<double>(*runtime_, r.view(), ap.view()).values);
    }
    spgemm::TripleInSlabs<double> other(state(of_a), state(of_a), state(of_a), Determinism::none, 2);
    EXPECT_THROW(spgemm::renew(*runtime, other, coarse), Error) << "of another structure";
}

INSTANTIATE_TEST_SUITE_P(All, TripleInSlabs, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
