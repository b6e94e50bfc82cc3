#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "matrices.hpp"

namespace rmsp::test {

/// The suite of products with matrices by rows, whose tests stand in several files.
class Apply : public RuntimeTest {
protected:
    template <class T>
    void check_host_apply(const char* name, const CsrMatrix<T>& a, const DistributeOptions& options)
    {
        auto matrix = runtime_->distribute(a.view(), options);
        const auto x = random_vector<T>(a.cols, 1);
        const auto y_in = random_vector<T>(a.rows, 2);
        for (const T beta : {T{0}, T{1}, T(-0.5)}) {
            std::vector<T> y = y_in;
            if (beta == T{0}) {
                std::fill(y.begin(), y.end(), std::numeric_limits<T>::quiet_NaN());
            }
            matrix.apply(T(1.5), x.data(), beta, y.data());
            const auto v = verify_spmv(a.view(), T(1.5), x.data(), beta, y_in.data(), y.data());
            EXPECT_TRUE(v.passed) << name << ", beta " << beta << ", row " << v.worst_row << ", error " << v.error;
        }
    }
};

}  // namespace rmsp::test
