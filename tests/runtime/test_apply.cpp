#include <cmath>
#include <utility>

#include <gtest/gtest.h>

#include "apply_fixtures.hpp"
#include "matrices.hpp"
#include "read_little.hpp"

namespace rmsp::test {
namespace {

TEST_P(Apply, HardMatricesInDoubleWithHostVectors)
{
    for (const auto alignment : {RowAlignment::exact, RowAlignment::row, RowAlignment::automatic}) {
        for (const auto& [name, a] : hard_matrices<double>()) {
            DistributeOptions options;
            options.alignment = alignment;
            check_host_apply(name, a, options);
        }
    }
}

TEST_P(Apply, HardMatricesInFloatWithHostVectors)
{
    for (const auto& [name, a] : hard_matrices<float>()) {
        DistributeOptions options;
        options.alignment = RowAlignment::exact;
        check_host_apply(name, a, options);
    }
}

TEST_P(Apply, EqualRowsAsInTheBaselineOfThePaper)
{
    DistributeOptions options;
    options.strategy = PartitionStrategy::rows;
    for (const auto& [name, a] : hard_matrices<double>()) {
        check_host_apply(name, a, options);
    }
}

TEST_P(Apply, EveryKernelOfTheseDevices)
{
    const auto kind = runtime_->devices().front().kind;
    const auto a = with_row_lengths<double>({3, 0, 900, 5, 5, 1, 0, 77, 4000, 2}, 5000);
    for (const auto& kernel : list_kernels()) {
        // BSR refuses rows that are not sorted, as these are.
        if (kernel.family == "spmv" && kernel.format == Format::csr && kernel.device == kind && kernel.compiled &&
            kernel.name != "cusparse-bsr") {
            DistributeOptions options;
            options.kernel = kernel.name;
            check_host_apply(kernel.name.c_str(), a, options);
        }
    }
}

TEST_P(Apply, RowsOfALongHostVectorLeaveInStretches)
{
    // 3.3 MB of y.
    const auto a = stencil7<double>(75, 75, 73);
    const bool gpus = runtime_->devices().front().kind == DeviceKind::cuda;
    DistributeOptions options;
    options.alignment = RowAlignment::exact;
    const std::vector<std::string> of_gpus{"csr-row-vector", "sell", "csr-nnz-split"};
    for (const std::string& kernel : gpus ? of_gpus : std::vector<std::string>{"auto"}) {
        options.kernel = kernel;
        check_host_apply(kernel.c_str(), a, options);
    }
}

TEST_P(Apply, VectorsOnTheDevices)
{
    for (const auto& [name, a] : hard_matrices<double>()) {
        DistributeOptions options;
        options.alignment = RowAlignment::exact;
        auto matrix = runtime_->distribute(a.view(), options);
        const auto x_host = random_vector<double>(a.cols, 3);
        const auto y_in = random_vector<double>(a.rows, 4);
        for (const auto layout : {Layout::replicated, Layout::rows}) {
            auto x = matrix.make_x(layout);
            auto y = matrix.make_y();
            x.upload(x_host.data());
            for (const double beta : {0.0, 2.0}) {
                y.upload(y_in.data());
                matrix.apply(-0.5, x, beta, y);
                std::vector<double> out(static_cast<std::size_t>(a.rows), 99);
                y.download(out.data());
                const auto v = verify_spmv(a.view(), -0.5, x_host.data(), beta, y_in.data(), out.data());
                EXPECT_TRUE(v.passed) << name << ", beta " << beta << ", row " << v.worst_row << ", error " << v.error;
            }
        }
    }
}

TEST_P(Apply, ALoopOfAppliesNeedsNoWaiting)
{
    // y and x change places without the caller waiting: the order of jobs is all there is.
    const auto a = stencil27<double>(9, 8, 7);
    auto matrix = runtime_->distribute(a.view());
    auto x = matrix.make_x(Layout::rows);
    auto y = matrix.make_x(Layout::rows);
    std::vector<double> reference = random_vector<double>(a.cols, 5);
    x.upload(reference.data());
    constexpr int steps = 10;
    for (int i = 0; i < steps; ++i) {
        static_cast<void>(matrix.apply_async(0.2, x, 0.0, y));
        std::swap(x, y);
    }
    std::vector<double> out(reference.size());
    x.download(out.data());
    for (int i = 0; i < steps; ++i) {
        std::vector<double> next(reference.size(), 0);
        for (std::int64_t row = 0; row < a.rows; ++row) {
            for (auto k = a.row_ptr[static_cast<std::size_t>(row)]; k < a.row_ptr[static_cast<std::size_t>(row) + 1];
                 ++k) {
                next[static_cast<std::size_t>(row)] +=
                    0.2 * a.values[static_cast<std::size_t>(k)] * reference[static_cast<std::size_t>(a.col_idx[k])];
            }
        }
        reference = next;
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
        EXPECT_NEAR(out[i], reference[i], 1e-9 * (1 + std::fabs(reference[i])));
    }
}

TEST_P(Apply, OnSomeOfTheDevices)
{
    const int all = static_cast<int>(runtime_->devices().size());
    for (const auto& [name, a] : hard_matrices<double>()) {
        for (int devices = 1; devices <= all; devices += 2) {
            DistributeOptions options;
            options.devices = devices;
            options.alignment = RowAlignment::exact;
            for (const auto exchange : {Exchange::ranges, Exchange::entries}) {
                options.exchange = exchange;
                check_host_apply(name, a, options);
                auto matrix = runtime_->distribute(a.view(), options);
                EXPECT_EQ(matrix.plan().devices, devices);
                auto x = matrix.make_x(Layout::rows);
                auto y = matrix.make_y();
                const auto host = random_vector<double>(a.cols, 16);
                x.upload(host.data());
                static_cast<void>(matrix.apply_async(2.0, x, 0.0, y));
                std::vector<double> out(static_cast<std::size_t>(a.rows));
                y.download(out.data());
                EXPECT_TRUE(verify_spmv<double>(a.view(), 2.0, host.data(), 0.0, nullptr, out.data()).passed) << name;
            }
        }
    }
}

TEST_P(Apply, PartsOfEqualTime)
{
    for (const auto& [name, a] : hard_matrices<double>()) {
        DistributeOptions options;
        options.balance = Balance::time;
        check_host_apply(name, a, options);
        for (const auto exchange : {Exchange::ranges, Exchange::entries}) {
            options.exchange = exchange;
            const Plan plan = runtime_->distribute(a.view(), options).plan();
            plan.partition.check();
            EXPECT_LE(plan.time_imbalance, plan.first_time_imbalance) << name;
            EXPECT_LE(plan.moves, 3) << name;
            if (runtime_->devices().size() == 1) {
                EXPECT_EQ(plan.time_imbalance, -1) << name;
            }
        }
    }
}

TEST_P(Apply, PartsOfEqualTimeAreRefusedWhereTheyMeanNothing)
{
    const auto a = stencil27<double>(5, 5, 5);
    const auto message = [&](const DistributeOptions& options) {
        return usage_message([&] { static_cast<void>(runtime_->distribute(a.view(), options)); });
    };
    DistributeOptions options;
    options.balance = Balance::time;
    options.strategy = PartitionStrategy::rows;
    EXPECT_NE(message(options).find("split by nonzeros"), std::string::npos);
    options.strategy = PartitionStrategy::nonzeros;
    options.mode = Mode::streamed;
    EXPECT_NE(message(options).find("resident"), std::string::npos);
    options.mode = Mode::resident;
    options.determinism = Determinism::run;
    EXPECT_NE(message(options).find("determinism"), std::string::npos);
}

TEST_P(Apply, NewValuesKeepTheStructure)
{
    auto a = with_row_lengths<double>({10, 0, 5000, 20, 3, 1}, 6000);
    DistributeOptions options;
    options.alignment = RowAlignment::exact;
    auto matrix = runtime_->distribute(a.view(), options);
    const auto x = random_vector<double>(a.cols, 8);
    std::vector<double> y(static_cast<std::size_t>(a.rows));
    for (int round = 0; round < 3; ++round) {
        const auto values = random_vector<double>(a.nnz(), 100 + static_cast<unsigned>(round));
        std::copy(values.begin(), values.end(), a.values.begin());
        matrix.update_values(a.values.data());
        matrix.apply(1.0, x.data(), 0.0, y.data());
        EXPECT_TRUE(verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed);
    }
}

TEST_P(Apply, CallersArraysOfAnyIndexWidthMayGoAfterDistributing)
{
    const auto a = with_row_lengths<double>({3, 1, 0, 4, 100, 2}, 50);
    const auto x = random_vector<double>(a.cols, 9);
    std::vector<double> expected(static_cast<std::size_t>(a.rows));
    runtime_->distribute(a.view()).apply(1.0, x.data(), 0.0, expected.data());
    const auto run = [&](auto pointer, auto column) {
        using Pointer = decltype(pointer);
        using Column = decltype(column);
        DistributedMatrix<double> matrix;
        {
            std::vector<Pointer> row_ptr(a.row_ptr.begin(), a.row_ptr.end());
            std::vector<Column> col_idx;
            for (std::int64_t i = 0; i < a.nnz(); ++i) {
                col_idx.push_back(static_cast<Column>(a.col_idx[i]));
            }
            std::vector<double> values(a.values.begin(), a.values.end());
            const CsrView<double> view{a.rows, a.cols, a.nnz(), row_ptr.data(), col_idx.data(), values.data()};
            matrix = runtime_->distribute(view);
        }
        std::vector<double> y(static_cast<std::size_t>(a.rows));
        matrix.apply(1.0, x.data(), 0.0, y.data());
        EXPECT_EQ(y, expected);
    };
    run(std::int32_t{}, std::int32_t{});
    run(std::int32_t{}, std::int64_t{});
    run(std::int64_t{}, std::int64_t{});
}

TEST_P(Apply, RepeatsBitForBitWhereDeterminismIsAsked)
{
    const auto a = with_row_lengths<double>({3000, 0, 1, 700, 700, 2, 9000, 4}, 4000);
    DistributeOptions options;
    options.determinism = Determinism::run;
    options.alignment = RowAlignment::exact;
    expect_repeated_bits(runtime_->distribute(a.view(), options));
}

TEST_P(Apply, TheSameBitsOnAnyNumberOfDevices)
{
    std::vector<std::int64_t> lengths(500, 20);
    lengths[3] = 0;
    lengths[77] = 9000;
    lengths[300] = 4097;
    const auto a = with_row_lengths<double>(lengths, 500);
    const auto x_host = random_vector<double>(a.cols, 10);
    RuntimeOptions one;
    one.devices = GetParam().gpus > 0 ? "0" : "host:1";
    Runtime single(one);
    const auto run = [&](Runtime& runtime, const DistributeOptions& options, Layout layout) {
        auto matrix = runtime.distribute(a.view(), options);
        auto x = matrix.make_x(layout);
        auto y = matrix.make_y();
        x.upload(x_host.data());
        static_cast<void>(matrix.apply_async(3.0, x, 0.0, y));
        std::vector<double> out(static_cast<std::size_t>(a.rows));
        y.download(out.data());
        return out;
    };
    const auto kind = runtime_->devices().front().kind;
    for (const auto& kernel : list_kernels()) {
        if (kernel.family == "spmv" && kernel.format == Format::csr && kernel.device == kind && kernel.compiled &&
            kernel.determinism == Determinism::device_count) {
            DistributeOptions options;
            options.kernel = kernel.name;
            options.determinism = Determinism::device_count;
            const auto expected = run(single, options, Layout::replicated);
            for (const auto exchange : {Exchange::ranges, Exchange::entries}) {
                options.exchange = exchange;
                for (const auto layout : {Layout::replicated, Layout::rows}) {
                    EXPECT_EQ(run(*runtime_, options, layout), expected) << kernel.name;
                }
            }
        }
    }
}

TEST_P(Apply, MeasuresAndReports)
{
    read_little(*runtime_);
    const auto a = with_row_lengths<double>({30, 0, 5000, 20, 3, 1}, 6);
    auto matrix = runtime_->distribute(a.view());
    const auto x = random_vector<double>(a.cols, 11);
    const auto y_in = random_vector<double>(a.rows, 12);
    using Vectors = DistributedMatrix<double>::Vectors;
    for (const auto vectors : {Vectors::host, Vectors::replicated, Vectors::rows}) {
        std::vector<double> y(static_cast<std::size_t>(a.rows));
        const auto m = matrix.measure(vectors, 2, 5, 2.0, x.data(), 0.5, y_in.data(), y.data());
        EXPECT_TRUE(verify_spmv(a.view(), 2.0, x.data(), 0.5, y_in.data(), y.data()).passed);
        EXPECT_EQ(m.iterations, 5);
        EXPECT_LE(m.min_seconds, m.median_seconds);
        EXPECT_LE(m.median_seconds, m.max_seconds);
        EXPECT_GT(m.median_seconds, 0);
        EXPECT_GT(m.limit_gbs, 0);
        EXPECT_DOUBLE_EQ(m.flops, 2.0 * static_cast<double>(a.nnz()));
        const bool kernel =
            std::any_of(m.phases.begin(), m.phases.end(), [](const auto& p) { return p.name == "kernel"; });
        EXPECT_TRUE(kernel);
    }
    for (const auto vectors : {Vectors::host, Vectors::rows}) {
        std::vector<double> y(static_cast<std::size_t>(a.rows));
        const auto m = matrix.measure(vectors, 1, 2, 2.0, x.data(), 0.5, y_in.data(), y.data(),
                                      DistributedMatrix<double>::Caches::cold);
        EXPECT_TRUE(verify_spmv(a.view(), 2.0, x.data(), 0.5, y_in.data(), y.data()).passed);
        EXPECT_TRUE(m.cold);
        EXPECT_GT(m.min_seconds, 0);
    }
    EXPECT_EQ(matrix.report().measurements.size(), 5u);
    EXPECT_THROW(matrix.measure(Vectors::host, 0, 0, 1.0, x.data(), 0.0, nullptr, nullptr), Error);
}

TEST_P(Apply, SayWhatIsWrongAndStayUsable)
{
    const auto a = with_row_lengths<double>({1, 2}, 3);
    DistributeOptions unknown;
    unknown.kernel = "fastest-ever";
    EXPECT_THROW(static_cast<void>(runtime_->distribute(a.view(), unknown)), Error);
    auto bad = a.view();
    const std::vector<std::int32_t> columns{0, 7, 1};
    bad.col_idx = columns.data();
    EXPECT_THROW(static_cast<void>(runtime_->distribute(bad)), Error);
    auto wide = a.view();
    wide.cols = std::int64_t{1} << 33;
    DistributeOptions streamed;
    streamed.mode = Mode::streamed;
    EXPECT_THROW(static_cast<void>(runtime_->distribute(wide, streamed)), Error);

    auto matrix = runtime_->distribute(a.view());
    auto x = matrix.make_x(Layout::replicated);
    auto y = matrix.make_y();
    EXPECT_THROW(matrix.apply(1.0, y, 0.0, y), Error);
    EXPECT_THROW(matrix.apply(1.0, x, 0.0, x), Error);
    Runtime other(options_for(GetParam()));
    auto foreign = other.distribute(a.view()).make_x(Layout::replicated);
    EXPECT_THROW(matrix.apply(1.0, foreign, 0.0, y), Error);
    x.fill(1.0);
    matrix.apply(1.0, x, 0.0, y);
    std::vector<double> out(2);
    y.download(out.data());
    EXPECT_DOUBLE_EQ(out[0], a.values[0]);
    EXPECT_DOUBLE_EQ(out[1], a.values[1] + a.values[2]);
}

INSTANTIATE_TEST_SUITE_P(Machines, Apply, testing::ValuesIn(machines()), machine_name);

TEST(Borrow, HostDevicesUseTheCallersArrays)
{
    RuntimeOptions runtime_options;
    runtime_options.devices = "host:3x1";
    Runtime runtime(runtime_options);
    auto a = with_row_lengths<double>({4, 900, 0, 3}, 1000);
    DistributeOptions options;
    options.borrow = true;
    options.alignment = RowAlignment::exact;
    auto matrix = runtime.distribute(a.view(), options);
    const auto x = random_vector<double>(a.cols, 13);
    std::vector<double> y(static_cast<std::size_t>(a.rows));
    for (auto& v : a.values) {
        v *= 2;
    }
    matrix.update_values(a.values.data());
    matrix.apply(1.0, x.data(), 0.0, y.data());
    EXPECT_TRUE(verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed);
    const std::vector<double> elsewhere(a.values.begin(), a.values.end());
    EXPECT_THROW(matrix.update_values(elsewhere.data()), Error);
}

TEST(Limits, OutOfDeviceMemoryLeavesTheRuntimeUsable)
{
    if (!have_gpus(1)) {
        GTEST_SKIP() << "needs 1 GPU";
    }
    RuntimeOptions runtime_options;
    runtime_options.devices = "0";
    Runtime runtime(runtime_options);
    const auto a = with_row_lengths<double>({1, 2}, 3);
    {
        // x and y of one device: 2^31 - 1 columns are 16 GiB each time; enough of them fill any card.
        auto wide = a.view();
        wide.cols = INT32_MAX;
        std::vector<DistributedMatrix<double>> held;
        try {
            for (int i = 0; i < 64; ++i) {
                held.push_back(runtime.distribute(wide));
            }
            FAIL() << "a card of more than 1 TiB?";
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::out_of_memory) << e.what();
        }
    }
    const auto x = random_vector<double>(a.cols, 14);
    std::vector<double> y(2);
    runtime.distribute(a.view()).apply(1.0, x.data(), 0.0, y.data());
    EXPECT_TRUE(verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed);
}

}  // namespace
}  // namespace rmsp::test
