// Strong scaling over the GPUs of this machine: a resident stencil of 800 million nonzeros, a resident R-MAT graph, a
// stencil of 20 GB streamed from host memory, and the paper's three versions on the latter. Beside each time of the
// first two, and of the third with default options, stands what the model predicts from the measured limit of as many
// devices; for more GPUs than there are, of those of a described machine, from that of the most. One process, one JSON
// file, which bench/plot_scaling.py draws.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include <rmsp/rmsp.hpp>

#include "program.hpp"

namespace {

using Json = nlohmann::ordered_json;
using Vectors = rmsp::DistributedMatrix<double>::Vectors;

struct Options {
    std::vector<std::string> devices;
    std::string configs = "configs";
    std::string machine = "machines/dgx-h200.toml";
    std::string json = "scaling.json";
    std::string only;
    double scale = 1;
    double seconds = 0.5;
};

struct Case {
    std::string name;
    std::string matrix;
    rmsp::DistributeOptions options;
    Vectors vectors;
    bool versions;  ///< also as the paper's three versions
};

using Clock = std::chrono::steady_clock;

std::vector<Case> cases(double scale)
{
    const auto side = [&](double full) { return std::max<std::int64_t>(8, std::llround(full * std::cbrt(scale))); };
    const auto stencil = [&](double full) { return fmt::format("stencil27 {0} {0} {0}", side(full)); };
    rmsp::DistributeOptions resident;
    resident.expected_applies = 1000;  // as in a solver: kernels are raced, and parts take equal time
    rmsp::DistributeOptions streamed;
    streamed.mode = rmsp::Mode::streamed;
    const int graph = std::max(8, static_cast<int>(std::lround(24 + std::log2(scale))));
    return {{"stencil27, resident", stencil(312), resident, Vectors::rows, false},
            {"R-MAT, resident", fmt::format("rmat {} 16", graph), resident, Vectors::rows, false},
            {"stencil27, streamed", stencil(396), streamed, Vectors::host, true}};
}

Json measured(rmsp::Runtime& runtime, const rmsp::CsrView<double>& a, const rmsp::DistributeOptions& options,
              Vectors vectors, double seconds)
{
    auto matrix = runtime.distribute(a, options);
    const std::vector<double> x(static_cast<std::size_t>(a.cols), 1.0);
    // An apply of host vectors takes longer than one of vectors on the devices, whose first six are raced for kernels.
    std::vector<double> y(static_cast<std::size_t>(a.rows));
    matrix.apply(1.0, x.data(), 0.0, y.data());
    const auto start = Clock::now();
    matrix.apply(1.0, x.data(), 0.0, y.data());
    const bool streamed = options.mode == rmsp::Mode::streamed;
    const auto iterations =
        std::clamp<std::int64_t>(std::llround(seconds / std::max(seconds_since(start), 1e-9)), streamed ? 3 : 30, 500);
    const auto m = matrix.measure(vectors, streamed ? 1 : 6, iterations, 1.0, x.data(), 0.0, nullptr, nullptr);
    return {{"seconds", m.median_seconds},        {"gflops", m.gflops()},
            {"gbs", m.bytes_per_second() * 1e-9}, {"limit_gbs", m.limit_gbs},
            {"time_imbalance", m.time_imbalance}, {"nonzero_imbalance", matrix.plan().nonzero_imbalance}};
}

/// What the plan for the first n GPUs of a described machine says, each with this limit.
double predicted_seconds(const Options& options, int gpus, double limit_gbs, const rmsp::CsrView<double>& a,
                         const rmsp::DistributeOptions& distribute)
{
    rmsp::RuntimeOptions wanted;
    wanted.topology_file = options.machine;
    wanted.limit_gbs = limit_gbs;
    wanted.devices = "0";
    for (int i = 1; i < gpus; ++i) {
        wanted.devices += fmt::format(",{}", i);
    }
    const auto plan = rmsp::Runtime(wanted).plan(a, distribute);
    double longest = 0;
    for (const auto& shard : plan.shards) {
        longest = std::max(longest, shard.predicted_seconds);
    }
    return longest;
}

int count_of(const std::string& devices)
{
    return devices.starts_with("host:") ? std::stoi(devices.substr(5))
                                        : static_cast<int>(std::count(devices.begin(), devices.end(), ',')) + 1;
}

Json run_all(const Options& options)
{
    std::vector<std::string> sets = options.devices;
    if (sets.empty()) {
        const auto all = rmsp::Runtime().devices();
        const bool gpus = all.front().kind == rmsp::DeviceKind::cuda;
        for (std::size_t n = 1; n <= all.size(); n *= 2) {
            std::string set;
            for (std::size_t i = 0; i < n; ++i) {
                set += fmt::format("{}{}", i == 0 ? "" : ",", all[i].index);
            }
            sets.push_back(gpus ? set : fmt::format("host:{}", n));
        }
    }
    std::vector<rmsp::Runtime> runtimes;
    for (const auto& set : sets) {
        rmsp::RuntimeOptions wanted = rmsp::RuntimeOptions::from_environment({});
        wanted.devices = set;
        runtimes.emplace_back(wanted);
    }
    Json result;
    result["schema"] = results_schema;
    result["context"] = run_context("bench_scaling");
    result["context"].update({{"devices", device_names(runtimes.back())},
                              {"scale", options.scale},
                              {"transport", runtimes.back().transport()}});
    Json runs = Json::array();
    for (const Case& test : cases(options.scale)) {
        if (test.name.find(options.only) == std::string::npos) {
            continue;
        }
        const auto a = rmsp::generate<double>(test.matrix);
        say("{}: {}, {} nonzeros", test.name, test.matrix, a.nnz());
        // Page-locks the arrays of a streamed matrix once for all that follows.
        const auto keeper = test.options.mode == rmsp::Mode::streamed
                                ? runtimes.back().distribute(a.view(), test.options)
                                : rmsp::DistributedMatrix<double>();
        double limit = 0;  // of one device, while all of the latest set are busy
        const auto add = [&](Json run, const std::string& version, int devices) {
            run["case"] = test.name;
            run["version"] = version;
            run["matrix"] = test.matrix;
            run["nonzeros"] = a.nnz();
            run["devices"] = devices;
            std::string line = fmt::format("  {:10} {} device(s):", version, devices);
            if (run.contains("seconds")) {
                limit = run["limit_gbs"].get<double>() / devices;
                line += fmt::format(" {:.3f} ms", 1e3 * run["seconds"].get<double>());
            }
            if (version == "default") {
                run["predicted_seconds"] = predicted_seconds(options, devices, limit, a.view(), test.options);
                line += fmt::format(" (predicted {:.3f} ms)", 1e3 * run["predicted_seconds"].get<double>());
            }
            say("{}", line);
            runs.push_back(std::move(run));
        };
        for (std::size_t i = 0; i < sets.size(); ++i) {
            add(measured(runtimes[i], a.view(), test.options, test.vectors, options.seconds), "default",
                count_of(sets[i]));
        }
        for (int devices = 1; devices <= 8; devices *= 2) {
            if (std::none_of(sets.begin(), sets.end(), [&](const auto& set) { return count_of(set) == devices; })) {
                add(Json::object(), "default", devices);
            }
        }
        if (!test.versions) {
            continue;
        }
        for (const char* version : {"baseline", "pstar", "pstar-opt"}) {
            const auto config = rmsp::load_config(options.configs + "/" + version + ".toml");
            for (const auto& set : sets) {
                rmsp::RuntimeOptions wanted = rmsp::RuntimeOptions::from_environment(rmsp::runtime_options(config));
                wanted.devices = set;
                rmsp::Runtime runtime(wanted);
                add(measured(runtime, a.view(), rmsp::distribute_options(config), test.vectors, options.seconds),
                    version, count_of(set));
            }
        }
    }
    result["runs"] = std::move(runs);
    result["context"]["seconds"] = seconds_since(program_start);
    return result;
}

}  // namespace

int main(int argc, char** argv)
{
    Options options;
    CLI::App app("Measures strong scaling over the GPUs of this machine beside what the model predicts");
    app.add_option("--devices", options.devices, "device sets in rising order, each as runtime.devices has it")
        ->type_name("SET...");
    app.add_option("--scale", options.scale, "nonzeros as a share of the full size")->capture_default_str();
    app.add_option("--seconds", options.seconds, "timed seconds of each measurement")->capture_default_str();
    app.add_option("--configs", options.configs, "folder of baseline.toml, pstar.toml, pstar-opt.toml")
        ->capture_default_str();
    app.add_option("--machine", options.machine, "described machine to predict for")->capture_default_str();
    app.add_option("--only", options.only, "the cases whose names hold this: resident, streamed, stencil27, R-MAT");
    app.add_option("--json", options.json, "file to write")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    return report_errors([&] {
        write_file(options.json, run_all(options).dump(1) + '\n');
        return 0;
    });
}
