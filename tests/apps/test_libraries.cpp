#include <fstream>

#include <gmock/gmock.h>

#include "tests/apps/program.hpp"

/// A build with CUDA on a machine without NVIDIA's libraries.
namespace {

using rmsp::test::mspmv;
using rmsp::test::Outcome;
using rmsp::test::Scratch;
using testing::HasSubstr;

#ifdef RMSP_HAVE_CUDA

TEST(NvidiaLibraries, AreNotNeededByHostDevicesAndDryRuns)
{
    const Scratch folder;
    for (const char* const file : {"libcusparse.so.12", "libcusparse.so.13", "libnccl.so.2"}) {
        std::ofstream(folder / file);  // cannot be loaded, and hides what the machine may have
    }
    const std::vector<std::string> without{"RMSP_LIBRARY_PATH=" + folder.path().string(), "RMSP_CACHE_DIR=off"};

    const Outcome doctor = mspmv({"doctor", "--devices", "host:2", "--mib", "1", "--json", "-"}, without);
    EXPECT_EQ(doctor.exit_code, 0) << doctor.err;
    EXPECT_THAT(doctor.out, HasSubstr(R"("cuSPARSE": "not found")"));
    EXPECT_THAT(doctor.out, testing::Not(testing::ContainsRegex(R"("NCCL": "[0-9])")));

    const std::string matrix = "matrix.generate=stencil7 12 12 12";
    const Outcome run = mspmv({"run", "--set", matrix, "--set", "runtime.limit_gbs=1", "--devices", "host:2"}, without);
    EXPECT_EQ(run.exit_code, 0) << run.err;

    const Outcome plan = mspmv({"run", "--set", matrix, "--dry-run", "--machine", "dgx-h200"}, without);
    EXPECT_EQ(plan.exit_code, 0) << plan.err;
    EXPECT_THAT(plan.out, HasSubstr("H200"));
}

#endif

}  // namespace
