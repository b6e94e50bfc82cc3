#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <stop_token>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "matrices.hpp"
#include "runtime/matrix/products.hpp"
#include "runtime/node/node.hpp"

// A product of a streamed matrix ends between its pieces where nobody wants it any more.
namespace rmsp::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double unwritten = std::numeric_limits<double>::quiet_NaN();

/// The code of the Error that f() throws; `internal` where it throws none.
ErrorCode ended_by(const std::function<void()>& f)
{
    try {
        f();
    } catch (const Error& e) {
        return e.code();
    }
    return ErrorCode::internal;
}

class StreamedStops : public RuntimeTest {
protected:
    StreamedStops() : a_(stencil27<double>(20, 20, sanitized ? 8 : 20)), columns_(static_cast<std::size_t>(a_.nnz()))
    {
        // Host devices stream wide columns in pieces.
        for (std::int64_t i = 0; i < a_.nnz(); ++i) {
            columns_[static_cast<std::size_t>(i)] = a_.col_idx[i];
        }
        x_ = random_vector<double>(a_.cols, 1);
        y_.assign(static_cast<std::size_t>(a_.rows), unwritten);
    }

    DistributedMatrix<double> distribute(std::int64_t chunk_bytes = 4096)
    {
        CsrView<double> view = a_.view();
        view.col_idx = columns_.data();
        return runtime_->distribute(
            view, {.alignment = RowAlignment::exact, .mode = Mode::streamed, .chunk_bytes = chunk_bytes});
    }

    void expect_right(DistributedMatrix<double>& matrix)
    {
        std::fill(y_.begin(), y_.end(), unwritten);
        matrix.apply(1.0, x_.data(), 0.0, y_.data());
        expect_right_y();
        auto x = matrix.make_x(Layout::rows);
        auto y = matrix.make_y();
        x.upload(x_.data());
        matrix.apply(1.0, x, 0.0, y);
        std::fill(y_.begin(), y_.end(), unwritten);
        y.download(y_.data());
        expect_right_y();
    }
    void expect_right_y()
    {
        EXPECT_TRUE(verify_spmv<double>(a_.view(), 1.0, x_.data(), 0.0, nullptr, y_.data()).passed);
    }
    std::int64_t written() const
    {
        return std::count_if(y_.begin(), y_.end(), [](double value) { return !std::isnan(value); });
    }

    CsrMatrix<double> a_;
    std::vector<std::int64_t> columns_;
    std::vector<double> x_;
    std::vector<double> y_;
};

TEST_P(StreamedStops, OneDeviceSeesTheStopAndTheJobEndsOnAll)
{
    auto matrix = distribute();
    const auto& state = detail::MatrixAccess::state(matrix);
    const int last = static_cast<int>(runtime_->devices().size()) - 1;
    for (const bool on_devices : {false, true}) {
        for (int repeat = 0; repeat < 2; ++repeat) {
            auto x = matrix.make_x(Layout::rows);
            auto y = matrix.make_y();
            x.upload(x_.data());
            y.fill(unwritten);
            std::fill(y_.begin(), y_.end(), unwritten);
            std::stop_source source;
            JobOptions options;
            options.stop = source.get_token();
            std::future<void> done;
            {
                const JobScope scope(options);
                distributed::Source<double> from{on_devices ? nullptr : x_.data(), nullptr};
                distributed::Target<double> to{on_devices ? nullptr : y_.data(), nullptr};
                if (on_devices) {
                    from.vector = detail::VectorAccess::state(x);
                    to.vector = detail::VectorAccess::state(y);
                }
                done = detail::RuntimeAccess::state(*runtime_)->submit(
                    [&, from, to](engine::Worker& worker, engine::Rendezvous& meeting) {
                        // The job has begun by then, on this device at least.
                        if (worker.rank() == last) {
                            source.request_stop();
                        }
                        distributed::apply_on(*state, worker, meeting, 1.0, from, 0.0, to, nullptr);
                    },
                    {}, distributed::product_terms(*state, !on_devices));
            }
            EXPECT_EQ(ended_by([&] { done.get(); }), ErrorCode::cancelled);
            if (on_devices) {
                y.download(y_.data());
            }
            // The last device queued nothing of its part; the others stopped where they were.
            EXPECT_LT(written(), a_.rows);
            expect_right(matrix);
        }
    }
}

TEST_P(StreamedStops, AStopInTheMiddleEndsTheProduct)
{
    auto matrix = distribute();
    bool in_the_middle = false;
    bool cancelled = false;
    // A machine that is busy may have done all of it before this thread gets its turn, or nothing yet.
    for (int wait = 0; wait < 200 && !in_the_middle; ++wait) {
        std::fill(y_.begin(), y_.end(), unwritten);
        std::stop_source source;
        JobOptions options;
        options.stop = source.get_token();
        auto done = matrix.apply_async(1.0, x_.data(), 0.0, y_.data(), options);
        std::this_thread::sleep_for(std::chrono::microseconds(200 * (wait % 20)));
        source.request_stop();
        const ErrorCode code = ended_by([&] { done.get(); });
        ASSERT_TRUE(code == ErrorCode::cancelled || code == ErrorCode::internal) << to_string(code);
        cancelled = cancelled || code == ErrorCode::cancelled;
        // Of GPUs the rows of y come back as one.
        in_the_middle = code == ErrorCode::cancelled && written() < a_.rows &&
                        (written() > 0 || runtime_->devices().front().kind == DeviceKind::cuda);
        if (code == ErrorCode::internal) {
            expect_right_y();
        }
        expect_right(matrix);
    }
    EXPECT_TRUE(cancelled);
    EXPECT_TRUE(in_the_middle);
}

TEST_P(StreamedStops, ADeadlineInTheMiddleEndsTheProduct)
{
    auto matrix = distribute();
    expect_right(matrix);
    const auto begin = Clock::now();
    matrix.apply(1.0, x_.data(), 0.0, y_.data());
    auto share = (Clock::now() - begin) / 2;
    ErrorCode code = ErrorCode::internal;
    for (int i = 0; i < 20 && code != ErrorCode::deadline; ++i, share /= 2) {
        JobOptions options;
        options.deadline = Clock::now() + share;
        code = ended_by([&] { matrix.apply_async(1.0, x_.data(), 0.0, y_.data(), options).get(); });
    }
    EXPECT_EQ(code, ErrorCode::deadline);
    expect_right(matrix);
}

TEST_P(StreamedStops, WhoMayStopWaitsForSlotsAndIsRight)
{
    // Few pieces, as many as slots, and many: nothing but the time may depend on who may stop a product.
    for (const std::int64_t chunk : {std::int64_t{1} << 30, std::int64_t{1} << 20, std::int64_t{8192}}) {
        auto matrix = distribute(chunk);
        std::stop_source source;
        JobOptions options;
        options.stop = source.get_token();
        std::fill(y_.begin(), y_.end(), unwritten);
        matrix.apply_async(1.0, x_.data(), 0.0, y_.data(), options).get();
        expect_right_y();
    }
}

INSTANTIATE_TEST_SUITE_P(Machines, StreamedStops, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
