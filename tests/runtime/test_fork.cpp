#include <cstdlib>
#include <functional>
#include <optional>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <rmsp/rmsp.hpp>

#include "matrices.hpp"

/// What a process that fork() made may do.
namespace rmsp::test {
namespace {

/// Runs body() in a child, which has to end by itself within a minute.
/// \return its exit status, or the signal that ended it, below 0
int in_child(const std::function<int()>& body)
{
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(60);
        int status = 99;
        try {
            status = body();
        } catch (const std::exception&) {
        }
        ::_exit(status);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// Whether f throws Error(usage) that names fork().
bool refuses(const std::function<void()>& f)
{
    try {
        f();
    } catch (const Error& e) {
        return e.code() == ErrorCode::usage && std::string(e.what()).find("fork()") != std::string::npos;
    }
    return false;
}

RuntimeOptions two_host_devices()
{
    RuntimeOptions options;
    options.devices = "host:2x1";
    return options;
}

class Fork : public testing::Test {
protected:
    void SetUp() override
    {
#ifdef __SANITIZE_THREAD__
        GTEST_SKIP() << "ThreadSanitizer ends processes that fork() makes of one with threads";
#endif
    }
};

TEST_F(Fork, AChildIsRefusedWhatItsParentOpened)
{
    const CsrMatrix<double> a = with_row_lengths<double>(std::vector<std::int64_t>(40, 5), 40);
    const std::vector<double> x(40, 1.0);
    std::vector<double> y(40);
    auto runtime = std::make_optional<Runtime>(two_host_devices());
    auto matrix = std::make_optional<DistributedMatrix<double>>(runtime->distribute(a.view()));
    std::optional<DistributedVector<double>> vector = matrix->make_x(Layout::rows);
    EXPECT_EQ(in_child([&] {
                  int wrong = 0;
                  wrong += refuses([&] { matrix->apply(1.0, x.data(), 0.0, y.data()); }) ? 0 : 1;
                  wrong += refuses([&] { runtime->synchronize(); }) ? 0 : 2;
                  wrong += refuses([&] { static_cast<void>(runtime->distribute(a.view())); }) ? 0 : 4;
                  wrong += refuses([&] { vector->upload(x.data()); }) ? 0 : 8;
                  wrong += refuses([] { const Runtime again(two_host_devices()); }) ? 0 : 16;
                  // Nor do destructors wait for threads that are not there.
                  vector.reset();
                  matrix.reset();
                  runtime.reset();
                  return wrong;
              }),
              0);
    // The parent goes on.
    matrix->apply(1.0, x.data(), 0.0, y.data());
    EXPECT_TRUE(verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed);
}

}  // namespace
}  // namespace rmsp::test
