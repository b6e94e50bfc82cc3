#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <rmsp/report.hpp>

#include "core/text.hpp"

namespace {

using rmsp::Report;
using testing::HasSubstr;
using testing::Not;

/// Two devices that share row 2 of a 4 x 5 matrix.
Report sample(int devices = 2)
{
    Report report;
    report.matrix = "hand made";
    report.topology = "test node: 1 NUMA node, 2 cores";
    report.context = {{"date", "2026-01-02T03:04:05+0000"},
                      {"host_name", "node7"},
                      {"executable", "mspmv"},
                      {"library_version", "1.2.3"},
                      {"commit", "abc1234"},
                      {"features", "host only"},
                      {"driver", "580.1"}};
    rmsp::Plan& plan = report.plan;
    plan.rows = 4;
    plan.cols = 5;
    plan.nnz = 1234567;
    plan.precision = "double";
    plan.mode = "resident";
    plan.transport = "shared";
    plan.transport_reason = "host devices share memory";
    plan.nonzero_imbalance = 0.0125;
    for (int d = 0; d < devices; ++d) {
        rmsp::ShardPlan shard;
        shard.device = d;
        shard.device_name = "host:" + std::to_string(d) + " (1 core)";
        shard.placement = {d, d % 2, {4 * d, 4 * d + 1, 4 * d + 2}, {4 * d}, "cores divided evenly"};
        shard.part = {617283 * d, 617283 * (d + 1), 2 * d, 2 * d + 2 + (d == 0 ? 1 : 0), d > 0};
        shard.kernel = "openmp";
        shard.matrix_bytes = 3 * 1024 * 1024;
        shard.vector_bytes = 72;
        shard.apply_bytes = 2000;
        shard.limit_gbs = 10;
        shard.predicted_seconds = 2e-7;
        plan.shards.push_back(shard);
    }
    report.setup = {{"read", {1.5}, true},
                    {"upload", std::vector<double>(static_cast<std::size_t>(devices), 0.25), true}};
    rmsp::Measurement m;
    m.name = "spmv/csr/double/resident";
    m.layout = "replicated -> rows";
    m.iterations = 50;
    m.median_seconds = 2e-3;
    m.min_seconds = 1e-3;
    m.max_seconds = 4e-3;
    m.wall_seconds = 2.5e-3;
    m.flops = 4e6;
    m.bytes = 2e7;
    m.limit_gbs = 20;
    m.limit_source = "given";
    m.time_imbalance = 0.25;
    m.phases = {{"kernel", std::vector<double>(static_cast<std::size_t>(devices), 1.5e-3), false},
                {"merge", std::vector<double>(static_cast<std::size_t>(devices), 2e-6), false}};
    report.measurements = {m};
    report.verification = {true, true, 1e-16, 2e-15, 3};
    report.notes = {"a note"};
    return report;
}

void expect_within_page(const std::string& text)
{
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        EXPECT_LE(line.size(), rmsp::text::width) << line;
    }
}

