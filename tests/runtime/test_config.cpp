#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/config.hpp>

namespace {

using rmsp::BindPolicy;
using rmsp::Config;
using rmsp::Error;
using rmsp::ErrorCode;
using rmsp::parse_config;
using rmsp::RuntimeOptions;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const std::string with_matrix = "[matrix]\ngenerate = \"rmat 4 2\"\n";

/// An environment variable for the life of the object.
class Variable {
public:
    Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
    ~Variable() { ::unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    const char* name_;
};

class ConfigTest : public testing::Test {
protected:
    void SetUp() override
    {
        for (const char* name :
             {"RMSP_DEVICES", "RMSP_BIND", "RMSP_TRANSPORT", "RMSP_CACHE_DIR", "RMSP_IO_MAX_BYTES"}) {
            ::unsetenv(name);
        }
    }
};

/// The message of the Error(usage) that f throws.
template <class F>
std::string usage_error(F&& f)
{
    try {
        f();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::usage) << e.what();
        return e.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
}

std::string file_error(const std::string& text)
{
    return usage_error([&] { parse_config(text, "a.toml"); });
}

std::string override_error(const std::string& text)
{
    return usage_error([&] { parse_config(with_matrix, "a.toml", {text}); });
}

TEST_F(ConfigTest, DefaultsAreThoseOfTheStruct)
{
    const Config c = parse_config(with_matrix, "a.toml");
    EXPECT_EQ(c.matrix.generate, "rmat 4 2");
    EXPECT_EQ(c.matrix.precision, "double");
    EXPECT_EQ(c.runtime.devices, "auto");
    EXPECT_TRUE(c.runtime.weights.empty());
    EXPECT_EQ(c.run.iterations, 100);
    EXPECT_EQ(c.run.beta, 0.0);
    EXPECT_TRUE(c.run.verify);
    EXPECT_EQ(c.output.log_level, "warn");
}

TEST_F(ConfigTest, EveryKeyIsReadFromAFile)
{
    const Config c = parse_config(R"(
[matrix]
file = "a.mtx"
format = "auto"
order = "column"
precision = "float"
values = "ones"
seed = 9
[runtime]
devices = "host:2"
bind = "none"
weights = [1, 2.5]
transports = ["peer", "host"]
limit_gbs = 4000
topology = "summit.toml"
[partition]
strategy = "rows"
alignment = "row"
unsorted = "sort"
[kernel]
spmv = "openmp"
determinism = "run"
[run]
mode = "streamed"
chunk_mib = 3
vectors = "rows"
iterations = 7
warmup = 0
alpha = -1.5
beta = 2
verify = false
compare_vendor = true
[stream]
encoding = "auto"
device_mib = 512
[output]
json = "-"
log_level = "debug"
)",
                                  "a.toml");
    EXPECT_EQ(c.matrix.file, "a.mtx");
    EXPECT_EQ(c.matrix.format, "auto");
    EXPECT_EQ(c.matrix.order, "column");
    EXPECT_EQ(c.matrix.precision, "float");
    EXPECT_EQ(c.matrix.values, "ones");
    EXPECT_EQ(c.matrix.seed, 9);
    EXPECT_EQ(c.runtime.devices, "host:2");
    EXPECT_EQ(c.runtime.bind, "none");
    EXPECT_THAT(c.runtime.weights, ElementsAre(1.0, 2.5));
    EXPECT_THAT(c.runtime.transports, ElementsAre("peer", "host"));
    EXPECT_EQ(c.runtime.limit_gbs, 4000.0);
    EXPECT_EQ(c.runtime.topology, "summit.toml");
    EXPECT_EQ(c.partition.strategy, "rows");
    EXPECT_EQ(c.partition.alignment, "row");
    EXPECT_EQ(c.partition.unsorted, "sort");
    EXPECT_EQ(c.kernel.spmv, "openmp");
    EXPECT_EQ(c.kernel.determinism, "run");
    EXPECT_EQ(c.run.mode, "streamed");
    EXPECT_EQ(c.run.chunk_mib, 3);
    EXPECT_EQ(c.run.vectors, "rows");
    EXPECT_EQ(c.run.iterations, 7);
    EXPECT_EQ(c.run.warmup, 0);
    EXPECT_EQ(c.run.alpha, -1.5);
    EXPECT_EQ(c.run.beta, 2.0);
    EXPECT_FALSE(c.run.verify);
    EXPECT_TRUE(c.run.compare_vendor);
    EXPECT_EQ(c.stream.encoding, "auto");
    EXPECT_EQ(c.stream.device_mib, 512);
    EXPECT_EQ(c.output.json, "-");
    EXPECT_EQ(c.output.log_level, "debug");
}

TEST_F(ConfigTest, EveryKeyIsListedOnceWithItsDefaultAsAnOverride)
{
    std::set<std::string> seen;
    for (const rmsp::ConfigKey& key : rmsp::config_keys()) {
        EXPECT_TRUE(seen.insert(key.name).second) << key.name;
        EXPECT_FALSE(key.type.empty()) << key.name;
        EXPECT_FALSE(key.meaning.empty()) << key.name;
        EXPECT_NO_THROW(
            parse_config(with_matrix, "a.toml", {key.name + "=" + key.fallback, "matrix.generate=rmat 4 2"}))
            << key.name;
    }
}

TEST_F(ConfigTest, UnknownNamesPointToTheNearestKnownOne)
{
    EXPECT_EQ(file_error(with_matrix + "[run]\niteration = 5\n"),
              "a.toml:4:1: unknown key \"run.iteration\"; the nearest known key is \"run.iterations\"");
    EXPECT_EQ(file_error(with_matrix + "[runs]\niterations = 5\n"),
              "a.toml:3:2: unknown section \"runs\"; the nearest known section is \"run\"");
    EXPECT_THAT(file_error(with_matrix + "[run]\ndevices = \"auto\"\n"), HasSubstr("\"runtime.devices\""));
    EXPECT_THAT(file_error("iterations = 5\n"), HasSubstr("\"run.iterations\""));
    EXPECT_THAT(override_error("run.iteratons=5"),
                StartsWith("override \"run.iteratons=5\": unknown key \"run.iteratons\"; the nearest known key is "
                           "\"run.iterations\""));
    EXPECT_THAT(override_error("=5"), HasSubstr("unknown key \"\""));
    EXPECT_THAT(override_error("run.iterations"), HasSubstr("section.key=value"));
}

TEST_F(ConfigTest, FileErrorsNameLineAndColumn)
{
    EXPECT_THAT(file_error("[matrix\n"), StartsWith("a.toml:1:8: "));
    EXPECT_THAT(file_error("[matrix]\nseed = 1\nseed = 2\n"), StartsWith("a.toml:3:"));
    EXPECT_THAT(file_error("[matrix]\nfile = \"\xff\"\n"), StartsWith("a.toml:2:"));
    EXPECT_EQ(file_error("[run]\niterations = \"5\"\n"),
              "a.toml:2:14: run.iterations must be an integer, not a string");
    EXPECT_EQ(file_error("[run]\niterations = 5.0\n"),
              "a.toml:2:14: run.iterations must be an integer, not a floating-point number");
    EXPECT_EQ(file_error("[run]\niterations = 0\n"), "a.toml:2:14: run.iterations is 0, but must be at least 1");
    EXPECT_EQ(file_error("[run]\nalpha = nan\n"), "a.toml:2:9: run.alpha is nan, but must be finite");
    EXPECT_EQ(file_error("[run]\nverify = 1\n"), "a.toml:2:10: run.verify must be a boolean, not an integer");
    EXPECT_EQ(file_error("[runtime]\ndevices = 0\n"), "a.toml:2:11: runtime.devices must be a string, not an integer");
    EXPECT_EQ(file_error("[runtime]\nweights = [1,\n0]\n"), "a.toml:3:1: runtime.weights is 0, but must be above 0");
    EXPECT_EQ(file_error("[runtime]\nweights = [1, \"2\"]\n"),
              "a.toml:2:15: runtime.weights must be a number, not a string");
    EXPECT_EQ(file_error("[runtime]\ntransports = \"nccl\"\n"),
              "a.toml:2:14: runtime.transports must be a list of strings, not a string");
    EXPECT_EQ(file_error("[runtime]\ntransports = [\"mpi\"]\n"),
              "a.toml:2:15: runtime.transports is \"mpi\", but must be one of \"peer\", \"nccl\", \"host\"");
    EXPECT_EQ(file_error("[run]\nmode = \"swapped\"\n"),
              "a.toml:2:8: run.mode is \"swapped\", but must be one of \"resident\", \"streamed\"");
    EXPECT_EQ(file_error("[run]\nchunk_mib = -1\n"), "a.toml:2:13: run.chunk_mib is -1, but must be at least 0");
    EXPECT_THAT(file_error("run = 1979-05-27\n"), HasSubstr("run must be a table, \"[run]\", not a date or time"));
    EXPECT_THAT(file_error("[[matrix]]\nfile = \"a\"\n"), HasSubstr("matrix must be a table"));
    EXPECT_THAT(file_error("[run.alpha]\nx = 1\n"), HasSubstr("run.alpha must be a number, not a table"));
}

TEST_F(ConfigTest, ExactlyOneMatrixIsAskedFor)
{
    EXPECT_THAT(file_error(""), HasSubstr("no matrix"));
    EXPECT_THAT(file_error("[matrix]\nfile = \"a.mtx\"\ngenerate = \"rmat 4 2\"\n"), HasSubstr("exclude each other"));

    const Config file = parse_config(with_matrix, "a.toml", {"matrix.file=b.mtx"});
    EXPECT_EQ(file.matrix.file, "b.mtx");
    EXPECT_EQ(file.matrix.generate, "");
    const Config generated = parse_config("[matrix]\nfile = \"a.mtx\"\n", "a.toml", {"matrix.generate=banded 9 1"});
    EXPECT_EQ(generated.matrix.file, "");
    EXPECT_EQ(generated.matrix.generate, "banded 9 1");
}

TEST_F(ConfigTest, OverridesTakeBareWordsAndToml)
{
    const auto get = [](const std::string& text) { return parse_config(with_matrix, "a.toml", {text}); };
    EXPECT_EQ(get("runtime.devices=0").runtime.devices, "0");
    EXPECT_EQ(get("runtime.devices=0,1").runtime.devices, "0,1");
    EXPECT_EQ(get("runtime.devices=\"0,1\"").runtime.devices, "0,1");
    EXPECT_EQ(get(" runtime.devices = host:4x2 ").runtime.devices, "host:4x2");
    EXPECT_EQ(get("output.json=a=b.json").output.json, "a=b.json");
    EXPECT_EQ(get("run.alpha=2").run.alpha, 2.0);
    EXPECT_EQ(get("run.iterations=1_000").run.iterations, 1000);
    EXPECT_FALSE(get("run.verify=false").run.verify);
    EXPECT_THAT(get("runtime.weights=1,2.5").runtime.weights, ElementsAre(1.0, 2.5));
    EXPECT_THAT(get("runtime.weights=[3]").runtime.weights, ElementsAre(3.0));
    EXPECT_THAT(get("runtime.weights=").runtime.weights, ElementsAre());
    EXPECT_THAT(get("runtime.transports=peer, host").runtime.transports, ElementsAre("peer", "host"));
    EXPECT_THAT(get("runtime.transports=[\"host\"]").runtime.transports, ElementsAre("host"));
    EXPECT_THAT(get("runtime.transports=").runtime.transports, ElementsAre());

    EXPECT_EQ(override_error("run.iterations=many"),
              "override \"run.iterations=many\": run.iterations must be an integer; \"many\" is not one");
    EXPECT_THAT(override_error("run.iterations="), HasSubstr("\"\" is not one"));
    EXPECT_THAT(override_error("run.iterations=1\nrun.warmup=2"), HasSubstr("is not one"));
    EXPECT_THAT(override_error("run.iterations=-1"), HasSubstr("run.iterations is -1, but must be at least 1"));
    EXPECT_THAT(override_error("run.iterations=99999999999999999999"), HasSubstr("is not one"));
    EXPECT_THAT(override_error("runtime.transports=peer,,host"), HasSubstr("runtime.transports is \"\""));
    EXPECT_THAT(override_error("matrix.format=ell"), HasSubstr("must be one of \"csr\", \"csc\", \"coo\", \"auto\""));
}

TEST_F(ConfigTest, LaterOverridesWin)
{
    const Config c = parse_config(with_matrix, "a.toml", {"run.iterations=1", "run.iterations=2"});
    EXPECT_EQ(c.run.iterations, 2);
}

TEST_F(ConfigTest, CommandLineOverEnvironmentOverFile)
{
    const Variable devices("RMSP_DEVICES", "host:3");
    const Variable bind("RMSP_BIND", "none");
    const Variable transport("RMSP_TRANSPORT", "host,peer");
    const Variable cache("RMSP_CACHE_DIR", "off");
    const Variable bytes("RMSP_IO_MAX_BYTES", "5000000000");
    const std::string text = with_matrix + "[runtime]\ndevices = \"host:2\"\nbind = \"strict\"\n";
    const Config c = parse_config(text, "a.toml", {"runtime.bind=auto"});
    EXPECT_EQ(c.runtime.devices, "host:3");
    EXPECT_EQ(c.runtime.bind, "auto");
    EXPECT_THAT(c.runtime.transports, ElementsAre("host", "peer"));
    EXPECT_EQ(c.runtime.cache, "off");
    EXPECT_EQ(read_options(c).max_bytes, 5000000000);
    EXPECT_EQ(read_options(parse_config("[io]\nmax_bytes = 7\n" + text, "a.toml", {"io.max_bytes=9"})).max_bytes, 9);
}

TEST_F(ConfigTest, BadEnvironmentIsNamed)
{
    const Variable bind("RMSP_BIND", "tight");
    EXPECT_THAT(usage_error([] { parse_config(with_matrix, "a.toml"); }),
                StartsWith("environment variable RMSP_BIND: runtime.bind is \"tight\""));
    const Variable empty("RMSP_BIND", "");
    EXPECT_EQ(parse_config(with_matrix, "a.toml").runtime.bind, "auto");
}

TEST_F(ConfigTest, EnvironmentOverAProgramsOptions)
{
    RuntimeOptions base;
    base.devices = "host:2";
    base.bind = BindPolicy::strict;
    base.transports = {"nccl"};
    const Variable devices("RMSP_DEVICES", "");
    const Variable bind("RMSP_BIND", "");
    const Variable transport("RMSP_TRANSPORT", "host, peer");
    const Variable cache("RMSP_CACHE_DIR", "/nowhere");
    const RuntimeOptions options = RuntimeOptions::from_environment(base);
    EXPECT_EQ(options.devices, "host:2");
    EXPECT_EQ(options.bind, BindPolicy::strict);
    EXPECT_THAT(options.transports, ElementsAre("host", "peer"));
    EXPECT_EQ(options.cache, "/nowhere");
    const Variable none("RMSP_BIND", "none");
    EXPECT_EQ(RuntimeOptions::from_environment(base).bind, BindPolicy::none);
    const Variable bad("RMSP_TRANSPORT", "mpi");
    EXPECT_THAT(usage_error([&] { RuntimeOptions::from_environment(base); }),
                StartsWith("environment variable RMSP_TRANSPORT: runtime.transports is \"mpi\""));
}

TEST_F(ConfigTest, NumbersOfAProgramsOptionsAreChecked)
{
    const auto with = [](std::vector<double> weights, double limit_gbs) {
        RuntimeOptions options;
        options.devices = "host:2x1";
        options.weights = std::move(weights);
        options.limit_gbs = limit_gbs;
        const rmsp::Runtime runtime(options);
    };
    with({1, 2}, 5);
    for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
        EXPECT_THAT(usage_error([&] { with({1, bad}, 0); }), StartsWith("runtime.weights: "));
    }
    for (const double bad : {-1.0, std::nan(""), HUGE_VAL}) {
        EXPECT_THAT(usage_error([&] { with({}, bad); }), StartsWith("runtime.limit_gbs: "));
    }
    RuntimeOptions host;
    host.devices = "host:1x1";
    const rmsp::Runtime runtime(host);
    rmsp::DistributeOptions options;
    options.expected_applies = -1;
    EXPECT_THAT(usage_error([&] { runtime.plan(rmsp::banded<double>(3, 1).view(), options); }),
                StartsWith("kernel.expected_applies: "));
}

