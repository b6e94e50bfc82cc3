#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <rmsp/convert.hpp>
#include <runtime/matrix/matrix_state.hpp>
#include <runtime/node/node.hpp>

#include "matrices.hpp"

/// A runtime that serves several clients, loses devices, and tells what it did. Host devices.
namespace rmsp::test {
namespace {

Runtime host_runtime(int devices)
{
    RuntimeOptions options;
    options.devices = "host:" + std::to_string(devices) + "x1";
    options.bind = BindPolicy::none;
    return Runtime(options);
}

ErrorCode code_of(const std::function<void()>& f, std::string* message = nullptr)
{
    try {
        f();
    } catch (const Error& e) {
        if (message != nullptr) {
            *message = e.what();
        }
        return e.code();
    }
    ADD_FAILURE() << "no error";
    return ErrorCode::internal;
}

template <class T>
void expect_product(DistributedMatrix<T>& matrix, const CsrMatrix<T>& a)
{
    const auto x = random_vector<T>(a.cols, 5);
    std::vector<T> y(static_cast<std::size_t>(a.rows));
    matrix.apply(T{1}, x.data(), T{0}, y.data());
    EXPECT_TRUE(verify_spmv<T>(a.view(), T{1}, x.data(), T{0}, nullptr, y.data()).passed);
    auto on_devices = matrix.make_x(Layout::rows);
    auto result = matrix.make_y();
    on_devices.upload(x.data());
    result.fill(T{1});
    matrix.apply(T{1}, on_devices, T{0}, result);
    result.download(y.data());
    EXPECT_TRUE(verify_spmv<T>(a.view(), T{1}, x.data(), T{0}, nullptr, y.data()).passed);
}

TEST(Service, LogsOfAJobHaveItsNumber)
{
    const auto before = spdlog::default_logger();
    std::ostringstream lines;
    const auto logger =
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines, true));
    logger->set_pattern("%v");
    logger->set_level(spdlog::level::debug);
    spdlog::set_default_logger(logger);
    {
        Runtime runtime = host_runtime(2);
        const auto a = stencil7<double>(6, 5, 4);
        DistributeOptions options;
        options.name = "pressure";
        auto matrix = runtime.distribute(a.view(), options);
        const std::vector<double> x(static_cast<std::size_t>(a.cols), 1.0);
        std::vector<double> y(x.size());
        matrix.apply(1.0, x.data(), 0.0, y.data());
        detail::RuntimeAccess::state(runtime)->workers[1]->device().lose("for a test");
        EXPECT_THROW(matrix.apply(1.0, x.data(), 0.0, y.data()), Error);
    }
    spdlog::set_default_logger(before);
    const std::string text = lines.str();
    const auto at = text.find(" kind=\"product\" matrix=\"pressure\" outcome=finished\n");
    ASSERT_NE(at, std::string::npos) << text;
    const auto number = text.rfind("job=", at);
    ASSERT_NE(number, std::string::npos) << text;
    const int next = std::stoi(text.substr(number + 4)) + 1;
    EXPECT_NE(text.find("job=" + std::to_string(next) +
                        " kind=\"product\" matrix=\"pressure\" device=\"host:1 (1 thread)\" outcome=failed error=\""),
              std::string::npos)
        << text;
}

TEST(Service, CountsAndTimesJobs)
{
    Runtime runtime = host_runtime(2);
    const auto a = stencil7<double>(6, 5, 4);
    auto matrix = runtime.distribute(a.view());
    const Metrics before = runtime.metrics();
    const auto x = random_vector<double>(a.cols, 1);
    std::vector<double> y(x.size());
    for (int i = 0; i < 10; ++i) {
        matrix.apply(1.0, x.data(), 0.0, y.data());
    }
    const Metrics after = runtime.metrics();
    EXPECT_EQ(after.accepted, before.accepted + 10);
    EXPECT_EQ(after.finished, before.finished + 10);
    EXPECT_EQ(after.run.count, before.run.count + 10);
    EXPECT_EQ(after.waiting + after.running, 0);
    ASSERT_EQ(after.devices.size(), 2u);
    for (const DeviceMetrics& device : after.devices) {
        EXPECT_FALSE(device.lost);
        EXPECT_GT(device.busy_seconds, 0);
        EXPECT_LE(device.busy_share, 1.0);
    }
    const std::string text = after.to_prometheus();
    EXPECT_NE(text.find("rmsp_jobs_accepted_total " + std::to_string(after.accepted) + "\n"), std::string::npos);
    EXPECT_NE(text.find("# TYPE rmsp_job_run_seconds histogram\n"), std::string::npos);
    EXPECT_NE(text.find("rmsp_job_run_seconds_bucket{le=\"+Inf\"} " + std::to_string(after.run.count) + "\n"),
              std::string::npos);
    EXPECT_NE(text.find("rmsp_device_busy_seconds_total{device=\"host:1 "), std::string::npos) << text;
}

