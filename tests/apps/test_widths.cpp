#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apps/program.hpp"

/// What mspmv writes on terminals of several widths.
namespace {

using rmsp::test::mspmv_on_terminal;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

using Words = std::vector<std::string>;

/// With a small matrix, on two host devices or those that a described machine has.
Words of_a_grid(Words words)
{
    for (const char* setting : {"matrix.generate=stencil7 9 9 9", "matrix.values=poisson", "runtime.limit_gbs=20",
                                "run.iterations=2", "spgemm.iterations=1"}) {
        words.insert(words.end(), {"--set", setting});
    }
    if (std::find(words.begin(), words.end(), "--machine") == words.end()) {
        words.insert(words.end(), {"--devices", "host:2x1"});
    }
    return words;
}

/// The longest of what is drawn on a line of the terminal, in characters of UTF-8 and without escape sequences.
std::size_t widest(const std::string& written)
{
    static const std::regex escapes("\033\\[[0-9;]*[A-Za-z]");
    const std::string text = std::regex_replace(written, escapes, "");
    std::size_t most = 0;
    std::size_t count = 0;
    for (const char c : text) {
        count = c == '\r' || c == '\n' ? 0 : count + ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1U : 0U);
        most = std::max(most, count);
    }
    return most;
}

TEST(Widths, EveryReportFitsTheTerminal)
{
    const std::vector<Words> commands{
        of_a_grid({"run"}),
        of_a_grid({"solve"}),
        of_a_grid({"solve", "--preconditioner", "amg"}),
        of_a_grid({"solve", "--method", "auto"}),
        of_a_grid({"spgemm"}),
        of_a_grid({"eigen", "--count", "2"}),
        of_a_grid({"characterize", "--iterations", "0"}),
        of_a_grid({"characterize", "--iterations", "0", "--square"}),
        of_a_grid({"run", "--dry-run", "--machine", "summit"}),
        of_a_grid({"run", "--dry-run", "--machine", "16 x dgx-h200"}),
        of_a_grid({"solve", "--dry-run", "--machine", "4 x summit"}),
        of_a_grid({"spgemm", "--dry-run", "--machine", "dgx-h200"}),
        of_a_grid({"eigen", "--dry-run", "--machine", "dgx-1"}),
        {"doctor", "--devices", "host:2x1", "--mib", "1"},
        {"kernels"},
        {"solvers"},
        {"machines"},
        {"topo"},
        {"topo", "--machine", "dgx-h200"},
        {"topo", "--machine", "summit"},
        {"help", "solve"},
        {"run", "--help-config"},
    };
    for (const Words& words : commands) {
        const std::string what = words[0] + ' ' + (words.size() > 1 ? words[1] : "");
        for (const int width : {80, 120}) {
            const std::string text = mspmv_on_terminal(width, words);
            EXPECT_THAT(text, Not(ContainsRegex("mspmv: .*error"))) << what << text;
            EXPECT_GT(std::count(text.begin(), text.end(), '\n'), 2) << what << text;
            EXPECT_LE(widest(text), static_cast<std::size_t>(width)) << what << '\n' << text;
        }
    }
    // This takes seconds.
    EXPECT_LE(widest(mspmv_on_terminal(80, {"doctor", "--devices", "host:1x1", "--limits", "--limits-mib", "1"})), 80U);
    EXPECT_GT(widest(mspmv_on_terminal(120, {"kernels"})), 80U) << "the terminal's own width counts";
    EXPECT_LE(widest(mspmv_on_terminal(120, {"kernels"}, {"COLUMNS=80"})), 80U) << "COLUMNS comes before it";
}

TEST(Widths, ColoursAreOfTerminalsWithoutNoColor)
{
    const char* const colour = "\033\\[[0-9;]*m";
    const Words run = of_a_grid({"run", "--color", "auto"});
    EXPECT_THAT(mspmv_on_terminal(80, run), ContainsRegex(colour));
    EXPECT_THAT(mspmv_on_terminal(80, {"multiply"}), ContainsRegex(colour));
    for (const char* setting : {"NO_COLOR=1", "TERM=dumb"}) {
        EXPECT_THAT(mspmv_on_terminal(80, run, {setting}), Not(ContainsRegex(colour))) << setting;
        EXPECT_THAT(mspmv_on_terminal(80, {"multiply"}, {setting}), Not(ContainsRegex(colour))) << setting;
    }
    EXPECT_THAT(mspmv_on_terminal(80, run, {"NO_COLOR="}), ContainsRegex(colour)) << "an empty one is none";
}

TEST(Widths, TheLineOfProgressFits)
{
    // Ended while it is drawn.
    const Words run = of_a_grid({"run", "--devices", "host:2x1"});
    Words timed = run;
    timed.insert(timed.end(), {"--set", "run.iterations=10000000"});
    const Words solve{"solve",
                      "--devices",
                      "host:2x1",
                      "--method",
                      "gmres",
                      "--tolerance",
                      "0",
                      "--set",
                      "matrix.generate=random 900 900 9",
                      "--set",
                      "runtime.limit_gbs=20",
                      "--set",
                      "solver.max_iterations=1000000000",
                      "--set",
                      "solver.stagnation=0",
                      "--set",
                      "solver.divergence=1e300"};
    const auto expect_drawn = [](const Words& words, int width) {
        const std::string text = mspmv_on_terminal(width, words, {}, 3);
        EXPECT_THAT(text, ContainsRegex("(starting|preparing|timing|solving) .*[0-9][.][0-9] s")) << words[0];
        // What follows the last erased line is the report.
        static const std::regex drawn("\r\033\\[K((?:starting|preparing|timing|solving) [^\r\n]*)");
        std::string lines;
        for (std::sregex_iterator line(text.begin(), text.end(), drawn), end; line != end; ++line) {
            EXPECT_LT(widest((*line)[1]), static_cast<std::size_t>(width)) << text;
            lines += (*line)[1].str() + '\n';
        }
        return lines;
    };
    expect_drawn(timed, 40);
    EXPECT_THAT(expect_drawn(solve, 40), Not(HasSubstr("iteration "))) << "for which there is no room";
    EXPECT_THAT(expect_drawn(solve, 80), HasSubstr("solving    iteration "));
}

}  // namespace
