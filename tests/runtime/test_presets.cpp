#include <string>

#include <gtest/gtest.h>

#include "matrices.hpp"

#include "tests/paths.hpp"

namespace rmsp::test {
namespace {

/// The three versions that MSREP compares, and each of their differences alone.
class Presets : public MachineTest {};

void check_all(const Config& config, const Machine& machine)
{
    RuntimeOptions runtime_options = rmsp::runtime_options(config);
    const RuntimeOptions own = options_for(machine);
    runtime_options.devices = own.devices;
    runtime_options.transports = runtime_options.one_thread ? std::vector<std::string>{} : own.transports;
    Runtime runtime(runtime_options);
    DistributeOptions options = distribute_options(config);
    options.chunk_bytes = 4096;
    for (const auto mode : {Mode::streamed, Mode::resident}) {
        options.mode = mode;
        for (const auto& [name, a] : hard_matrices<double>()) {
            SCOPED_TRACE(name);
            auto matrix = runtime.distribute(a.view(), options);
            const auto x = random_vector<double>(a.cols, 1);
            const auto y_in = random_vector<double>(a.rows, 2);
            std::vector<double> y = y_in;
            matrix.apply(1.5, x.data(), -0.5, y.data());
            EXPECT_TRUE(verify_spmv(a.view(), 1.5, x.data(), -0.5, y_in.data(), y.data()).passed);
        }
    }
}

TEST_P(Presets, GiveTheSameProduct)
{
    for (const char* name : {"baseline", "pstar", "pstar-opt"}) {
        SCOPED_TRACE(name);
        check_all(load_config(source_path(std::string("configs/") + name + ".toml")), GetParam());
    }
}

TEST_P(Presets, EachKeyCanBeSwitchedAlone)
{
    const std::string file = source_path("configs/pstar-opt.toml");
    for (const char* key : {"runtime.threads=one", "partition.pointers=host"}) {
        SCOPED_TRACE(key);
        check_all(load_config(file, {key}), GetParam());
    }
}

TEST(PresetFiles, OneThreadMovesDataThroughTheHostOnly)
{
    RuntimeOptions options;
    options.devices = "host:2";
    options.one_thread = true;
    options.transports = {"host", "peer"};
    EXPECT_THROW(Runtime{options}, Error);
    options.transports = {"host"};
    EXPECT_NO_THROW(Runtime{options});
}

TEST(PresetFiles, SayWhatTheirNamesMean)
{
    const auto load = [](const std::string& name) {
        return load_config(source_path(std::string("configs/") + name + ".toml"));
    };
    const Config baseline = load("baseline");
    EXPECT_TRUE(runtime_options(baseline).one_thread);
    EXPECT_EQ(runtime_options(baseline).bind, BindPolicy::none);
    EXPECT_EQ(distribute_options(baseline).strategy, PartitionStrategy::rows);
    EXPECT_EQ(distribute_options(baseline).row_pointers, RowPointers::host);
    const Config pstar = load("pstar");
    EXPECT_FALSE(runtime_options(pstar).one_thread);
    EXPECT_EQ(runtime_options(pstar).bind, BindPolicy::none);
    EXPECT_EQ(distribute_options(pstar).strategy, PartitionStrategy::nonzeros);
    EXPECT_EQ(distribute_options(pstar).row_pointers, RowPointers::host);
    const Config opt = load("pstar-opt");
    EXPECT_FALSE(runtime_options(opt).one_thread);
    EXPECT_EQ(runtime_options(opt).bind, BindPolicy::automatic);
    EXPECT_EQ(distribute_options(opt).row_pointers, RowPointers::device);
    for (const Config& config : {baseline, pstar, opt}) {
        EXPECT_EQ(distribute_options(config).mode, Mode::streamed);
    }
}

INSTANTIATE_TEST_SUITE_P(Machines, Presets, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
