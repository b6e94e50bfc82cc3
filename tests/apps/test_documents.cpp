#include <filesystem>
#include <string>

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