TEST_F(ConfigTest, FilesAreReadOrNamed)
{
    const std::string path = testing::TempDir() + "rmsp_test_config.toml";
    std::ofstream(path) << with_matrix << "[run]\nwarmup = -1\n";
    EXPECT_EQ(usage_error([&] { rmsp::load_config(path); }), path + ":4:10: run.warmup is -1, but must be at least 0");
    std::ofstream(path) << with_matrix;
    EXPECT_EQ(rmsp::load_config(path, {"run.warmup=3"}).run.warmup, 3);

    for (const std::string& bad : {path + ".missing", testing::TempDir()}) {
        try {
            rmsp::load_config(bad);
            ADD_FAILURE() << bad;
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::io);
            EXPECT_THAT(e.what(), StartsWith(bad));
        }
    }
}

TEST_F(ConfigTest, OptionsFollowTheKeys)
{
    const Config c =
        parse_config(with_matrix, "a.toml",
                     {"runtime.devices=host:2", "runtime.bind=strict", "runtime.weights=1,3", "runtime.limit_gbs=10",
                      "partition.strategy=rows", "partition.alignment=exact", "partition.devices=1",
                      "partition.balance=time", "partition.exchange=entries", "kernel.spmv=openmp",
                      "kernel.values=float", "kernel.determinism=device_count", "run.mode=streamed", "run.chunk_mib=2",
                      "stream.encoding=auto", "stream.coordinates=indices", "stream.device_mib=5"});
    const rmsp::RuntimeOptions runtime = rmsp::runtime_options(c);
    EXPECT_EQ(runtime.devices, "host:2");
    EXPECT_EQ(runtime.bind, rmsp::BindPolicy::strict);
    EXPECT_THAT(runtime.weights, ElementsAre(1.0, 3.0));
    EXPECT_EQ(runtime.limit_gbs, 10.0);
    const rmsp::DistributeOptions distribute = rmsp::distribute_options(c);
    EXPECT_EQ(distribute.strategy, rmsp::PartitionStrategy::rows);
    EXPECT_EQ(distribute.alignment, rmsp::RowAlignment::exact);
    EXPECT_EQ(distribute.devices, 1);
    EXPECT_EQ(distribute.balance, rmsp::Balance::time);
    EXPECT_EQ(distribute.exchange, rmsp::Exchange::entries);
    EXPECT_EQ(distribute.x_layout, rmsp::Layout::replicated);
    EXPECT_EQ(distribute.kernel, "openmp");
    EXPECT_EQ(distribute.values, rmsp::StoredValues::floats);
    EXPECT_EQ(distribute.mode, rmsp::Mode::streamed);
    EXPECT_EQ(distribute.chunk_bytes, 2 << 20);
    EXPECT_EQ(distribute.encoding, rmsp::StreamEncoding::automatic);
    EXPECT_EQ(distribute.coordinates, rmsp::StreamCoordinates::indices);
    EXPECT_EQ(distribute.device_bytes, 5 << 20);
    EXPECT_EQ(distribute.determinism, rmsp::Determinism::device_count);
}

