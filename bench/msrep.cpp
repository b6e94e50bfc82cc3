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
#include <unistd.h>
#include <CLI/CLI.hpp>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <nlohmann/json.hpp>

#include <rmsp/rmsp.hpp>

#include "program.hpp"

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
using Matrix = rmsp::CsrMatrix<double>;
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

constexpr const char* versions[] = {"baseline", "pstar", "pstar-opt"};

/// The best of three runs, or of fewer that take long.
double best_seconds(const std::function<void()>& f)
{
    constexpr double enough_seconds = 0.05;
    const auto begin = Clock::now();
    double best = 1e300;
    for (int i = 0; i < 3 && (i == 0 || seconds_since(begin) < enough_seconds); ++i) {
        const auto start = Clock::now();
        f();
        best = std::min(best, seconds_since(start));
    }
    return best;
}

void use_threads(int threads)
{
#ifdef _OPENMP
    omp_set_num_threads(threads);
#else
    (void)threads;
#endif
}

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
        const double once = best_seconds([&] { matrix.apply(1.0, x.data(), 0.0, y.data()); });
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
        return {{"devices", count_of(devices)},
                {"seconds", m.median_seconds},
                {"min_seconds", m.min_seconds},
                {"max_seconds", m.max_seconds},
                {"gflops", m.gflops()},
                {"partition_seconds", longest(matrix.report().setup, "partition")},
                {"pointers_seconds", longest(m.phases, "pointers")},
                {"merge_seconds", longest(m.phases, "merge")},
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

private:
    const Options& options_;
    std::map<std::tuple<std::string, bool, rmsp::BindPolicy>, rmsp::Runtime> runtimes_;
};

/// A block of rows for each device, of which the last `low` have `ratio` times the entries of the others. (Section 2.3)
Matrix uneven_blocks(std::int64_t rows, std::int64_t nnz, int blocks, int low, double ratio)
{
    Matrix a;
    a.rows = rows;
    a.cols = rows;
    const double high = static_cast<double>(nnz) / static_cast<double>(rows) * blocks / (blocks - low + low * ratio);
    const auto many = static_cast<std::int64_t>(std::llround(high));
    const auto few = static_cast<std::int64_t>(std::llround(high * ratio));
    a.row_ptr.resize(static_cast<std::size_t>(rows) + 1);
    a.row_ptr[0] = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
        a.row_ptr[static_cast<std::size_t>(r) + 1] =
            a.row_ptr[static_cast<std::size_t>(r)] + (r * blocks < rows * (blocks - low) ? many : few);
    }
    const auto total = static_cast<std::size_t>(a.row_ptr.back());
    rmsp::HostVector<std::int32_t> columns(total);
    a.values.resize(total);
#pragma omp parallel for schedule(static)
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t first = a.row_ptr[static_cast<std::size_t>(r)];
        const std::int64_t n = a.row_ptr[static_cast<std::size_t>(r) + 1] - first;
        // A band around the diagonal.
        const std::int64_t begin = std::clamp<std::int64_t>(r - n / 2, 0, std::max<std::int64_t>(0, rows - n));
        for (std::int64_t k = 0; k < n; ++k) {
            columns[static_cast<std::size_t>(first + k)] = static_cast<std::int32_t>(begin + k);
            a.values[static_cast<std::size_t>(first + k)] = 1.0;
        }
    }
    a.col_idx = rmsp::IndexArray(std::move(columns));
    return a;
}