TEST(Service, CountsWhatIsStreamed)
{
    Runtime runtime = host_runtime(2);
    const auto a = stencil7<double>(6, 5, 4);
    DistributeOptions options;
    options.mode = Mode::streamed;
    auto matrix = runtime.distribute(a.view(), options);
    EXPECT_EQ(runtime.metrics().streamed_bytes, 0u);
    expect_product(matrix, a);
    EXPECT_GE(runtime.metrics().streamed_bytes, 2u * static_cast<std::uint64_t>(a.nnz()) * 12);
}

TEST(Service, HistogramsHaveQuantiles)
{
    TimeHistogram histogram;
    EXPECT_EQ(histogram.quantile(0.5), 0);
    histogram.counts[3] = 9;   // up to 8 us
    histogram.counts[11] = 1;  // up to 2048 us
    histogram.count = 10;
    EXPECT_DOUBLE_EQ(histogram.quantile(0.5), 8e-6);
    EXPECT_DOUBLE_EQ(histogram.quantile(0.9), 8e-6);
    EXPECT_DOUBLE_EQ(histogram.quantile(0.99), 2048e-6);
}

TEST(Service, ProductsEndByStopAndDeadlineWithTheirOwnCodes)
{
    Runtime runtime = host_runtime(2);
    const auto a = stencil7<double>(6, 5, 4);
    auto matrix = runtime.distribute(a.view());
    const auto x = random_vector<double>(a.cols, 1);
    std::vector<double> y(x.size());
    std::stop_source source;
    source.request_stop();
    JobOptions options;
    options.stop = source.get_token();
    EXPECT_EQ(code_of([&] { matrix.apply_async(1.0, x.data(), 0.0, y.data(), options).get(); }), ErrorCode::cancelled);
    options.stop = {};
    options.deadline = std::chrono::steady_clock::now();
    EXPECT_EQ(code_of([&] { matrix.apply_async(1.0, x.data(), 0.0, y.data(), options).get(); }), ErrorCode::deadline);
    options.deadline += std::chrono::hours(1);
    matrix.apply_async(1.0, x.data(), 0.0, y.data(), options).get();
    expect_product(matrix, a);
}

TEST(Service, SolvesEndByStopAndGoOnLater)
{
    Runtime runtime = host_runtime(2);
    GenerateOptions definite;
    definite.values = ValueKind::poisson;
    const auto a = stencil7<double>(8, 8, 8, definite);
    auto matrix = runtime.distribute(a.view());
    SolverOptions solver_options;
    solver_options.tolerance = 1e-10;
    Solver<double> solver(matrix, solver_options);
    const std::vector<double> b(static_cast<std::size_t>(a.rows), 1.0);
    std::vector<double> x(b.size(), 0.0);
    std::stop_source source;
    source.request_stop();
    {
        JobOptions options;
        options.stop = source.get_token();
        const JobScope scope(options);
        const SolveResult result = solver.solve(b.data(), x.data());
        EXPECT_EQ(result.outcome, Outcome::cancelled);
        EXPECT_EQ(result.reason, "a stop was requested");
    }
    {
        JobOptions options;
        options.deadline = std::chrono::steady_clock::now();
        const JobScope scope(options);
        std::fill(x.begin(), x.end(), 0.0);
        EXPECT_EQ(solver.solve(b.data(), x.data()).outcome, Outcome::time);
    }
    std::fill(x.begin(), x.end(), 0.0);
    EXPECT_TRUE(solver.solve(b.data(), x.data()).converged());
}

TEST(Service, ProductsOfMatricesEndByStopAndGoOnLater)
{
    Runtime runtime = host_runtime(2);
    const auto a = stencil7<double>(6, 5, 4);
    SparseProduct<double> product(runtime, a.view(), a.view());
    std::stop_source source;
    source.request_stop();
    {
        JobOptions options;
        options.stop = source.get_token();
        const JobScope scope(options);
        EXPECT_EQ(code_of([&] { product.compute(); }), ErrorCode::cancelled);
    }
    EXPECT_EQ(code_of([&] { static_cast<void>(product.download()); }), ErrorCode::usage);
    product.compute();
    EXPECT_TRUE(verify_spgemm<double>(a.view(), a.view(), 1.0, product.download().view()).passed);
}

