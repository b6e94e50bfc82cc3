#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sys/wait.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apps/program.hpp"

namespace {

using rmsp::test::expect_failure;
using rmsp::test::mspmv;
using rmsp::test::Outcome;
using rmsp::test::Scratch;
using testing::HasSubstr;

const std::vector<std::string> small_run{
    "run",   "--devices",           "host:2", "--set", "matrix.generate=stencil7 4 4 4", "--set", "run.iterations=1",
    "--set", "runtime.limit_gbs=20"};

std::vector<std::string> small_run_with(const std::vector<std::string>& more)
{
    std::vector<std::string> words = small_run;
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

TEST(ExitCode, UsageIsTwo)
{
    expect_failure(2, "subcommand", {});
    expect_failure(2, "\"multiply\" is no command", {"multiply"});
    expect_failure(2, "--fast", {"kernels", "--fast"});
    expect_failure(2, "CONFIG.toml", {"run"});
    expect_failure(2, "--output", {"generate", "banded", "5", "1"});
    expect_failure(2, "precision", {"generate", "banded", "5", "1", "-o", "x.mtx", "--precision", "half"});
    expect_failure(2, "hexagon", {"generate", "hexagon", "5", "-o", "x.mtx"});
    expect_failure(2, "\"-1\" is not an integer of at least 0",
                   {"generate", "banded", "5", "1", "-o", "x.mtx", "--seed", "-1"});
    expect_failure(2, "does not end in one of .mtx", {"generate", "banded", "5", "1", "-o", "x.txt"});
    expect_failure(2, "does not end in one of .mtx", {"convert", "no-such.mtx", "x.npy"});
    expect_failure(2, "the nearest known key is \"run.iterations\"", small_run_with({"--set", "run.iteration=5"}));
    expect_failure(2, "run.merge", small_run_with({"--format", "csc", "--merge", "mpi"}));
    expect_failure(2, "ell", small_run_with({"--format", "ell"}));
    expect_failure(2, "no-such-kernel", small_run_with({"--set", "kernel.spmv=no-such-kernel"}));
    expect_failure(2, "tpu", small_run_with({"--devices", "tpu:2"}));
    expect_failure(2, "--dry-run", small_run_with({"--topology", "machines/summit.toml"}));
    expect_failure(2, "or 4096 threads", small_run_with({"--devices", "host:1000x1000"}));
    expect_failure(2, "runtime.weights", small_run_with({"--set", "runtime.weights=1,2,3"}));
    expect_failure(2, "partition.devices", small_run_with({"--set", "partition.devices=5"}));
}

TEST(ExitCode, ThreadsAreNotBoundToAnotherMachinesProcessors)
{
    const std::string other = "HWLOC_SYNTHETIC=pack:2 numa:1 core:4 pu:2";
    const Outcome run = mspmv(small_run, {other});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("not bound, because that is another machine"));
    const Outcome strict = mspmv(small_run, {other, "RMSP_BIND=strict"});
    EXPECT_EQ(strict.exit_code, 2) << strict.out;
    EXPECT_THAT(strict.err, HasSubstr("strict binding"));
}

TEST(ExitCode, MoreThreadsThanAMachineHasAreUsage)
{
    const Outcome outcome = mspmv({"kernels"}, {"OMP_NUM_THREADS=100000"});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("OMP_NUM_THREADS asks for 100000 threads"));
}

TEST(ExitCode, DeepOrEndlessConfigurationsNameTheirPlace)
{
    const Scratch scratch;
    const auto refused = [&](const std::string& text, const std::string& message) {
        std::ofstream(scratch / "run.toml") << text;
        expect_failure(2, scratch / "run.toml" + message, {"run", scratch / "run.toml"});
    };
    refused("# deep\n[runtime]\nweights = " + std::string(50000, '['), ":3:43: more than 32 tables");
    std::string name = "a";
    for (int i = 0; i < 50000; ++i) {
        name += ".a";
    }
    refused('[' + name + "]\n", ":1:67: more than 32");
    refused(name + " = 1\n", ":1:66: more than 32");
    refused("[matrix]\n\"a\\u0000b\" = 1\n", ":2:1: unknown key \"matrix.a\\u0000b\"");
    refused("[matrix]\ngenerate = \"banded 5 1\"\n[run]\niterations = 9223372036854775807\n",
            ":4:14: run.iterations is 9223372036854775807, but must be at most");
}

