#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "program.hpp"

/// Plans of clusters: dry runs of several machines.
namespace rmsp::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;
using ::testing::HasSubstr;

Words planning(const char* command, const std::string& matrix, const std::string& machine)
{
    return {command, "--dry-run",         "--machine", machine, "--set", "matrix.generate=" + matrix,
            "--set", "matrix.values=ones"};
}

/// The cluster of the report's plan.
Json planned(const char* command, const std::string& matrix, const std::string& machine, const Words& more = {})
{
    Words words = planning(command, matrix, machine);
    words.insert(words.end(), {"--json", "-"});
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = mspmv(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.exit_code == 0 ? Json::parse(outcome.out)["context"]["plan"]["cluster"] : Json{};
}

void expect_refused(const Words& words, const std::string& why)
{
    const Outcome outcome = mspmv(words);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(why));
}

TEST(Clusters, OfAThousandMillionRowsArePlannedFromFewOfThem)
{
    const Json cluster = planned("run", "stencil27 1000 1000 1000", "16 x dgx-h200");
    EXPECT_EQ(cluster["rows"], 1e9);
    // The largest matrix that was made has fewer nonzeros than a hundredth of the rows.
    EXPECT_LT(cluster["most_nonzeros"], 3'000'000);
    // Slabs of 62.5 planes have a plane on each side, and two lines of it more where a cut goes through one.
    EXPECT_NEAR(cluster["planned"]["ghosts"], 2e6, 3000);
    EXPECT_EQ(cluster["planned"]["messages"], 2);
    // 16 MB, which pass through host memory on both sides.
    EXPECT_EQ(cluster["planned"]["limit"], "exchange");
}

TEST(Clusters, OfOtherKindsAreForetoldBySamples)
{
    const Json random = planned("run", "random 1000000000 1000000000 4", "4 x dgx-h100");
    // Of 4 x 10^9 / 4 columns of 10^9 a node has no e^-1 of those that others have.
    EXPECT_NEAR(random["planned"]["ghosts"], 0.75e9 * (1 - std::exp(-1)), 1e7);
    EXPECT_LT(random["most_nonzeros"], 3'000'000);
}

TEST(Clusters, HaveTablesOfScalingAndSayWhatLimitsEachStep)
{
    const Json cluster = planned("run", "stencil7 400 400 400", "6 x summit");
    for (const char* table : {"strong", "weak"}) {
        const Json& steps = cluster[table];
        ASSERT_EQ(steps.size(), 12u);  // 1, 2, 4, 6, 8, ... 1,024
        for (std::size_t i = 0; i < steps.size(); ++i) {
            const Json& step = steps[i];
            EXPECT_GT(step["seconds"], 0);
            EXPECT_EQ(step["ghosts"] == 0, step["nodes"] == 1);
            // The step takes as long as its longest part at least, and as all of them at most.
            double sum = 0;
            double longest = 0;
            for (const char* part : {"bytes_seconds", "exchange_seconds", "latency_seconds", "launch_seconds"}) {
                sum += step[part].get<double>();
                longest = std::max(longest, step[part].get<double>());
            }
            EXPECT_LE(step["seconds"], sum * 1.0001);
            EXPECT_GE(step["seconds"], longest * 0.9999);
            const std::string limit = step["limit"];
            EXPECT_EQ(step[limit == "launches" ? "launch_seconds" : limit + "_seconds"], longest);
        }
        EXPECT_EQ(steps[3]["nodes"], 6);
        EXPECT_EQ(steps[3], cluster["planned"]);
    }
    // The same matrix on more nodes ends with something else than bytes; as much on each takes as long.
    EXPECT_EQ(cluster["strong"].front()["limit"], "bytes");
    EXPECT_NE(cluster["strong"].back()["limit"], "bytes");
    EXPECT_EQ(cluster["strong"].back()["rows"], 64e6);
    EXPECT_EQ(cluster["weak"].back()["ghosts"], cluster["weak"][2]["ghosts"]);
    EXPECT_NEAR(cluster["weak"].back()["rows"], 64e6 / 6 * 1024, 1);

    const Outcome text = mspmv(planning("run", "stencil7 400 400 400", "6 x summit"));
    for (const char* part : {"Summit (IBM AC922)", "Cluster       6 nodes", "2 adapters a node of 12.5 GB/s",
                             "64,000,000 x 64,000,000", "strong scaling", "weak scaling", "limited by"}) {
        EXPECT_THAT(text.out, HasSubstr(part));
    }
}

