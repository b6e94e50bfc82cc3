#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/io.hpp>

#include "tests/apps/program.hpp"

namespace {

using rmsp::test::mspmv;
using rmsp::test::Outcome;
using rmsp::test::Scratch;
using testing::ElementsAre;
using testing::HasSubstr;

/// On two host devices whose bandwidth is not measured.
Outcome on_two(const std::string& command, const std::string& matrix, const std::vector<std::string>& more)
{
    std::vector<std::string> words{command, "--matrix",         matrix,  "--devices",           "host:2x1",
                                   "--set", "run.iterations=1", "--set", "runtime.limit_gbs=20"};
    words.insert(words.end(), more.begin(), more.end());
    return mspmv(words);
}

//     | 4 1 0 |
// A = | 0 2 0 |
//     | 3 0 5 |
std::string small_matrix(const Scratch& scratch)
{
    std::ofstream(scratch / "a.mtx") << "%%MatrixMarket matrix coordinate real general\n3 3 5\n"
                                        "1 1 4\n1 2 1\n2 2 2\n3 1 3\n3 3 5\n";
    return scratch / "a.mtx";
}

TEST(Results, YIsWritten)
{
    const Scratch scratch;
    const std::string a = small_matrix(scratch);
    rmsp::write_vector<double>(scratch / "x.npy", std::vector<double>{1, 10, 100});
    const Outcome plain = on_two("run", a, {"--x", scratch / "x.npy", "--y", scratch / "y.npy"});
    ASSERT_EQ(plain.exit_code, 0) << plain.err;
    EXPECT_THAT(rmsp::read_vector<double>(scratch / "y.npy"), ElementsAre(14, 20, 503));
    // From one form to another; by rows and by columns; with values of float.
    rmsp::write_vector<double>(scratch / "x.mtx.gz", std::vector<double>{1, 10, 100});
    for (const char* format : {"csr", "csc", "coo"}) {
        const Outcome outcome =
            on_two("run", a,
                   {"--x", scratch / "x.mtx.gz", "--y", scratch / "y.mtx", "--format", format, "--set",
                    "matrix.precision=float", "--set", "run.alpha=2", "--set", "run.vectors=rows"});
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        EXPECT_THAT(rmsp::read_vector<float>(scratch / "y.mtx"), ElementsAre(28, 40, 1006)) << format;
    }
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 5);
}

TEST(Results, OfAConfigurationFile)
{
    const Scratch scratch;
    const std::string a = small_matrix(scratch);
    rmsp::write_vector<double>(scratch / "x.npy", std::vector<double>{1, 10, 100});
    rmsp::write_vector<double>(scratch / "b.npy", std::vector<double>{1, 1, 1});
    std::ofstream(scratch / "run.toml") << "[matrix]\nfile = \"" << a << "\"\nrenumber = true\n[run]\niterations = 1\n"
                                        << "beta = -1\nx = \"" << (scratch / "x.npy") << "\"\ny_in = \""
                                        << (scratch / "b.npy") << "\"\ny = \"" << (scratch / "y.npy") << "\"\n";
    const Outcome outcome =
        mspmv({"run", scratch / "run.toml", "--devices", "host:2x1", "--set", "runtime.limit_gbs=20"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    // In the numbering of the file, whatever the devices multiplied.
    EXPECT_THAT(rmsp::read_vector<double>(scratch / "y.npy"), ElementsAre(13, 19, 502));
}

TEST(Results, SolutionsAreInTheNumberingOfTheFile)
{
    const Scratch scratch;
    const std::string a = small_matrix(scratch);
    rmsp::write_vector<double>(scratch / "b.npy", std::vector<double>{14, 20, 503});
    const Outcome outcome = on_two(
        "solve", a,
        {"--method", "bicgstab", "--set", "matrix.renumber=true", "--rhs", scratch / "b.npy", "-o", scratch / "x.npy"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto x = rmsp::read_vector<double>(scratch / "x.npy");
    ASSERT_EQ(x.size(), 3U);
    EXPECT_NEAR(x[0], 1, 1e-5);
    EXPECT_NEAR(x[1], 10, 1e-5);
    EXPECT_NEAR(x[2], 100, 1e-5);
}

TEST(Results, ProductsAreWritten)
{
    const Scratch scratch;
    const std::string a = small_matrix(scratch);
    for (const char* name : {"c.npz", "c.mtx.zst"}) {
        const Outcome outcome = on_two("spgemm", a, {"-o", scratch / name, "--set", "spgemm.iterations=1"});
        ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
        const auto c = rmsp::read_matrix<double>(scratch / name);
        EXPECT_THAT(c.row_ptr, ElementsAre(0, 2, 3, 6));
        EXPECT_THAT(c.values, ElementsAre(16, 6, 4, 27, 3, 25));
    }
    const Outcome pruned =
        on_two("spgemm", a, {"-o", scratch / "p.npz", "--set", "spgemm.prune_below=5", "--product", "aa"});
    ASSERT_EQ(pruned.exit_code, 0) << pruned.err;
    EXPECT_THAT(pruned.out, HasSubstr("4 of 6 entries are not below 5"));
    EXPECT_THAT(rmsp::read_matrix<double>(scratch / "p.npz").values, ElementsAre(16, 6, 27, 25));
}

TEST(Results, WhatIsWrongIsSaidBeforeAnythingIsRead)
{
    const Scratch scratch;
    const std::string missing = scratch / "no-such.mtx";
    const auto refused = [&](int exit_code, const std::string& message, const std::string& command,
                             const std::string& matrix, const std::vector<std::string>& more) {
        const Outcome outcome = on_two(command, matrix, more);
        EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr(message));
    };
    refused(2, "run.y (\"y.txt\") does not end in one of .npy", "run", missing, {"--y", "y.txt"});
    refused(3, "y.npy: cannot create", "run", missing, {"--y", scratch / "no-such-folder/y.npy"});
    refused(2, "spgemm.output (\"c.npy\") does not end in one of .mtx", "spgemm", missing, {"-o", "c.npy"});
    refused(3, "c.npz: cannot create", "spgemm", missing, {"-o", scratch / "no-such-folder/c.npz"});
    refused(2, "another numbering", "spgemm", missing, {"-o", scratch / "c.npz", "--set", "matrix.renumber=true"});
    refused(2, "--x: must not be empty", "run", missing, {"--x", ""});
    const std::string a = small_matrix(scratch);
    rmsp::write_vector<double>(scratch / "x.npy", std::vector<double>{1, 2});
    refused(3, "x.npy: run.x has 2 entries, but the matrix has 3 columns", "run", a, {"--x", scratch / "x.npy"});
    refused(3, "x.npy: run.y_in has 2 entries, but the matrix has 3 rows", "run", a,
            {"--set", "run.beta=1", "--set", "run.y_in=" + (scratch / "x.npy")});
    // A dry run writes nothing.
    EXPECT_EQ(on_two("run", a, {"--dry-run", "--y", scratch / "y.npy"}).exit_code, 0);
    EXPECT_FALSE(std::filesystem::exists(scratch / "y.npy"));
}

}  // namespace
