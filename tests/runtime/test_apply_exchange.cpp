#include <chrono>
#include <cmath>
#include <future>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <runtime/node/node.hpp>

#include "apply_fixtures.hpp"
#include "delay.hpp"
#include "matrices.hpp"

/// Entries of x that other devices have, and how their columns are numbered.
namespace rmsp::test {
namespace {

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

TEST_P(Apply, OverlappedProductsAddEachRowOnce)
{
    if (GetParam().gpu_devices() < 2) {
        GTEST_SKIP() << "nothing is exchanged";
    }
    // An odd number of rows: the last slice of the last device is not full.
    const auto a = generate<double>("stencil27 63 63 107");
    const auto x = random_vector<double>(a.cols, 5);
    const auto before = random_vector<double>(a.rows, 6);
    for (const char* const kernel : {"sell", "csr-row-vector", "auto"}) {
        DistributeOptions options;
        options.kernel = kernel;
        options.exchange = Exchange::ranges;
        auto matrix = runtime_->distribute(a.view(), options);
        auto there_x = matrix.make_x(Layout::rows);
        auto there_y = matrix.make_y();
        there_x.upload(x.data());
        there_y.upload(before.data());
        matrix.apply(-1.0, there_x, 1.0, there_y);
        std::vector<double> y(before.size());
        there_y.download(y.data());
        const Verification v = verify_spmv<double>(a.view(), -1.0, x.data(), 1.0, before.data(), y.data());
        EXPECT_TRUE(v.passed) << kernel << ": row " << v.worst_row << ", error " << v.error;
    }
}

/// Without the entries right of the diagonal: the first device needs nothing of the others, so that nothing but what
/// tells it that they have read its x keeps it from going on.
CsrMatrix<double> lower_triangle(const CsrMatrix<double>& a)
{
    CsrMatrix<double> lower;
    lower.rows = a.rows;
    lower.cols = a.cols;
    lower.row_ptr = {0};
    HostVector<std::int32_t> columns;
    for (std::int64_t row = 0; row < a.rows; ++row) {
        for (auto i = a.row_ptr[static_cast<std::size_t>(row)]; i < a.row_ptr[static_cast<std::size_t>(row) + 1]; ++i) {
            if (const std::int64_t column = a.col_idx[i]; column <= row) {
                columns.push_back(static_cast<std::int32_t>(column));
                lower.values.push_back(a.values[static_cast<std::size_t>(i)]);
            }
        }
        lower.row_ptr.push_back(static_cast<std::int64_t>(lower.values.size()));
    }
    lower.col_idx = std::move(columns);
    return lower;
}

/// Products of a vector that is overwritten before each, all of them queued at once, while one device after the other
/// is late: none takes what a peer had before, or writes where one still reads.
TEST_P(Apply, DevicesThatAreLateAreWaitedFor)
{
    const int devices = GetParam().gpu_devices();
    if (devices < 2) {
        GTEST_SKIP() << "nothing is exchanged";
    }
    constexpr int products = 24;
    for (const std::string name :
         {"banded 5000 40", "random 30000 30000 12", "random 600000 600000 3", "lower banded 5000 40",
          "lower random 30000 30000 12", "lower random 600000 600000 6"}) {
        const bool lower = name.starts_with("lower ");
        const auto whole = generate<double>(lower ? name.substr(6) : name);
        const auto a = lower ? lower_triangle(whole) : whole;
        for (const Exchange exchange : {Exchange::ranges, Exchange::entries}) {
            DistributeOptions options;
            options.kernel = "csr-row-vector";
            options.exchange = exchange;
            auto matrix = runtime_->distribute(a.view(), options);
            std::vector<DistributedVector<double>> x;
            std::vector<std::vector<double>> expected;
            for (const int seed : {7, 8}) {
                x.push_back(matrix.make_x(Layout::rows));
                x.back().upload(random_vector<double>(a.cols, static_cast<unsigned>(seed)).data());
                auto y = matrix.make_y();
                matrix.apply(1.0, x.back(), 0.0, y);
                runtime_->synchronize();
                expected.emplace_back(static_cast<std::size_t>(a.rows));
                y.download(expected.back().data());
            }
            auto current = matrix.make_x(Layout::rows);
            std::vector<DistributedVector<double>> y;
            for (int i = 0; i < products; ++i) {
                y.push_back(matrix.make_y());
            }
            std::vector<std::future<void>> done;
            for (int i = 0; i < products; ++i) {
                done.push_back(detail::RuntimeAccess::state(*runtime_)->submit(
                    [late = i / 3 % devices](engine::Worker& worker, engine::Rendezvous&) {
                        if (worker.rank() == late) {
                            EXPECT_TRUE(queue_delay(worker.context().stream, std::chrono::microseconds(300)));
                        }
                    }));
                copy(x[static_cast<std::size_t>(i % 2)], current);
                done.push_back(matrix.apply_async(1.0, current, 0.0, y[static_cast<std::size_t>(i)]));
            }
            for (std::future<void>& one : done) {
                one.get();
            }
            for (int i = 0; i < products; ++i) {
                std::vector<double> out(static_cast<std::size_t>(a.rows));
                y[static_cast<std::size_t>(i)].download(out.data());
                EXPECT_TRUE(out == expected[static_cast<std::size_t>(i % 2)])
                    << name << ", exchange " << static_cast<int>(exchange) << ", product " << i;
            }
        }
    }
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

}  // namespace
}  // namespace rmsp::test
