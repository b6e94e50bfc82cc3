// Multiplies a matrix, given as the application's own CSR arrays, on every GPU of the node.
#include <cstdio>
#include <vector>

#include <rmsp/rmsp.hpp>

int main()
{
    //     | 10  0 20 |
    // A = |  0  0  0 |    zero-based CSR; 64-bit arrays do as well
    //     |  0 30 40 |
    const std::vector<int> row_ptr{0, 2, 2, 4};
    const std::vector<int> col_idx{0, 2, 1, 2};
    const std::vector<double> values{10, 20, 30, 40};
    const std::vector<double> x{1, 2, 3};
    std::vector<double> y{1, 1, 1};

    rmsp::Runtime runtime;  // every GPU, or host devices where there is none
    const rmsp::CsrView<double> a{3, 3, 4, row_ptr.data(), col_idx.data(), values.data()};
    rmsp::DistributedMatrix<double> matrix = runtime.distribute(a);

    matrix.apply(2.0, x.data(), -1.0, y.data());  // y = 2 A x - y, any number of times
    std::printf("y = %g %g %g\n", y[0], y[1], y[2]);
    return y == std::vector<double>{139, -1, 359} ? 0 : 1;
}
