#include <cmath>
#include <limits>
#include <utility>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "matrices.hpp"

namespace rmsp::test {
namespace {

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

/// The same matrix with 64-bit columns, which devices count from the first that their parts touch.
template <class T>
CsrMatrix<T> with_wide_columns(CsrMatrix<T> a)
{
    HostVector<std::int64_t> columns(a.col_idx.size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
        columns[i] = a.col_idx[static_cast<std::int64_t>(i)];
    }
    a.col_idx = IndexArray(std::move(columns));
    return a;
}

/// Entries that are all 1 where they have been read, in as much address space as there are, of which only that is used.
class Sparse {
public:
    explicit Sparse(std::int64_t n) : bytes_(static_cast<std::size_t>(n) * sizeof(float))
    {
        data_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    ~Sparse() { ::munmap(data_, bytes_); }
    Sparse(const Sparse&) = delete;
    Sparse& operator=(const Sparse&) = delete;
    float* data() const { return data_ == MAP_FAILED ? nullptr : static_cast<float*>(data_); }

private:
    std::size_t bytes_;
    void* data_;
};

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
    for (const char* kernel : {"csr-row-vector", "sell", "csr-nnz-split"}) {
        options.kernel = gpus ? kernel : "auto";
        check_host_apply(options.kernel.c_str(), a, options);
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

TEST_P(Apply, ColumnsNumberedAnewGiveTheSameProduct)
{
    for (const auto& [name, a] : hard_matrices<double>()) {
        for (const auto alignment : {RowAlignment::exact, RowAlignment::row}) {
            DistributeOptions options;
            options.alignment = alignment;
            options.exchange = Exchange::entries;
            check_host_apply(name, a, options);
            auto matrix = runtime_->distribute(a.view(), options);
            options.exchange = Exchange::ranges;
            auto other = runtime_->distribute(a.view(), options);
            const auto host = random_vector<double>(a.cols, 15);
            // x by rows with room for the ghosts and without, and x of all entries.
            for (auto x :
                 {matrix.make_x(Layout::rows), other.make_x(Layout::rows), matrix.make_x(Layout::replicated)}) {
                x.upload(host.data());
                auto y = matrix.make_y();
                auto expected = other.make_y();
                for (int round = 0; round < 3; ++round) {
                    static_cast<void>(matrix.apply_async(1.0, x, round == 0 ? 0.0 : 1.0, y));
                    static_cast<void>(other.apply_async(1.0, x, round == 0 ? 0.0 : 1.0, expected));
                }
                std::vector<double> out(static_cast<std::size_t>(a.rows));
                std::vector<double> reference(out.size());
                y.download(out.data());
                expected.download(reference.data());
                for (std::size_t i = 0; i < out.size(); ++i) {
                    ASSERT_NEAR(out[i], reference[i], 1e-10 * (100 + std::fabs(reference[i]))) << name << ", row " << i;
                }
            }
        }
    }
}

TEST_P(Apply, WideColumnsGiveTheSameProduct)
{
    for (const auto& [name, narrow] : hard_matrices<double>()) {
        const auto a = with_wide_columns(narrow);
        for (const auto exchange : {Exchange::ranges, Exchange::entries}) {
            DistributeOptions options;
            options.alignment = RowAlignment::exact;
            options.exchange = exchange;
            check_host_apply(name, a, options);
            auto matrix = runtime_->distribute(a.view(), options);
            const auto host = random_vector<double>(a.cols, 17);
            for (const auto layout : {Layout::rows, Layout::replicated}) {
                auto x = matrix.make_x(layout);
                auto y = matrix.make_y();
                x.upload(host.data());
                static_cast<void>(matrix.apply_async(2.0, x, 0.0, y));
                std::vector<double> out(static_cast<std::size_t>(a.rows));
                y.download(out.data());
                EXPECT_TRUE(verify_spmv<double>(a.view(), 2.0, host.data(), 0.0, nullptr, out.data()).passed) << name;
            }
        }
        // A^T x adds into the columns.
        auto wide = runtime_->distribute(a.view());
        auto other = runtime_->distribute(narrow.view());
        const auto x = random_vector<double>(a.rows, 18);
        std::vector<double> y(static_cast<std::size_t>(a.cols), 1.0);
        std::vector<double> expected(y);
        wide.apply_transposed(1.0, x.data(), 0.5, y.data());
        other.apply_transposed(1.0, x.data(), 0.5, expected.data());
        for (std::size_t i = 0; i < y.size(); ++i) {
            ASSERT_NEAR(y[i], expected[i], 1e-10 * (100 + std::fabs(expected[i]))) << name << ", column " << i;
        }
    }
}

TEST_P(Apply, MoreColumnsThanFitIn32Bits)
{
    const int devices = static_cast<int>(runtime_->devices().size());
    if (GetParam().gpus > 0 || devices < 2) {
        GTEST_SKIP() << "host devices read x where it is";
    }
    // Each row has entries far from those of the others.
    CsrMatrix<float> a;
    a.rows = 2L * devices;
    a.cols = std::int64_t{1} << 32;
    const Sparse x(a.cols);
    ASSERT_NE(x.data(), nullptr);
    HostVector<std::int64_t> columns;
    a.row_ptr.push_back(0);
    for (std::int64_t row = 0; row < a.rows; ++row) {
        for (std::int64_t k = 0; k < 3; ++k) {
            columns.push_back(row * (a.cols / a.rows) + 1000 * k);
            a.values.push_back(static_cast<float>(columns.size()));
            x.data()[columns.back()] = 1;
        }
        a.row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
    }
    a.col_idx = IndexArray(HostVector<std::int64_t>(columns));
    DistributeOptions options;
    options.alignment = RowAlignment::row;
    auto matrix = runtime_->distribute(a.view(), options);
    std::vector<float> y(static_cast<std::size_t>(a.rows), 99);
    matrix.apply(1.0F, x.data(), 0.0F, y.data());
    for (std::int64_t row = 0; row < a.rows; ++row) {
        EXPECT_EQ(y[static_cast<std::size_t>(row)], static_cast<float>(9 * row + 6)) << "row " << row;
    }
    options.exchange = Exchange::entries;
    EXPECT_NE(usage_message([&] { static_cast<void>(runtime_->distribute(a.view(), options)); }).find("by entries"),
              std::string::npos);
    options.exchange = Exchange::automatic;
    options.mode = Mode::streamed;
    EXPECT_NE(
        usage_message([&] { static_cast<void>(runtime_->distribute(a.view(), options)); }).find("4294967296 columns"),
        std::string::npos);
    // One device's part touches more of them.
    columns[1] += std::int64_t{1} << 31;
    std::swap(columns[1], columns[2]);
    a.col_idx = IndexArray(HostVector<std::int64_t>(columns));
    EXPECT_NE(usage_message([&] { runtime_->plan(a.view()); }).find("the part of device 0 has entries in columns 0 to"),
              std::string::npos);
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

TEST_P(Apply, OwnColumnsBeforeTheOthers)
{
    if (GetParam().gpu_devices() < 2) {
        GTEST_SKIP() << "nothing is exchanged";
    }
    // Each device needs so many entries of the others that it multiplies by its own columns while they come; and by
    // some of the others', which come first, where these are popular.
    auto a = random_uniform<float>(6'000'000, 6'000'000, 3);
    DistributeOptions options;
    options.exchange = Exchange::entries;
    for (const auto& [hubs, kernel] : std::vector<std::pair<std::int64_t, const char*>>{
             {0, "column-blocks"}, {100'000, "column-blocks"}, {1000, "column-blocks"}, {1000, "csr-row-vector"}}) {
        a.col_idx.visit([&, hubs = hubs](auto& columns) {
            using Column = std::remove_cvref_t<decltype(columns[0])>;
            for (std::int64_t row = 0; hubs > 0 && row < a.rows; ++row) {
                columns[static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(row)])] =
                    static_cast<Column>(row % hubs * (a.cols / hubs));
            }
        });
        options.kernel = kernel;
        auto matrix = runtime_->distribute(a.view(), options);
        ASSERT_GT(matrix.plan().shards[0].halo_entries, 6 << 18);
        for (const Layout layout : {Layout::rows, Layout::replicated}) {
            auto x = matrix.make_x(layout);
            auto y = matrix.make_y();
            std::vector<float> out(static_cast<std::size_t>(a.rows));
            for (const unsigned seed : {1U, 2U}) {
                const auto host = random_vector<float>(a.cols, seed);
                x.upload(host.data());
                static_cast<void>(matrix.apply_async(2.0F, x, 0.0F, y));
                y.download(out.data());
                EXPECT_TRUE(verify_spmv<float>(a.view(), 2.0F, host.data(), 0.0F, nullptr, out.data()).passed)
                    << hubs << " hubs, " << kernel;
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

TEST_P(Apply, NewValuesOfColumnsNumberedAnew)
{
    auto a = with_row_lengths<float>({10, 0, 500, 20, 3, 1, 70, 70, 70}, 9);
    DistributeOptions options;
    options.alignment = RowAlignment::exact;
    options.exchange = Exchange::entries;
    auto matrix = runtime_->distribute(a.view(), options);
    const auto values = random_vector<float>(a.nnz(), 101);
    std::copy(values.begin(), values.end(), a.values.begin());
    matrix.update_values(a.values.data());
    auto x = matrix.make_x(Layout::rows);
    auto y = matrix.make_y();
    const auto host = random_vector<float>(a.cols, 8);
    x.upload(host.data());
    matrix.apply(1.0F, x, 0.0F, y);
    std::vector<float> out(static_cast<std::size_t>(a.rows));
    y.download(out.data());
    EXPECT_TRUE(verify_spmv<float>(a.view(), 1.0F, host.data(), 0.0F, nullptr, out.data()).passed);
    const bool exchanged = GetParam().gpu_devices() > 1;
    EXPECT_EQ(matrix.plan().exchange, runtime_->devices().size() > 1 ? "entries" : "none");
    if (exchanged) {
        EXPECT_LT(matrix.plan().shards[0].halo_entries, 9);
    }
}

/// Products whose x is exchanged, queued one after the other, against those with x on every device.
void exchange_again_and_again(Runtime& runtime, const CsrMatrix<double>& a, const DistributeOptions& options)
{
    auto matrix = runtime.distribute(a.view(), options);
    std::vector<double> host = random_vector<double>(a.cols, 6);
    auto x = matrix.make_x(Layout::rows);
    auto y = matrix.make_y();
    auto all = matrix.make_x(Layout::replicated);
    x.upload(host.data());
    all.upload(host.data());
    auto expected = matrix.make_y();
    for (int step = 0; step < 20; ++step) {
        static_cast<void>(matrix.apply_async(0.1, all, 0.0, expected));
        static_cast<void>(matrix.apply_async(0.1, x, 0.0, y));
        std::swap(x, y);
        std::vector<double> one(host.size());
        std::vector<double> other(host.size());
        x.download(one.data());
        expected.download(other.data());
        ASSERT_EQ(one, other) << "step " << step;
        all.upload(one.data());
    }
    // Without anybody who waits: as if each product had been waited for.
    x.upload(host.data());
    all.upload(host.data());
    for (int step = 0; step < 100; ++step) {
        static_cast<void>(matrix.apply_async(0.1, x, 0.0, y));
        std::swap(x, y);
    }
    for (int step = 0; step < 100; ++step) {
        static_cast<void>(matrix.apply_async(0.1, all, 0.0, expected));
        expected.download(host.data());
        all.upload(host.data());
    }
    std::vector<double> one(host.size());
    x.download(one.data());
    ASSERT_EQ(one, host);
}

TEST_P(Apply, OverlappedExchangesGiveTheSameBits)
{
    if (GetParam().gpu_devices() < 2) {
        GTEST_SKIP() << "nothing is exchanged";
    }
    // Large enough for every device to have interior rows that are worth a stream of their own.
    exchange_again_and_again(*runtime_, generate<double>("stencil27 90 90 90"), {});
}

TEST_P(Apply, SmallExchangesGiveTheSameBits)
{
    if (GetParam().gpu_devices() < 2) {
        GTEST_SKIP() << "nothing is exchanged";
    }
    const auto a = generate<double>("banded 5000 40");
    DistributeOptions options;
    options.kernel = "csr-row-vector";
    options.exchange = Exchange::ranges;
    exchange_again_and_again(*runtime_, a, options);
    options.exchange = Exchange::entries;
    exchange_again_and_again(*runtime_, a, options);
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
    auto matrix = runtime_->distribute(a.view(), options);
    const auto x = random_vector<double>(a.cols, 10);
    std::vector<double> first(static_cast<std::size_t>(a.rows));
    matrix.apply(1.0, x.data(), 0.0, first.data());
    for (int i = 0; i < 20; ++i) {
        std::vector<double> again(first.size());
        matrix.apply(1.0, x.data(), 0.0, again.data());
        EXPECT_EQ(first, again);
    }
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
