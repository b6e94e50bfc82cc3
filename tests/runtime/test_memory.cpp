#include <chrono>
#include <functional>
#include <future>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <runtime/engine/memory_ledger.hpp>
#include <runtime/matrix/matrix_state.hpp>
#include <runtime/node/node.hpp>
#include <runtime/plan/placed_bytes.hpp>

#include "matrices.hpp"
#include "workers.hpp"

/// Admission by memory: what is placed was promised its bytes before, or waits, or is refused. Host devices, but where
/// the name says GPUs.
namespace rmsp::test {
namespace {

using engine::MemoryLedger;

RuntimeOptions host_devices(int devices, std::int64_t memory_limit = 0)
{
    RuntimeOptions options;
    options.devices = "host:" + std::to_string(devices) + "x1";
    options.bind = BindPolicy::none;
    options.memory_limit = memory_limit;
    return options;
}

/// The error's code and text.
std::pair<ErrorCode, std::string> error_of(const std::function<void()>& f)
{
    try {
        f();
    } catch (const Error& e) {
        return {e.code(), e.what()};
    }
    ADD_FAILURE() << "no error";
    return {ErrorCode::internal, ""};
}

std::vector<std::int64_t> resident(const Runtime& runtime)
{
    std::vector<std::int64_t> bytes;
    for (const DeviceMetrics& device : runtime.metrics().devices) {
        EXPECT_EQ(device.reserved_bytes, 0);
        EXPECT_GE(device.peak_bytes, device.resident_bytes);
        bytes.push_back(device.resident_bytes);
    }
    return bytes;
}

template <class Condition>
void wait_until(const Condition& holds)
{
    while (!holds()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

JobOptions waiting_options(Priority priority = Priority::normal)
{
    JobOptions options;
    options.when_no_memory = WhenFull::wait;
    options.priority = priority;
    return options;
}

/// A ledger of host devices.
struct Ledger {
    explicit Ledger(int devices, std::int64_t limit) : workers(engine::test::host_workers(devices))
    {
        std::vector<engine::LedgerDevice> all;
        for (const auto& worker : workers) {
            all.push_back(worker->device().for_ledger());
        }
        ledger = std::make_unique<MemoryLedger>(std::move(all), limit);
    }
    std::int64_t waiting() const
    {
        Metrics metrics;
        ledger->add_to(metrics);
        return metrics.memory_waiting;
    }
    std::shared_ptr<engine::Reservation> admit(std::vector<std::int64_t> bytes, const JobOptions* options = nullptr)
    {
        return ledger->admit("the matrix", bytes, true, options);
    }
    std::vector<std::unique_ptr<engine::Worker>> workers;
    std::unique_ptr<MemoryLedger> ledger;
};

TEST(MemoryLedger, ThreadsNeverGetTheSameBytes)
{
    Ledger it(2, 100);
    std::atomic<int> admitted{0};
    std::vector<std::shared_ptr<engine::Reservation>> kept(8);
    std::vector<std::thread> threads;
    for (auto& one : kept) {
        threads.emplace_back([&] {
            try {
                one = it.admit({10, 60});
                ++admitted;
            } catch (const Error& e) {
                EXPECT_EQ(e.code(), ErrorCode::out_of_memory);
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(admitted, 1);
    Metrics metrics;
    metrics.devices.resize(2);
    it.ledger->add_to(metrics);
    EXPECT_EQ(metrics.memory_refused, 7u);
    EXPECT_EQ(metrics.devices[0].reserved_bytes, 10);
    EXPECT_EQ(metrics.devices[1].reserved_bytes, 60);
    kept.clear();
    it.admit({100, 100});
}

TEST(MemoryLedger, WhatIsTakenComesFromThePromise)
{
    Ledger it(1, 100);
    const auto mine = it.admit({60});
    it.ledger->take(0, 50, mine.get());
    EXPECT_EQ(it.ledger->room(0), 40);
    // 10 that it has left, and 15 that nobody has.
    it.ledger->take(0, 25, mine.get());
    EXPECT_EQ(it.ledger->room(0), 25);
    EXPECT_THROW(it.ledger->take(0, 26, nullptr), Error);
    it.ledger->give_back(0, 50, mine.get());
    EXPECT_EQ(it.ledger->room(0), 40);
    it.ledger->extend(*mine, "a part", std::vector<std::int64_t>{45});
    EXPECT_EQ(it.ledger->room(0), 30);
    mine->release();
    EXPECT_EQ(it.ledger->room(0), 75);
    it.ledger->give_back(0, 25, nullptr);
    EXPECT_EQ(it.ledger->room(0), 100);
}

TEST(MemoryLedger, AsksTheDriverAgainWhereMuchIsWanted)
{
    constexpr std::int64_t mib = std::int64_t{1} << 20;
    std::int64_t free = 1000 * mib;
    int asked = 0;
    MemoryLedger ledger({{"cuda:0", 1000 * mib,
                          [&] {
                              ++asked;
                              return free;
                          }}},
                        0);
    const auto admit = [&](std::int64_t bytes) {
        return ledger.admit("the matrix", std::vector<std::int64_t>{bytes}, false, nullptr);
    };
    constexpr int requests = 1000;
    for (int i = 0; i < requests; ++i) {
        admit(mib);
    }
    EXPECT_GE(asked, 1);
    EXPECT_LT(asked, requests / 2);
    // Another process has taken most of it, a moment ago: what is wanted is no longer there, whatever was said then.
    free = 400 * mib;
    EXPECT_THROW(admit(600 * mib), Error);
    EXPECT_EQ(ledger.room(0), 368 * mib);
    // What the ledger itself knows of counts at once.
    ledger.take(0, 300 * mib, nullptr);
    free = 100 * mib;
    EXPECT_THROW(admit(80 * mib), Error);
    const auto kept = admit(60 * mib);
    EXPECT_THROW(admit(10 * mib), Error);
}

TEST(MemoryLedger, CountsWhatTheDriverHasNotGivenYet)
{
    constexpr std::int64_t mib = std::int64_t{1} << 20;
    std::int64_t free = 1000 * mib;
    MemoryLedger ledger({{"cuda:0", 1000 * mib, [&] { return free; }}}, 0);
    const auto admit = [&](std::int64_t bytes) {
        return ledger.admit("the matrix", std::vector<std::int64_t>{bytes}, false, nullptr);
    };
    ledger.take(0, 900 * mib, nullptr);
    const auto one = admit(20 * mib);  // the driver still says that all is free
    free = 100 * mib;
    ledger.obtained(0, 900 * mib);
    EXPECT_THROW(admit(60 * mib), Error);
    const auto other = admit(40 * mib);
    EXPECT_THROW(admit(10 * mib), Error);
}

TEST(MemoryLedger, ServesThoseWhoWaitByPriority)
{
    Ledger it(1, 100);
    auto first = it.admit({80});
    std::vector<std::future<std::shared_ptr<engine::Reservation>>> waiting;
    for (const Priority priority : {Priority::low, Priority::high}) {
        waiting.push_back(std::async(std::launch::async, [&it, priority] {
            const JobOptions options = waiting_options(priority);
            return it.admit({70}, &options);
        }));
        wait_until([&] { return it.waiting() == static_cast<std::int64_t>(waiting.size()); });
    }
    first->release();
    auto high = waiting[1].get();
    EXPECT_EQ(it.waiting(), 1);
    high->release();
    waiting[0].get();
    EXPECT_EQ(it.waiting(), 0);
}

TEST(MemoryLedger, EndsWaitingByStopDeadlineAndClose)
{
    Ledger it(1, 100);
    const auto held = it.admit({80});
    std::stop_source source;
    const auto wait_for = [&](JobOptions options) {
        return std::async(std::launch::async, [&it, options] { return error_of([&] { it.admit({30}, &options); }); });
    };
    JobOptions stopped = waiting_options();
    stopped.stop = source.get_token();
    auto cancelled = wait_for(stopped);
    auto closed = wait_for(waiting_options());
    wait_until([&] { return it.waiting() == 2; });
    source.request_stop();
    EXPECT_EQ(cancelled.get().first, ErrorCode::cancelled);
    JobOptions late = waiting_options();
    late.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
    const auto expired = wait_for(late).get();
    EXPECT_EQ(expired.first, ErrorCode::deadline);
    EXPECT_NE(expired.second.find("the matrix needs 30 bytes of host:0"), std::string::npos) << expired.second;
    it.ledger->close();
    EXPECT_EQ(closed.get().first, ErrorCode::usage);
    EXPECT_EQ(it.waiting(), 0);
    // What was promised before stays so.
    EXPECT_EQ(it.ledger->room(0), 20);
}

TEST(MemoryLedger, RefusesAtOnceWhatWillNeverFit)
{
    Ledger it(1, 100);
    const JobOptions options = waiting_options();
    const auto error = error_of([&] { it.admit({101}, &options); });
    EXPECT_EQ(error.first, ErrorCode::out_of_memory);
    EXPECT_NE(error.second.find("needs 101 bytes of host:0"), std::string::npos) << error.second;
    EXPECT_NE(error.second.find("100 are free"), std::string::npos) << error.second;
}

TEST(Memory, RefusedMatricesLeaveEverythingAsItWas)
{
    Runtime runtime(host_devices(2, 100000));
    const auto small = stencil7<double>(6, 5, 4);
    const auto large = stencil7<double>(20, 20, 20);
    auto matrix = runtime.distribute(small.view());
    const auto before = resident(runtime);
    const auto error = error_of([&] { (void)runtime.distribute(large.view()); });
    EXPECT_EQ(error.first, ErrorCode::out_of_memory);
    EXPECT_NE(error.second.find("the matrix needs "), std::string::npos) << error.second;
    EXPECT_NE(error.second.find("bytes of host:0"), std::string::npos) << error.second;
    EXPECT_NE(error.second.find("runtime.memory_limit is 100000"), std::string::npos) << error.second;
    EXPECT_EQ(error_of([&] { (void)runtime.distribute(large.view()).make_x(Layout::rows); }).first,
              ErrorCode::out_of_memory);
    EXPECT_EQ(resident(runtime), before);
    EXPECT_EQ(runtime.metrics().memory_refused, 2u);
    const auto x = random_vector<double>(small.cols, 1);
    std::vector<double> y(static_cast<std::size_t>(small.rows));
    matrix.apply(1.0, x.data(), 0.0, y.data());
    EXPECT_TRUE(verify_spmv<double>(small.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed);
}

TEST(Memory, TwoThreadsRaceForTheLastBytes)
{
    const auto a = stencil7<double>(10, 10, 10);
    DistributeOptions options;
    options.kernel = "csr-reference";
    std::int64_t bytes = 0;
    {
        Runtime runtime(host_devices(1));
        const auto matrix = runtime.distribute(a.view(), options);
        bytes = resident(runtime).front();
    }
    // Exactly one, which is promised no byte more than it takes.
    Runtime runtime(host_devices(1, bytes));
    std::vector<std::future<DistributedMatrix<double>>> both;
    for (int i = 0; i < 2; ++i) {
        both.push_back(std::async(std::launch::async, [&] { return runtime.distribute(a.view(), options); }));
    }
    std::vector<DistributedMatrix<double>> made;
    for (auto& one : both) {
        try {
            made.push_back(one.get());
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::out_of_memory);
        }
    }
    EXPECT_EQ(made.size(), 1u);
    EXPECT_EQ(resident(runtime).front(), bytes);
    made.clear();
    runtime.synchronize();
    EXPECT_EQ(resident(runtime).front(), 0);
}

TEST(Memory, AMatrixWaitsUntilThereIsRoom)
{
    const auto a = stencil7<double>(10, 10, 10);
    Runtime runtime(host_devices(2, a.nnz() * 8));
    auto first = std::make_unique<DistributedMatrix<double>>(runtime.distribute(a.view()));
    auto second = std::async(std::launch::async, [&] {
        const JobScope scope(waiting_options());
        return runtime.distribute(a.view());
    });
    wait_until([&] { return runtime.metrics().memory_waiting == 1; });
    first.reset();
    auto matrix = second.get();
    const auto x = random_vector<double>(a.cols, 1);
    std::vector<double> y(static_cast<std::size_t>(a.rows));
    matrix.apply(1.0, x.data(), 0.0, y.data());
    EXPECT_TRUE(verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed);
    // Nobody gives anything back now: draining ends the wait.
    auto third = std::async(std::launch::async, [&] {
        const JobScope scope(waiting_options());
        return error_of([&] { (void)runtime.distribute(a.view()); }).first;
    });
    wait_until([&] { return runtime.metrics().memory_waiting == 1; });
    runtime.drain();
    EXPECT_EQ(third.get(), ErrorCode::usage);
}

TEST(Memory, SolversVectorsAndProductsAreAdmittedToo)
{
    const auto a = stencil7<double>(10, 10, 10);
    const std::int64_t vector = a.rows * 8;
    Runtime runtime(host_devices(2, a.nnz() * 8 + 2 * vector));
    auto matrix = runtime.distribute(a.view());
    const auto before = resident(runtime);
    EXPECT_NE(error_of([&] { Solver<double> solver(matrix, {}); }).second.find("the solver needs"), std::string::npos);
    SolverOptions multigrid;
    multigrid.preconditioner = "amg";
    EXPECT_EQ(error_of([&] { Solver<double> solver(matrix, multigrid); }).first, ErrorCode::out_of_memory);
    std::vector<DistributedVector<double>> vectors;
    EXPECT_NE(error_of([&] {
                  while (true) {
                      vectors.push_back(matrix.make_x(Layout::rows));
                  }
              }).second.find("the vector needs 8000 bytes of host:0"),
              std::string::npos);
    vectors.clear();
    runtime.synchronize();
    EXPECT_EQ(resident(runtime), before);
    // Computed in runs, as there is no room for C.
    const CsrView<double> view = a.view();
    SparseProduct<double> product(runtime, view, view);
    product.compute(1.0);
    EXPECT_TRUE(product.plan().chunked());
}

/// What a matrix takes of each device against what was predicted, but for what the kernel keeps, which may lie there.
template <class View>
void expect_predicted(const View& a, DistributeOptions options, int devices)
{
    // Rows that devices share are filled up to whole lines.
    constexpr std::int64_t most_over = 1024;
    Runtime runtime(host_devices(devices));
    const Plan plan = runtime.plan(a, options);
    const auto predicted = plan::placed_bytes(plan, plan::stored(a), options, true, nullptr);
    const auto matrix = runtime.distribute(a, options);
    const auto placed = resident(runtime);
    for (std::size_t i = 0; i < placed.size(); ++i) {
        const std::int64_t kept = matrix.plan().shards[i].matrix_bytes - plan.shards[i].matrix_bytes;
        EXPECT_LE(placed[i], predicted[i] + kept) << "device " << i;
        EXPECT_GE(placed[i], predicted[i] - most_over) << "device " << i;
    }
}

TEST(Memory, PredictsWhatIsPlaced)
{
    std::vector<std::int64_t> lengths(300, 5);
    lengths[10] = 900;
    const auto a = with_row_lengths<double>(lengths, 400);
    const auto entries = shuffled(to_coo(a.view()));
    for (const int devices : {1, 2, 3}) {
        for (const bool transposed : {false, true}) {
            DistributeOptions options;
            options.transposed = transposed;
            options.kernel = "csr-reference";
            options.alignment = RowAlignment::exact;
            SCOPED_TRACE(std::to_string(devices) + (transposed ? " devices, transposed" : " devices"));
            expect_predicted(a.view(), options, devices);
            options.borrow = true;
            expect_predicted(a.view(), options, devices);
        }
        SCOPED_TRACE(devices);
        expect_predicted(a.view(), {}, devices);
        expect_predicted(transpose(a.view()), {}, devices);
        DistributeOptions unsorted;
        unsorted.unsorted = Unsorted::split;
        expect_predicted(entries.view(), unsorted, devices);
        expect_predicted(to_coo(a.view()).view(), {}, devices);
        DistributeOptions streamed;
        streamed.mode = Mode::streamed;
        expect_predicted(a.view(), streamed, devices);
    }
}

/// The same of a GPU, where a second matrix takes what the first one did: what a runtime or its transport makes once
/// stays.
template <class View>
void expect_predicted_on_gpu(Runtime& runtime, const View& a, DistributeOptions options)
{
    // Requests that are rounded up, to 512 bytes each, and rows that devices share.
    constexpr std::int64_t most_off = 32768;
    options.exchange = Exchange::ranges;  // lists of entries are not predicted
    const Plan plan = runtime.plan(a, options);
    const auto* const transport = detail::RuntimeAccess::state(runtime)->connection.transport.get();
    const auto most = plan::placed_bytes(plan, plan::stored(a), options, false, transport);
    // Without the caller's row pointers, which are there only until those of the device are made of them.
    options.row_pointers = RowPointers::host;
    const auto least = plan::placed_bytes(plan, plan::stored(a), options, false, transport);
    options.row_pointers = RowPointers::device;
    static_cast<void>(runtime.distribute(a, options));
    runtime.synchronize();  // the workers have let it go
    const auto before = resident(runtime);
    const auto matrix = runtime.distribute(a, options);
    runtime.synchronize();
    const auto placed = resident(runtime);
    for (std::size_t i = 0; i < placed.size(); ++i) {
        const std::int64_t kept = matrix.plan().shards[i].matrix_bytes - plan.shards[i].matrix_bytes;
        EXPECT_LE(placed[i] - before[i], most[i] + kept + most_off) << "device " << i;
        EXPECT_GE(placed[i] - before[i], least[i] - most_off) << "device " << i;
    }
}

/// On these GPUs.
void expect_predicted_on_gpus(const std::string& devices, const std::vector<std::string>& transports)
{
    SCOPED_TRACE(fmt::format("{} by {}", devices, fmt::join(transports, ", ")));
    std::vector<std::int64_t> lengths(60000, 5);
    lengths[2000] = 40000;
    const auto a = with_row_lengths<double>(lengths, 50000);
    RuntimeOptions on_gpus;
    on_gpus.devices = devices;
    on_gpus.transports = transports;
    Runtime runtime(on_gpus);
    for (const char* const kernel : {"csr-row-vector", "csr-nnz-split"}) {
        for (const bool transposed : {false, true}) {
            SCOPED_TRACE(std::string(kernel) + (transposed ? ", transposed" : ""));
            DistributeOptions options;
            options.kernel = kernel;
            options.transposed = transposed;
            options.alignment = RowAlignment::exact;
            expect_predicted_on_gpu(runtime, a.view(), options);
        }
    }
    SCOPED_TRACE("columns, and coordinates");
    expect_predicted_on_gpu(runtime, transpose(a.view()), {});
    expect_predicted_on_gpu(runtime, to_coo(a.view()).view(), {});
}

TEST(Memory, PredictsWhatIsPlacedOnAGpu)
{
    if (!have_gpus(1)) {
        GTEST_SKIP() << "needs a GPU";
    }
    expect_predicted_on_gpus("0", {});
}

TEST(Memory, PredictsWhatIsPlacedOnTwoGpus)
{
    if (!have_gpus(2)) {
        GTEST_SKIP() << "needs two GPUs";
    }
    for (const char* const transport : {"peer", "nccl", "host"}) {
        expect_predicted_on_gpus("0,1", {transport});
    }
}

}  // namespace
}  // namespace rmsp::test
