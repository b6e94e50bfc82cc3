// Several threads share one matrix through futures; then a power iteration keeps its vectors on the devices and runs
// without waiting between its steps. RMSP_DEVICES=0,1 or RMSP_DEVICES=host:4 chooses the devices.
#include <cmath>
#include <cstdio>
#include <future>
#include <numbers>
#include <thread>
#include <utility>
#include <vector>

#include <rmsp/rmsp.hpp>

int main()
{
    constexpr int side = 8;
    const rmsp::CsrMatrix<double> a = rmsp::stencil27<double>(side, side, side, {.values = rmsp::ValueKind::ones});
    const auto n = static_cast<std::size_t>(a.rows);

    rmsp::Runtime runtime(rmsp::RuntimeOptions::from_environment({}));
    auto matrix = runtime.distribute(a.view());

    // Four threads, each with its own x and y. apply_async() returns at once; get() waits, and throws what a device
    // threw.
    std::vector<std::vector<double>> y(4, std::vector<double>(n));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            const std::vector<double> x(n, t + 1.0);
            std::future<void> done = matrix.apply_async(1.0, x.data(), 0.0, y[t].data());
            done.get();
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    bool good = true;
    for (int t = 0; t < 4; ++t) {
        good = good && y[t][0] == 8.0 * (t + 1);  // a corner of the grid has 8 neighbours, itself included
    }

    // Power iteration. A is square, so x and y are sliced alike and may change places. Scaling by 1 / 27, a bound of
    // the largest eigenvalue, keeps the vector in range.
    rmsp::DistributedVector<double> v = matrix.make_x(rmsp::Layout::rows);
    rmsp::DistributedVector<double> w = matrix.make_y();
    v.fill(1.0);
    for (int step = 0; step < 40; ++step) {
        static_cast<void>(matrix.apply_async(1.0 / 27.0, v, 0.0, w));  // in order with the step before
        std::swap(v, w);
    }
    matrix.apply(1.0, v, 0.0, w);
    const double eigenvalue = rmsp::dot(v, w) / rmsp::dot(v, v);
    const double exact = std::pow(1.0 + 2.0 * std::cos(std::numbers::pi / (side + 1)), 3);
    std::printf("largest eigenvalue: %.12f, exact %.12f\n", eigenvalue, exact);
    return good && std::abs(eigenvalue - exact) < 1e-9 * exact ? 0 : 1;
}
