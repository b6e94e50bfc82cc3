// Repeats the experiments of MSREP (arXiv:2209.07552, sections 2.3 and 5) on the devices of this machine: imbalance,
// cost of partitioning and merging, NUMA placement, speed-up of the paper's three versions, and of each matrix. One
// process runs all of it, since a start on GPUs costs seconds. Writes one JSON file, which bench/plot_msrep.py draws.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <rmsp/rmsp.hpp>

#include "msrep_matrices.hpp"
#include "msrep_partition.hpp"
#include "program.hpp"

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
using bench::Matrix;
using Vectors = rmsp::DistributedMatrix<double>::Vectors;

struct Options {
    std::vector<std::string> devices;
    std::vector<std::string> files;
    std::string configs = "configs";
    std::string json = "msrep.json";
    double scale = 0;  // 0: by the kind of device
    double seconds = 0.3;
};

/// One of the paper's matrices (Table 2), by its size and exponent.
struct StandIn {
    const char* name;
    std::int64_t rows;
    std::int64_t nnz;
    double exponent;
};
constexpr StandIn table2[] = {
    {"mouse_gene", 45101, 28967291, 1.03},        {"wb-edu", 9845725, 57156537, 2.13},
    {"com-LiveJournal", 3997962, 69362378, 2.40}, {"hollywood-2009", 1139905, 113891327, 1.92},
    {"com-Orkut", 3072441, 234370166, 2.13},      {"HV15R", 2017169, 283073458, 3.09}};
/// The ends of what the paper calls a power law, beside Table 2.
constexpr StandIn more_exponents[] = {{"R = 1", 1 << 20, 1 << 26, 1}, {"R = 4", 1 << 20, 1 << 26, 4}};
constexpr int rmat_scale = 22;
constexpr int rmat_edge_factor = 16;

using bench::versions;

int count_of(const std::string& devices)
{
    return devices.starts_with("host:") ? std::stoi(devices.substr(5))
                                        : static_cast<int>(std::count(devices.begin(), devices.end(), ',')) + 1;
}

/// A few applies of what a configuration describes.
class Experiment {
public:
    Experiment(const Options& options) : options_(options) {}

    rmsp::Config config(const std::string& version, const std::vector<std::string>& overrides = {}) const
    {
        auto all = overrides;
        all.emplace_back("output.log_level=error");
        return rmsp::load_config(options_.configs + "/" + version + ".toml", all);
    }

    /// A runtime for each distinct way to drive each set of devices, kept: starting one costs seconds.
    rmsp::Runtime& runtime(const rmsp::Config& config, const std::string& devices)
    {
        rmsp::RuntimeOptions wanted = rmsp::RuntimeOptions::from_environment(rmsp::runtime_options(config));
        wanted.devices = devices;
        const auto key = std::make_tuple(devices, wanted.one_thread, wanted.bind);
        auto found = runtimes_.find(key);
        if (found == runtimes_.end()) {
            found = runtimes_.emplace(key, rmsp::Runtime(wanted)).first;
        }
        return found->second;
    }

