#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <rmsp/io.hpp>

#include "tests/apps/program.hpp"

/// Every command that README, docs, configurations and help texts show.
namespace {

using rmsp::test::has_mspmv_mpi;
using rmsp::test::mspmv;
using rmsp::test::mspmv_in;
using rmsp::test::mspmv_mpi_in;
using rmsp::test::Outcome;
using rmsp::test::read_text;
using rmsp::test::Scratch;
using rmsp::test::source_path;
using testing::HasSubstr;

using Json = nlohmann::json;
using Words = std::vector<std::string>;

/// Without comments and what a shell would do with the output; quotes hold words together.
Words words_of(const std::string& line)
{
    Words words;
    std::string word;
    bool quoted = false;
    bool begun = false;
    for (const char c : line + ' ') {
        if (c == '"') {
            quoted = !quoted;
            begun = true;
        } else if (c != ' ' || quoted) {
            word += c;
            begun = true;
        } else if (begun) {
            if (word == "#" || word == ">" || word[0] == '(') {
                break;
            }
            words.push_back(word);
            word.clear();
            begun = false;
        }
    }
    return words;
}

/// Lines of code that begin with mspmv, or start it or mspmv-mpi by srun or mpirun; those with placeholders say how a
/// command is called, and are none. The first word is "mspmv", or the number of processes of mspmv-mpi.
void add_commands(const std::string& text, std::set<Words>& commands)
{
    std::istringstream lines(text);
    bool fenced = false;
    for (std::string line; std::getline(lines, line);) {
        for (std::string more; line.ends_with('\\') && std::getline(lines, more);) {
            line.replace(line.size() - 1, 1, more);
        }
        fenced = fenced != line.starts_with("```");
        std::smatch command;
        static const std::regex code("^( {2,}|# *|)(?:srun .*|mpirun -n ([0-9]+) )?mspmv(?:-mpi)?( [^\\[]*)$");
        if (std::regex_match(line, command, code) && (fenced || command.length(1) > 0) &&
            line.find(" KIND ") == std::string::npos && line.find(" IN OUT") == std::string::npos &&
            line.find("mspmv:") == std::string::npos) {
            Words words = words_of(command[3]);
            words.insert(words.begin(), command.length(2) > 0 ? command[2].str() : "mspmv");
            commands.insert(words);
        }
    }
}

std::set<Words> all_commands()
{
    std::set<Words> commands;
    add_commands(read_text(source_path("README.md")), commands);
    for (const char* folder : {"docs", "docs/guide", "configs"}) {
        for (const auto& entry : std::filesystem::directory_iterator(source_path(folder))) {
            if (entry.is_regular_file()) {
                add_commands(read_text(entry.path().string()), commands);
            }
        }
    }
    const std::string help = mspmv({"--help"}).out;
    add_commands(help.substr(help.find("Examples:")), commands);
    for (const char* command : {"run", "spgemm", "solve", "eigen", "solvers", "characterize", "report", "plot",
                                "machines", "topo", "doctor", "kernels", "generate", "convert", "help", "completion"}) {
        const std::string text = mspmv({command, "--help"}).out;
        add_commands(text.substr(text.find("Example")), commands);
    }
    return commands;
}

/// The files that the examples are about.
void make_files(const Scratch& scratch)
{
    for (const char* folder : {"configs", "docs"}) {
        std::filesystem::create_directory_symlink(source_path(folder), scratch / folder);
    }
    const auto a = rmsp::stencil7<double>(4, 4, 3, {.values = rmsp::ValueKind::poisson});
    for (const char* name : {"my.mtx", "my.mtx.gz", "matrix.mtx", "matrix.mtx.gz", "matrix.npz", "a.mtx.gz", "a.npz",
                             "b.npz", "mesh.mtx.xz", "my.npz", "stencil.npz", "cage10.mtx"}) {
        rmsp::write_matrix<double>(scratch / name, a.view());
    }
    for (const char* name : {"x.npy", "b.npy"}) {
        rmsp::write_vector<double>(scratch / name, std::vector<double>(48, 1.0));
    }
    std::ofstream(scratch / "node.toml") << mspmv({"topo", "--toml", "--machine", "power8"}).out;
    EXPECT_EQ(mspmv_in(scratch.path().string(),
                       {"run", "--matrix", "my.mtx", "--devices", "host:2x1", "--set", "run.iterations=1", "--set",
                        "runtime.limit_gbs=20", "--json", "report.json"})
                  .exit_code,
              0);
    std::filesystem::copy_file(scratch / "report.json", scratch / "result.json");
}

bool has(const Words& words, const std::string& word)
{
    return std::find(words.begin(), words.end(), word) != words.end();
}

bool computes(const Words& words)
{
    return words[1] == "run" || words[1] == "spgemm" || words[1] == "solve" || words[1] == "eigen";
}

std::string line_of(const Words& words)
{
    std::string line;
    for (const std::string& word : words) {
        line += ' ' + word;
    }
    return line;
}

/// As it is written where it needs no GPU and no long work; else planned only, of smaller matrices, or tested with
/// shorter copies.
Words planned(Words words)
{
    const std::string command = words[1];
    if (command == "generate") {
        static const std::regex size("[0-9]{2,}");
        for (std::string& word : words) {
            word = std::regex_match(word, size) ? "9" : word;
        }
    } else if (command == "doctor") {
        words.insert(words.end(), {has(words, "--limits") ? "--limits-mib" : "--mib", "1"});
    } else if (computes(words)) {
        if (!has(words, "--dry-run")) {
            words.emplace_back("--dry-run");
        }
        if (has(words, "0,1") && !has(words, "--machine")) {
            words.insert(words.end(), {"--machine", "dgx-h200"});
        }
        if (command == "spgemm" && !has(words, "--matrix")) {
            words.insert(words.end(), {"--set", "matrix.generate=stencil27 9 9 9"});
        }
        words.insert(words.end(), {"--set", "runtime.limit_gbs=20"});
    }
    return {words.begin() + 1, words.end()};
}

/// The same command with a small matrix, on two host devices where GPUs are named or nothing is, and few repetitions.
Words computed(Words words)
{
    std::replace(words.begin(), words.end(), std::string("0,1"), std::string("host:2x1"));
    const bool of_processes = words.front() != "mspmv";
    const auto set = [&](const std::string& setting) { words.insert(words.end(), {"--set", setting}); };
    if (!has(words, "--devices")) {
        set(of_processes ? "runtime.devices=host:1x1" : "runtime.devices=host:2x1");
    }
    if (!has(words, "--matrix")) {
        set("matrix.generate=stencil7 6 6 6");
        set("matrix.values=poisson");
    }
    for (const char* setting : {"run.iterations=2", "spgemm.iterations=1", "runtime.limit_gbs=20"}) {
        set(setting);
    }
    return {words.begin() + 1, words.end()};
}

TEST(Commands, OfDocumentsAndHelpRun)
{
    const Scratch scratch;
    make_files(scratch);
    // As a user has it, whose runs remember what the machine can do: each would measure that anew.
    const Words cache{"RMSP_CACHE_DIR=" + scratch / "cache"};
    const std::set<Words> commands = all_commands();
    EXPECT_GE(commands.size(), 40U);
    for (const Words& words : commands) {
        if (words.front() != "mspmv" ||
            (has(words, "--json") && words[1] == "run" && !has(words, "--dry-run") && !has(words, "--matrix"))) {
            continue;  // several processes make no plans; the report is there
        }
        const Outcome outcome = mspmv_in(scratch.path().string(), planned(words), cache);
        EXPECT_EQ(outcome.exit_code, 0) << line_of(words) << '\n' << outcome.err;
        const bool drawn = words[1] == "plot" || (words[1] == "report" && has(words, "--html"));
        EXPECT_EQ(outcome.out.empty(), drawn) << line_of(words);
    }
}

TEST(Commands, OfDocumentsAndHelpCompute)
{
    const Scratch scratch;
    make_files(scratch);
    // What the documents make by the command before.
    for (const Words& words :
         {Words{"generate", "elasticity", "3", "3", "3", "-o", "beam.npz", "--coordinates", "beam.npy"},
          Words{"characterize", "--matrix", "a.mtx.gz", "--save-order", "order.npy", "--iterations", "0"}}) {
        ASSERT_EQ(mspmv_in(scratch.path().string(), words).exit_code, 0) << words.front();
    }
    const Words cache{"RMSP_CACHE_DIR=" + scratch / "cache"};  // what the machine can do is measured once
    int of_one = 0;
    int of_processes = 0;
    for (const Words& words : all_commands()) {
        if (!computes(words) || has(words, "--dry-run") || has(words, "--machine")) {
            continue;
        }
        const bool one = words.front() == "mspmv";
        if (!one && !has_mspmv_mpi()) {
            continue;
        }
        ++(one ? of_one : of_processes);
        const Outcome outcome = one ? mspmv_in(scratch.path().string(), computed(words), cache)
                                    : mspmv_mpi_in(scratch.path().string(), words.front(), computed(words));
        EXPECT_EQ(outcome.exit_code, 0) << line_of(words) << '\n' << outcome.out << outcome.err;
        EXPECT_FALSE(outcome.out.empty()) << line_of(words);
    }
    EXPECT_GE(of_one, 25);
    EXPECT_GE(of_processes, has_mspmv_mpi() ? 4 : 0);
}

TEST(Commands, PlansForDescribedMachinesSayTheWholeTime)
{
    const Scratch scratch;
    const Outcome summit = mspmv({"run", "configs/summit.toml", "--dry-run"});
    ASSERT_EQ(summit.exit_code, 0) << summit.err;
    EXPECT_THAT(summit.out, HasSubstr("Summit (IBM AC922)"));
    EXPECT_THAT(summit.out, HasSubstr(" an apply, "));
    EXPECT_THAT(summit.out, HasSubstr(" for 110 of them"));
    // 418 million nonzeros are not generated to plan for them.
    const Outcome dgx = mspmv_in(scratch.path().string(), {"run", source_path("configs/dgx.toml"), "--dry-run"});
    ASSERT_EQ(dgx.exit_code, 0) << dgx.err;
    EXPECT_THAT(dgx.out, HasSubstr("DGX H200: 2 NUMA nodes"));
    EXPECT_THAT(dgx.out, HasSubstr("15,625,000 x 15,625,000, 418,508,992 nonzeros"));
    EXPECT_THAT(dgx.out, HasSubstr("extrapolated"));
    EXPECT_THAT(dgx.out, HasSubstr("devices  an apply  speed-up"));
    // A configuration is found by its name anywhere.
    const Words small{"run",   "quickstart.toml",           "--dry-run", "--machine", "power8",
                      "--set", "matrix.generate=banded 9 1"};
    EXPECT_EQ(mspmv_in(scratch.path().string(), small).exit_code, 0);
    const Outcome other = mspmv({"run", "configs/summit.toml", "--dry-run", "--machine", "dgx-2", "--devices", "auto"});
    ASSERT_EQ(other.exit_code, 0) << other.err;
    EXPECT_THAT(other.out, HasSubstr("DGX-2: 2 NUMA nodes"));
    const Outcome unknown = mspmv({"run", "configs/summit.toml", "--dry-run", "--machine", "sumit"});
    EXPECT_EQ(unknown.exit_code, 2);
    EXPECT_THAT(unknown.err, HasSubstr("the nearest is \"summit\""));
    // The name in a configuration is of dry runs; on the command line it is a mistake without one.
    const Words run{"run",   "configs/summit.toml",        "--devices", "host:2",
                    "--set", "matrix.generate=banded 9 1", "--set",     "runtime.limit_gbs=20"};
    EXPECT_EQ(mspmv(run).exit_code, 0);
    Words named = run;
    named.insert(named.end(), {"--machine", "summit"});
    const Outcome live = mspmv(named);
    EXPECT_EQ(live.exit_code, 2);
    EXPECT_THAT(live.err, HasSubstr("only --dry-run can use it"));
}

TEST(Commands, SamplesForetellWhatTheWholeIs)
{
    // Of a matrix that is generated, and of samples of one that is a little larger.
    const auto planned = [](const std::string& matrix) {
        const Outcome outcome =
            mspmv({"run", "--dry-run", "--machine", "dgx-h200", "--set", "matrix.generate=" + matrix});
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        std::smatch time;
        EXPECT_TRUE(std::regex_search(outcome.out, time, std::regex("predicted +([0-9.]+) us an apply")))
            << outcome.out;
        return std::pair(std::stod(time[1]), outcome.out.find("extrapolated") != std::string::npos);
    };
    const auto whole = planned("banded 195000 10");
    const auto samples = planned("banded 205000 10");
    EXPECT_FALSE(whole.second);
    EXPECT_TRUE(samples.second);
    EXPECT_NEAR(samples.first, whole.first, 0.15 * whole.first);
}

TEST(Commands, RooflinesOfRunsHaveThePeakThatIsKept)
{
    const Scratch scratch;
    const Words cache{"RMSP_CACHE_DIR=" + scratch / "cache"};
    const std::string json = scratch / "r.json";
    const auto peak = [&] {
        const Outcome outcome = mspmv({"run", "--devices", "host:2x1", "--set", "matrix.generate=stencil7 9 9 9",
                                       "--set", "runtime.limit_gbs=20", "--set", "run.iterations=2", "--json", json},
                                      cache);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_EQ(mspmv({"report", json, "--html", scratch / "r.html"}).exit_code, 0);
        return Json::parse(read_text(json))["context"]["peak_gflops"].get<double>();
    };
    const auto roofs = [&] {
        const std::string page = read_text(scratch / "r.html");
        EXPECT_THAT(page, HasSubstr("the roof: 40 GB/s"));
        return page.find("the roof: 40 GB/s, ") != std::string::npos;
    };
    EXPECT_EQ(peak(), 0);
    EXPECT_FALSE(roofs());
    const Outcome limits = mspmv(
        {"doctor", "--devices", "host:2x1", "--limits", "--limits-mib", "1", "--json", scratch / "l.json"}, cache);
    ASSERT_EQ(limits.exit_code, 0) << limits.err;
    double most = 0;
    const Json measured = Json::parse(read_text(scratch / "l.json"));
    for (const Json& device : measured["devices"]) {
        double best = 0;
        for (const Json& point : device["compute"]) {
            best = point["precision"] == "double" ? std::max(best, point["gflops"].get<double>()) : best;
        }
        most += best;
    }
    ASSERT_GT(most, 0);
    EXPECT_NEAR(peak(), most, 1e-6 * most);
    EXPECT_TRUE(roofs());
}

TEST(Commands, ReportsComeBackFromTheirJson)
{
    const Scratch scratch;
    const std::string json = scratch / "r.json";
    const auto expect_page = [&](const Words& words, const Words& titles) {
        Words all = words;
        all.insert(all.end(), {"--devices", "host:2x1", "--set", "matrix.generate=stencil7 9 9 9", "--set",
                               "matrix.values=poisson", "--set", "runtime.limit_gbs=20", "--set", "run.iterations=2",
                               "--json", json});
        const Outcome outcome = mspmv(all);
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_EQ(mspmv({"report", json}).out, outcome.out);
        ASSERT_EQ(mspmv({"report", json, "--html", scratch / "r.html"}).exit_code, 0);
        const std::string page = read_text(scratch / "r.html");
        for (const std::string& title : titles) {
            EXPECT_THAT(page, HasSubstr("<h2>" + title)) << words.front();
        }
        EXPECT_THAT(page, HasSubstr("</html>"));
        for (const char* other : {"<script", "src=", "href=", "@import", "url("}) {
            EXPECT_EQ(page.find(other), std::string::npos) << other;
        }
    };
    expect_page({"run"}, {"Machine", "Phases", "Roofline", "Balance"});
    expect_page({"spgemm", "--set", "spgemm.iterations=1"}, {"Machine", "Balance"});
    expect_page({"solve"}, {"Machine", "Residual"});
    expect_page({"run", "--dry-run"}, {"Machine", "Predicted"});
    // Links of a described machine are drawn, with what they carry.
    ASSERT_EQ(
        mspmv({"run", "--dry-run", "--machine", "dgx-1", "--set", "matrix.generate=stencil7 9 9 9", "--json", json})
            .exit_code,
        0);
    ASSERT_EQ(mspmv({"report", json, "--html", scratch / "r.html"}).exit_code, 0);
    for (const char* link : {"NVLink 2 x2: 50 GB/s", "PCIe 3 x16: 16 GB/s", ">QPI<"}) {
        EXPECT_THAT(read_text(scratch / "r.html"), HasSubstr(link));
    }
    std::ofstream(scratch / "bad.json") << "{\"context\": ";
    EXPECT_THAT(mspmv({"report", scratch / "bad.json"}).err, HasSubstr("bad.json: not JSON: byte "));
    std::ofstream(scratch / "other.json") << "{\"context\": {}, \"benchmarks\": []}";
    const Outcome other = mspmv({"report", scratch / "other.json"});
    EXPECT_EQ(other.exit_code, 3);
    EXPECT_THAT(other.err, HasSubstr("not a report of mspmv"));
    EXPECT_EQ(mspmv({"report", scratch / "no-such.json"}).exit_code, 3);
}

TEST(Commands, ReportsAreDrawnBesideEachOther)
{
    const Scratch scratch;
    const auto measured = [&](const std::string& devices, const std::string& json) {
        return mspmv({"run", "--devices", devices, "--set", "matrix.generate=stencil7 9 9 9", "--set",
                      "runtime.limit_gbs=20", "--set", "run.iterations=2", "--json", json})
            .exit_code;
    };
    ASSERT_EQ(measured("host:1x1", scratch / "one.json"), 0);
    ASSERT_EQ(measured("host:2x1", scratch / "two.json"), 0);
    const auto drawn = [&](const Words& more) {
        Words words{"plot", scratch / "one.json", scratch / "two.json"};
        words.insert(words.end(), more.begin(), more.end());
        return mspmv(words);
    };
    ASSERT_EQ(drawn({"-o", scratch / "p.html"}).exit_code, 0);
    const std::string page = read_text(scratch / "p.html");
    for (const char* part : {"<h2>Median time", "<h2>GFLOP/s", "<h2>Share of", "<h2>Speed-up", "one: stencil7 9 9 9",
                             "two: stencil7 9 9 9", "this machine", "commit ", "</html>"}) {
        EXPECT_THAT(page, HasSubstr(part));
    }
    EXPECT_EQ(page.find("http"), std::string::npos);
    ASSERT_EQ(drawn({"--labels", "a <b>,c", "-o", scratch / "p.svg"}).exit_code, 0);
    const std::string svg = read_text(scratch / "p.svg");
    EXPECT_EQ(svg.find("<svg xmlns="), 0U);
    EXPECT_THAT(svg, HasSubstr("a &lt;b&gt;: stencil7 9 9 9"));
    EXPECT_THAT(svg, HasSubstr("</text>\n</svg>"));
    EXPECT_EQ(drawn({"-o", scratch / "p.png"}).exit_code, 2);
    const Outcome labels = drawn({"--labels", "a,b,c", "-o", scratch / "q.svg"});
    EXPECT_EQ(labels.exit_code, 2);
    EXPECT_THAT(labels.err, HasSubstr("--labels: 3 labels for 2 reports"));
    EXPECT_EQ(mspmv({"plot", scratch / "no-such.json", "-o", scratch / "p.svg"}).exit_code, 3);
}

}  // namespace
