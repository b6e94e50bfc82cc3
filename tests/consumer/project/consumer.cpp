// What an application outside this tree does: link rmsp::rmsp, multiply a small matrix, check the result.
#include <cstdio>
#include <vector>

#include <rmsp/rmsp.hpp>

int main()
{
    const std::vector<int> row_ptr{0, 2, 3, 3};
    const std::vector<int> col_idx{0, 1, 1};
    const std::vector<double> values{1.0, 2.0, 3.0};
    const std::vector<double> x{10.0, 100.0};
    std::vector<double> y{-1.0, -1.0, -1.0};

    rmsp::Runtime runtime({.devices = "host:2"});
    const rmsp::CsrView<double> matrix{3, 2, 3, row_ptr.data(), col_idx.data(), values.data()};
    auto a = runtime.distribute(matrix);
    a.apply(1.0, x.data(), 0.0, y.data());
    std::printf("librmsp %s: %g %g %g\n", rmsp::version(), y[0], y[1], y[2]);
    return y == std::vector<double>{210.0, 300.0, 0.0} ? 0 : 1;
}