Json imbalance(Experiment& experiment, const std::string& devices, double scale, bool gpus)
{
    const int blocks = count_of(devices);
    const auto rows = std::max<std::int64_t>(1000, std::llround(2e6 * scale));
    Json runs = Json::array();
    for (const int low : std::set<int>{0, 1, blocks / 2, blocks - 1}) {
        for (const int tenths : {1, 3, 5, 7, 9}) {
            if (low == blocks || (low == 0 && tenths > 1)) {
                continue;
            }
            const Matrix a = uneven_blocks(rows, rows * 66, blocks, low, 0.1 * tenths);
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

/// Row indices of the entries.
rmsp::HostVector<std::int32_t> row_indices(const Matrix& a)
{
    rmsp::HostVector<std::int32_t> row_idx(static_cast<std::size_t>(a.nnz()));
#pragma omp parallel for schedule(dynamic, 4096)
    for (std::int64_t r = 0; r < a.rows; ++r) {
        std::fill(row_idx.begin() + a.row_ptr[static_cast<std::size_t>(r)],
                  row_idx.begin() + a.row_ptr[static_cast<std::size_t>(r) + 1], static_cast<std::int32_t>(r));
    }
    return row_idx;
}

/// Seconds of the host to cut a matrix into parts and to make what is local to each, in the three formats.
Json partition_cost(const Matrix& a, const rmsp::IndexView& rows, const std::vector<int>& counts)
{
    Json runs = Json::array();
    const auto view = a.view();
    rmsp::HostVector<std::int32_t> local(static_cast<std::size_t>(view.nnz) + a.row_ptr.size() + 1024);
    std::fill(local.begin(), local.end(), 0);
    for (const int parts : counts) {
        for (const char* version : versions) {
            const bool blocks = std::string(version) == "baseline";
            const bool on_host = std::string(version) != "pstar-opt";
            rmsp::PartitionOptions options;
            options.strategy = blocks ? rmsp::PartitionStrategy::rows : rmsp::PartitionStrategy::nonzeros;
            options.alignment = blocks ? rmsp::RowAlignment::row : rmsp::RowAlignment::exact;
            const std::map<std::string, std::function<void()>> formats{
                {"csr",
                 [&] {
                     const auto split = rmsp::partition_csr(a.rows, a.cols, view.row_ptr, parts, options);
                     std::int32_t* out = local.data();
                     for (const auto& part : split.parts) {
                         if (on_host) {
                             rmsp::local_row_ptr(view.row_ptr, part, out);
                             out += part.rows() + 1;
                         }
                     }
                 }},
                {"csc",  // of the transpose
                 [&] {
                     const auto split = rmsp::partition_csc(a.cols, a.rows, view.row_ptr, parts, options);
                     std::int32_t* out = local.data();
                     for (const auto& part : split.parts) {
                         if (on_host) {
                             rmsp::local_col_ptr(view.row_ptr, part, out);
                             out += part.cols() + 1;
                         }
                     }
                 }},
                {"coo", [&] {
                     const auto split =
                         rmsp::partition_coo(a.rows, a.cols, view.nnz, rows, view.col_idx, parts, options);
                     for (const auto& part : split.parts) {
                         if (on_host) {
                             rmsp::local_indices(rows, part, part.start_row, part.rows(),
                                                 local.data() + part.start_idx);
                         }
                     }
                 }}};
            use_threads(blocks ? 1 : parts);
            for (const auto& [format, run] : formats) {
                runs.push_back(
                    {{"version", version}, {"format", format}, {"devices", parts}, {"seconds", best_seconds(run)}});
            }
        }
    }
    use_threads(static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))));
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
        result["context"] = run_context("bench_msrep");
        result["context"].update({{"devices", device_names(machine)},
                                  {"device_sets", devices},
                                  {"numa_nodes", machine.topology().nodes.size()},
                                  {"transport", machine.transport()},
                                  {"scale", scale}});
    }
    result["imbalance"] = imbalance(experiment, devices.back(), scale, !devices.back().starts_with("host:"));

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
            const auto rows = row_indices(a);
            const rmsp::CooView<double> coo{a.rows, a.cols, a.nnz(), rows.data(), a.view().col_idx, a.view().values};
            for (const char* version : versions) {
                add(a.view(), "csr", version);
                add(csc, "csc", version);
                add(coo, "coo", version);
            }
            result["partition"] = partition_cost(a, rows.data(), counts);
            say("  partitioned");
            Json switches = Json::array();
            for (const char* key : {"runtime.threads=one", "runtime.bind=none", "partition.strategy=rows",
                                    "partition.pointers=host", "run.chunk_mib=1000000"}) {
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
    one_matrix("R-MAT",
               rmsp::rmat<double>(rmat_scale + static_cast<int>(std::lround(std::log2(scale))), rmat_edge_factor),
               false);
    for (const auto& file : options.files) {
        const auto slash = file.find_last_of('/');
        const std::string name = file.substr(slash == std::string::npos ? 0 : slash + 1);
        one_matrix(name.substr(0, name.find(".mtx")), rmsp::read_matrix<double>(file), false);
    }
}

/// 1, 2, 4, 8, ... of the GPUs, or of host devices up to `most`.
std::vector<std::string> device_sets(bool& gpus)
{
    const auto all = rmsp::Runtime().devices();
    gpus = all.front().kind == rmsp::DeviceKind::cuda;
    std::vector<std::string> sets;
    const std::size_t most = gpus ? all.size() : 4;
    for (std::size_t n = 1; n <= most; n *= 2) {
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
