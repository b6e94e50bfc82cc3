#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/apps/program.hpp"

namespace {

using nlohmann::json;
using rmsp::test::mspmv;
using rmsp::test::Outcome;
using rmsp::test::read_text;
using rmsp::test::Scratch;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Words = std::vector<std::string>;

const Words grid_run{
    "run",   "--devices",           "host:2x1", "--set", "matrix.generate=stencil7 9 9 9", "--set", "run.iterations=1",
    "--set", "runtime.limit_gbs=20"};

Words grid_run_with(const Words& more)
{
    Words words = grid_run;
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

std::size_t longest_line(const std::string& text)
{
    std::size_t longest = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        longest = std::max(longest, line.size());
    }
    return longest;
}

TEST(Terminal, LinesFitItsWidth)
{
    for (const Words& words :
         {Words{"--help"}, Words{"help", "run"}, Words{"generate", "--help"}, Words{"kernels"}, Words{"solvers"},
          Words{"machines"}, Words{"run", "--help-config"}, Words{"topo", "--machine", "dgx-a100"}, grid_run}) {
        for (const std::size_t width : {80, 120}) {
            const Outcome outcome = mspmv(words, {"COLUMNS=" + std::to_string(width)});
            EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
            EXPECT_LE(longest_line(outcome.out), width) << words.front();
        }
        const auto letters = [&](const char* columns) {
            std::string text = mspmv(words, {std::string("COLUMNS=") + columns}).out;
            text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == ' ' || c == '\n'; }),
                       text.end());
            return text;
        };
        if (words != grid_run) {
            EXPECT_EQ(letters("80"), letters("1000")) << "nothing is lost between the lines";
        }
    }
}

TEST(Terminal, ColourIsRestrained)
{
    // No terminal, no colour; asked for, headings and the verdict.
    EXPECT_THAT(mspmv(grid_run).out, Not(HasSubstr("\033[")));
    const Outcome always = mspmv(grid_run_with({"--color", "always"}), {"NO_COLOR=1"});
    EXPECT_THAT(always.out, HasSubstr("\033[1mMatrix\033[0m"));
    EXPECT_THAT(always.out, HasSubstr("Verified      \033[32mpassed\033[0m"));
    EXPECT_THAT(mspmv({"multiply", "--color", "always"}).err, StartsWith("mspmv: error"));
    EXPECT_EQ(mspmv(grid_run_with({"--color", "sometimes"})).exit_code, 2);
}

TEST(Terminal, QuietLeavesTheFiles)
{
    const Scratch scratch;
    const Outcome outcome = mspmv(grid_run_with({"--quiet", "--json", scratch / "r.json", "--y", scratch / "y.npy"}));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out + outcome.err, "");
    EXPECT_EQ(json::parse(read_text(scratch / "r.json")).at("benchmarks").size(), 1U);
    Words before = grid_run;
    before.insert(before.begin(), "--quiet");
    EXPECT_EQ(mspmv(before).out, "");
}

TEST(Terminal, NearMissesAreNamed)
{
    const auto refused = [](const Words& words) {
        const Outcome outcome = mspmv(words);
        EXPECT_EQ(outcome.exit_code, 2);
        return outcome.err;
    };
    EXPECT_THAT(refused({"slove"}), HasSubstr("\"slove\" is no command; did you mean solve?"));
    EXPECT_THAT(refused({"run", "--dryrun"}), HasSubstr("did you mean --dry-run?"));
    EXPECT_THAT(refused({"run", "--presision=float"}), HasSubstr("did you mean --set matrix.precision=float?"));
    EXPECT_THAT(refused({"run", "--iterations", "5"}), HasSubstr("did you mean --set run.iterations=...?"));
    EXPECT_THAT(refused({"solve", "--max-iterations", "5"}),
                HasSubstr("did you mean --set solver.max_iterations=...?"));
    EXPECT_THAT(refused({"kernels", "--tolerance", "5"}), Not(HasSubstr("did you mean")));
    EXPECT_THAT(refused({"multiply"}), Not(HasSubstr("did you mean")));
    EXPECT_THAT(refused({"help", "rum"}), HasSubstr("did you mean run?"));
}

TEST(Terminal, TextsAreMadeOfTheSameTables)
{
    EXPECT_EQ(mspmv({"help", "solve"}).out, mspmv({"solve", "--help"}).out);
    EXPECT_EQ(mspmv({"help"}).out, mspmv({"--help"}).out);
    const std::string man = mspmv({"help", "--man"}).out;
    EXPECT_THAT(man, StartsWith(".TH MSPMV 1"));
    EXPECT_THAT(man, HasSubstr(".SS mspmv spgemm"));
    EXPECT_THAT(man, HasSubstr("\n.B \\-\\-memory\\-limit NUMBER\n"));
    EXPECT_THAT(man, HasSubstr("\n.B \\-h,\\-\\-help\n"));
    EXPECT_THAT(man, HasSubstr("\n.B \\-\\-color WHEN\n"));
    EXPECT_THAT(man, HasSubstr("\n.B CONFIG\n"));
    if (rmsp::test::has_mspmv_mpi()) {
        const std::string of_processes = rmsp::test::mspmv_mpi_in(".", "1", {"--man"}).out;
        EXPECT_THAT(of_processes, StartsWith(".TH MSPMV-MPI 1"));
        EXPECT_THAT(of_processes, HasSubstr(".SS mspmv\\-mpi spgemm"));
        EXPECT_THAT(of_processes, HasSubstr("\n.B \\-\\-time\\-limit FLOAT\n"));
    }
}