    /// Median seconds of an apply, and what else the paper asks for.
    template <class View>
    Json measure(const View& a, const rmsp::Config& config, const std::string& devices)
    {
        auto matrix = runtime(config, devices).distribute(a, rmsp::distribute_options(config));
        const Vectors vectors = config.run.vectors == "host"   ? Vectors::host
                                : config.run.vectors == "rows" ? Vectors::rows
                                                               : Vectors::replicated;
        const std::vector<double> x(static_cast<std::size_t>(a.cols), 1.0);
        std::vector<double> y(static_cast<std::size_t>(a.rows));
        const double once = bench::best_seconds([&] { matrix.apply(1.0, x.data(), 0.0, y.data()); });
        const auto iterations = std::clamp<std::int64_t>(std::llround(options_.seconds / std::max(once, 1e-9)), 3, 200);
        const auto m = matrix.measure(vectors, 0, iterations, 1.0, x.data(), 0.0, nullptr, nullptr);
        const auto longest = [](const std::vector<rmsp::PhaseTimes>& phases, const std::string& name) {
            for (const auto& phase : phases) {
                if (phase.name == name) {
                    return *std::max_element(phase.seconds.begin(), phase.seconds.end());
                }
            }
            return 0.0;
        };
        Json phases = Json::object();
        for (const auto& phase : m.phases) {
            phases[phase.name] = phase.seconds;
        }
        Json setup = Json::object();
        for (const auto& phase : matrix.report().setup) {
            setup[phase.name] = phase.seconds;
        }
        return {{"devices", count_of(devices)},
                {"seconds", m.median_seconds},
                {"min_seconds", m.min_seconds},
                {"max_seconds", m.max_seconds},
                {"gflops", m.gflops()},
                {"partition_seconds", longest(matrix.report().setup, "partition")},
                {"pointers_seconds", longest(m.phases, "pointers")},
                {"merge_seconds", longest(m.phases, "merge")},
                {"merge_behind_barrier_seconds", merge_behind_barrier(m.phases)},
                {"setup", std::move(setup)},
                {"phases", std::move(phases)},
                {"limit_gbs", m.limit_gbs},
                {"limit_before_gbs", m.limit_before_gbs},
                {"limit_after_gbs", m.limit_after_gbs},
                {"share_of_limit", m.share_of_limit()},
                {"nonzero_imbalance", matrix.plan().nonzero_imbalance},
                {"time_imbalance", m.time_imbalance},
                {"iterations", m.iterations}};
    }

    /// Whether A x passes the comparison with the serial reference; `csr` is the same matrix by rows.
    template <class View>
    bool correct(const View& a, const rmsp::CsrView<double>& csr, const rmsp::Config& config,
                 const std::string& devices)
    {
        auto matrix = runtime(config, devices).distribute(a, rmsp::distribute_options(config));
        const std::vector<double> x(static_cast<std::size_t>(a.cols), 1.0);
        std::vector<double> y(static_cast<std::size_t>(a.rows));
        matrix.apply(1.0, x.data(), 0.0, y.data());
        return rmsp::verify_spmv<double>(csr, 1.0, x.data(), 0.0, nullptr, y.data()).passed;
    }

    /// Median seconds of calls that cut the matrix anew before each apply, as the paper's programs do, and of the cuts
    /// alone. The apply goes on with the parts that were cut first, which are the same.
    Json with_cuts_in_every_call(const Matrix& a, const rmsp::Config& config, const std::string& devices)
    {
        auto matrix = runtime(config, devices).distribute(a.view(), rmsp::distribute_options(config));
        rmsp::PartitionOptions split;
        split.strategy =
            config.partition.strategy == "rows" ? rmsp::PartitionStrategy::rows : rmsp::PartitionStrategy::nonzeros;
        split.alignment = config.partition.alignment == "row" ? rmsp::RowAlignment::row : rmsp::RowAlignment::exact;
        const std::vector<double> x(static_cast<std::size_t>(a.cols), 1.0);
        std::vector<double> y(static_cast<std::size_t>(a.rows));
        std::vector<double> cuts;
        std::vector<double> calls;
        constexpr std::size_t most_calls = 50;
        const auto begin = Clock::now();
        while (calls.size() < 3 || (calls.size() < most_calls && seconds_since(begin) < options_.seconds)) {
            const auto start = Clock::now();
            const auto parts = rmsp::partition_csr(a.rows, a.cols, a.view().row_ptr, count_of(devices), split);
            cuts.push_back(seconds_since(start));
            matrix.apply(1.0, x.data(), 0.0, y.data());
            calls.push_back(seconds_since(start));
        }
        const auto median = [](std::vector<double>& all) {
            std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
            return all[all.size() / 2];
        };
        return {{"devices", count_of(devices)}, {"seconds", median(calls)}, {"cut_seconds", median(cuts)}};
    }

private:
    /// From the time at which the last device has its partial result to the end: what merging takes where nobody waits
    /// for a slower device in it. Pieces and kernels are timed from the start of the apply.
    static double merge_behind_barrier(const std::vector<rmsp::PhaseTimes>& phases)
    {
        const auto of = [&](const char* name) {
            const auto found =
                std::find_if(phases.begin(), phases.end(), [&](const auto& p) { return p.name == name; });
            return found == phases.end() ? std::vector<double>{} : found->seconds;
        };
        const std::vector<double> computed = of("stream").empty() ? of("kernel") : of("stream");
        const std::vector<double> merged = of("merge");
        if (computed.empty() || merged.size() != computed.size()) {
            return 0;
        }
        double last = 0;
        double end = 0;
        for (std::size_t i = 0; i < computed.size(); ++i) {
            last = std::max(last, computed[i]);
            end = std::max(end, computed[i] + merged[i]);
        }
        return end - last;
    }

