#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include <gmock/gmock.h>

#include <core/shared_library.hpp>
#include <rmsp/doctor.hpp>

namespace rmsp::core {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr OptionalLibrary absent{.name = "Absent",
                                 .file = "librmsp-absent.so.7",
                                 .purpose = "what no one asked for",
                                 .source = "a package of its own",
                                 .folder = ""};

std::string message_of(const OptionalLibrary& library, const char* function = nullptr)
{
    try {
        const SharedLibrary open(library);
        if (function != nullptr) {
            int (*found)() = nullptr;
            open.find(function, found);
        }
    } catch (const MissingLibrary& e) {
        EXPECT_EQ(e.code(), ErrorCode::usage);
        return e.what();
    }
    return "";
}

/// RMSP_LIBRARY_PATH for a test, with two folders: one of nothing, and one to fill.
class SharedLibraries : public testing::Test {
protected:
    void SetUp() override
    {
        fs::create_directories(empty_);
        fs::create_directories(folder_);
        ::setenv("RMSP_LIBRARY_PATH", (":" + empty_.string() + ":" + folder_.string()).c_str(), 1);
    }
    void TearDown() override
    {
        ::unsetenv("RMSP_LIBRARY_PATH");
        fs::remove_all(root_);
    }

    const fs::path root_ = fs::path(testing::TempDir()) / ("rmsp-libraries-" + std::to_string(::getpid()));
    const fs::path empty_ = root_ / "empty";
    const fs::path folder_ = root_ / "folder";
};

TEST_F(SharedLibraries, NamesWhatIsMissingAndWhoHasIt)
{
    EXPECT_THAT(message_of(absent),
                AllOf(HasSubstr("Absent, for what no one asked for, cannot be loaded"),
                      HasSubstr("librmsp-absent.so.7: cannot open shared object file"),
                      HasSubstr("it comes with a package of its own"), HasSubstr("RMSP_LIBRARY_PATH")));
}

TEST_F(SharedLibraries, LooksInTheGivenFoldersFirst)
{
    // Anything that is a library: what this program has loaded already.
    const std::string zlib =
        SharedLibrary({.name = "zlib", .file = "libz.so.1", .purpose = "", .source = "", .folder = ""}).path();
    fs::create_symlink(zlib, folder_ / absent.file);
    const SharedLibrary open(absent);
    const char* (*version)() = nullptr;
    open.find("zlibVersion", version);
    EXPECT_THAT(version(), MatchesRegex("[0-9.]+"));
    EXPECT_THAT(
        message_of(absent, "zlib_of_tomorrow"),
        AllOf(HasSubstr("has no function zlib_of_tomorrow"), HasSubstr("a newer one comes with a package of its own")));
}

TEST_F(SharedLibraries, LooksLastWhereTheBuildSawIt)
{
    OptionalLibrary elsewhere = absent;
    const std::string folder = root_ / "build";
    elsewhere.folder = folder.c_str();
    EXPECT_THAT(message_of(elsewhere), Not(HasSubstr(folder)));
    fs::create_directories(folder);
    std::ofstream(folder + '/' + absent.file) << "no library";
    EXPECT_THAT(message_of(elsewhere), AllOf(HasSubstr("cannot open shared object file"), HasSubstr(folder)));
}

TEST_F(SharedLibraries, TheFolderThatHasTheFileDecides)
{
    OptionalLibrary broken = absent;
    broken.file = "librmsp-broken.so.7";  // what was open once is found again by its name
    std::ofstream(folder_ / broken.file) << "no library";
    const std::string message = message_of(broken);
    EXPECT_THAT(message, AllOf(HasSubstr(folder_.string()), Not(HasSubstr("cannot open shared object file"))));
}

#ifdef RMSP_HAVE_CUDA

/// Every function of a table is looked for when the first is called.
TEST_F(SharedLibraries, OfCudaHaveEveryFunctionThatIsCalled)
{
    ::unsetenv("RMSP_LIBRARY_PATH");
    const auto versions = library_versions();
    for (const auto& [name, file] : {std::pair("cuSPARSE", "libcusparse.so"), std::pair("NCCL", "libnccl.so")}) {
        OptionalLibrary of_toolkit = absent;
        of_toolkit.file = file;
        if (versions.contains(name) && message_of(of_toolkit).empty()) {
            EXPECT_THAT(versions.at(name), MatchesRegex("[0-9]+[.][0-9]+[.][0-9]+")) << name;
        }
    }
}

#endif

}  // namespace
}  // namespace rmsp::core