TEST(Clusters, CountTheSumsOfSolvers)
{
    const std::string matrix = "stencil7 16 16 16";
    const auto sums = [&](const char* method) {
        return planned("solve", matrix, "16 x dgx-h200", {"--method", method});
    };
    const Json cg = sums("cg");
    EXPECT_EQ(cg["products"], 1);
    EXPECT_EQ(cg["sums"], 2);
    // Doubles of a row in the passes, as Sequence::bytes() counts them: p; r, q and r; r; x, r, p, x and p.
    EXPECT_EQ(cg["vector_bytes"], 80);
    EXPECT_EQ(sums("cg_single")["sums"], 1);
    EXPECT_EQ(sums("cg_single")["sums_beside"], 0);
    // Four products more in each turn of 50.
    const Json pipelined = sums("cg_pipelined");
    EXPECT_EQ(pipelined["sums"], 1);
    EXPECT_EQ(pipelined["sums_beside"], 1);
    EXPECT_NEAR(pipelined["products"], 1.08, 1e-9);
    EXPECT_EQ(sums("bicgstab")["products"], 2);
    // Latency counts with the logarithm of the nodes, and one product's messages.
    const Json& step = cg["planned"];
    EXPECT_NEAR(step["latency_seconds"], 1.5e-6 * (2 * 4 + step["messages"].get<double>()), 1e-12);
}

TEST(Clusters, ChooseAVariantOfConjugateGradients)
{
    const auto step = [](const std::string& matrix, const char* machine) -> std::string {
        return planned("solve", matrix, machine, {"--method", "auto"})["step"];
    };
    EXPECT_EQ(step("stencil7 400 400 400", "2 x dgx-h200"), "iteration of cg");
    EXPECT_EQ(step("stencil7 60 60 60", "1024 x dgx-h200"), "iteration of cg_pipelined");
    Words words = planning("solve", "stencil7 60 60 60", "64 x summit");
    words.insert(words.end(), {"--method", "auto"});
    const Outcome text = mspmv(words);
    EXPECT_EQ(text.exit_code, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("chosen      an iteration is expected to take: cg "));
}

TEST(Clusters, OfOneNodeAreThatNode)
{
    const Json cluster = planned("run", "stencil7 12 12 12", "1 x dgx-h200");
    EXPECT_EQ(cluster["planned"]["ghosts"], 0);
    EXPECT_EQ(cluster["planned"]["exchange_seconds"], 0);
    EXPECT_EQ(cluster["strong"].front(), cluster["weak"].front());
    // A description that has no name.
    EXPECT_EQ(planned("run", "stencil7 12 12 12", "1 x machines/dgx-h200.toml"), cluster);
}

TEST(Clusters, AreRefusedWhereTheyCannotBePlanned)
{
    const std::string matrix = "stencil7 9 9 9";
    expect_refused(planning("run", matrix, "0 x dgx-h200"), "from 1 to 1000000");
    expect_refused(planning("run", matrix, "99999999999 x dgx-h200"), "from 1 to 1000000");
    expect_refused(planning("run", matrix, "16 x dgx-h20"), "the nearest is");
    expect_refused(planning("run", matrix, "4 x power8"), "no [network]");
    expect_refused(planning("spgemm", matrix, "4 x dgx-h200"), "mspmv spgemm plans for one");
    Words streamed = planning("run", matrix, "4 x dgx-h200");
    streamed.insert(streamed.end(), {"--set", "run.mode=streamed"});
    expect_refused(streamed, "run.mode is \"streamed\"");
    Words csc = planning("run", matrix, "4 x dgx-h200");
    csc.insert(csc.end(), {"--format", "csc"});
    expect_refused(csc, "multiplies csr");
    Words inner = planning("solve", matrix, "4 x dgx-h200");
    inner.insert(inner.end(), {"--method", "ir", "--set", "solver.inner=cg"});
    expect_refused(inner, "has no inner solver");
}

}  // namespace
}  // namespace rmsp::test
