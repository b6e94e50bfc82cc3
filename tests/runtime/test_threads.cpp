#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "matrices.hpp"

namespace rmsp::test {
namespace {

class Threads : public MachineTest {};

TEST_P(Threads, ShareAMatrix)
{
    Runtime runtime(options_for(GetParam()));
    const auto a = with_row_lengths<double>({3, 0, 700, 5, 5, 1, 0, 77, 900, 2}, 300);
    DistributeOptions options;
    options.alignment = RowAlignment::exact;
    auto matrix = runtime.distribute(a.view(), options);
    std::atomic<int> wrong{0};
    {
        std::vector<std::jthread> threads;
        for (unsigned t = 0; t < 4; ++t) {
            threads.emplace_back([&, t] {
                const auto x = random_vector<double>(a.cols, t);
                auto on_devices = matrix.make_x(Layout::rows);
                auto y_devices = matrix.make_y();
                on_devices.upload(x.data());
                for (int i = 0; i < 15; ++i) {
                    std::vector<double> y(static_cast<std::size_t>(a.rows));
                    matrix.apply(1.0, x.data(), 0.0, y.data());
                    wrong += verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed ? 0 : 1;
                    static_cast<void>(matrix.apply_async(2.0, on_devices, 0.0, y_devices));
                    y_devices.download(y.data());
                    wrong += verify_spmv<double>(a.view(), 2.0, x.data(), 0.0, nullptr, y.data()).passed ? 0 : 1;
                }
            });
        }
    }
    EXPECT_EQ(wrong.load(), 0);
}

TEST_P(Threads, ChainFuturesThroughHostMemory)
{
    // The second product reads what the first writes; only the order of submission says so.
    Runtime runtime(options_for(GetParam()));
    const auto a = stencil7<double>(6, 5, 4);
    DistributeOptions options;
    options.alignment = RowAlignment::exact;
    auto matrix = runtime.distribute(a.view(), options);
    const auto x = random_vector<double>(a.cols, 3);
    std::vector<double> y(x.size());
    std::vector<double> z(x.size());
    for (int i = 0; i < 30; ++i) {
        std::fill(y.begin(), y.end(), -7.0);
        auto first = matrix.apply_async(1.0, x.data(), 0.0, y.data());
        auto second = matrix.apply_async(1.0, y.data(), 0.0, z.data());
        second.get();
        first.get();
        EXPECT_TRUE(verify_spmv<double>(a.view(), 1.0, y.data(), 0.0, nullptr, z.data()).passed);
    }
}

TEST_P(Threads, ShutDownWithWorkInFlight)
{
    const auto a = stencil7<double>(20, 20, 5);
    for (int round = 0; round < 5; ++round) {
        auto x = random_vector<double>(a.cols, 3);
        std::vector<double> y(x.size());
        std::future<void> last;
        {
            Runtime runtime(options_for(GetParam()));
            auto matrix = runtime.distribute(a.view());
            for (int i = 0; i < 10; ++i) {
                last = matrix.apply_async(1.0, x.data(), 0.0, y.data());
            }
        }
        EXPECT_NO_THROW(last.get());
        EXPECT_TRUE(verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed);
    }
}

INSTANTIATE_TEST_SUITE_P(Machines, Threads, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