TEST(ExitCode, HostileFilesAreInputErrors)
{
    const std::string corpus = rmsp::test::source_path("tests/fuzz/corpus/files/");
    const Scratch scratch;
    expect_failure(3, "member 'data.npy' is there twice", {"convert", corpus + "member-twice.npz", scratch / "x.mtx"});
    expect_failure(3, "no-banner.gz: what it decompresses to does not begin with %%MatrixMarket",
                   {"convert", corpus + "no-banner.gz", scratch / "x.mtx"});
    expect_failure(3, "", {"convert", corpus + "a.mtx", scratch / std::string(300, 'x') + ".mtx"});
    EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

TEST(ExitCode, FilesThatWouldTakeMoreThanAllowedAreInputErrors)
{
    const Scratch scratch;
    const std::string matrix = scratch / "a.npz";
    const std::string copy = scratch / "b.npz";
    ASSERT_EQ(mspmv({"generate", "banded", "1000", "3", "-o", matrix}).exit_code, 0);
    const std::string said = matrix + ": its arrays would take ";
    expect_failure(3, said, {"convert", matrix, copy, "--max-bytes", "10000"});
    expect_failure(3, said, {"run", "--matrix", matrix, "--devices", "host:1", "--set", "io.max_bytes=10000"});
    const std::vector<std::string> few{"RMSP_IO_MAX_BYTES=10000"};
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"convert", matrix, copy},
          std::vector<std::string>{"run", "--matrix", matrix, "--devices", "host:1"}}) {
        const Outcome outcome = mspmv(words, few);
        EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr(said));
        EXPECT_THAT(outcome.err, HasSubstr("io.max_bytes is 10000"));
    }
    EXPECT_FALSE(std::filesystem::exists(copy));
    // The command line stands over the environment.
    EXPECT_EQ(mspmv({"convert", matrix, copy, "--max-bytes", "1000000"}, few).exit_code, 0);
    expect_failure(3, "a configuration of more than 16777216 bytes", {"run", "/dev/zero"});
}

TEST(ExitCode, AFileThatMayNotGrowIsAnOutputError)
{
    // Of what the child writes, not of the test's own report.
    const Scratch scratch;
    const std::string command = "ulimit -f 1; exec \"" + std::string(rmsp::test::mspmv_path) +
                                "\" generate banded 20000 3 -o \"" + (scratch / "x.npz") + "\" 2>/dev/null";
    const int status = std::system(command.c_str());
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 3);
    EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

TEST(ExitCode, EmptyOptionsAreUsage)
{
    // A variable of a script that is not set would otherwise leave the default.
    for (const char* option : {"--matrix", "--devices", "--json", "--topology"}) {
        expect_failure(2, std::string(option) + ": must not be empty", small_run_with({option, ""}));
    }
    expect_failure(2, "must not be empty", {"topo", "--devices", ""});
    expect_failure(2, "must not be empty", {"doctor", "--json", ""});
}

TEST(ExitCode, StreamsThatTakeNothing)
{
    const auto exit_code = [](const std::string& words) {
        const int status = std::system(("'" + std::string(rmsp::test::mspmv_path) + "' " + words).c_str());
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    };
    EXPECT_EQ(exit_code("multiply 2>&-"), 2);
    EXPECT_EQ(exit_code("multiply 2>/dev/full"), 2);
    EXPECT_EQ(exit_code("--help >/dev/full 2>/dev/null"), 3);
    EXPECT_EQ(exit_code("kernels >&- 2>/dev/null"), 3);
}

TEST(ExitCode, CoordinatesInNoOrderNeedAnAnswer)
{
    const auto coo = [](const std::string& order, const std::string& unsorted, const std::string& mode = "resident") {
        return small_run_with({"--format", "coo", "--set", "matrix.order=" + order, "--set",
                               "partition.unsorted=" + unsorted, "--set", "run.mode=" + mode});
    };
    expect_failure(2, "sorted neither by row", coo("none", "refuse"));
    expect_failure(2, "partition.unsorted", coo("none", "guess"));
    expect_failure(2, "matrix.order", coo("diagonal", "refuse"));
    for (const auto& words : {coo("row", "refuse"), coo("column", "refuse"), coo("none", "sort"), coo("none", "split"),
                              coo("none", "sort", "streamed"), coo("none", "split", "streamed")}) {
        const Outcome outcome = mspmv(words);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_THAT(outcome.out, HasSubstr("Verified      passed"));
    }
}