    const Options& options_;
    std::map<std::tuple<std::string, bool, rmsp::BindPolicy>, rmsp::Runtime> runtimes_;
};

Json imbalance(Experiment& experiment, const std::string& devices, double scale, bool gpus)
{
    const int blocks = count_of(devices);
    const auto rows = std::max<std::int64_t>(1000, std::llround(2e6 * scale));
    Json runs = Json::array();
    for (const int low : std::set<int>{0, 1, blocks / 2, blocks - 1}) {
        for (int tenths = 1; tenths <= 9; ++tenths) {
            if (low == blocks || (low == 0 && tenths > 1)) {
                continue;
            }
            const Matrix a = bench::uneven_blocks(rows, rows * 66, blocks, low, 0.1 * tenths);
            for (const char* strategy : {"rows", "nonzeros"}) {
                // One kernel that suits all row lengths, as the paper has one, and cuts between rows: what differs is
                // the split.
                auto config = experiment.config(
                    "pstar-opt", {std::string("partition.strategy=") + strategy, "partition.alignment=auto",
                                  "run.mode=resident", "run.vectors=replicated"});
                if (gpus) {
                    config.kernel.spmv = "csr-nnz-split";
                }
                Json run = experiment.measure(a.view(), config, devices);
                run["low"] = low;
                run["ratio"] = 0.1 * tenths;
                run["strategy"] = strategy;
                say("{} of {} devices with {}/10 of the nonzeros, by {}: {:.1f} GFLOP/s", low, blocks, tenths, strategy,
                    run["gflops"].get<double>());
                runs.push_back(std::move(run));
            }
        }
    }
    return runs;
}

/// What streamed coordinates cost: sorted by row with the row pointers made once and with an index for each entry,
/// sorted by column (of the transpose), and in no order.
Json coordinates(Experiment& experiment, const rmsp::CooView<double>& by_row, const std::string& devices)
{
    Json runs = Json::array();
    const auto add = [&](const rmsp::CooView<double>& view, const char* order, const char* sent) {
        const auto config =
            experiment.config("pstar-opt", {std::string("stream.coordinates=") + sent, "partition.unsorted=split"});
        Json run = experiment.measure(view, config, devices);
        run["order"] = order;
        run["sent"] = sent;
        say("  coordinates {}, {}: {:.3f} ms", order, sent, 1e3 * run["seconds"].get<double>());
        runs.push_back(std::move(run));
    };
    const rmsp::CooView<double> by_column{by_row.cols,    by_row.rows,    by_row.nnz,
                                          by_row.col_idx, by_row.row_idx, by_row.values};
    for (const char* sent : {"pointers", "indices"}) {
        add(by_row, "by row", sent);
        add(by_column, "by column", sent);
    }
    const bench::ShuffledCoordinates shuffled(by_row);
    add(shuffled.view(), "unsorted", "indices");
    return runs;
}

