#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <runtime/doctor/known_links.hpp>
#include <runtime/engine/cache.hpp>

#include "matrices.hpp"

namespace rmsp::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A cache folder of its own, and a self test that is quick.
class Doctor : public testing::Test {
protected:
    void SetUp() override
    {
        folder_ = fs::temp_directory_path() /
                  ("rmsp-" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + "-" +
                   std::to_string(testing::UnitTest::GetInstance()->random_seed()) + "-" + std::to_string(::getpid()));
        options_.runtime.devices = "host:3x1";
        options_.runtime.cache = folder_.string();
        options_.bytes = 5000;
    }
    void TearDown() override { fs::remove_all(folder_); }

    /// The one file in the cache.
    std::string name() const
    {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(folder_)) {
            names.push_back(entry.path().filename().string());
        }
        EXPECT_EQ(names.size(), 1U);
        return names.empty() ? std::string() : names.front();
    }
    engine::Cache cache() const { return engine::Cache(folder_.string()); }

    fs::path folder_;
    DoctorOptions options_;
};

DoctorCheck find(const DoctorReport& report, const std::string& name, const std::string& subject)
{
    const auto check = std::find_if(report.checks.begin(), report.checks.end(),
                                    [&](const auto& c) { return c.name == name && c.subject == subject; });
    if (check == report.checks.end()) {
        throw std::runtime_error("no check " + name + " of " + subject);
    }
    return *check;
}

TEST_F(Doctor, HostDevicesPass)
{
    const DoctorReport report = diagnose(options_);
    EXPECT_EQ(report.failures(), 0) << report.to_text();
    EXPECT_FALSE(report.cached);
    ASSERT_EQ(report.devices.size(), 3U);
    EXPECT_EQ(report.devices[1], "host:1 (1 thread)");
    EXPECT_EQ(find(report, "host link", "host:2").verdict, Verdict::passed);
    EXPECT_EQ(find(report, "device link", "host:2 -> host:0").verdict, Verdict::passed);
    EXPECT_EQ(find(report, "transport", "nccl").verdict, Verdict::skipped);
    EXPECT_NE(report.to_text().find("no GPUs"), std::string::npos);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_GT(report.to_device.at(i), 0);
        EXPECT_GT(report.from_device_together.at(i), 0);
        for (std::size_t j = 0; j < 3; ++j) {
            EXPECT_EQ(report.copy_engine.at(i).at(j) > 0, i != j);
        }
    }
}

TEST_F(Doctor, KeepsItsResult)
{
    const DoctorReport first = diagnose(options_);
    DoctorReport second = diagnose(options_);
    EXPECT_TRUE(second.cached);
    EXPECT_NE(second.to_text().find("--refresh"), std::string::npos);
    second.cached = false;
    EXPECT_EQ(second.to_json(), first.to_json());
    options_.refresh = true;
    EXPECT_FALSE(diagnose(options_).cached);
    options_.refresh = false;
    options_.runtime.devices = "host:2x1";  // other devices, another file
    EXPECT_FALSE(diagnose(options_).cached);
}

TEST(MeasuredLinks, AreOneWhereTheyAreAlike)
{
    DoctorReport report;
    report.to_device = {50, 55, 20};
    report.from_device = {52, 49, 21};
    report.read_by_kernel = {{0, 200, 190}, {195, 0, 210}, {205, 200, 0}};
    report.copy_engine = {{0, 220, 180}, {210, 0, 190}, {185, 200, 0}};
    const MachineLink all{"device link", {0, 1, 2}, {}, 190, false, "self test"};
    EXPECT_EQ(
        doctor::measured_links(report, {0, 0, 1}),
        (std::vector<MachineLink>{
            {"host link", {0, 1}, {0}, 49, false, "self test"}, {"host link", {2}, {1}, 20, false, "self test"}, all}));
    report.read_by_kernel[2][0] = report.copy_engine[2][0] = 20;
    EXPECT_EQ(doctor::measured_links(report, {-1, -1, -1}),
              (std::vector<MachineLink>{{"device link", {0, 1}, {}, 210, false, "self test"},
                                        {"device link", {0, 2}, {}, 20, false, "self test"},
                                        {"device link", {1, 2}, {}, 200, false, "self test"}}));
    EXPECT_TRUE(doctor::measured_links(DoctorReport{}, {0, 0}).empty());
}

TEST_F(Doctor, OffKeepsNothing)
{
    options_.runtime.cache = "off";
    EXPECT_FALSE(diagnose(options_).cached);
    EXPECT_FALSE(diagnose(options_).cached);
    EXPECT_FALSE(fs::exists("off"));
}

TEST_F(Doctor, IgnoresAFileThatIsNoResult)
{
    (void)diagnose(options_);
    const Json good = Json::parse(cache().read(name()).value());
    std::vector<std::string> bad{"", "{", "[1, 2]", "null", good.dump().substr(0, 400)};
    for (const char* key : {"date", "devices", "checks", "gbs"}) {
        Json without = good;
        without.erase(key);
        bad.push_back(without.dump());
    }
    Json verdict = good;
    verdict["checks"][0]["verdict"] = "perhaps";
    bad.push_back(verdict.dump());
    Json fewer = good;
    fewer["gbs"]["to_device"].erase(0);
    bad.push_back(fewer.dump());
    Json ragged = good;
    ragged["gbs"]["copy_engine"][1].erase(0);
    bad.push_back(ragged.dump());
    for (const std::string& text : bad) {
        SCOPED_TRACE(text.substr(0, 60));
        ASSERT_TRUE(cache().write(name(), text));
        EXPECT_FALSE(diagnose(options_).cached);
        EXPECT_TRUE(diagnose(options_).cached);  // written anew
    }
    for (const char* text : {"", "rmsp-cache 1 0123456789abcdef\n{}", "not a cache file"}) {
        SCOPED_TRACE(text);
        std::ofstream(folder_ / name()) << text;
        EXPECT_FALSE(diagnose(options_).cached);
        EXPECT_TRUE(diagnose(options_).cached);
    }
}