TEST(ExitCode, SpgemmSaysWhatIsWrong)
{
    const std::vector<std::string> small{
        "spgemm", "--devices", "host:2", "--set", "matrix.generate=stencil7 4 4 4", "--set", "spgemm.iterations=1"};
    const auto with = [&](const std::vector<std::string>& more) {
        std::vector<std::string> words = small;
        words.insert(words.end(), more.begin(), more.end());
        return words;
    };
    EXPECT_EQ(mspmv(small).exit_code, 0);
    EXPECT_EQ(mspmv(with({"--product", "ata", "--set", "spgemm.prune_below=0.5"})).exit_code, 0);
    EXPECT_EQ(mspmv(with({"--product", "ab", "--set", "spgemm.generate=random 64 9 3"})).exit_code, 0);
    expect_failure(2, "CONFIG.toml", {"spgemm"});
    expect_failure(2, "exactly one of spgemm.file and spgemm.generate", with({"--product", "ab"}));
    expect_failure(2, "A is 64 x 64 and B is 65 x 9",
                   with({"--product", "ab", "--set", "spgemm.generate=random 65 9 3"}));
    expect_failure(2, "spgemm.memory_limit", with({"--memory-limit", "0"}));
    expect_failure(2, "--product ata does not have", with({"--product", "ata", "--b", "b.npz"}));
    expect_failure(2, "no-such-kernel", with({"--set", "spgemm.kernel=no-such-kernel"}));
    expect_failure(2, "\"chunks\"", with({"--set", "spgemm.accumulator=chunks"}));
    expect_failure(2, "--dry-run", with({"--topology", "machines/summit.toml"}));
    expect_failure(4, "does not fit the memory of device", with({"--memory-limit", "100"}));
}

TEST(ExitCode, ConfigurationNamesLineAndColumn)
{
    const Scratch scratch;
    const std::string config = scratch / "bad.toml";
    std::ofstream(config) << "[matrix]\ngenerate = \"rmat 4 2\"\n[run]\niterations = many\n";
    expect_failure(2, config + ":4:", {"run", config});
}

TEST(ExitCode, InputAndOutputAreThree)
{
    const Scratch scratch;
    expect_failure(3, "no-such.toml", {"run", scratch / "no-such.toml"});
    expect_failure(3, "no-such.mtx", {"run", "--matrix", scratch / "no-such.mtx"});
    expect_failure(3, "no-such.mtx", {"convert", scratch / "no-such.mtx", scratch / "a.npz"});
    expect_failure(3, "no-such.toml", {"topo", "--topology", scratch / "no-such.toml"});
    expect_failure(3, "no-such-folder", {"generate", "banded", "5", "1", "-o", scratch / "no-such-folder/a.mtx"});
    std::ofstream(scratch / "bad.mtx") << "%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1.0\n";
    expect_failure(3, "bad.mtx:3:", {"run", "--matrix", scratch / "bad.mtx", "--devices", "host:2"});
    // Nothing is read or multiplied first.
    expect_failure(3, "r.json: cannot create", small_run_with({"--json", scratch / "no-such-folder/r.json"}));
    expect_failure(3, "Is a directory", small_run_with({"--json", scratch.path().string()}));
    expect_failure(3, "a.npz: cannot create", {"convert", scratch / "no-such.mtx", scratch / "no-such-folder/a.npz"});
    expect_failure(3, "r.json: cannot create", {"doctor", "--json", scratch / "no-such-folder/r.json"});
}

TEST(ExitCode, MemoryIsFourAndDevicesAreFive)
{
    expect_failure(4, "memory", {"run", "--devices", "host:2", "--set", "matrix.generate=banded 4000000000000 1"});
    expect_failure(5, "GPU 4096", small_run_with({"--devices", "4096"}));
}

TEST(ExitCode, EnvironmentIsReadAndCheckedAndOverridden)
{
    EXPECT_EQ(mspmv({"topo"}, {"RMSP_DEVICES=host:3"}).exit_code, 0);
    EXPECT_EQ(mspmv({"topo"}, {"RMSP_DEVICES=", "RMSP_BIND=", "RMSP_TRANSPORT="}).exit_code, 0);
    EXPECT_EQ(mspmv({"topo"}, {"RMSP_TRANSPORT=mpi"}).exit_code, 2);
    const Outcome bad = mspmv(small_run, {"RMSP_BIND=tight"});
    EXPECT_EQ(bad.exit_code, 2);
    EXPECT_THAT(bad.err, HasSubstr("RMSP_BIND"));
    const Outcome overridden = mspmv(small_run, {"RMSP_DEVICES=tpu:2"});
    EXPECT_EQ(overridden.exit_code, 0) << overridden.err;
}

TEST(ExitCode, ResultsThatAreNotVerifiedAreSeven)
{
    // Some of the results do not fit a float: the reference, in a wider type, is finite there.
    const Outcome outcome = mspmv(small_run_with({"--set", "matrix.precision=float", "--set", "run.alpha=3e38"}));
    EXPECT_EQ(outcome.exit_code, 7) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("Verified      overflow"));
    EXPECT_THAT(outcome.err, HasSubstr("of the results overflowed"));
    const Outcome unverified =
        mspmv(small_run_with({"--set", "matrix.precision=float", "--set", "run.alpha=3e38", "--no-verify"}));
    EXPECT_EQ(unverified.exit_code, 0) << unverified.err;
    EXPECT_THAT(unverified.out, HasSubstr("Verified      no"));
}

}  // namespace
