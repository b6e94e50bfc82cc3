#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/config.hpp>

#include "tests/apps/program.hpp"

namespace {

using rmsp::test::mspmv;
using rmsp::test::read_text;
using rmsp::test::source_path;
using testing::HasSubstr;

TEST(Documents, TheTableOfKeysIsWhatTheProgramPrints)
{
    const auto outcome = mspmv({"run", "--help-config", "--markdown"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::string document = read_text(source_path("docs/configuration.md"));
    EXPECT_THAT(document, HasSubstr(outcome.out)) << "put the output of `mspmv run --help-config --markdown` there";
    for (const rmsp::ConfigKey& key : rmsp::config_keys()) {
        EXPECT_THAT(document, HasSubstr('`' + key.name + '`'));
    }
}

TEST(Documents, TheTableOfKernelsIsWhatTheProgramPrints)
{
    const auto outcome = mspmv({"kernels", "--markdown"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(read_text(source_path("docs/configuration.md")), HasSubstr(outcome.out))
        << "put the output of `mspmv kernels --markdown` there";
}

TEST(Documents, TheTablesOfSolversAreWhatTheProgramPrints)
{
    const auto outcome = mspmv({"solvers", "--markdown"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(read_text(source_path("docs/solvers.md")), HasSubstr(outcome.out))
        << "put the output of `mspmv solvers --markdown` there";
}

TEST(Documents, TheReferenceHasEveryOption)
{
    const std::string document = read_text(source_path("docs/mspmv.md"));
    for (const char* command : {"run", "spgemm", "solve", "eigen", "solvers", "characterize", "report", "plot",
                                "machines", "topo", "doctor", "kernels", "generate", "convert", "help", "completion"}) {
        const std::string help = mspmv({command, "--help"}).out;
        EXPECT_THAT(document, HasSubstr(std::string("## mspmv ") + command));
        for (std::size_t at = help.find("--"); at != std::string::npos; at = help.find("--", at + 2)) {
            const std::string option = help.substr(at, help.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at) - at);
            EXPECT_THAT(document, HasSubstr(option)) << command;
        }
    }
}

TEST(Documents, DescriptionsOfMachinesLoad)
{
    const std::string document = read_text(source_path("docs/topology.md"));
    std::vector<std::string> blocks;
    for (std::size_t at = 0; (at = document.find("```toml\n", at)) != std::string::npos;) {
        at += std::string("```toml\n").size();
        blocks.push_back(document.substr(at, document.find("```", at) - at));
    }
    ASSERT_EQ(blocks.size(), 5U) << "a machine, cores of a node, one in hwloc's notation, links, a network";
    const rmsp::test::Scratch scratch;
    const auto described = [&](const std::string& text) {
        std::ofstream(scratch / "node.toml") << text;
        const auto outcome = mspmv({"topo", "--topology", scratch / "node.toml"});
        EXPECT_EQ(outcome.exit_code, 0) << text << outcome.err;
        return outcome.out;
    };
    EXPECT_THAT(described(blocks[0]), testing::ContainsRegex("\n  1 +8 +22 +88 "));
    EXPECT_THAT(described("[[node]]\n" + blocks[1]), testing::ContainsRegex("\n  0 +0 +3 +6 "));
    EXPECT_THAT(described(blocks[2]), testing::ContainsRegex("\n  1 +1 +56 +112 "));
    described(blocks[0] + "[[gpu]]\nnode = 0\n[[gpu]]\nnode = 0\n" + blocks[3]);
    described(blocks[0] + blocks[4]);
    const auto cluster = mspmv(
        {"run", "--dry-run", "--machine", "4 x " + (scratch / "node.toml"), "--set", "matrix.generate=stencil7 9 9 9"});
    EXPECT_EQ(cluster.exit_code, 0) << cluster.err;
}

TEST(Documents, EveryConfigurationOfConfigsLoads)
{
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(source_path("configs"))) {
        if (entry.path().extension() == ".toml") {
            EXPECT_NO_THROW(rmsp::distribute_options(rmsp::load_config(entry.path().string()))) << entry.path();
            EXPECT_NO_THROW(rmsp::spgemm_options(rmsp::load_config(entry.path().string()))) << entry.path();
            EXPECT_NO_THROW(rmsp::solver_options(rmsp::load_config(entry.path().string()))) << entry.path();
            ++files;
        }
    }
    EXPECT_GE(files, 4);
}

}  // namespace