TEST(Terminal, BashCompletes)
{
    const Scratch scratch;
    std::ofstream(scratch / "mspmv.bash") << mspmv({"completion", "bash"}).out;
    const auto completed = [&](const std::string& words, int at) {
        const std::string out = scratch / "out";
        std::ofstream(scratch / "run.bash") << "source '" << (scratch / "mspmv.bash") << "'\nCOMP_WORDS=(" << words
                                            << ")\nCOMP_CWORD=" << at << "\n_mspmv\necho ${COMPREPLY[@]}\n";
        EXPECT_EQ(std::system(("bash '" + (scratch / "run.bash") + "' > '" + out + "'").c_str()), 0);
        return read_text(out);
    };
    EXPECT_EQ(completed("mspmv so", 1), "solve solvers\n");
    EXPECT_EQ(completed("mspmv solve --prec", 2), "--preconditioner --precision\n");
    EXPECT_EQ(completed("mspmv kernels --j", 2), "--json\n");
    EXPECT_EQ(mspmv({"completion", "tcsh"}).exit_code, 2);
}

TEST(Terminal, ZshCompletes)
{
    if (std::system("zsh --version > /dev/null 2>&1") != 0) {
        GTEST_SKIP() << "no zsh";
    }
    const Scratch scratch;
    // zsh loads the function by its file's name, as it does from a folder of fpath; what offers words prints them here.
    std::ofstream(scratch / "_mspmv") << mspmv({"completion", "zsh"}).out;
    const auto offered = [&](const std::string& words, int current) {
        const std::string out = scratch / "out";
        std::ofstream(scratch / "run.zsh")
            << "fpath=('" << scratch.path().string() << "' $fpath)\nautoload -Uz _mspmv\n"
            << "compadd() { shift; print -- $@ }\n_files() { print files }\nwords=(" << words
            << ")\nCURRENT=" << current << "\n_mspmv\n";
        EXPECT_EQ(std::system(("zsh -f '" + (scratch / "run.zsh") + "' > '" + out + "' 2>&1").c_str()), 0);
        return read_text(out);
    };
    EXPECT_THAT(offered("mspmv ''", 2), StartsWith("run spgemm solve "));
    EXPECT_THAT(offered("mspmv solve --pre", 3), HasSubstr(" --preconditioner "));
    EXPECT_THAT(offered("mspmv --quiet kernels --", 4), HasSubstr(" --json "));
    EXPECT_THAT(offered("mspmv completion ''", 3), StartsWith("bash zsh"));
    EXPECT_EQ(offered("mspmv run ''", 3), "files\n");
}

TEST(Terminal, ListsAreJsonToo)
{
    const json kernels = json::parse(mspmv({"kernels", "--json"}).out).at("kernels");
    EXPECT_GT(kernels.size(), 20U);
    EXPECT_EQ(kernels.at(0).at("name"), "csr-openmp");
    const json topology = json::parse(mspmv({"topo", "--machine", "summit", "--json"}).out);
    EXPECT_EQ(topology.at("gpus").size(), 6U);
    EXPECT_EQ(topology.at("devices").at(5).at("node"), 1);
    EXPECT_EQ(topology.at("nodes").at(1).at("os_index"), 8);
}

TEST(Terminal, StagesAreDrawnWithTheirTime)
{
    if (std::system("script --version > /dev/null 2>&1") != 0) {
        GTEST_SKIP() << "no script(1), which makes a terminal";
    }
    const Scratch scratch;
    // Ended while it is timing, or earlier where it is slow: how long a run takes is the machine's affair.
    const auto drawn = [&](const std::string& more) {
        const std::string out = scratch / "typescript";
        const std::string command = std::string("timeout 2.5 ") + rmsp::test::mspmv_path +
                                    " run --devices host:2x1 --set matrix.generate=\\\"stencil7 9 9 9\\\" --set "
                                    "runtime.limit_gbs=20 --set run.iterations=10000000 " +
                                    more;
        static_cast<void>(std::system(("script -qec \"" + command + "\" /dev/null > " + out + " < /dev/null").c_str()));
        return read_text(out);
    };
    EXPECT_THAT(drawn(""), testing::ContainsRegex("(starting|preparing|timing) +[0-9]+[.][0-9] s"));
    EXPECT_EQ(drawn("--quiet"), "");
}

TEST(Terminal, ThePlanComesFirstAndTheRestOnce)
{
    if (std::system("script --version > /dev/null 2>&1") != 0) {
        GTEST_SKIP() << "no script(1), which makes a terminal";
    }
    const Scratch scratch;
    for (const char* words :
         {"run --set run.iterations=1", "solve --set matrix.values=poisson", "spgemm --set spgemm.iterations=1"}) {
        const std::string out = scratch / "typescript";
        const std::string command = std::string(rmsp::test::mspmv_path) + ' ' + words +
                                    " --devices host:2x1 --set matrix.generate=\\\"stencil7 9 9 9\\\" --set "
                                    "runtime.limit_gbs=20 --color never";
        EXPECT_EQ(std::system(("script -qec \"" + command + "\" /dev/null > " + out + " < /dev/null").c_str()), 0);
        const std::string text = read_text(out);
        const auto once = [&](const std::string& part) {
            EXPECT_NE(text.find(part), std::string::npos) << text;
            EXPECT_EQ(text.find(part), text.rfind(part)) << text;
            return text.find(part);
        };
        const std::size_t first = once("Machine  ");
        EXPECT_LT(first, text.find("Plan   ")) << text;
        EXPECT_LT(text.find("Plan   "), once(*words == 's' && words[1] == 'p' ? "Phases" : "Set-up")) << text;
    }
}

}  // namespace
