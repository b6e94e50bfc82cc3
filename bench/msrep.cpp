// Repeats the experiments of MSREP (arXiv:2209.07552, sections 2.3 and 5) on the devices of this machine: imbalance, cost of
// partitioning and merging, NUMA placement, speed-up of the paper's three versions, and of each matrix. One process runs all of
// it, since a start on GPUs costs seconds. Writes one JSON file, which bench/plot_msrep.py draws.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <nlohmann/json.hpp>

#include <rmsp/rmsp.hpp>

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

constexpr const char* versions[] = {"baseline", "pstar", "pstar-opt"};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

const Clock::time_point program_start = Clock::now();

template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args)
{
    fmt::print(stderr, "{:6.1f} s  {}\n", seconds_since(program_start),
               fmt::format(format, std::forward<Args>(args)...));
}

/// The best of a few runs.
double best_seconds(const std::function<void()>& f)
{
    double best = 1e300;
    for (int i = 0; i < 3; ++i) {
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
    Json measure(const Matrix& a, const rmsp::Config& config, const std::string& devices)
    {
        rmsp::Runtime& machine = runtime(config, devices);
        auto options = rmsp::distribute_options(config);
        auto matrix = machine.distribute(a.view(), options);
        const Vectors vectors = config.run.vectors == "host"   ? Vectors::host
                                : config.run.vectors == "rows" ? Vectors::rows
                                                               : Vectors::replicated;
        const std::vector<double> x(static_cast<std::size_t>(a.cols), 1.0);
        const auto once = matrix.measure(vectors, 1, 1, 1.0, x.data(), 0.0, nullptr, nullptr);
        const auto iterations =
            std::clamp<std::int64_t>(std::llround(options_.seconds / std::max(once.median_seconds, 1e-9)), 3, 200);
        const auto m = matrix.measure(vectors, 1, iterations, 1.0, x.data(), 0.0, nullptr, nullptr);
        double merge = 0;
        for (const auto& phase : m.phases) {
            if (phase.name == "merge") {
                merge = *std::max_element(phase.seconds.begin(), phase.seconds.end());
            }
        }
        return {{"devices", count_of(devices)},
                {"seconds", m.median_seconds},
                {"min_seconds", m.min_seconds},
                {"gflops", m.gflops()},
                {"merge_seconds", merge},
                {"nonzero_imbalance", matrix.plan().nonzero_imbalance},
                {"time_imbalance", m.time_imbalance},
                {"iterations", m.iterations}};
    }

    /// The same, and the result compared with the serial reference.
    bool correct(const Matrix& a, const rmsp::Config& config, const std::string& devices)
    {
        auto matrix = runtime(config, devices).distribute(a.view(), rmsp::distribute_options(config));
        const std::vector<double> x(static_cast<std::size_t>(a.cols), 1.0);
        std::vector<double> y(static_cast<std::size_t>(a.rows));
        matrix.apply(1.0, x.data(), 0.0, y.data());
        return rmsp::verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed;
    }

private:
    const Options& options_;
    std::map<std::tuple<std::string, bool, rmsp::BindPolicy>, rmsp::Runtime> runtimes_;
};

/// Two halves of the rows, of which the second has `ratio` times the entries of the first. (Section 2.3)
Matrix two_halves(std::int64_t rows, std::int64_t nnz, int ratio)
{
    Matrix a;
    a.rows = rows;
    a.cols = rows;
    const std::int64_t pair = nnz / (rows / 2);
    const std::int64_t few = pair / (1 + ratio);
    a.row_ptr.resize(static_cast<std::size_t>(rows) + 1);
    a.row_ptr[0] = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
        a.row_ptr[static_cast<std::size_t>(r) + 1] =
            a.row_ptr[static_cast<std::size_t>(r)] + (r < rows / 2 ? few : pair - few);
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

Json imbalance(Experiment& experiment, const std::vector<std::string>& devices, double scale, bool gpus)
{
    const auto rows = std::max<std::int64_t>(1000, std::llround(2e6 * scale) / 2 * 2);
    Json runs = Json::array();
    for (const int ratio : {1, 2, 4, 6, 8, 10}) {
        const Matrix a = two_halves(rows, rows * 66, ratio);
        for (const char* strategy : {"rows", "nonzeros"}) {
            // One kernel that suits all row lengths, as the paper has one: what differs is the split.
            auto config = experiment.config("pstar-opt", {std::string("partition.strategy=") + strategy,
                                                          "run.mode=resident", "run.vectors=replicated"});
            if (gpus) {
                config.kernel.spmv = "csr-nnz-split";
            }
            Json run = experiment.measure(a, config, devices.back());
            run["ratio"] = ratio;
            run["strategy"] = strategy;
            say("imbalance 1:{} by {}: {:.1f} GFLOP/s", ratio, strategy, run["gflops"].get<double>());
            runs.push_back(std::move(run));
        }
    }
    return runs;
}

/// Seconds of the host to cut a matrix into parts and to make what is local to each, in the three formats.
Json partition_cost(const Matrix& a, const std::vector<int>& counts)
{
    Json runs = Json::array();
    const auto view = a.view();
    // The same arrays read as CSC are the transpose; its columns are as long as these rows.
    rmsp::HostVector<std::int32_t> row_idx(static_cast<std::size_t>(view.nnz));
#pragma omp parallel for schedule(dynamic, 4096)
    for (std::int64_t r = 0; r < a.rows; ++r) {
        std::fill(row_idx.begin() + a.row_ptr[static_cast<std::size_t>(r)],
                  row_idx.begin() + a.row_ptr[static_cast<std::size_t>(r) + 1], static_cast<std::int32_t>(r));
    }
    const rmsp::IndexView rows(row_idx.data());
    rmsp::HostVector<std::int32_t> local(row_idx.size() + a.row_ptr.size() + 1024);
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
                {"csc",
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

Json run_all(const Options& options, const std::vector<std::string>& devices, double scale)
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
        std::vector<std::string> names;
        for (const auto& device : machine.devices()) {
            names.push_back(fmt::format("{}:{} {}", rmsp::to_string(device.kind), device.index, device.name));
        }
        const std::time_t now = std::time(nullptr);
        result["context"] = {{"date", fmt::format("{:%Y-%m-%dT%H:%M:%S%z}", fmt::localtime(now))},
                             {"library_version", rmsp::version()},
                             {"commit", rmsp::commit()},
                             {"features", rmsp::build_features()},
                             {"devices", names},
                             {"device_sets", devices},
                             {"numa_nodes", machine.topology().nodes.size()},
                             {"transport", machine.transport()},
                             {"scale", scale}};
    }
    result["imbalance"] = imbalance(experiment, devices, scale, !devices.back().starts_with("host:"));

    Json matrices = Json::array();
    Json speed = Json::array();
    const auto one_matrix = [&](const std::string& name, const Matrix& a, bool all_versions) {
        say("{}: {} rows, {} nonzeros", name, a.rows, a.nnz());
        // Page-locks the arrays once for all that follows.
        const auto keeper = experiment.runtime(opt, devices.back()).distribute(a.view(), rmsp::distribute_options(opt));
        for (const char* version : versions) {
            if (!all_versions && std::string(version) != "pstar-opt") {
                continue;
            }
            const auto config = experiment.config(version);
            for (const auto& set : devices) {
                Json run = experiment.measure(a, config, set);
                run["matrix"] = name;
                run["version"] = version;
                say("  {:10} {} device(s): {:.3f} ms, merge {:.3f} ms", version, count_of(set),
                    1e3 * run["seconds"].get<double>(), 1e3 * run["merge_seconds"].get<double>());
                speed.push_back(std::move(run));
            }
        }
        if (all_versions) {
            result["partition"] = partition_cost(a, counts);
            say("  partitioned");
            Json switches = Json::array();
            for (const char* key :
                 {"runtime.threads=one", "runtime.bind=none", "partition.strategy=rows", "partition.pointers=host"}) {
                Json run = experiment.measure(a, experiment.config("pstar-opt", {key}), devices.back());
                run["switched"] = key;
                say("  pstar-opt with {}: {:.3f} ms", key, 1e3 * run["seconds"].get<double>());
                switches.push_back(std::move(run));
            }
            result["switches"] = std::move(switches);
            Json numa = Json::array();
            for (const auto& set : devices) {
                for (const char* bind : {"auto", "none"}) {
                    Json run = experiment.measure(
                        a, experiment.config("pstar-opt", {std::string("runtime.bind=") + bind}), set);
                    run["bind"] = bind;
                    numa.push_back(std::move(run));
                }
            }
            result["numa"] = std::move(numa);
            Json verified = Json::object();
            for (const char* version : versions) {
                verified[version] = experiment.correct(a, experiment.config(version), devices.back());
            }
            result["verified"] = std::move(verified);
            say("  verified");
        }
        matrices.push_back({{"name", name}, {"rows", a.rows}, {"nonzeros", a.nnz()}});
    };
    // The largest first: the paper's figures 16 to 21 are of HV15R.
    for (auto m = std::rbegin(table2); m != std::rend(table2); ++m) {
        const auto rows = std::max<std::int64_t>(1000, std::llround(static_cast<double>(m->rows) * scale));
        const auto per_row = std::min(rows / 4, std::max<std::int64_t>(1, std::llround(static_cast<double>(m->nnz) /
                                                                                       static_cast<double>(m->rows))));
        one_matrix(fmt::format("{} (R = {})", m->name, m->exponent),
                   rmsp::power_law<double>(rows, per_row, m->exponent), m == std::rbegin(table2));
    }
    for (const auto& file : options.files) {
        const auto slash = file.find_last_of('/');
        const std::string name = file.substr(slash == std::string::npos ? 0 : slash + 1);
        one_matrix(name.substr(0, name.find(".mtx")), rmsp::read_matrix<double>(file), false);
    }
    result["matrices"] = std::move(matrices);
    result["speed"] = std::move(speed);
    result["context"]["seconds"] = seconds_since(program_start);
    return result;
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
    try {
        bool gpus = false;
        const auto found = device_sets(gpus);
        const auto sets = options.devices.empty() ? found : options.devices;
        const double scale = options.scale > 0 ? options.scale : gpus ? 1.0 : 0.01;
        const Json result = run_all(options, sets, scale);
        std::ofstream file(options.json);
        file << result.dump(1) << '\n';
        file.close();
        if (!file) {
            throw rmsp::Error(rmsp::ErrorCode::io, options.json + " cannot be written");
        }
    } catch (const rmsp::Error& e) {
        say("error: {}", e.what());
        return static_cast<int>(e.code());
    } catch (const std::exception& e) {
        say("error: {}", e.what());
        return 1;
    }
    return 0;
}
