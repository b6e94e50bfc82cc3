// What `mspmv characterize` writes, and refuses.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/apps/program.hpp"

namespace {

using nlohmann::json;
using rmsp::test::expect_failure;
using rmsp::test::mspmv;
using rmsp::test::Outcome;
using rmsp::test::read_text;
using rmsp::test::Scratch;
using testing::HasSubstr;
using testing::Not;

/// A grid whose product moves more than the fast memory holds.
std::vector<std::string> small_with(const std::vector<std::string>& more)
{
    std::vector<std::string> words{"characterize",
                                   "--devices",
                                   "host:2",
                                   "--set",
                                   "matrix.generate=stencil7 6 5 4",
                                   "--set",
                                   "runtime.limit_gbs=20",
                                   "--fast-memory",
                                   "4096",
                                   "--partitioner",
                                   "greedy"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

void expect_fields(const json& document)
{
    for (const char* field : {"operation", "precision", "rows", "inner", "cols", "a_nonzeros", "b_nonzeros",
                              "c_nonzeros", "multiplies", "flops", "compression", "flops_per_word", "row_lengths"}) {
        EXPECT_TRUE(document.at("matrix").contains(field)) << field;
    }
    const json& bounds = document.at("bounds");
    EXPECT_GE(bounds.at("upper").at("bytes"), bounds.at("lower").at("bytes"));
    EXPECT_GE(bounds.at("lower").at("words"), bounds.at("footprint").at("words"));
    EXPECT_GE(bounds.at("cache").at("bytes"), bounds.at("cache").at("compulsory_bytes"));
    EXPECT_LE(bounds.at("cache").at("bytes"), bounds.at("cache").at("uncached_bytes"));
    EXPECT_EQ(bounds.at("upper").at("partitioner"), "greedy growth");
    ASSERT_EQ(document.at("orders").size(), 4u);
    EXPECT_EQ(document.at("orders").at(3).at("order"), "partition");
    EXPECT_TRUE(document.at("context").contains("commit"));
    EXPECT_TRUE(document.contains("predicted"));
    EXPECT_FALSE(document.at("advice").empty());
}

TEST(CharacterizeCommand, WritesTextJsonAndPage)
{
    const Scratch scratch;
    const Outcome outcome = mspmv(small_with(
        {"--iterations", "1", "--peak-gflops", "100", "--json", scratch / "c.json", "--html", scratch / "c.html"}));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("Bytes moved"));
    EXPECT_THAT(outcome.out, HasSubstr("memory is the bound"));
    const json document = json::parse(read_text(scratch / "c.json"));
    expect_fields(document);
    EXPECT_EQ(document.at("matrix").at("operation"), "y = A x");
    EXPECT_GT(document.at("measured").at("seconds"), 0.0);
    const std::string page = read_text(scratch / "c.html");
    EXPECT_THAT(page, HasSubstr("<svg"));
    EXPECT_THAT(page, HasSubstr("Roofline"));
    EXPECT_THAT(page, HasSubstr("</html>"));
    // By itself: nothing is loaded.
    EXPECT_THAT(page, Not(HasSubstr("http")));
    EXPECT_THAT(page, Not(HasSubstr("<script")));
}

TEST(CharacterizeCommand, SquareIsAProduct)
{
    const Outcome outcome = mspmv(small_with({"--square", "--iterations", "0", "--json", "-"}));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const json document = json::parse(outcome.out);
    expect_fields(document);
    EXPECT_EQ(document.at("matrix").at("operation"), "C = A B");
    EXPECT_TRUE(document.at("orders").at(0).at("seconds").is_null());
}

TEST(CharacterizeCommand, ZoltanPartitions)
{
    for (const std::string limit : {"0", "1000000"}) {
        const Outcome outcome = mspmv(small_with(
            {"--partitioner", "zoltan", "--fine-limit", limit, "--square", "--iterations", "0", "--json", "-"}));
        if (outcome.exit_code == 2) {
            EXPECT_THAT(outcome.err, HasSubstr("this build is without Zoltan"));
            GTEST_SKIP() << "built without Zoltan";
        }
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        const json bounds = json::parse(outcome.out).at("bounds");
        EXPECT_THAT(bounds.at("upper").at("partitioner").get<std::string>(), HasSubstr("Zoltan"));
        EXPECT_GE(bounds.at("upper").at("bytes"), bounds.at("lower").at("bytes"));
    }
}

TEST(CharacterizeCommand, PredictsForADescribedMachine)
{
    const Outcome outcome = mspmv({"characterize", "--set", "matrix.generate=stencil27 12 12 12", "--partitioner",
                                   "greedy", "--dry-run", "--topology", "machines/dgx-h200.toml", "--json", "-"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const json document = json::parse(outcome.out);
    EXPECT_FALSE(document.at("predicted").at("kernels").empty());
    EXPECT_EQ(document.at("predicted").at("devices").size(), 8u);
    EXPECT_GT(document.at("predicted").at("devices").at(0).at("seconds"), 0.0);
    EXPECT_EQ(document.at("measured").at("seconds"), 0.0);
    EXPECT_THAT(outcome.err, HasSubstr("leaves exchanges out"));
}

TEST(CharacterizeCommand, TwoMatrices)
{
    const Scratch scratch;
    ASSERT_EQ(mspmv({"generate", "random", "120", "30", "3", "-o", scratch / "b.npz"}).exit_code, 0);
    const Outcome outcome = mspmv(small_with({"--b", scratch / "b.npz", "--iterations", "1", "--json", "-"}));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const json document = json::parse(outcome.out);
    EXPECT_EQ(document.at("matrix").at("cols"), 30);
    EXPECT_TRUE(document.at("orders").empty());
    ASSERT_EQ(mspmv({"generate", "random", "40", "30", "3", "-o", scratch / "c.npz"}).exit_code, 0);
    expect_failure(2, "A is 120 x 120 and B 40 x 30", small_with({"--b", scratch / "c.npz"}));
}

TEST(CharacterizeCommand, SavedOrderIsUsed)
{
    const Scratch scratch;
    const std::string order = scratch / "order.npy";
    ASSERT_EQ(mspmv(small_with({"--iterations", "0", "--order", "degree", "--save-order", order, "--json",
                                scratch / "a.json"}))
                  .exit_code,
              0);
    const Outcome other =
        mspmv(small_with({"--iterations", "0", "--set", "matrix.permutation=" + order, "--json", "-"}));
    ASSERT_EQ(other.exit_code, 0) << other.err;
    const json before = json::parse(read_text(scratch / "a.json"));
    const json after = json::parse(other.out);
    EXPECT_EQ(before.at("orders").at(2).at("cache"), after.at("orders").at(0).at("cache"));
    EXPECT_EQ(mspmv({"generate", "stencil7", "6", "5", "4", "-o", scratch / "p.mtx", "--permutation", order}).exit_code,
              0);
    expect_failure(2, "order.npy: a numbering of 125 rows",
                   {"generate", "stencil7", "5", "5", "5", "-o", scratch / "q.mtx", "--permutation", order});
    expect_failure(
        2, "two numberings",
        {"generate", "stencil7", "6", "5", "4", "-o", scratch / "q.mtx", "--permutation", order, "--renumber"});
    std::ofstream(scratch / "text.npy") << "1 2 3";
    expect_failure(3, "text.npy: a numbering is an .npy file",
                   {"generate", "banded", "3", "1", "-o", scratch / "q.mtx", "--permutation", scratch / "text.npy"});
}

TEST(CharacterizeCommand, BadInputIsNamed)
{
    const Scratch scratch;
    expect_failure(3, "no-such.mtx", {"characterize", "--matrix", "no-such.mtx"});
    expect_failure(3, "no-such.mtx", small_with({"--b", "no-such.mtx"}));
    expect_failure(3, "cannot create", small_with({"--html", scratch / "no" + std::string("-folder/c.html")}));
    expect_failure(3, "cannot create", small_with({"--json", scratch.path().string()}));
    expect_failure(2, "does not end in .npy", small_with({"--save-order", scratch / "order.txt"}));
    expect_failure(2, "CONFIG.toml", {"characterize"});
    expect_failure(2, "--square does not have", small_with({"--square", "--b", "x.mtx"}));
    expect_failure(2, "\"best\" is no partitioner", small_with({"--partitioner", "best"}));
    expect_failure(2, "does not hold the operands of one multiply", small_with({"--fast-memory", "20"}));
    expect_failure(2, "is no power of two", small_with({"--line", "20"}));
}

}  // namespace
