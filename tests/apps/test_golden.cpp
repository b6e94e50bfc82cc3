// What mspmv prints is compared with tests/apps/golden/. With RMSP_REFRESH_GOLDEN=1 in the environment the files are
// written anew instead.

#include <cstdlib>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/apps/program.hpp"

namespace {

using rmsp::test::mspmv;
using rmsp::test::Outcome;
using rmsp::test::Scratch;

std::string replaced(const std::string& text, const std::string& pattern, const std::string& by)
{
    return std::regex_replace(text, std::regex(pattern), by);
}

/// Without what differs from build to build.
std::string without_build(std::string text)
{
    text = replaced(text, "mspmv [0-9.]+\n", "mspmv VERSION\n");
    text = replaced(text, "commit: .*", "commit: COMMIT");
    text = replaced(text, "features: .*", "features: FEATURES");
    return replaced(text, "librmsp [^\n]*(\n {14}[^\n]*)*", "librmsp VERSION ...");
}

/// Without what differs from machine to machine and from run to run: numbers, their units, and the widths of columns.
std::string without_numbers(std::string text)
{
    text = replaced(text, "Machine .*", "Machine ...");
    text = replaced(text, "[0-9][0-9,.]*(e[-+][0-9]+)?", "#");
    // How many threads a host device has depends on the machine.
    text = replaced(text, "# threads?\\)", "# threads)");
    text = replaced(text, "#(-#)+", "#");
    text = replaced(text, "# (ns|us|ms|s)\\b", "# TIME");
    text = replaced(text, "# ([KMGT]i)?B\\b", "# BYTES");
    text = replaced(text, " +placed .*(\n {14}.*)*\n", "  placed ...\n");
    // Where a line is broken depends on how long its numbers are.
    text = replaced(text, "\n {14}", " ");
    text = replaced(text, " +", " ");
    // What others would take, and what that is told to come of, depends on the bandwidth that was measured.
    return replaced(text, "( kernels device #: [a-z-]+ predicted;).*", "$1 ...");
}

void compare(const std::string& name, const std::string& actual)
{
    const std::string path = rmsp::test::source_path("tests/apps/golden/" + name);
    if (std::getenv("RMSP_REFRESH_GOLDEN") != nullptr) {
        std::ofstream(path) << actual;
        return;
    }
    EXPECT_EQ(actual, rmsp::test::read_text(path))
        << "differs from " << path << "; RMSP_REFRESH_GOLDEN=1 writes it anew";
}

void expect_success(const Outcome& outcome)
{
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
}

/// Where the last paragraph of a help text begins.
std::ptrdiff_t footer_of(const std::string& help)
{
    return static_cast<std::ptrdiff_t>(help.rfind("\n\n", help.find_last_not_of('\n'))) + 1;
}

TEST(Golden, Help)
{
    std::string text;
    for (const char* command : {"", "run", "spgemm", "solve", "eigen", "solvers", "characterize", "report", "plot",
                                "machines", "topo", "doctor", "kernels", "generate", "convert", "help", "completion"}) {
        const Outcome outcome = *command == '\0' ? mspmv({"--help"}) : mspmv({command, "--help"});
        expect_success(outcome);
        EXPECT_NE(outcome.out.find("Usage: mspmv"), std::string::npos) << command;
        // The parser's own words and layout differ between its versions: the names of the options and what follows them
        // count.
        text += std::string("mspmv ") + command + '\n';
        const std::regex option(" (-[a-z],)?--[a-z-]+");
        for (std::sregex_iterator it(outcome.out.begin(), outcome.out.begin() + footer_of(outcome.out), option), end;
             it != end; ++it) {
            text += ' ' + it->str() + '\n';
        }
        text += outcome.out.substr(static_cast<std::size_t>(footer_of(outcome.out)));
    }
    compare("help.txt", text);
}

TEST(Golden, Version)
{
    const Outcome outcome = mspmv({"--version"});
    expect_success(outcome);
    compare("version.txt", without_build(outcome.out));
}

TEST(Golden, Kernels)
{
    const Outcome outcome = mspmv({"kernels"});
    expect_success(outcome);
    // A build without CUDA lists the same kernels.
    compare("kernels.txt", replaced(outcome.out, " (yes|no ) ", " ... "));
}

TEST(Golden, TopologyOfADescription)
{
    for (const std::string machine : {"summit", "dgx-1", "dgx-a100"}) {
        const Outcome outcome = mspmv({"topo", "--machine", machine});
        expect_success(outcome);
        // The file is where the build put it.
        compare("topo-" + machine + ".txt", replaced(outcome.out, "\\(/.*/share/", "(.../share/"));
    }
}

TEST(Golden, DryRunOnSummit)
{
    const Outcome outcome =
        mspmv({"run", "configs/summit.toml", "--dry-run", "--set", "matrix.generate=stencil27 30 30 30"});
    expect_success(outcome);
    const std::string plan = outcome.out.substr(0, outcome.out.find("\nSet-up"));
    compare("dry-run-summit.txt", without_build(plan));
}

TEST(Golden, RunOnHostDevices)
{
    const Outcome outcome =
        mspmv({"run", "configs/quickstart.toml", "--devices", "host:2", "--set", "matrix.generate=stencil27 12 12 12",
               "--set", "run.iterations=50", "--set", "runtime.limit_gbs=20", "--set", "output.log_level=error"});
    expect_success(outcome);
    compare("run-host2.txt", without_numbers(without_build(outcome.out)));
}

TEST(Golden, DoctorOnHostDevices)
{
    const Scratch scratch;
    const std::vector<std::string> cache{"RMSP_CACHE_DIR=" + scratch.path().string()};
    const std::vector<std::string> words{"doctor", "--devices", "host:2"};
    const auto masked = [](const std::string& text) {
        // Software, and what depends on the machine: whether threads can be bound and pages found.
        std::string out = replaced(text, "Software .*(\n {14}.*)*\nDevices", "Software ...\nDevices");
        out = replaced(out, "(ok|skipped|warning) +(binding|memory) .*", "... $2");
        out = without_numbers(replaced(out, "[0-9T:-]{19}Z", "DATE"));
        return replaced(out, ", # warnings?", "");
    };
    const Outcome first = mspmv(words, cache);
    expect_success(first);
    compare("doctor-host2.txt", masked(first.out));
    const Outcome second = mspmv(words, cache);
    expect_success(second);
    EXPECT_NE(second.out.find("(kept; --refresh tests anew)"), std::string::npos) << second.out;
}

TEST(Golden, SpgemmOnHostDevices)
{
    const std::vector<std::string> words{
        "spgemm", "configs/spgemm.toml", "--devices", "host:2x1", "--set", "matrix.generate=stencil27 9 9 9",
        "--set",  "spgemm.iterations=2"};
    const Outcome outcome = mspmv(words);
    expect_success(outcome);
    compare("spgemm-host2.txt", without_numbers(without_build(outcome.out)));
    std::vector<std::string> planned = words;
    planned.insert(planned.end(), {"--dry-run", "--product", "aat", "--memory-limit", "600000"});
    const Outcome plan = mspmv(planned);
    expect_success(plan);
    compare("spgemm-dry-run.txt", without_numbers(without_build(plan.out)));
}

TEST(Golden, Solvers)
{
    const Outcome outcome = mspmv({"solvers"});
    expect_success(outcome);
    compare("solvers.txt", outcome.out);
}

TEST(Golden, SolveOnHostDevices)
{
    const std::vector<std::string> words{"solve",     "configs/solve.toml",
                                         "--devices", "host:2x1",
                                         "--set",     "matrix.generate=stencil7 9 9 9",
                                         "--set",     "kernel.expected_applies=50",
                                         "--set",     "runtime.limit_gbs=20"};
    const Outcome outcome = mspmv(words);
    expect_success(outcome);
    // The picture of the residual is as wide as there are iterations, which may differ by one between compilers.
    const auto masked = [](const std::string& text) {
        const std::string plot = replaced(text, "( +-?[0-9.]+ +\\|.*\n)+", "  ...\n");
        return without_numbers(without_build(replaced(plot, "\\+-+", "+-")));
    };
    compare("solve-host2.txt", masked(outcome.out));
    std::vector<std::string> planned = words;
    planned.insert(planned.end(), {"--dry-run", "--rhs", "ones", "--precision", "float"});
    const Outcome plan = mspmv(planned);
    expect_success(plan);
    compare("solve-dry-run.txt", masked(plan.out));
}

TEST(Golden, GenerateAndConvert)
{
    const Scratch scratch;
    const auto masked = [&](std::string text) {
        text = replaced(text, scratch.path().string(), "SCRATCH");
        return text;
    };
    const std::string mtx = scratch / "a.mtx";
    const Outcome generated = mspmv({"generate", "stencil7", "2", "2", "1", "--values", "laplace", "-o", mtx});
    expect_success(generated);
    const Outcome converted = mspmv({"convert", mtx, scratch / "a.npz", "--precision", "float"});
    expect_success(converted);
    const Outcome back = mspmv({"convert", scratch / "a.npz", scratch / "b.mtx"});
    expect_success(back);
    compare("generate-convert.txt", masked(generated.out + converted.out + back.out) + rmsp::test::read_text(mtx) +
                                        rmsp::test::read_text(scratch / "b.mtx"));
}

}  // namespace