TEST(Service, AClientWithOptionsIsNotKeptBehindAFlood)
{
    Runtime runtime = host_runtime(2);
    const auto big = stencil7<double>(20, 20, 20);
    const auto small = stencil7<double>(4, 4, 4);
    auto flood = runtime.distribute(big.view());
    auto matrix = runtime.distribute(small.view());
    const std::vector<double> from(static_cast<std::size_t>(small.cols), 1.0);
    std::vector<double> to(from.size());
    // From here on there are lanes.
    matrix.apply_async(1.0, from.data(), 0.0, to.data(), JobOptions{}).get();
    auto x = flood.make_x(Layout::rows);
    auto y = flood.make_y();
    x.fill(1.0);
    std::vector<std::future<void>> jobs;
    for (int i = 0; i < 1500; ++i) {
        jobs.push_back(flood.apply_async(1.0, x, 0.0, y));
    }
    std::jthread([&] {
        for (int i = 0; i < 5; ++i) {
            matrix.apply_async(1.0, from.data(), 0.0, to.data(), JobOptions{}).get();
        }
    }).join();
    EXPECT_NE(jobs.back().wait_for(std::chrono::seconds(0)), std::future_status::ready);
    for (auto& job : jobs) {
        job.get();
    }
}

TEST(Service, ADrainedRuntimeRefusesWhatComesLater)
{
    Runtime runtime = host_runtime(2);
    const auto a = stencil7<double>(6, 5, 4);
    auto matrix = runtime.distribute(a.view());
    const auto x = random_vector<double>(a.cols, 1);
    std::vector<double> y(x.size());
    auto last = matrix.apply_async(1.0, x.data(), 0.0, y.data());
    EXPECT_EQ(runtime.drain(), 0);
    last.get();
    EXPECT_EQ(code_of([&] { matrix.apply(1.0, x.data(), 0.0, y.data()); }), ErrorCode::usage);
    EXPECT_EQ(code_of([] {
                  RuntimeOptions options;
                  options.devices = "host:1";
                  options.queue_limit = -1;
                  Runtime refused(options);
              }),
              ErrorCode::usage);
}

TEST(Service, ALostDeviceCostsItsMatricesOnly)
{
    Runtime runtime = host_runtime(3);
    const auto a = stencil7<double>(6, 5, 4);
    auto everywhere = runtime.distribute(a.view());
    DistributeOptions on_two;
    on_two.devices = 2;
    auto matrix = runtime.distribute(a.view(), on_two);
    expect_product(everywhere, a);
    expect_product(matrix, a);

    detail::RuntimeAccess::state(runtime)->workers[2]->device().lose("injected");
    std::string message;
    const auto x = random_vector<double>(a.cols, 1);
    std::vector<double> y(x.size());
    EXPECT_EQ(code_of([&] { everywhere.apply(1.0, x.data(), 0.0, y.data()); }, &message), ErrorCode::device);
    EXPECT_NE(message.find("host:2"), std::string::npos) << message;
    EXPECT_NE(message.find("is lost: injected"), std::string::npos) << message;
    EXPECT_EQ(runtime.devices()[1].loss, "");
    EXPECT_NE(runtime.devices()[2].loss, "");
    EXPECT_TRUE(runtime.metrics().devices[2].lost);
    expect_product(matrix, a);

    runtime.redistribute(everywhere, a.view());
    EXPECT_EQ(runtime.devices().size(), 2u);
    expect_product(everywhere, a);
    expect_product(matrix, a);
    auto another = runtime.distribute(a.view());
    expect_product(another, a);
    EXPECT_EQ(code_of([&] { runtime.redistribute(another, stencil7<double>(2, 2, 2).view()); }), ErrorCode::usage);
    runtime.synchronize();
}

