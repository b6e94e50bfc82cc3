#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/program.hpp"

namespace {

using rmsp::test::mspmv;
using rmsp::test::Outcome;
using rmsp::test::read_text;
using rmsp::test::Scratch;
using testing::HasSubstr;

Outcome run_small(const std::vector<std::string>& more)
{
    std::vector<std::string> words{"run",   "--devices",        "host:2", "--set", "runtime.limit_gbs=20",
                                   "--set", "run.iterations=50"};
    words.insert(words.end(), more.begin(), more.end());
    return mspmv(words);
}

TEST(Files, JsonOnStandardOutputIsPure)
{
    const Outcome outcome =
        run_small({"--set", "matrix.generate=stencil27 5 5 5", "--set", "run.beta=0.5", "--json", "-"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto json = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(json.at("context").at("executable"), "mspmv");
    EXPECT_EQ(json.at("context").at("devices").size(), 2U);
    EXPECT_EQ(json.at("context").at("plan").at("nonzeros"), 13 * 13 * 13);
    EXPECT_EQ(json.at("benchmarks").at(0).at("iterations"), 50);
    EXPECT_EQ(json.at("benchmarks").at(0).at("verified"), true);
    EXPECT_THAT(outcome.err, HasSubstr("Verified      passed"));
}

TEST(Files, TheSelfTestSaysWhereItsResultCannotBeKept)
{
    const std::vector<std::string> words{"doctor", "--devices", "host:2", "--mib", "1"};
    const Outcome unwritable = mspmv(words, {"RMSP_CACHE_DIR=/dev/null/cache"});
    EXPECT_EQ(unwritable.exit_code, 0) << unwritable.err;
    EXPECT_THAT(unwritable.err, HasSubstr("is not kept: /dev/null/cache/doctor-"));
    const Outcome homeless = mspmv(words, {"RMSP_CACHE_DIR=auto", "HOME=", "XDG_CACHE_HOME="});
    EXPECT_EQ(homeless.exit_code, 0) << homeless.err;
    EXPECT_THAT(homeless.err, HasSubstr("is not kept: neither"));
    EXPECT_EQ(mspmv(words, {"RMSP_CACHE_DIR=off"}).err, "");
}

TEST(Files, EveryLayoutPrecisionAndFormatIsVerified)
{
    const Scratch scratch;
    ASSERT_EQ(mspmv({"generate", "rmat", "8", "8", "-o", scratch / "a.mtx.gz"}).exit_code, 0);
    for (const std::string vectors : {"host", "replicated", "rows"}) {
        for (const std::string precision : {"double", "float"}) {
            const Outcome outcome =
                run_small({"--matrix", scratch / "a.mtx.gz", "--format", "auto", "--set", "run.vectors=" + vectors,
                           "--set", "matrix.precision=" + precision, "--set", "run.alpha=-2", "--set", "run.beta=1"});
            EXPECT_EQ(outcome.exit_code, 0) << vectors << ' ' << precision << '\n' << outcome.err;
            EXPECT_THAT(outcome.out, HasSubstr("Verified      passed"));
        }
    }
}

TEST(Files, MatricesAreNumberedAnew)
{
    const Scratch scratch;
    ASSERT_EQ(mspmv({"generate", "stencil7", "9", "8", "7", "--renumber", "-o", scratch / "a.npz"}).exit_code, 0);
    const Outcome outcome = run_small({"--matrix", scratch / "a.npz", "--set", "matrix.renumber=true"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("numbered anew"));
    EXPECT_THAT(outcome.out, HasSubstr("Verified      passed"));
    const Outcome wide = run_small({"--set", "matrix.generate=random 20 30 4", "--set", "matrix.renumber=true"});
    EXPECT_EQ(wide.exit_code, 2);
    EXPECT_THAT(wide.err, HasSubstr("20 x 30"));
}

TEST(Files, SmallAndEmptyMatricesRun)
{
    const Scratch scratch;
    std::ofstream(scratch / "empty.mtx") << "%%MatrixMarket matrix coordinate real general\n0 0 0\n";
    std::ofstream(scratch / "zero.mtx") << "%%MatrixMarket matrix coordinate real general\n3 5 0\n";
    std::ofstream(scratch / "one.mtx") << "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2.5\n";
    for (const char* name : {"empty.mtx", "zero.mtx", "one.mtx"}) {
        const Outcome outcome = run_small({"--matrix", scratch / name});
        EXPECT_EQ(outcome.exit_code, 0) << name << '\n' << outcome.err;
    }
}

TEST(Files, ReportFileAppearsWhole)
{
    const Scratch scratch;
    const Outcome outcome = run_small({"--set", "matrix.generate=banded 100 2", "--json", scratch / "r.json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("Verified"));
    EXPECT_TRUE(nlohmann::json::accept(rmsp::test::read_text(scratch / "r.json")));
    // Nothing else was left beside it.
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 1);
}

TEST(Files, ReportReplacesWhatALinkPointsTo)
{
    const Scratch scratch;
    std::ofstream(scratch / "target.json") << "old";
    std::filesystem::create_symlink("target.json", scratch / "link.json");
    ASSERT_EQ(run_small({"--set", "matrix.generate=banded 9 2", "--json", scratch / "link.json"}).exit_code, 0);
    EXPECT_TRUE(std::filesystem::is_symlink(scratch / "link.json"));
    EXPECT_TRUE(nlohmann::json::accept(rmsp::test::read_text(scratch / "target.json")));
}

TEST(Files, TopologyDescriptionsComeBack)
{
    const Scratch scratch;
    const Outcome first = mspmv({"topo", "--toml", "--topology", "machines/summit.toml"});
    ASSERT_EQ(first.exit_code, 0) << first.err;
    std::ofstream(scratch / "again.toml") << first.out;
    EXPECT_EQ(mspmv({"topo", "--toml", "--topology", scratch / "again.toml"}).out, first.out);
}

/// Starts a generate that takes far longer than the test, sends the signal once its output is under way, and returns
/// the exit code. `prepare` is told the process before it begins, and what the names of its unfinished files begin
/// with.
int exit_code_after(
    int signal, const Scratch& scratch, const std::function<void(const std::string& part)>& prepare = [](auto&) {})
{
    const std::string path = scratch / "big.mtx";
    std::array<int, 2> prepared{};
    EXPECT_EQ(::pipe(prepared.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        char go = 0;
        if (::read(prepared[0], &go, 1) != 1) {
            ::_exit(127);
        }
        const int null = ::open("/dev/null", O_RDWR);
        ::dup2(null, STDOUT_FILENO);
        ::dup2(null, STDERR_FILENO);
        ::execl(rmsp::test::mspmv_path, rmsp::test::mspmv_path, "generate", "stencil27", "100", "100", "100", "-o",
                path.c_str(), nullptr);
        ::_exit(127);
    }
    const std::string part = path + ".part-" + std::to_string(child);
    prepare(part);
    EXPECT_EQ(::write(prepared[1], "g", 1), 1);
    ::close(prepared[0]);
    ::close(prepared[1]);
    const std::string unfinished = part + "-0";
    for (int i = 0; i < 3000 && !std::filesystem::exists(unfinished); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(std::filesystem::exists(unfinished)) << "no output was begun";
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Files, TerminationLeavesNoHalfWrittenFile)
{
    for (const auto& [signal, expected] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
        const Scratch scratch;
        EXPECT_EQ(exit_code_after(signal, scratch), expected);
        EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
    }
}

TEST(Files, TerminationLeavesTheUnfinishedFilesOfOtherProcesses)
{
    // The name of process 123 is how that of 1234 begins, and 23 how it ends.
    const Scratch scratch;
    std::vector<std::string> others;
    const auto make = [&](const std::string& part) {
        const std::size_t number = part.rfind('-') + 1;
        for (const std::string& name : {part + "4", part + "4-0", part + "04-63", part.substr(0, part.size() - 1),
                                        part.substr(0, number) + "1" + part.substr(number) + "-0",
                                        part.substr(0, part.size() - 1) + "-0", part + "-00", part + "-0.mtx"}) {
            std::ofstream(name) << "another's";
            others.push_back(name);
        }
    };
    EXPECT_EQ(exit_code_after(SIGTERM, scratch, make), 143);
    for (const std::string& name : others) {
        EXPECT_EQ(read_text(name), "another's") << name;
        std::filesystem::remove(name);
    }
    EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

}  // namespace
