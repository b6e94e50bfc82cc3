#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <rmsp/io.hpp>

#include "tests/apps/program.hpp"

namespace {

using nlohmann::json;
using rmsp::test::mspmv;
using rmsp::test::Outcome;
using rmsp::test::Scratch;
using testing::HasSubstr;

/// A small Poisson matrix; later words count.
std::vector<std::string> words_with(const std::vector<std::string>& more)
{
    std::vector<std::string> words{
        "solve", "configs/solve.toml", "--devices", "host:2x1", "--set", "matrix.generate=stencil7 8 7 6"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}
Outcome solve(const std::vector<std::string>& more) { return mspmv(words_with(more)); }

json benchmark_of(const Outcome& outcome)
{
    EXPECT_EQ(outcome.err.find("internal"), std::string::npos) << outcome.err;
    return json::parse(outcome.out).at("benchmarks").at(0);
}

void expect_refused(int exit_code, const std::string& message, const std::vector<std::string>& more)
{
    const Outcome outcome = solve(more);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("mspmv: error: "));
    EXPECT_THAT(outcome.err, HasSubstr(message));
    EXPECT_EQ(outcome.out, "");
}

TEST(Solve, JsonHasWhatTheTableHas)
{
    const Outcome outcome = solve({"--json", "-"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const json all = json::parse(outcome.out);
    EXPECT_EQ(all.at("context").at("solver").at("method"), "cg");
    EXPECT_EQ(all.at("context").at("plan").at("rows"), 336);
    const json& run = all.at("benchmarks").at(0);
    EXPECT_EQ(run.at("name"), "solve/cg/none/double");
    EXPECT_EQ(run.at("outcome"), "converged");
    const auto iterations = run.at("solver_iterations").get<std::size_t>();
    EXPECT_GT(iterations, 5U);
    EXPECT_EQ(run.at("residual_history").size(), iterations + 1);
    EXPECT_LE(run.at("true_residual").get<double>(), 1.01 * run.at("target_residual").get<double>());
    EXPECT_LT(run.at("solution_error").get<double>(), 1e-6);
    EXPECT_GT(run.at("iteration_time").get<double>(), 0);
    EXPECT_GT(run.at("iteration_bytes").get<double>(), 336 * 80);
    EXPECT_GE(run.at("share_of_limit").get<double>(), 0);
    EXPECT_THAT(outcome.err, HasSubstr("an iteration at least, "));
    EXPECT_THAT(outcome.err, HasSubstr("  outcome     converged after "));
    EXPECT_THAT(outcome.err, HasSubstr("log10"));
    EXPECT_FALSE(all.at("context").contains("multigrid"));
    // What is not known is not there.
    EXPECT_TRUE(benchmark_of(solve({"--rhs", "ones", "--json", "-"})).at("solution_error").is_null());
}

TEST(Solve, AutomaticMethodIsSaidWithItsReason)
{
    const Outcome outcome = solve({"--method", "auto", "--json", "-"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const json all = json::parse(outcome.out);
    const json& solver = all.at("context").at("solver");
    const std::string method = solver.at("method");
    EXPECT_EQ(all.at("benchmarks").at(0).at("name"), "solve/" + method + "/none/double");
    ASSERT_EQ(solver.at("method_candidates").size(), 3U);
    EXPECT_EQ(solver.at("method_candidates").at(0).at("method"), "cg");
    EXPECT_GT(solver.at("method_candidates").at(0).at("vector_seconds"), 0);
    EXPECT_THAT(outcome.err, HasSubstr("Solver        " + method + ", preconditioner none"));
    EXPECT_THAT(outcome.err, HasSubstr("  chosen      an iteration is expected to take: cg "));
    // A plan says the same.
    const Outcome plan = solve({"--method", "auto", "--dry-run"});
    EXPECT_THAT(plan.out, HasSubstr("  chosen      an iteration is expected to take: cg "));
    EXPECT_THAT(solve({"--dry-run"}).out, testing::Not(HasSubstr("chosen")));
}

TEST(Solve, MultigridSaysItsLevels)
{
    const Outcome outcome = mspmv({"solve", "configs/multigrid.toml", "--devices", "host:2x1", "--set",
                                   "matrix.generate=stencil7 9 9 9", "--json", "-"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const json all = json::parse(outcome.out);
    const json& multigrid = all.at("context").at("multigrid");
    ASSERT_GE(multigrid.at("levels").size(), 2U);
    EXPECT_EQ(multigrid.at("levels").at(0).at("rows"), 729);
    EXPECT_GT(multigrid.at("levels").at(0).at("interpolation_nonzeros"), 0);
    EXPECT_GT(multigrid.at("operator_complexity"), 1);
    EXPECT_TRUE(multigrid.at("setup_seconds").contains("galerkin"));
    EXPECT_EQ(all.at("benchmarks").at(0).at("outcome"), "converged");
    EXPECT_LT(all.at("benchmarks").at(0).at("solver_iterations"), 20);
    EXPECT_THAT(outcome.err, HasSubstr("hierarchy   operator complexity"));
    EXPECT_THAT(outcome.err, HasSubstr("nonzeros of P"));
}

TEST(Solve, VectorsGoThroughFiles)
{
    const Scratch scratch;
    ASSERT_EQ(solve({"--rhs", "random", "-o", scratch / "x.npy"}).exit_code, 0);
    const auto x = rmsp::read_vector<double>(scratch / "x.npy");
    ASSERT_EQ(x.size(), 336U);
    // From the solution nothing is left to do, whatever file it comes from; mspmv convert reads what was written.
    const Outcome again =
        solve({"--rhs", "random", "--guess", scratch / "x.npy", "--json", "-", "-o", scratch / "y.mtx.gz"});
    EXPECT_EQ(benchmark_of(again).at("solver_iterations"), 0);
    EXPECT_EQ(rmsp::read_vector<double>(scratch / "y.mtx.gz"), x);
    EXPECT_EQ(mspmv({"convert", scratch / "y.mtx.gz", scratch / "y.npz"}).exit_code, 0);
    EXPECT_EQ(rmsp::read_vector<double>(scratch / "y.npz"), x);
    // A right-hand side from a file, and a solution of floats.
    const Outcome floats = solve({"--rhs", scratch / "x.npy", "--precision", "float", "--tolerance", "1e-4", "-o",
                                  scratch / "z.npy", "--json", "-"});
    EXPECT_EQ(floats.exit_code, 0) << floats.err;
    EXPECT_EQ(json::parse(floats.out).at("context").at("plan").at("precision"), "float");
    EXPECT_EQ(rmsp::read_vector<float>(scratch / "z.npy").size(), 336U);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 4);
}

TEST(Solve, SaysWhatIsWrong)
{
    const Scratch scratch;
    rmsp::write_vector<double>(scratch / "short.npy", std::vector<double>{1, 2, 3});
    expect_refused(3, "short.npy: solver.rhs has 3 entries, but the matrix has 336 rows",
                   {"--rhs", scratch / "short.npy"});
    expect_refused(3, "short.npy: solver.guess has 3 entries, but the matrix has 336 columns",
                   {"--guess", scratch / "short.npy"});
    expect_refused(3, "no-such.npy", {"--rhs", scratch / "no-such.npy"});
    std::ofstream(scratch / "bad.mtx") << "%%MatrixMarket matrix array real general\n2 1\n1\nx\n";
    expect_refused(3, "bad.mtx:4:1", {"--rhs", scratch / "bad.mtx"});
    expect_refused(2, "solver.method is \"no-such-method\", but must be", {"--method", "no-such-method"});
    expect_refused(2, "solver.preconditioner is \"no-such\"", {"--preconditioner", "no-such"});
    expect_refused(2, "does not end in one of .npy", {"-o", scratch / "x.txt"});
    expect_refused(3, "x.npy: cannot create", {"-o", scratch / "no-such-folder/x.npy"});
    expect_refused(2, "--rhs: must not be empty", {"--rhs", ""});
    expect_refused(2, "solver.tolerance is -1", {"--tolerance", "-1"});
    expect_refused(2, "the nearest known key is \"solver.max_iterations\"", {"--set", "solver.max_iteration=5"});
    expect_refused(2, "matrix.format is \"csc\"", {"--set", "matrix.format=csc"});
    expect_refused(2, "square matrix; this one is 20 x 30",
                   {"--set", "matrix.generate=random 20 30 4", "--set", "matrix.values=random"});
    const std::string config = scratch / "bad.toml";
    std::ofstream(config) << "[matrix]\ngenerate = \"rmat 4 2\"\n[solver]\nmethod = \"no-such-method\"\n";
    const Outcome outcome = mspmv({"solve", config});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(config + ":4:"));
}

TEST(Solve, PreconditionersAreTaken)
{
    const auto iterations = [](const std::string& preconditioner) {
        const Outcome outcome =
            solve({"--rhs", "random", "--preconditioner", preconditioner, "--set", "solver.degree=3", "--json", "-"});
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        const json all = json::parse(outcome.out);
        EXPECT_EQ(all.at("context").at("solver").at("preconditioner"), preconditioner);
        EXPECT_EQ(all.at("benchmarks").at(0).at("name"), "solve/cg/" + preconditioner + "/double");
        return all.at("benchmarks").at(0).at("solver_iterations").get<int>();
    };
    const int without = iterations("none");
    EXPECT_LT(iterations("schwarz-ic0"), without);
    EXPECT_LT(iterations("fsai"), without);
    EXPECT_LT(iterations("polynomial"), without);
    const std::vector<std::string> blocks{"--preconditioner", "block-jacobi", "--set", "solver.block_size=33"};
    EXPECT_EQ(solve(blocks).exit_code, 2);
}

TEST(Solve, AnInnerSolverOfLowerPrecisionIsRefined)
{
    const std::vector<std::string> refine{
        "--method", "ir",     "--set", "solver.inner=cg", "--set", "solver.inner_iterations=20", "--rhs",
        "A*x",      "--json", "-"};
    const Outcome outcome = solve(refine);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(json::parse(outcome.out).at("context").at("solver").at("preconditioner"), "cg in float");
    const json run = benchmark_of(outcome);
    EXPECT_LE(run.at("true_residual").get<double>(), 1.01 * run.at("target_residual").get<double>());
    EXPECT_LT(run.at("solution_error").get<double>(), 1e-7) << "more digits than a float has";
    EXPECT_LT(run.at("solver_iterations").get<int>(), 20);
    expect_refused(2, "solver.method has to be ir or fcg", {"--set", "solver.inner=cg"});
    expect_refused(2, "solver.inner is \"no-such\"", {"--set", "solver.inner=no-such", "--method", "ir"});
    expect_refused(2, "matrix.precision is \"float\"",
                   {"--set", "solver.inner=cg", "--method", "ir", "--precision", "float"});
}

TEST(Solve, AFileKeepsItsValues)
{
    // configs/solve.toml says which values the generated matrix has.
    const Scratch scratch;
    std::ofstream(scratch / "a.mtx") << "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 4\n2 2 8\n";
    ASSERT_EQ(solve({"--matrix", scratch / "a.mtx", "--rhs", "ones", "-o", scratch / "x.npy"}).exit_code, 0);
    const auto x = rmsp::read_vector<double>(scratch / "x.npy");
    ASSERT_EQ(x.size(), 2U);
    EXPECT_DOUBLE_EQ(x[0], 0.25);
    EXPECT_DOUBLE_EQ(x[1], 0.125);
    const Outcome ones = solve({"--matrix", scratch / "a.mtx", "--set", "matrix.values=ones"});
    EXPECT_THAT(ones.out, HasSubstr("a.mtx, values ones"));
}

TEST(Solve, NotConvergedIsSix)
{
    const Scratch scratch;
    const Outcome outcome =
        solve({"--set", "solver.max_iterations=3", "--json", scratch / "r.json", "-o", scratch / "x.npy"});
    EXPECT_EQ(outcome.exit_code, 6) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("NOT CONVERGED: iterations after 3 iterations"));
    EXPECT_THAT(outcome.err, HasSubstr("mspmv: error: not converged (iterations): 3 iterations were done"));
    // The report and what was reached are there all the same.
    EXPECT_EQ(json::parse(rmsp::test::read_text(scratch / "r.json")).at("benchmarks").at(0).at("outcome"),
              "iterations");
    EXPECT_EQ(rmsp::read_vector<double>(scratch / "x.npy").size(), 336U);
}

TEST(Solve, SingularMatricesEndWithAdvice)
{
    // The rows of a Laplacian sum to zero: what of b is constant stays in the residual for ever.
    for (const char* rhs : {"ones", "random"}) {
        const Outcome outcome = solve({"--set", "matrix.values=laplace", "--rhs", rhs, "--tolerance", "1e-12"});
        EXPECT_EQ(outcome.exit_code, 6) << rhs << outcome.out;
        EXPECT_THAT(outcome.out, HasSubstr("NOT CONVERGED: "));
        const std::string words = std::regex_replace(outcome.out, std::regex("\n +"), " ");
        EXPECT_THAT(words, HasSubstr("the rows of the matrix sum to zero, so it is singular"));
        EXPECT_THAT(words, HasSubstr("only where the entries of b sum to zero"));
    }
    // Consistent: b = A x*. A solution is found, if not that one.
    const Outcome consistent = solve({"--set", "matrix.values=laplace"});
    EXPECT_EQ(consistent.exit_code, 0) << consistent.out;
}

TEST(Solve, SaysWhatTheMethodNeeds)
{
    const Outcome unsymmetric = solve({"--set", "matrix.generate=random 300 300 5", "--set", "matrix.values=random"});
    EXPECT_EQ(unsymmetric.exit_code, 6);
    EXPECT_THAT(unsymmetric.out, HasSubstr("cg needs a symmetric matrix, which this one is not"));
    const Scratch scratch;
    std::ofstream(scratch / "indefinite.mtx")
        << "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 -1\n2 2 1\n";
    const Outcome indefinite = solve({"--matrix", scratch / "indefinite.mtx", "--set", "matrix.values=auto"});
    EXPECT_EQ(indefinite.exit_code, 6);
    EXPECT_THAT(indefinite.out, HasSubstr("1 entries of the diagonal are not above 0"));
    std::ofstream(scratch / "b.mtx") << "%%MatrixMarket matrix array real general\n2 1\nnan\n1\n";
    const Outcome nan =
        solve({"--matrix", scratch / "indefinite.mtx", "--set", "matrix.values=auto", "--rhs", scratch / "b.mtx"});
    EXPECT_EQ(nan.exit_code, 6) << nan.err;
    EXPECT_THAT(nan.out, HasSubstr("1 of b are NaN or infinite"));
}

TEST(Solve, SaysWhatHelpsWithFlows)
{
    // Velocities u and a pressure p, in turns: of p the diagonal is small.
    const Scratch scratch;
    constexpr int points = 40;
    std::string entries;
    int count = 0;
    const auto put = [&](int row, int column, double value) {
        if (column >= 0 && column < 2 * points) {
            entries += std::to_string(row + 1) + " " + std::to_string(column + 1) + " " + std::to_string(value) + "\n";
            ++count;
        }
    };
    for (int i = 0; i < points; ++i) {
        for (const int side : {-1, 1}) {
            put(2 * i, 2 * (i + side), side * 3 - 1);
            put(2 * i, 2 * (i + side) + 1, side);
            put(2 * i + 1, 2 * (i + side), side);
        }
        put(2 * i, 2 * i, 2);
        put(2 * i + 1, 2 * i + 1, 0.001);
    }
    const std::string size = std::to_string(2 * points);
    std::ofstream(scratch / "flow.mtx") << "%%MatrixMarket matrix coordinate real general\n"
                                        << size << " " << size << " " << count << "\n"
                                        << entries;
    const auto advice = [&](const char* method, const char* preconditioner) {
        const Outcome outcome =
            solve({"--matrix", scratch / "flow.mtx", "--set", "matrix.values=auto", "--set", "solver.max_iterations=2",
                   "--method", method, "--preconditioner", preconditioner});
        EXPECT_EQ(outcome.exit_code, 6) << outcome.out << outcome.err;
        return std::regex_replace(outcome.out, std::regex("\n +"), " ");
    };
    const std::string words = advice("gmres", "none");
    EXPECT_THAT(words, HasSubstr("40 of 80 entries of its diagonal are below a tenth"));
    EXPECT_THAT(words, HasSubstr("Try --preconditioner schwarz-iluk"));
    EXPECT_THAT(words, HasSubstr("then --method idr --preconditioner spai"));
    EXPECT_THAT(advice("gmres", "spai"), HasSubstr("Try --preconditioner schwarz-iluk"));
    EXPECT_THAT(advice("idr", "schwarz-iluk"), HasSubstr("Try --method idr --preconditioner spai"));
}

TEST(Solve, InterruptionIsAnOutcome)
{
    // A line of points takes about as many iterations as it has points.
    const Scratch scratch;
    const std::string report = scratch / "r.json";
    std::vector<std::string> words =
        words_with({"--set", "matrix.generate=stencil7 1000000 1 1", "--set", "matrix.values=laplace", "--set",
                    "solver.stagnation=0", "--set", "solver.max_iterations=1000000000", "--set",
                    "output.log_level=info", "--json", report});
    const std::string out = scratch / "out";
    const std::string err = scratch / "err";
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
        ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
        if (::chdir(rmsp::test::source_path(".").c_str()) != 0) {
            ::_exit(126);
        }
        std::vector<char*> argv{const_cast<char*>("mspmv")};
        for (std::string& word : words) {
            argv.push_back(word.data());
        }
        argv.push_back(nullptr);
        ::execv(rmsp::test::mspmv_path, argv.data());
        ::_exit(127);
    }
    const auto solving = [&] {
        return std::filesystem::exists(err) && rmsp::test::read_text(err).find("solving by cg") != std::string::npos;
    };
    for (int i = 0; i < 6000 && !solving(); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(solving());
    ::kill(child, SIGINT);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 6) << rmsp::test::read_text(err);
    EXPECT_THAT(rmsp::test::read_text(out), HasSubstr("NOT CONVERGED: cancelled"));
    EXPECT_EQ(json::parse(rmsp::test::read_text(report)).at("benchmarks").at(0).at("outcome"), "cancelled");
}

}  // namespace