TEST_F(Doctor, ACacheThatCannotBeWrittenCostsNoMore)
{
    std::ofstream(folder_) << "a file, not a folder";
    EXPECT_EQ(diagnose(options_).failures(), 0);
    EXPECT_FALSE(diagnose(options_).cached);
}

TEST_F(Doctor, RefusesBadOptions)
{
    DoctorOptions options = options_;
    options.bytes = 1023;
    EXPECT_THROW(diagnose(options), Error);
    options = options_;
    options.time_limit_seconds = 0;
    EXPECT_THROW(diagnose(options), Error);
    options = options_;
    options.runtime.topology_file = "dgx1.toml";
    EXPECT_THROW(diagnose(options), Error);
    EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(Doctor, UnboundThreadsAreSkipped)
{
    options_.runtime.bind = BindPolicy::none;
    const DoctorReport report = diagnose(options_);
    EXPECT_EQ(find(report, "binding", "host:0").verdict, Verdict::skipped);
}

TEST_F(Doctor, RuntimesUseWhatItFound)
{
    if (!have_gpus(2)) {
        GTEST_SKIP() << "needs 2 GPU(s)";
    }
    options_.runtime.devices = "0,1";
    options_.bytes = 1 << 20;
    const DoctorReport report = diagnose(options_);
    EXPECT_EQ(report.failures(), 0) << report.to_text();
    EXPECT_NE(Runtime(options_.runtime).transport().find("passed the self test of " + report.date), std::string::npos);
    // A link that lost data is not used, whatever it promises now.
    Json broken = Json::parse(cache().read(name()).value());
    for (Json& check : broken["checks"]) {
        if (check["name"] == "transport" && check["subject"] == "peer") {
            check["verdict"] = "FAILED";
            check["detail"] = "a device link is broken";
        }
    }
    ASSERT_TRUE(cache().write(name(), broken.dump()));
    const std::string transport = Runtime(options_.runtime).transport();
    EXPECT_FALSE(transport.starts_with("peer")) << transport;
    EXPECT_NE(transport.find("peer: failed the self test of " + report.date + ": a device link is broken"),
              std::string::npos)
        << transport;
}

TEST_F(Doctor, DevicesMayShareAGpu)
{
    if (!have_gpus(1)) {
        GTEST_SKIP() << "needs 1 GPU";
    }
    options_.runtime.devices = "shared:0,0";
    options_.bytes = 1 << 20;
    const DoctorReport report = diagnose(options_);
    EXPECT_EQ(report.failures(), 0) << report.to_text();
    EXPECT_NE(report.devices[1].find("(shared by 2)"), std::string::npos) << report.devices[1];
    EXPECT_EQ(find(report, "device link", "cuda:0#0 -> cuda:0#1").verdict, Verdict::passed);
    EXPECT_EQ(find(report, "transport", "peer").verdict, Verdict::passed);
    EXPECT_EQ(find(report, "transport", "nccl").verdict, Verdict::skipped);
}

TEST_F(Doctor, WhatTakesTooLongHasFailed)
{
    if (!have_gpus(2)) {
        GTEST_SKIP() << "needs 2 GPU(s)";
    }
    options_.runtime.devices = "0,1";
    options_.runtime.cache = "off";
    options_.time_limit_seconds = 0.005;  // NCCL takes longer to connect
    const DoctorReport report = diagnose(options_);
    const DoctorCheck nccl = find(report, "transport", "nccl");
    EXPECT_TRUE(nccl.verdict == Verdict::failed || nccl.verdict == Verdict::skipped) << report.to_text();
    // The devices are as good as before.
    options_.time_limit_seconds = 30;
    EXPECT_EQ(diagnose(options_).failures(), 0);
}

TEST_F(Doctor, LimitsAreMeasuredKeptAndReadBack)
{
    Runtime runtime(options_.runtime);
    EXPECT_TRUE(kept_device_limits(runtime).devices.empty());
    LimitOptions limits;
    limits.bytes = 1 << 18;
    limits.seconds_each = 1e-4;
    const DeviceLimits measured = measure_device_limits(runtime, limits);
    ASSERT_EQ(measured.devices.size(), 3U);
    for (const DeviceLimit& device : measured.devices) {
        // Three sizes (16, 64, 256 KiB) of five kernels for each precision.
        EXPECT_EQ(device.bandwidth.size() % 15, 0U);
        EXPECT_GE(device.bandwidth.size(), 30U);
        for (const BandwidthPoint& p : device.bandwidth) {
            EXPECT_GT(p.gbs, 0) << p.kernel << ", " << p.precision << ", " << p.bytes;
        }
        for (const char* precision : {"single", "double"}) {
            EXPECT_GT(device.memory_gbs(precision), 0);
            EXPECT_GT(device.peak_gflops(precision), 0);
        }
        EXPECT_EQ(device.peak_gflops("quadruple"), 0);
    }
    EXPECT_NE(measured.to_text().find("triad"), std::string::npos) << measured.to_text();
    EXPECT_EQ(kept_device_limits(runtime).to_json(), measured.to_json());
    cache().write(name(), "{\"date\": 5}");
    EXPECT_TRUE(kept_device_limits(runtime).devices.empty());
    limits.bytes = 100;
    EXPECT_THROW(measure_device_limits(runtime, limits), Error);
}

}  // namespace
}  // namespace rmsp::test