/// Calls save() with all that is there after each matrix.
void run_all(const Options& options, const std::vector<std::string>& devices, double scale,
             const std::function<void(const Json&)>& save)
{
    Experiment experiment(options);
    Json result;
    std::vector<int> counts;
    for (const auto& set : devices) {
        counts.push_back(count_of(set));
    }
    const auto opt = experiment.config("pstar-opt");
    {
        rmsp::Runtime& machine = experiment.runtime(opt, devices.back());
        result["schema"] = results_schema;
        result["context"] = run_context("bench_msrep");
        result["context"].update({{"devices", device_names(machine)},
                                  {"device_sets", devices},
                                  {"numa_nodes", machine.topology().nodes.size()},
                                  {"transport", machine.transport()},
                                  {"scale", scale}});
    }
    result["imbalance"] = imbalance(experiment, devices.back(), scale, !devices.back().starts_with("host:"));

    const bool on_host = devices.back().starts_with("host:");
    Json matrices = Json::array();
    Json speed = Json::array();
    const auto one_matrix = [&](const std::string& name, const Matrix& a, bool all_formats) {
        say("{}: {} rows, {} nonzeros", name, a.rows, a.nnz());
        // Page-locks the arrays once for all that follows.
        const auto keeper = experiment.runtime(opt, devices.back()).distribute(a.view(), rmsp::distribute_options(opt));
        const auto add = [&](const auto& view, const char* format, const char* version) {
            const auto config = experiment.config(version);
            for (const auto& set : devices) {
                Json run = experiment.measure(view, config, set);
                run["matrix"] = name;
                run["format"] = format;
                run["version"] = version;
                say("  {} {:10} {} device(s): {:.3f} ms, {:.1f} % of the links, pointers {:.3f} ms, merge {:.3f} ms",
                    format, version, count_of(set), 1e3 * run["seconds"].get<double>(),
                    1e2 * run["share_of_limit"].get<double>(), 1e3 * run["pointers_seconds"].get<double>(),
                    1e3 * run["merge_seconds"].get<double>());
                speed.push_back(std::move(run));
            }
        };
        if (!all_formats) {
            add(a.view(), "csr", "baseline");
            add(a.view(), "csr", "pstar-opt");
        } else {
            // The same arrays read as CSC are the transpose; its columns are as long as these rows.
            const auto csc = rmsp::transpose(a.view());
            const auto rows = bench::row_indices(a);
            const rmsp::CooView<double> coo{a.rows, a.cols, a.nnz(), rows.data(), a.view().col_idx, a.view().values};
            for (const char* version : versions) {
                add(a.view(), "csr", version);
                add(csc, "csc", version);
                add(coo, "coo", version);
            }
            result["partition"] = bench::partition_cost(a, rows.data(), counts);
            say("  partitioned");
            result["coordinates"] = coordinates(experiment, coo, devices.back());
            Json every_call = Json::array();
            for (const char* version : versions) {
                for (const auto& set : devices) {
                    every_call.push_back(experiment.with_cuts_in_every_call(a, experiment.config(version), set));
                    every_call.back()["version"] = version;
                }
            }
            result["partition_in_every_call"] = std::move(every_call);
            Json switches = Json::array();
            for (const char* key :
                 {"runtime.threads=one", "runtime.bind=none", "partition.strategy=rows", "partition.pointers=host",
                  "run.chunk_mib=1000000", "stream.numa=keep", "stream.numa=copy", "kernel.spmv=cusparse-csr-alg2"}) {
                if (on_host && std::string(key).find("cusparse") != std::string::npos) {
                    continue;
                }
                Json run = experiment.measure(a.view(), experiment.config("pstar-opt", {key}), devices.back());
                run["switched"] = key;
                say("  pstar-opt with {}: {:.3f} ms", key, 1e3 * run["seconds"].get<double>());
                switches.push_back(std::move(run));
            }
            result["switches"] = std::move(switches);
            Json numa = Json::array();
            for (const auto& set : devices) {
                for (const char* bind : {"auto", "none"}) {
                    Json run = experiment.measure(
                        a.view(), experiment.config("pstar-opt", {std::string("runtime.bind=") + bind}), set);
                    run["bind"] = bind;
                    numa.push_back(std::move(run));
                }
            }
            result["numa"] = std::move(numa);
            Json verified = Json::object();
            const auto by_rows = rmsp::to_csr(csc);
            for (const char* version : versions) {
                const auto config = experiment.config(version);
                verified[version] = {{"csr", experiment.correct(a.view(), a.view(), config, devices.back())},
                                     {"csc", experiment.correct(csc, by_rows.view(), config, devices.back())},
                                     {"coo", experiment.correct(coo, a.view(), config, devices.back())}};
            }
            say("  verified: {}", verified.dump());
            result["verified"] = std::move(verified);
        }
        matrices.push_back({{"name", name}, {"rows", a.rows}, {"nonzeros", a.nnz()}});
        result["matrices"] = matrices;
        result["speed"] = speed;
        result["context"]["seconds"] = seconds_since(program_start);
        save(result);
    };
    const auto stand_in = [&](const StandIn& m) {
        const auto rows = std::max<std::int64_t>(1000, std::llround(static_cast<double>(m.rows) * scale));
        const auto per_row =
            std::min(rows / 4,
                     std::max<std::int64_t>(1, std::llround(static_cast<double>(m.nnz) / static_cast<double>(m.rows))));
        return rmsp::power_law<double>(rows, per_row, m.exponent);
    };
    // The largest first: the paper's figures 16 to 21 are of HV15R.
    for (auto m = std::rbegin(table2); m != std::rend(table2); ++m) {
        one_matrix(fmt::format("{} (R = {})", m->name, m->exponent), stand_in(*m), m == std::rbegin(table2));
    }
    for (const StandIn& m : more_exponents) {
        one_matrix(m.name, stand_in(m), false);
    }
    {
        // Long columns, which come first, and rows of about one length.
        const Matrix a = stand_in(more_exponents[0]);
        one_matrix("R = 1, transposed", rmsp::to_csr(rmsp::transpose(a.view())), false);
    }
    one_matrix("R-MAT",
               rmsp::rmat<double>(rmat_scale + static_cast<int>(std::lround(std::log2(scale))), rmat_edge_factor),
               false);
    for (const auto& file : options.files) {
        const auto slash = file.find_last_of('/');
        const std::string name = file.substr(slash == std::string::npos ? 0 : slash + 1);
        one_matrix(name.substr(0, name.find(".mtx")), rmsp::read_matrix<double>(file), false);
    }
}

