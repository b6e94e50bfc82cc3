#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "matrices.hpp"

namespace rmsp::test {
namespace {

class DeviceConvert : public testing::TestWithParam<Machine> {
protected:
    void SetUp() override
    {
        if (GetParam().gpus > 0 && !have_gpus(GetParam().gpus)) {
            GTEST_SKIP() << "needs " << GetParam().gpus << " GPU(s)";
        }
        runtime_ = std::make_unique<Runtime>(options_for(GetParam()));
    }
    std::unique_ptr<Runtime> runtime_;
};

std::vector<std::int64_t> list(const IndexArray& indices)
{
    std::vector<std::int64_t> all(indices.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = indices[static_cast<std::int64_t>(i)];
    }
    return all;
}

template <class T>
void expect_same(const CsrMatrix<T>& found, const CsrMatrix<T>& expected)
{
    EXPECT_EQ(found.rows, expected.rows);
    EXPECT_EQ(found.cols, expected.cols);
    EXPECT_EQ(found.row_ptr, expected.row_ptr);
    EXPECT_EQ(list(found.col_idx), list(expected.col_idx));
    EXPECT_EQ(found.values, expected.values);
}
template <class T>
void expect_same(const CscMatrix<T>& found, const CscMatrix<T>& expected)
{
    EXPECT_EQ(found.rows, expected.rows);
    EXPECT_EQ(found.cols, expected.cols);
    EXPECT_EQ(found.col_ptr, expected.col_ptr);
    EXPECT_EQ(list(found.row_idx), list(expected.row_idx));
    EXPECT_EQ(found.values, expected.values);
}
template <class T>
void expect_same(const CooMatrix<T>& found, const CooMatrix<T>& expected)
{
    EXPECT_EQ(found.rows, expected.rows);
    EXPECT_EQ(found.cols, expected.cols);
    EXPECT_EQ(list(found.row_idx), list(expected.row_idx));
    EXPECT_EQ(list(found.col_idx), list(expected.col_idx));
    EXPECT_EQ(found.values, expected.values);
}

template <class T>
void check(Runtime& runtime, const CsrView<T>& a)
{
    const CscMatrix<T> csc = to_csc(a);
    const CooMatrix<T> coo = to_coo(a);
    expect_same(to_csc(runtime, a), csc);
    expect_same(to_coo(runtime, a), coo);
    expect_same(to_csr(runtime, csc.view()), to_csr(csc.view()));
    expect_same(to_coo(runtime, csc.view()), to_coo(csc.view()));
    // In no order, with entries that repeat: the sort is stable.
    CooMatrix<T> shuffled = coo;
    std::vector<std::int64_t> from(static_cast<std::size_t>(coo.nnz()));
    std::iota(from.begin(), from.end(), std::int64_t{0});
    std::shuffle(from.begin(), from.end(), std::mt19937_64(3));
    HostVector<std::int64_t> rows(from.size());
    HostVector<std::int32_t> cols(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
        rows[i] = coo.row_idx[from[i]];
        cols[i] = static_cast<std::int32_t>(coo.col_idx[from[i]]);
        shuffled.values[i] = coo.values[static_cast<std::size_t>(from[i])];
    }
    shuffled.row_idx = std::move(rows);
    shuffled.col_idx = std::move(cols);
    expect_same(to_csr(runtime, shuffled.view()), to_csr(shuffled.view()));
    expect_same(to_csc(runtime, shuffled.view()), to_csc(shuffled.view()));
}

TEST_P(DeviceConvert, HardMatricesAsTheHostDoes)
{
    for (const auto& [name, a] : hard_matrices<double>()) {
        SCOPED_TRACE(name);
        check(*runtime_, a.view());
    }
    check(*runtime_, stencil27<float>(20, 21, 22).view());
    const auto a = with_row_lengths<float>({3, 0, 5}, 4);
    const std::vector<std::int32_t> row_ptr(a.row_ptr.begin(), a.row_ptr.end());
    CsrView<float> narrow = a.view();
    narrow.row_ptr = row_ptr.data();
    check(*runtime_, narrow);
}

TEST_P(DeviceConvert, RefusesWhatIsNoMatrix)
{
    const auto a = with_row_lengths<double>({3, 0, 5}, 4);
    CsrView<double> outside = a.view();
    outside.cols = 1;
    EXPECT_THROW(to_csc(*runtime_, outside), Error);
    EXPECT_THROW(to_coo(*runtime_, outside), Error);
    check(*runtime_, a.view());
}

INSTANTIATE_TEST_SUITE_P(Machines, DeviceConvert, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