TEST_F(ConfigTest, MergesAreTransports)
{
    EXPECT_EQ(rmsp::distribute_options(parse_config(with_matrix, "a.toml")).merge, "auto");
    for (const std::string merge : {"peer", "nccl", "host"}) {
        EXPECT_EQ(rmsp::distribute_options(parse_config(with_matrix, "a.toml", {"run.merge=" + merge})).merge, merge);
    }
    EXPECT_THAT(usage_error([&] { parse_config(with_matrix, "a.toml", {"run.merge=mpi"}); }), HasSubstr("run.merge"));
}

TEST_F(ConfigTest, UnsortedCoordinatesAreRefusedUnlessAKeySaysWhatToDo)
{
    const auto unsorted = [](const std::string& value) {
        return rmsp::distribute_options(parse_config(with_matrix, "a.toml", {"partition.unsorted=" + value})).unsorted;
    };
    EXPECT_EQ(rmsp::distribute_options(parse_config(with_matrix, "a.toml")).unsorted, rmsp::Unsorted::refuse);
    EXPECT_EQ(unsorted("refuse"), rmsp::Unsorted::refuse);
    EXPECT_EQ(unsorted("sort"), rmsp::Unsorted::sort);
    EXPECT_EQ(unsorted("split"), rmsp::Unsorted::split);
    EXPECT_THAT(usage_error([&] { unsorted("guess"); }), HasSubstr("partition.unsorted"));
}

