#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "matrices.hpp"

namespace rmsp::test {
namespace {

class DeviceConvert : public RuntimeTest {};

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
    CooMatrix<T> mixed = shuffled(coo);
    const std::vector<std::int64_t> rows = list(mixed.row_idx);
    mixed.row_idx = IndexArray(HostVector<std::int64_t>(rows.begin(), rows.end()));
    expect_same(to_csr(runtime, mixed.view()), to_csr(mixed.view()));
    expect_same(to_csc(runtime, mixed.view()), to_csc(mixed.view()));
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
