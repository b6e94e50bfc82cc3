#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "matrices.hpp"

/// What tests of formats share.
namespace rmsp::test {

class Formats : public RuntimeTest {
protected:
    /// A x and A^T x (products: whether transposed) with vectors in host memory.
    template <class T>
    void check_host_vectors(const std::string& name, const CsrMatrix<T>& a, DistributedMatrix<T>& matrix,
                            const std::vector<bool>& products = {false, true})
    {
        const CscMatrix<T> csc = to_csc(a.view());
        for (const bool transposed : products) {
            const CsrView<T> product = transposed ? transpose(csc.view()) : a.view();
            const auto x = random_vector<T>(product.cols, 1);
            const auto y_in = random_vector<T>(product.rows, 2);
            for (const T beta : {T{0}, T{1}, T(-0.5)}) {
                std::vector<T> y = y_in;
                if (beta == T{0}) {
                    std::fill(y.begin(), y.end(), std::numeric_limits<T>::quiet_NaN());
                }
                if (transposed) {
                    matrix.apply_transposed(T(1.5), x.data(), beta, y.data());
                } else {
                    matrix.apply(T(1.5), x.data(), beta, y.data());
                }
                const auto v = verify_spmv(product, T(1.5), x.data(), beta, y_in.data(), y.data());
                EXPECT_TRUE(v.passed) << name << (transposed ? ", transposed" : "") << ", beta " << beta << ", row "
                                      << v.worst_row << ", error " << v.error;
            }
        }
    }

    /// The same with vectors on the devices.
    template <class T>
    void check_device_vectors(const std::string& name, const CsrMatrix<T>& a, DistributedMatrix<T>& matrix,
                              const std::vector<bool>& products = {false, true})
    {
        const CscMatrix<T> csc = to_csc(a.view());
        for (const bool transposed : products) {
            const CsrView<T> product = transposed ? transpose(csc.view()) : a.view();
            const auto x_host = random_vector<T>(product.cols, 3);
            const auto y_in = random_vector<T>(product.rows, 4);
            for (const auto layout : {Layout::rows, Layout::replicated}) {
                if (transposed && layout == Layout::replicated && a.rows != a.cols) {
                    continue;
                }
                auto x = !transposed || layout == Layout::replicated ? matrix.make_x(layout) : matrix.make_y();
                auto y = transposed ? matrix.make_x(Layout::rows) : matrix.make_y();
                x.upload(x_host.data());
                for (const T beta : {T{0}, T{2}}) {
                    y.upload(y_in.data());
                    if (transposed) {
                        matrix.apply_transposed(T(-0.5), x, beta, y);
                    } else {
                        matrix.apply(T(-0.5), x, beta, y);
                    }
                    std::vector<T> out(y_in.size(), T{99});
                    y.download(out.data());
                    const auto v = verify_spmv(product, T(-0.5), x_host.data(), beta, y_in.data(), out.data());
                    EXPECT_TRUE(v.passed) << name << (transposed ? ", transposed" : "") << ", beta " << beta << ", row "
                                          << v.worst_row << ", error " << v.error;
                }
            }
        }
    }

    /// Every merge that these devices can be asked for.
    std::vector<std::string> merges() const
    {
        return GetParam().gpu_devices() < 2 ? std::vector<std::string>{"auto"}
               : GetParam().shares()        ? std::vector<std::string>{"auto", "peer", "host"}
                                            : std::vector<std::string>{"auto", "peer", "nccl", "host"};
    }
};

}  // namespace rmsp::test