TEST_F(ConfigTest, KeysAreSetAndReadOneByOne)
{
    Config config;
    rmsp::set_key(config, "solver.tolerance", " 1e-6");
    rmsp::set_key(config, "runtime.devices", "host:2");
    rmsp::set_key(config, "runtime.weights", "1, 2");
    rmsp::set_key(config, "matrix.file", "a.mtx");
    rmsp::set_key(config, "matrix.generate", "rmat 4 2");
    EXPECT_EQ(config.solver.tolerance, 1e-6);
    EXPECT_THAT(config.runtime.weights, ElementsAre(1, 2));
    EXPECT_EQ(config.matrix.file, "");
    EXPECT_EQ(rmsp::key_text(config, "solver.tolerance"), "1e-06");
    EXPECT_EQ(rmsp::key_text(config, "runtime.devices"), "host:2");
    // What is read can be set again.
    for (const rmsp::ConfigKey& key : rmsp::config_keys()) {
        rmsp::set_key(config, key.name, rmsp::key_text(config, key.name));
    }
    EXPECT_EQ(config.solver.tolerance, 1e-6);
    EXPECT_THAT(config.runtime.weights, ElementsAre(1, 2));

    EXPECT_THAT(usage_error([&] { rmsp::set_key(config, "solver.tolerence", "1"); }),
                HasSubstr("the nearest known key is \"solver.tolerance\""));
    EXPECT_THAT(usage_error([&] { rmsp::set_key(config, "solver.tolerance", "small"); }),
                HasSubstr("solver.tolerance must be a number; \"small\" is not one"));
    EXPECT_THAT(usage_error([&] { rmsp::set_key(config, "solver.tolerance", "-1"); }), HasSubstr("at least 0"));
    EXPECT_EQ(config.solver.tolerance, 1e-6);
    EXPECT_THAT(usage_error([&] { rmsp::key_text(config, "solver.tolerances"); }), HasSubstr("\"solver.tolerance\""));
}

TEST_F(ConfigTest, TheEnvironmentIsAppliedToAConfiguration)
{
    Config config;
    config.runtime.devices = "host:2";
    rmsp::apply_environment(config);
    EXPECT_EQ(config.runtime.devices, "host:2");
    const Variable devices("RMSP_DEVICES", "host:3");
    rmsp::apply_environment(config);
    EXPECT_EQ(config.runtime.devices, "host:3");
}

}  // namespace