TEST(Service, WhatSurvivesIsRedistributedWithoutTheCallersArrays)
{
    Runtime runtime = host_runtime(3);
    const auto a = stencil7<double>(6, 5, 4);
    const auto by_columns = to_csc(a.view());
    const auto entries = to_coo(a.view());
    DistributeOptions on_two;
    on_two.devices = 2;
    on_two.name = "two";
    DistributeOptions streamed;
    streamed.mode = Mode::streamed;
    DistributeOptions split = on_two;
    split.unsorted = Unsorted::split;
    std::vector<DistributedMatrix<double>> whole;
    auto shuffled = entries;
    shuffled.row_idx.visit([](auto& v) { std::reverse(v.begin(), v.end()); });
    shuffled.col_idx.visit([](auto& v) { std::reverse(v.begin(), v.end()); });
    std::reverse(shuffled.values.begin(), shuffled.values.end());
    std::swap(shuffled.values.front(), shuffled.values.back());
    shuffled.row_idx.visit([](auto& v) { std::swap(v.front(), v.back()); });
    shuffled.col_idx.visit([](auto& v) { std::swap(v.front(), v.back()); });
    {
        // Arrays that are gone afterwards.
        const auto copy = a;
        whole.push_back(runtime.distribute(copy.view(), on_two));
    }
    whole.push_back(runtime.distribute(by_columns.view(), on_two));
    whole.push_back(runtime.distribute(entries.view(), on_two));
    whole.push_back(runtime.distribute(shuffled.view(), split));
    whole.push_back(runtime.distribute(a.view(), streamed));
    whole.push_back(runtime.distribute(entries.view(), streamed));
    auto everywhere = runtime.distribute(a.view());
    auto columns = runtime.distribute(by_columns.view());
    const std::int64_t gone = everywhere.report().plan.partition.parts[2].start_row;
    std::vector<Plan> before;
    for (const auto& matrix : whole) {
        before.push_back(matrix.report().plan);
    }
    detail::RuntimeAccess::state(runtime)->workers[2]->device().lose("injected");

    for (std::size_t i = 0; i < whole.size(); ++i) {
        runtime.redistribute(whole[i]);
        const Plan after = whole[i].report().plan;
        EXPECT_EQ(after.format, before[i].format);
        EXPECT_EQ(after.order, before[i].order);
        EXPECT_EQ(after.mode, before[i].mode);
        EXPECT_EQ(after.devices, 2);
        expect_product(whole[i], a);
    }
    // New values come in the order of the arrays that were distributed.
    CooMatrix<double> other = shuffled;
    for (double& value : other.values) {
        value = 2.0 * value + 1.0;
    }
    whole[3].update_values(other.values.data());
    expect_product(whole[3], to_csr(other.view()));

    std::string message;
    EXPECT_EQ(code_of([&] { runtime.redistribute(everywhere); }, &message), ErrorCode::device);
    EXPECT_NE(message.find("rows " + std::to_string(gone) + " to 119 were on host:2 (1 thread)"), std::string::npos)
        << message;
    EXPECT_EQ(code_of([&] { runtime.redistribute(columns); }, &message), ErrorCode::device);
    EXPECT_NE(message.find(" to 119 were on host:2 (1 thread)"), std::string::npos) << message;
    EXPECT_NE(message.find("columns "), std::string::npos) << message;
    runtime.redistribute(everywhere, a.view());
    expect_product(everywhere, a);
    runtime.redistribute(columns, by_columns.view());
    expect_product(columns, a);
}

TEST(Service, ARuntimeWithoutHealthyDevicesSaysSoAndEnds)
{
    Runtime runtime = host_runtime(1);
    const auto a = stencil7<double>(6, 5, 4);
    auto matrix = runtime.distribute(a.view());
    detail::RuntimeAccess::state(runtime)->workers[0]->device().lose("injected");
    EXPECT_EQ(code_of([&] { runtime.redistribute(matrix, a.view()); }), ErrorCode::device);
    EXPECT_EQ(code_of([&] { runtime.synchronize(); }), ErrorCode::device);
}

TEST(Service, ADeviceLostUnderLoadLeavesEveryJobWithAResultOrItsName)
{
    Runtime runtime = host_runtime(3);
    const auto a = stencil7<double>(6, 5, 4);
    auto everywhere = runtime.distribute(a.view());
    DistributeOptions on_two;
    on_two.devices = 2;
    auto matrix = runtime.distribute(a.view(), on_two);
    std::atomic<int> wrong{0};
    std::atomic<int> failed{0};
    {
        std::vector<std::jthread> threads;
        for (unsigned t = 0; t < 4; ++t) {
            threads.emplace_back([&, t] {
                const auto x = random_vector<double>(a.cols, t);
                std::vector<double> y(x.size());
                DistributedMatrix<double> mine = t % 2 == 0 ? everywhere : matrix;
                for (int i = 0; i < 60; ++i) {
                    try {
                        mine.apply_async(1.0, x.data(), 0.0, y.data(), JobOptions{}).get();
                        wrong += verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed ? 0 : 1;
                    } catch (const Error& e) {
                        const bool named = std::string(e.what()).find("host:2") != std::string::npos;
                        wrong += named && t % 2 == 0 ? 0 : 1;
                        ++failed;
                    }
                    if (t == 0 && i == 20) {
                        detail::RuntimeAccess::state(runtime)->workers[2]->device().lose("injected");
                    }
                }
            });
        }
    }
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_GE(failed.load(), 39);
}

}  // namespace
}  // namespace rmsp::test
