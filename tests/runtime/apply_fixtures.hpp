#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "matrices.hpp"

namespace rmsp::test {

/// Products with host vectors for several beta, compared with the reference.
template <class T>
void expect_products(const char* name, DistributedMatrix<T> matrix, const CsrView<T>& a)
{
    const auto x = random_vector<T>(a.cols, 1);
    const auto y_in = random_vector<T>(a.rows, 2);
    for (const T beta : {T{0}, T{1}, T(-0.5)}) {
        std::vector<T> y = y_in;
        if (beta == T{0}) {
            std::fill(y.begin(), y.end(), std::numeric_limits<T>::quiet_NaN());
        }
        matrix.apply(T(1.5), x.data(), beta, y.data());
        const auto v = verify_spmv(a, T(1.5), x.data(), beta, y_in.data(), y.data());
        EXPECT_TRUE(v.passed) << name << ", beta " << beta << ", row " << v.worst_row << ", error " << v.error;
    }
}

/// The same product gives the same bits, however often.
inline void expect_repeated_bits(DistributedMatrix<double> matrix)
{
    const auto x = random_vector<double>(matrix.cols(), 10);
    std::vector<double> first(static_cast<std::size_t>(matrix.rows()));
    matrix.apply(1.0, x.data(), 0.0, first.data());
    for (int i = 0; i < 20; ++i) {
        std::vector<double> again(first.size());
        matrix.apply(1.0, x.data(), 0.0, again.data());
        EXPECT_EQ(first, again);
    }
}

/// The suite of products with matrices by rows, whose tests stand in several files.
class Apply : public RuntimeTest {
protected:
    template <class T>
    void check_host_apply(const char* name, const CsrMatrix<T>& a, const DistributeOptions& options)
    {
        expect_products<T>(name, runtime_->distribute(a.view(), options), a.view());
    }
};

}  // namespace rmsp::test