TEST(Text, NumbersAreForPeople)
{
    using namespace rmsp::text;
    EXPECT_EQ(grouped(0), "0");
    EXPECT_EQ(grouped(999), "999");
    EXPECT_EQ(grouped(-1000), "-1,000");
    EXPECT_EQ(grouped(26463592), "26,463,592");
    EXPECT_EQ(grouped(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
    EXPECT_EQ(seconds(0), "0 s");
    EXPECT_EQ(seconds(2.5), "2.500 s");
    EXPECT_EQ(seconds(0.0123), "12.30 ms");
    EXPECT_EQ(seconds(1.5e-7), "150.0 ns");
    EXPECT_EQ(bytes(1023), "1023 B");
    EXPECT_EQ(bytes(1536), "1.50 KiB");
    EXPECT_EQ(bytes(std::int64_t{80} << 30), "80.00 GiB");
    EXPECT_EQ(percent(0.012345), "1.23 %");
    EXPECT_EQ(percent(0.9), "90.0 %");
    EXPECT_EQ(ranges({}), "-");
    EXPECT_EQ(ranges({8, 0, 1, 2, 3}), "0-3,8");
    EXPECT_EQ(ranges({5}), "5");
    EXPECT_EQ(shortened("abcdef", 6), "abcdef");
    EXPECT_EQ(shortened("abcdefg", 6), "abc...");
}

TEST(Text, LongLinesAreBrokenBetweenWords)
{
    std::string words;
    for (int i = 0; i < 60; ++i) {
        words += "word ";
    }
    const std::string out = rmsp::text::wrapped("Note  ", words);
    expect_within_page(out);
    EXPECT_THAT(out, testing::StartsWith("Note  word word"));
    EXPECT_THAT(out, HasSubstr("\n      word"));
    EXPECT_EQ(rmsp::text::wrapped("Note  ", ""), "Note  \n");
}

TEST(Report, TextHasEverySection)
{
    const std::string text = sample().to_text();
    expect_within_page(text);
    for (const char* part : {"Matrix        hand made",
                             "Machine       test node",
                             "librmsp 1.2.3 (commit abc1234; host only) on node7",
                             "4 x 5, 1,234,567 nonzeros, csr, double, resident, 2 devices",
                             "host:0 (1 core)",
                             "4-6",
                             "617,283",
                             "3.00 MiB",
                             "devices 0-1: cores divided evenly",
                             "within 1.25 % of the fair share; 1 row cut",
                             "shared: host devices share",
                             "predicted   200.0 ns",
                             "Set-up\n  read 1.500 s",
                             "median 2.000 ms, min 1.000 ms, max 4.000 ms; 50 iterations in 2.500 ms",
                             "2.00 GFLOP/s, 10.00 GB/s, 50.0 % of 20.0 GB/s (given)",
                             "imbalance   nonzeros 1.25 %, time 25.0 %",
                             "kernel",
                             "1.500 ms",
                             "Verified      passed: error 1.00e-16, bound 2.00e-15, worst row 3",
                             "Note          a note"}) {
        EXPECT_THAT(text, HasSubstr(part));
    }
}

TEST(Report, TextTellsAFailureAndWhatWasLeftOut)
{
    Report report = sample();
    report.verification.passed = false;
    EXPECT_THAT(report.to_text(), HasSubstr("Verified      FAILED"));
    report.verification = {};
    EXPECT_THAT(report.to_text(), HasSubstr("Verified      no\n"));
    report.measurements[0].limit_gbs = 0;
    EXPECT_THAT(report.to_text(), Not(HasSubstr("% of 20")));
    report.measurements.clear();
    EXPECT_THAT(report.to_text(), Not(HasSubstr("Verified")));
}

TEST(Report, StaysWithinThePageWithManyDevicesAndPhases)
{
    Report report = sample(16);
    for (rmsp::ShardPlan& shard : report.plan.shards) {
        shard.device_name += std::string(200, 'n');
        shard.kernel = std::string(100, 'k');
        shard.part.end_idx = shard.part.start_idx + 400'000'000'000;
        shard.part.end_row = shard.part.start_row + 200'000'000'000;
        shard.placement.cpus.assign(1, 1000 * shard.device);
        shard.matrix_bytes = std::int64_t{1023} << 30;
    }
    for (int i = 0; i < 20; ++i) {
        report.measurements[0].phases.push_back(
            {"phase-number-" + std::to_string(i), std::vector<double>(16, 1e-4), false});
    }
    expect_within_page(report.to_text());
}

TEST(Report, EmptyReportsPrint)
{
    expect_within_page(Report{}.to_text());
    EXPECT_TRUE(nlohmann::json::accept(Report{}.to_json()));
    EXPECT_THAT(rmsp::Plan{}.to_text(), HasSubstr("0 x 0, 0 nonzeros"));
}

TEST(Report, JsonHasGoogleBenchmarksShape)
{
    const auto json = nlohmann::json::parse(sample().to_json());
    const auto& context = json.at("context");
    EXPECT_EQ(context.at("date"), "2026-01-02T03:04:05+0000");
    EXPECT_EQ(context.at("host_name"), "node7");
    EXPECT_EQ(context.at("executable"), "mspmv");
    EXPECT_TRUE(context.at("num_cpus").is_number_unsigned());
    EXPECT_EQ(context.at("library_version"), "1.2.3");
    EXPECT_EQ(context.at("commit"), "abc1234");
    EXPECT_EQ(context.at("features"), "host only");
    EXPECT_EQ(context.at("driver"), "580.1");
    EXPECT_EQ(context.at("devices").at(1), "host:1 (1 core)");
    EXPECT_EQ(context.at("setup_seconds").at("upload"), nlohmann::json({0.25, 0.25}));
    EXPECT_EQ(context.at("notes").at(0), "a note");
    const auto& plan = context.at("plan");
    EXPECT_EQ(plan.at("nonzeros"), 1234567);
    EXPECT_EQ(plan.at("transport"), "shared");
    EXPECT_EQ(plan.at("shards").at(1).at("start_flag"), true);
    EXPECT_EQ(plan.at("shards").at(1).at("cpus"), nlohmann::json({4, 5, 6}));
    EXPECT_EQ(plan.at("shards").at(1).at("kernel"), "openmp");

    ASSERT_EQ(json.at("benchmarks").size(), 1U);
    const auto& b = json.at("benchmarks").at(0);
    EXPECT_EQ(b.at("name"), "spmv/csr/double/resident");
    EXPECT_EQ(b.at("run_name"), b.at("name"));
    EXPECT_EQ(b.at("run_type"), "iteration");
    EXPECT_EQ(b.at("repetitions"), 1);
    EXPECT_EQ(b.at("repetition_index"), 0);
    EXPECT_EQ(b.at("threads"), 1);
    EXPECT_EQ(b.at("iterations"), 50);
    EXPECT_DOUBLE_EQ(b.at("real_time"), 2000.0);
    EXPECT_EQ(b.at("cpu_time"), b.at("real_time"));
    EXPECT_EQ(b.at("time_unit"), "us");
    EXPECT_DOUBLE_EQ(b.at("min_time"), 1000.0);
    EXPECT_DOUBLE_EQ(b.at("max_time"), 4000.0);
    EXPECT_DOUBLE_EQ(b.at("gflops"), 2.0);
    EXPECT_DOUBLE_EQ(b.at("bytes_per_second"), 1e10);
    EXPECT_DOUBLE_EQ(b.at("share_of_limit"), 0.5);
    EXPECT_DOUBLE_EQ(b.at("imbalance").at("nonzeros"), 0.0125);
    EXPECT_DOUBLE_EQ(b.at("imbalance").at("time"), 0.25);
    EXPECT_DOUBLE_EQ(b.at("phases").at("kernel").at(1), 1500.0);
    EXPECT_EQ(b.at("verified"), true);
    EXPECT_DOUBLE_EQ(b.at("error"), 1e-16);
    EXPECT_EQ(b.at("layout"), "replicated -> rows");
    EXPECT_EQ(b.at("mode"), "resident");
}

TEST(Report, JsonIsValidWhateverTheStringsAndNumbersAre)
{
    Report report = sample();
    report.matrix = "bad \xff \"name\"\n";
    report.measurements[0].median_seconds = std::nan("");
    report.verification = {};
    const auto json = nlohmann::json::parse(report.to_json());
    EXPECT_TRUE(json.at("benchmarks").at(0).at("real_time").is_null());
    EXPECT_TRUE(json.at("benchmarks").at(0).at("verified").is_null());
}

}  // namespace