/// 1, 2, 3, 4, 6, 8 of the GPUs, or of host devices up to `most`.
std::vector<std::string> device_sets(bool& gpus)
{
    const auto all = rmsp::Runtime().devices();
    gpus = all.front().kind == rmsp::DeviceKind::cuda;
    std::vector<std::string> sets;
    const std::size_t most = gpus ? all.size() : 4;
    for (const std::size_t n : {1, 2, 3, 4, 6, 8}) {
        if (n > most) {
            break;
        }
        std::string set;
        for (std::size_t i = 0; i < n; ++i) {
            set += fmt::format("{}{}", i == 0 ? "" : ",", all.at(gpus ? i : 0).index);
        }
        sets.push_back(gpus ? set : fmt::format("host:{}", n));
    }
    return sets;
}

}  // namespace

int main(int argc, char** argv)
{
    Options options;
    CLI::App app("Repeats the experiments of MSREP on this machine");
    app.add_option("--devices", options.devices, "device sets in rising order, each as runtime.devices has it")
        ->type_name("SET...");
    app.add_option("--scale", options.scale, "size of the matrices, as a share of the paper's (1; without GPUs 0.01)");
    app.add_option("--seconds", options.seconds, "timed seconds of each measurement")->capture_default_str();
    app.add_option("--configs", options.configs, "folder of baseline.toml, pstar.toml, pstar-opt.toml")
        ->capture_default_str();
    app.add_option("--json", options.json, "file to write")->capture_default_str();
    app.add_option("matrices", options.files, "matrix files to add")->type_name("FILE...");
    CLI11_PARSE(app, argc, argv);
    return report_errors([&] {
        bool gpus = false;
        const auto found = device_sets(gpus);
        const auto sets = options.devices.empty() ? found : options.devices;
        const double scale = options.scale > 0 ? options.scale : gpus ? 1.0 : 0.01;
        run_all(options, sets, scale, [&](const Json& result) { write_file(options.json, result.dump(1) + '\n'); });
        return 0;
    });
}
