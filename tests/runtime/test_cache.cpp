#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/runtime.hpp>

#include "runtime/engine/cache.hpp"
#include "runtime/node/node.hpp"
#include "tests/runtime/read_little.hpp"

namespace rmsp::engine::test {
namespace {

class CacheFiles : public testing::Test {
protected:
    CacheFiles() : folder_(testing::TempDir() + "rmsp-cache-" + std::to_string(::getpid())) {}
    ~CacheFiles() override { std::filesystem::remove_all(folder_); }
    std::string folder_;
};

TEST_F(CacheFiles, GiveBackWhatWasWritten)
{
    const Cache cache(folder_);
    EXPECT_FALSE(cache.read("kernel-1").has_value());
    EXPECT_TRUE(cache.write("kernel-1", "two\nlines"));
    EXPECT_TRUE(cache.write("empty", ""));
    EXPECT_EQ(cache.read("kernel-1"), "two\nlines");
    EXPECT_EQ(cache.read("empty"), "");
    EXPECT_TRUE(cache.write("kernel-1", "one"));
    EXPECT_EQ(Cache(folder_).read("kernel-1"), "one");
    // Nothing is left over from the replacement.
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 2);
}

TEST_F(CacheFiles, HaveTheBandwidthsThatAnotherProcessMeasured)
{
    RuntimeOptions options{.devices = "host:2x1"};
    options.cache = folder_;
    {
        const Runtime runtime(options);
        const auto& state = *detail::RuntimeAccess::state(runtime);
        ASSERT_TRUE(state.cache.write(node::limits_cache_name(state), "20.5 21\n"));
    }
    Runtime runtime(options);
    EXPECT_EQ(runtime.measure_limits(), (std::vector<double>{20.5, 21}));
    EXPECT_EQ(runtime.devices().front().limit_gbs, 20.5);
    // Devices of another kind have another file.
    options.devices = "host:1";
    const Runtime other(options);
    const auto name = [](const Runtime& r) { return node::limits_cache_name(*detail::RuntimeAccess::state(r)); };
    EXPECT_NE(name(other), name(runtime));
}

TEST_F(CacheFiles, KeepTheBandwidthsThatWereMeasured)
{
    RuntimeOptions options{.devices = "host:2x1"};
    options.cache = folder_;
    const auto recalled = [](const Runtime& runtime) {
        auto& state = *detail::RuntimeAccess::state(runtime);
        const std::lock_guard lock(state.mutex);
        return state.limits_recalled;
    };
    std::vector<double> measured;
    {
        Runtime first(options);
        rmsp::test::read_little(first);
        measured = first.measure_limits();
        EXPECT_FALSE(recalled(first));
        EXPECT_THAT(measured, testing::SizeIs(2));
        EXPECT_THAT(measured, testing::Each(testing::Gt(0)));
    }
    // Two measurements are never the same to the last digit.
    Runtime second(options);
    EXPECT_EQ(second.measure_limits(), measured);
    EXPECT_TRUE(recalled(second));
    // One number too few is not what was measured.
    ASSERT_TRUE(Cache(folder_).write(node::limits_cache_name(*detail::RuntimeAccess::state(second)), "20.5\n"));
    Runtime third(options);
    rmsp::test::read_little(third);
    EXPECT_THAT(third.measure_limits(), testing::SizeIs(2));
    EXPECT_FALSE(recalled(third));
}

TEST_F(CacheFiles, ThatAreDamagedCountAsAbsent)
{
    const Cache cache(folder_);
    ASSERT_TRUE(cache.write("a", "sell 0.001"));
    for (const char* content : {"", "rmsp-cache 1 0000000000000000\nsell 0.001", "noise", "rmsp-cache 1"}) {
        std::ofstream(cache.path("a"), std::ios::binary) << content;
        std::string damaged;
        EXPECT_FALSE(cache.read("a", &damaged).has_value()) << content;
        EXPECT_NE(damaged.find(cache.path("a")), std::string::npos) << damaged;
    }
    ASSERT_TRUE(cache.write("a", "new"));
    EXPECT_EQ(cache.read("a"), "new");
}

TEST_F(CacheFiles, AreNotNeeded)
{
    const Cache off("off");
    EXPECT_FALSE(off.enabled());
    EXPECT_FALSE(off.write("a", "b"));
    EXPECT_FALSE(off.read("a").has_value());
    std::ofstream(folder_) << "a file where the folder should be";
    const Cache blocked(folder_);
    EXPECT_FALSE(blocked.write("a", "b"));
    EXPECT_FALSE(blocked.read("a").has_value());
}

TEST(Fingerprint, DependsOnEveryByteAndTheOrder)
{
    EXPECT_EQ(fingerprint(std::string_view()), 0xcbf29ce484222325U);
    EXPECT_EQ(fingerprint("a"), 0xaf63dc4c8601ec8cU);
    EXPECT_NE(fingerprint("ab"), fingerprint("ba"));
    EXPECT_EQ(fingerprint("b", fingerprint("a")), fingerprint("ab"));
}

TEST_F(CacheFiles, APipeOrAFolderInTheirPlaceIsNoEntry)
{
    const Cache cache(folder_);
    std::filesystem::create_directories(folder_ + "/folder");
    ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
    EXPECT_FALSE(cache.read("folder").has_value());
    EXPECT_FALSE(cache.read("pipe").has_value());
    EXPECT_FALSE(cache.write("folder", "text"));
    EXPECT_TRUE(cache.write("pipe", "text"));  // in its place
    EXPECT_EQ(cache.read("pipe"), "text");
}

}  // namespace
}  // namespace rmsp::engine::test
