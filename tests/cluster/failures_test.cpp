#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/cluster/matrices.hpp"

namespace rmsp::test {
namespace {

/// What the call throws on this process; empty: nothing.
template <class F>
std::string error_of(F f)
{
    try {
        f();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

void expect_text(const std::string& text, const std::string& part)
{
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

class ClusterFailures : public testing::Test {
protected:
    Cluster cluster = make_cluster();
    const Whole<double> whole = grid<double>(10, 10);
    const Part<double> part = part_of(whole, uneven(100, cluster.size()), cluster.rank());
    const bool last = cluster.rank() == cluster.size() - 1;

    /// The cluster multiplies still.
    void expect_usable()
    {
        auto a = cluster.distribute(part.view, part.first);
        auto x = a.make_x();
        auto y = a.make_y();
        x.fill(1);
        a.apply(1, x, 0, y);
        double sum = 0;
        for (const double value : whole.values) {
            sum += value;
        }
        EXPECT_NEAR(cluster.dot(x, y), sum, 1e-9);
    }
};

TEST_F(ClusterFailures, OfRowsThatDoNotFit)
{
    auto rows = part.view;
    expect_text(error_of([&] { (void)cluster.distribute(rows, part.first + (last ? 1 : 0)); }), "from number");
    rows.cols = last ? 101 : 100;
    if (cluster.size() > 1) {
        expect_text(error_of([&] { (void)cluster.distribute(rows, part.first); }), "of 101");
    }
    expect_usable();
}

TEST_F(ClusterFailures, OfOneProcessIsNamedOnAll)
{
    // One has a column outside, in set-up: the others are waiting for its sizes.
    std::vector<std::int64_t> columns(100, 100);
    auto rows = part.view;
    if (last) {
        rows.col_idx = columns.data();
        rows.nnz = rows.rows;
        std::vector<std::int64_t> row_ptr;
        for (std::int64_t i = 0; i <= rows.rows; ++i) {
            row_ptr.push_back(i);
        }
        rows.row_ptr = row_ptr.data();
        expect_text(error_of([&] { (void)cluster.distribute(rows, part.first); }),
                    "process " + std::to_string(cluster.size() - 1));
    } else {
        expect_text(error_of([&] { (void)cluster.distribute(rows, part.first); }),
                    "process " + std::to_string(cluster.size() - 1));
    }
    expect_usable();
}

TEST_F(ClusterFailures, InAProductAreNamedOnAllThatNeedIt)
{
    auto a = cluster.distribute(part.view, part.first);
    auto x = a.make_x();
    auto y = a.make_y();
    x.fill(1);
    for (int i = 0; i < 3; ++i) {
        const std::string text = error_of([&] {
            a.apply(1, x, 0, last ? x : y);
            (void)cluster.dot(x, x);
        });
        expect_text(text, "process " + std::to_string(cluster.size() - 1) + " of");
        expect_text(text, "same vector");
    }
    expect_usable();
}

TEST_F(ClusterFailures, OfAFasterOneInItsNextCallLetASlowerOneEndTheCallBefore)
{
    if (cluster.size() < 3) {
        GTEST_SKIP() << "of three processes one is ahead, one waits, and one is late";
    }
    // The first has rows that need nothing of the last one's.
    auto a = cluster.distribute(part.view, part.first);
    auto x = a.make_x();
    auto y = a.make_y();
    x.fill(1);
    for (int i = 0; i < 5; ++i) {
        (void)cluster.dot(x, x);
        if (last) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
        EXPECT_EQ(error_of([&] { a.apply(1, x, 0, y); }), "");
        const std::string text = error_of([&] {
            a.apply(1, x, 0, cluster.rank() == 0 ? x : y);
            (void)cluster.dot(x, x);
        });
        expect_text(text, "process 0 of");
        expect_text(text, "same vector");
    }
    expect_usable();
}

TEST_F(ClusterFailures, InASolveAreNamedOnAll)
{
    auto a = cluster.distribute(part.view, part.first);
    SolverOptions options;
    options.method = "nonsense";
    expect_text(error_of([&] { ClusterSolver<double> solver(a, options); }), "nonsense");
    options.method = "cg";
    options.preconditioner = last ? "nonsense" : "jacobi";
    expect_text(error_of([&] { ClusterSolver<double> solver(a, options); }), "nonsense");
    options.preconditioner = "none";
    options.callback = [&](const SolverProgress&) -> bool {
        if (last) {
            throw Error(ErrorCode::io, "the callback failed");
        }
        return true;
    };
    ClusterSolver<double> solver(a, options);
    auto x = a.make_x();
    auto b = a.make_y();
    b.fill(1);
    x.fill(0);
    expect_text(error_of([&] { solver.solve(b, x); }), "the callback failed");
    expect_usable();
}

/// M = I, and fails on one process after some iterations.
class FailingPreconditioner : public Preconditioner<double> {
public:
    explicit FailingPreconditioner(bool fails) : fails_(fails) {}
    void append(Sequence& sequence, const Vec<double>& z, const Vec<double>& r) override
    {
        sequence.pass(z = r);
        sequence.call([this](const DeviceCall& call) {
            if (fails_ && call.device == 0 && ++calls_ == 7) {
                throw Error(ErrorCode::io, "the preconditioner failed");
            }
        });
    }
    std::string name() const override { return "failing"; }

private:
    const bool fails_;
    int calls_ = 0;
};

TEST_F(ClusterFailures, InAnIterationAreNamedOnAll)
{
    auto a = cluster.distribute(part.view, part.first);
    auto x = a.make_x();
    auto b = a.make_y();
    b.fill(1);
    // Those of cg_pipelined beside a sum that has begun.
    for (const char* const method : {"cg", "cg_pipelined", "cg_pipelined"}) {
        SCOPED_TRACE(method);
        SolverOptions options;
        options.method = method;
        ClusterSolver<double> solver(a, options, std::make_shared<FailingPreconditioner>(last));
        x.fill(0);
        const std::string text = error_of([&] { solver.solve(b, x); });
        expect_text(text, "process " + std::to_string(cluster.size() - 1) + " of");
        expect_text(text, "the preconditioner failed");
        expect_usable();
    }
}

TEST_F(ClusterFailures, OfOtherOptionsOfASolverAreNamed)
{
    if (cluster.size() == 1) {
        GTEST_SKIP() << "one process";
    }
    auto a = cluster.distribute(part.view, part.first);
    const auto expect_named = [&](const char* option, auto set) {
        SolverOptions options;
        if (last) {
            set(options);
        }
        const std::string text = error_of([&] { ClusterSolver<double> solver(a, options); });
        expect_text(text, option);
        expect_text(text, " differs");
        expect_text(text, "processes 0 and " + std::to_string(cluster.size() - 1));
    };
    expect_named("method", [](SolverOptions& o) { o.method = "bicgstab"; });
    expect_named("tolerance", [](SolverOptions& o) { o.tolerance = 1e-4; });
    expect_named("max_iterations", [](SolverOptions& o) { o.max_iterations = 7; });
    expect_named("relaxation", [](SolverOptions& o) { o.relaxation = 0.5; });
    expect_usable();
}

TEST_F(ClusterFailures, OfAMatrixOfOtherValuesAreNamed)
{
    // Floats on one process.
    if (cluster.size() == 1) {
        GTEST_SKIP() << "one process";
    }
    const auto floats = grid<float>(10, 10);
    const auto of_floats = part_of(floats, uneven(100, cluster.size()), cluster.rank());
    const std::string text = error_of([&] {
        if (last) {
            (void)cluster.distribute(of_floats.view, of_floats.first);
        } else {
            (void)cluster.distribute(part.view, part.first);
        }
    });
    expect_text(text, "values of");
    expect_usable();
}

TEST_F(ClusterFailures, OfAThreadThatDidNotInitialiseMpi)
{
    int threads = 0;
    MPI_Query_thread(&threads);
    if (threads != MPI_THREAD_FUNNELED) {
        GTEST_SKIP() << "MPI was initialised for more than MPI_THREAD_FUNNELED";
    }
    std::string text;
    std::thread([&] { text = error_of([&] { make_cluster(); }); }).join();
    expect_text(text, "belongs to the thread that initialised MPI");
    expect_usable();
}

TEST_F(ClusterFailures, OfDifferentCallsAreNamed)
{
    if (cluster.size() == 1) {
        GTEST_SKIP() << "one process";
    }
    auto a = cluster.distribute(part.view, part.first);
    auto x = a.make_x();
    x.fill(1);
    const std::string text = error_of([&] {
        if (last) {
            a.update_values(part.view.values);
        } else {
            (void)cluster.dot(x, x);
        }
    });
    expect_text(text, "different calls");
    expect_usable();
}

TEST_F(ClusterFailures, OfAProcessThatDoesNotComeEndWithTheTime)
{
    if (cluster.size() == 1) {
        GTEST_SKIP() << "one process";
    }
    {
        Cluster impatient = make_cluster("host:1", 0.3);
        auto a = impatient.distribute(part.view, part.first);
        auto x = a.make_x();
        auto y = a.make_y();
        x.fill(1);
        if (last) {
            std::this_thread::sleep_for(std::chrono::milliseconds(800));
        } else {
            const auto began = std::chrono::steady_clock::now();
            expect_text(error_of([&] { (void)impatient.dot(x, y); }), "waited 0.3 s");
            EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(), 5);
            expect_text(error_of([&] { (void)impatient.dot(x, y); }), "cannot be used any more");
            // The devices of this process are not concerned.
            DistributedVector<double> z = a.make_x();
            z.fill(2);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    expect_usable();
}

}  // namespace
}  // namespace rmsp::test
