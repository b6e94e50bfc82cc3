#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/solver.hpp>

#include "runtime/solvers/choose_method.hpp"
#include "runtime/solvers/solver_state.hpp"
#include "solver_fixtures.hpp"

/// Which variant of conjugate gradients "auto" is.
namespace rmsp::test {
namespace {

using solvers::choose;
using solvers::StepFacts;

StepFacts facts(double product, double entries, int devices)
{
    StepFacts f;
    f.product_seconds = product;
    f.entries_seconds = entries;
    f.devices = devices;
    f.costs = solvers::peer_costs;
    return f;
}

TEST(ChooseMethod, TakesTheSimplestWhereBytesDecide)
{
    const MethodChoice one = choose(facts(300e-6, 30e-6, 1), Determinism::none);
    EXPECT_EQ(one.method, "cg");
    ASSERT_EQ(one.candidates.size(), 3u);
    EXPECT_EQ(one.candidates[0].sum_seconds, 0);
    EXPECT_GT(one.candidates[1].seconds, one.candidates[0].seconds);
    EXPECT_EQ(choose(facts(300e-6, 30e-6, 4), Determinism::none).method, "cg");
}

TEST(ChooseMethod, SavesSumsWhereTheyDecide)
{
    // Sums of 30 us, over devices that have next to nothing to do.
    StepFacts f = facts(6e-6, 0.05e-6, 4);
    f.costs = solvers::copy_costs;
    EXPECT_EQ(choose(f, Determinism::none).method, "cg_single");
    // Over processes, where a sum beside the product is worth more iterations, unless there is a lot to move.
    StepFacts far = facts(100e-6, 0.5e-6, 1);
    far.processes = true;
    far.outside_seconds = 2e-3;
    EXPECT_EQ(choose(far, Determinism::none).method, "cg_pipelined");
    far.entries_seconds = 1e-3;
    EXPECT_EQ(choose(far, Determinism::none).method, "cg");
}

TEST(ChooseMethod, SaysWhatIsFasterAndNotTaken)
{
    // Once a product is long, a sum beside it costs nothing, and not enough is won to take more iterations for it.
    StepFacts f = facts(100e-6, 0.1e-6, 1);
    f.processes = true;
    f.outside_seconds = 20e-6;
    const MethodChoice choice = choose(f, Determinism::none);
    EXPECT_EQ(choice.method, "cg_single");
    EXPECT_NE(choice.reason.find("cg_pipelined is not taken"), std::string::npos) << choice.reason;
}

TEST(ChooseMethod, IsTheSameOnAnyNumberOfDevicesWhereThatIsAskedFor)
{
    for (const int devices : {1, 2, 4}) {
        StepFacts f = facts(6e-6, 0, devices);
        f.costs = solvers::copy_costs;
        EXPECT_EQ(choose(f, Determinism::device_count).method, "cg");
    }
}

TEST(ChooseMethod, NeedsATimeOfEachVariant)
{
    EXPECT_THROW(choose_method(std::vector<MethodCandidate>(2)), Error);
    EXPECT_THROW(choose_method(std::vector<MethodCandidate>(3)), Error);
    std::vector<MethodCandidate> candidates(3);
    for (std::size_t i = 0; i < 3; ++i) {
        candidates[i].method = solvers::step_models[i].method;
        candidates[i].seconds = 1.0;
    }
    EXPECT_EQ(choose_method(candidates).method, "cg");
    candidates[1].seconds = 0.9;
    candidates[2].seconds = 0.65;
    EXPECT_EQ(choose_method(candidates).method, "cg_single");
    candidates[2].seconds = 0.5;
    EXPECT_EQ(choose_method(candidates).method, "cg_pipelined");
}

class ChosenMethod : public SolverTest {};

/// The numbers of step_models are what is recorded.
TEST_P(ChosenMethod, IsWeighedByWhatSequencesCount)
{
    const auto a = poisson<double>(6);
    auto matrix = runtime_->distribute(a.view());
    if (matrix.plan().shards.front().device_name.starts_with("cuda")) {
        GTEST_SKIP() << "a product of GPUs may leave inner products, which are then not counted";
    }
    Sequence product{Scalars(*runtime_)};
    product.multiply(matrix, Vec<double>(matrix.make_x(Layout::rows)), Vec<double>(matrix.make_y()));
    for (const solvers::StepModel& model : solvers::step_models) {
        for (const bool preconditioned : {false, true}) {
            SCOPED_TRACE(std::string(model.method) + (preconditioned ? ", preconditioned" : ""));
            auto options = std::make_shared<SolverOptions>();
            options->method = model.method;
            // Work of its own, which is taken away again.
            std::shared_ptr<Preconditioner<double>> m;
            if (preconditioned) {
                m = make_preconditioner<double>(matrix,
                                                [](const DeviceCall&, std::span<const double>, std::span<double>) {});
            }
            const detail::SolverState<double> state(matrix, options, m);
            double bytes = 0;
            double stages = 0;
            for (const Sequence& step : state.recipe.cycle) {
                bytes += static_cast<double>(step.bytes());
                stages += static_cast<double>(detail::SequenceAccess::state(step)->stages.size());
            }
            const auto turn = static_cast<double>(state.recipe.cycle.size());
            const double entries = (bytes / turn - model.products * static_cast<double>(product.bytes())) /
                                   (8.0 * static_cast<double>(a.rows));
            const int expected = model.entries + (preconditioned ? model.more_entries : 0);
            EXPECT_NEAR(entries, expected, model.beside ? 0.5 : 1e-9);
            // A product, M, and the end of a pass that is split.
            const int passes = model.passes + (preconditioned ? model.more_passes : 0);
            EXPECT_NEAR(stages / turn, passes + 1 + (preconditioned ? 1 : 0) + (model.beside ? 1 : 0),
                        model.beside ? 0.2 : 1e-9);
        }
    }
}

TEST_P(ChosenMethod, SolvesAndIsSaid)
{
    const auto a = poisson<double>(8);
    auto matrix = runtime_->distribute(a.view());
    SolverOptions options;
    options.method = "auto";
    const Solver<double> solver(matrix, options);
    const MethodChoice& choice = solver.choice();
    EXPECT_EQ(solver.options().method, choice.method);
    EXPECT_EQ(choice.candidates.size(), 3u);
    EXPECT_FALSE(choice.reason.empty());
    EXPECT_EQ(choose_method(*runtime_, matrix.plan(), options).method, choice.method);
    const auto b = random_vector<double>(a.rows, 4);
    std::vector<double> x(b.size(), 0.0);
    const SolveResult result = Solver<double>(solver).solve(b.data(), x.data());
    EXPECT_TRUE(result.converged()) << result.reason;
    EXPECT_EQ(result.method, choice.method);

    options.method = "minres";
    EXPECT_EQ(Solver<double>(matrix, options).choice().method, "minres");
    EXPECT_TRUE(Solver<double>(matrix, options).choice().candidates.empty());
    DistributeOptions same;
    same.determinism = Determinism::device_count;
    options.method = "auto";
    EXPECT_EQ(Solver<double>(runtime_->distribute(a.view(), same), options).choice().method, "cg");
}

TEST_P(ChosenMethod, NeedsASquareMatrix)
{
    CsrMatrix<double> wide;
    wide.rows = 1;
    wide.cols = 2;
    wide.row_ptr = {0, 1};
    wide.col_idx = HostVector<std::int32_t>{0};
    wide.values = {1.0};
    auto matrix = runtime_->distribute(wide.view());
    SolverOptions options;
    options.method = "auto";
    EXPECT_THROW(Solver<double>(matrix, options), Error);
}

INSTANTIATE_TEST_SUITE_P(All, ChosenMethod, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
