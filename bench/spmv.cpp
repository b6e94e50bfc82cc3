/// Times SpMV with every kernel on every matrix, device set and case that is asked for, in one process, and verifies
/// each result. One JSON document in Google Benchmark's shape; bench/plot_spmv.py draws it. What its entries have
/// beyond those of a report is in docs/report.md.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <rmsp/rmsp.hpp>

#include "lines.hpp"
#include "matrix_argument.hpp"
#include "program.hpp"

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Options {
    std::vector<std::string> matrices;
    std::vector<std::string> devices{"auto"};
    std::vector<std::string> precisions{"double"};
    std::vector<std::string> caches{"cold", "warm"};
    std::vector<std::string> cases{"replicated"};
    std::vector<std::string> kernels{"auto"};
    std::vector<std::string> sets;
    std::int64_t iterations = 40;
    std::int64_t warmup = 10;
    double kernel_seconds = 1;
    std::int64_t preparations = 5;
    double limit_gbs = 0;
    double seconds = 0;
    bool queued = false;
    std::string json;
    std::string lines;
};

class Bench {
public:
    explicit Bench(const Options& options) : options_(options), lines_(options.lines)
    {
        for (const std::string& devices : options_.devices) {
            rmsp::Config config = rmsp::parse_config("", "--set", with_matrix(options_.sets));
            if (config.output.log_level == "debug") {
                spdlog::set_level(spdlog::level::debug);
            }
            config.runtime.devices = devices;
            config.runtime.limit_gbs = options_.limit_gbs;
            runtimes_.push_back({devices, rmsp::Runtime(rmsp::runtime_options(config))});
        }
        for (const std::string& kernel : absent()) {
            fmt::print("{}: not in this build\n", kernel);
        }
    }

    template <class T>
    void run(const NamedMatrix& matrix)
    {
        if (late() || lines_.is_done(matrix.name, precision<T>())) {
            return;
        }
        if (!lines_.kept()) {
            run_all<T>(matrix);
            return;
        }
        lines_.begin(matrix.name, precision<T>());
        const std::size_t before = benchmarks_.size();
        try {
            run_all<T>(matrix);
        } catch (const rmsp::Error& e) {
            // The next matrix may fit, or be there.
            failed_ = failed_ || (e.code() != rmsp::ErrorCode::out_of_memory && e.code() != rmsp::ErrorCode::io);
            fmt::print("{}: {}\n", matrix.name, e.what());
            benchmarks_.push_back(
                {{"name", "spmv/" + matrix.name}, {"error_occurred", true}, {"error_message", e.what()}});
        }
        lines_.finish(matrix.name, precision<T>(), context(),
                      Json(benchmarks_.begin() + static_cast<std::ptrdiff_t>(before), benchmarks_.end()));
    }

    /// Context, then one measurement a line.
    std::string document() const
    {
        std::string lines;
        for (const Json& entry : benchmarks_) {
            lines += (lines.empty() ? "" : ",\n") + entry.dump();
        }
        return fmt::format("{{\"schema\": \"{}\",\n\"context\": {},\n\"benchmarks\": [\n{}\n]}}\n", results_schema,
                           context().dump(1), lines);
    }

    bool failed() const { return failed_; }

private:
    struct Machine {
        std::string devices;
        rmsp::Runtime runtime;
    };

    Json context() const
    {
        Json context = run_context("bench_spmv");
        context["devices"] = Json::array();
        for (const auto& [name, runtime] : runtimes_) {
            context["devices"].push_back(
                {{"set", name}, {"names", device_names(runtime)}, {"transport", runtime.transport()}});
        }
        context["absent_kernels"] = absent();
        return context;
    }

    /// What to compare with that this build lacks.
    std::vector<std::string> absent() const
    {
        std::vector<std::string> names;
        for (const rmsp::KernelInfo& kernel : rmsp::list_kernels()) {
            if (kernel.family == "spmv" && kernel.vendor && !kernel.compiled &&
                std::any_of(runtimes_.begin(), runtimes_.end(), [&](const Machine& machine) {
                    return machine.runtime.devices().front().kind == kernel.device;
                })) {
                names.push_back(kernel.name);
            }
        }
        return names;
    }

    template <class T>
    void run_all(const NamedMatrix& matrix)
    {
        const auto begin = Clock::now();
        const rmsp::CsrMatrix<T> a = load<T>(matrix);
        fmt::print("{}: {} x {}, {} nonzeros, {}, loaded in {:.2f} s\n", matrix.name, a.rows, a.cols, a.nnz(),
                   precision<T>(), seconds_since(begin));
        // Of a matrix with one entry a row: n random numbers.
        const auto x = rmsp::random_uniform<T>(a.cols, 1, 1).values;
        rmsp::HostVector<T> y(static_cast<std::size_t>(a.rows));
        for (auto& [devices, runtime] : runtimes_) {
            for (const std::string& kernel : kernels_for(runtime)) {
                for (const std::string& which : options_.cases) {
                    if (!(late() && !lines_.kept()) &&
                        !((which == "rows" || which == "kernel-order") && a.rows != a.cols)) {
                        measure<T>(matrix, a, runtime, devices, kernel, which, x, y);
                    }
                }
            }
        }
    }

    template <class T>
    static const char* precision()
    {
        return sizeof(T) == sizeof(double) ? "double" : "float";
    }
    /// The longest that a phase of the set-up took on a device.
    static double setup_seconds(const rmsp::Report& report, const std::string& phase)
    {
        const Json times = Json::parse(report.to_json()).at("context").at("setup_seconds").at(phase);
        double longest = 0;
        for (const Json& seconds : times) {
            longest = std::max(longest, seconds.get<double>());
        }
        return longest;
    }
    /// Distributes the matrix several times, the last one for the products: of a large matrix three, and no more than
    /// one where that takes long.
    template <class T, class Matrix>
    rmsp::DistributedMatrix<T> distribute(rmsp::Runtime& runtime, const Matrix& a,
                                          const rmsp::DistributeOptions& options, std::vector<double>& prepared) const
    {
        constexpr double long_enough = 0.15;
        constexpr double too_long = 1;
        const auto begin = Clock::now();
        rmsp::DistributedMatrix<T> distributed;
        do {
            distributed = {};  // its memory serves the next
            distributed = runtime.distribute(a.view(), options);
            prepared.push_back(setup_seconds(distributed.report(), "prepare"));
        } while (static_cast<std::int64_t>(prepared.size()) < options_.preparations &&
                 seconds_since(begin) < (prepared.size() < 3 ? too_long : long_enough));
        return distributed;
    }
    /// That a kernel multiplies; of "auto" and unknown names CSR.
    static rmsp::Format format_of(const rmsp::Runtime& runtime, const std::string& kernel)
    {
        for (const rmsp::KernelInfo& info : rmsp::list_kernels()) {
            if (info.family == "spmv" && info.name == kernel && info.device == runtime.devices().front().kind) {
                return info.format;
            }
        }
        return rmsp::Format::csr;
    }
    static double median(std::vector<double> numbers)
    {
        const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
        std::nth_element(numbers.begin(), middle, numbers.end());
        return *middle;
    }
    /// parse_config() wants a matrix; the one it is given here is not used.
    static std::vector<std::string> with_matrix(std::vector<std::string> overrides)
    {
        overrides.push_back("matrix.generate=banded 1 0");
        return overrides;
    }
    bool late() const { return options_.seconds > 0 && seconds_since(start_) > options_.seconds; }

    /// "all" on one device: each that is not there to be compared with only, nor prepared for minutes; on several, the
    /// automatic choice.
    std::vector<std::string> kernels_for(const rmsp::Runtime& runtime) const
    {
        const auto devices = runtime.devices();
        if (options_.kernels != std::vector<std::string>{"all"}) {
            return options_.kernels;
        }
        std::vector<std::string> names{"auto"};
        for (const rmsp::KernelInfo& kernel : rmsp::list_kernels()) {
            if (devices.size() == 1 && kernel.family == "spmv" && kernel.format == rmsp::Format::csr &&
                kernel.compiled && kernel.device == devices.front().kind &&
                kernel.name.find("reference") == std::string::npos && !kernel.name.starts_with("ehyb")) {
                names.push_back(kernel.name);
            }
        }
        return names;
    }

    /// Of one of many applies that are asked for one after the other without waiting, by the wall clock: the least of
    /// eight rounds.
    template <class T>
    double queued_us(rmsp::Runtime& runtime, rmsp::DistributedMatrix<T>& matrix, const rmsp::HostVector<T>& x_entries,
                     std::int64_t applies) const
    {
        auto x = matrix.make_x(rmsp::Layout::replicated);
        auto y = matrix.make_y();
        x.upload(x_entries.data());
        double least = std::numeric_limits<double>::infinity();
        for (int round = 0; round < 8; ++round) {
            const auto begin = Clock::now();
            for (std::int64_t i = 0; i < applies; ++i) {
                static_cast<void>(matrix.apply_async(T{1}, x, T{0}, y));
            }
            runtime.synchronize();
            least = std::min(least, seconds_since(begin) * 1e6 / static_cast<double>(applies));
        }
        return least;
    }

    template <class T>
    void measure(const NamedMatrix& matrix, const rmsp::CsrMatrix<T>& a, rmsp::Runtime& runtime,
                 const std::string& devices, const std::string& kernel, const std::string& which,
                 const rmsp::HostVector<T>& x, rmsp::HostVector<T>& y)
    {
        using Distributed = rmsp::DistributedMatrix<T>;
        const std::string name =
            fmt::format("spmv/{}/{}/{}/{}/{}", matrix.name, devices, precision<T>(), which, kernel);
        try {
            rmsp::Config config = rmsp::parse_config("", "--set", with_matrix(options_.sets));
            config.kernel.spmv = kernel;
            config.run.mode = which == "streamed" ? "streamed" : "resident";
            config.run.vectors = which == "rows" || which == "kernel-order" ? "rows" : "replicated";
            config.run.iterations = options_.iterations;
            config.run.warmup = options_.warmup;
            const rmsp::DistributeOptions options = rmsp::distribute_options(config);
            std::vector<double> prepared;
            const rmsp::Format format = format_of(runtime, kernel);
            // What is streamed stays here.
            const auto coo = format == rmsp::Format::coo ? rmsp::to_coo(a.view()) : rmsp::CooMatrix<T>{};
            const auto csc = format == rmsp::Format::csc ? rmsp::to_csc(a.view()) : rmsp::CscMatrix<T>{};
            Distributed distributed = format == rmsp::Format::coo   ? distribute<T>(runtime, coo, options, prepared)
                                      : format == rmsp::Format::csc ? distribute<T>(runtime, csc, options, prepared)
                                                                    : distribute<T>(runtime, a, options, prepared);
            const auto vectors = which == "host" || which == "streamed" ? Distributed::Vectors::host
                                 : which == "rows"                      ? Distributed::Vectors::rows
                                 : which == "kernel-order"              ? Distributed::Vectors::kernel_order
                                                                        : Distributed::Vectors::replicated;
            // Some kernels take a thousand times as long as others on rows that they are not for. Not asked of `auto`,
            // whose first products are its race.
            double seconds = 0;
            if (kernel != "auto") {
                // The first one loads what the others have.
                distributed.measure(vectors, 1, 1, T{1}, x.data(), T{0}, nullptr, y.data(), Distributed::Caches::warm);
                seconds = distributed.report().measurements.back().median_seconds;
            }
            const auto affordable = [&](std::int64_t most) {
                constexpr double least = 3;
                const double count = std::max(least, options_.kernel_seconds / seconds);
                return count < static_cast<double>(most) ? static_cast<std::int64_t>(count) : most;
            };
            // A race is decided as the first of them is measured.
            for (const std::string& cache : options_.caches) {
                // Those of small matrices are paced by the host, which is not steady: more of them.
                constexpr std::int64_t in_a_row = 10;
                const std::int64_t iterations = affordable((cache == "cold" ? 1 : in_a_row) * options_.iterations);
                distributed.measure(vectors, std::min(options_.warmup, iterations), iterations, T{1}, x.data(), T{0},
                                    nullptr, y.data(),
                                    cache == "cold" ? Distributed::Caches::cold : Distributed::Caches::warm);
                rmsp::Report report = distributed.report();
                report.verification =
                    rmsp::verify_spmv<T>(a.view(), T{1}, x.data(), T{0}, nullptr, y.data(), options.values);
                add(name + '/' + cache, report, matrix, devices, kernel, prepared);
                if (options_.queued && cache == "warm" && which == "replicated") {
                    benchmarks_.back()["queued_us"] =
                        queued_us(runtime, distributed, x, affordable(5 * options_.iterations));
                }
            }
        } catch (const rmsp::Error& e) {
            // Not every format takes, or has room for, every matrix.
            const bool refused = e.code() == rmsp::ErrorCode::usage || e.code() == rmsp::ErrorCode::out_of_memory;
            failed_ = failed_ || !refused;
            fmt::print("  {:62} {}\n", name, e.what());
            benchmarks_.push_back({{"name", name}, {"error_occurred", true}, {"error_message", e.what()}});
        }
        std::fflush(stdout);
    }

    void add(const std::string& name, const rmsp::Report& report, const NamedMatrix& matrix, const std::string& devices,
             const std::string& kernel, const std::vector<double>& prepared)
    {
        const Json document = Json::parse(report.to_json());
        Json entry = document.at("benchmarks").back();
        const Json plan = document.at("context").at("plan");
        entry["name"] = name;
        entry["run_name"] = name;
        entry["family_index"] = benchmarks_.size();
        entry["matrix"] = matrix.name;
        entry["source"] = describe(matrix);
        entry["device_set"] = devices;
        entry["device_count"] = plan.at("shards").size();
        entry["precision"] = plan.at("precision");
        entry["kernel"] = kernel;
        const Json& first = plan.at("shards").front();
        entry["chosen"] = first.at("kernel");
        if (kernel == "auto") {
            entry["chosen_because"] = first.at("kernel_reason");
            entry["kernel_candidates"] = first.at("kernel_candidates");
            entry["break_even_applies"] = first.at("break_even_applies");
        }
        for (const char* key : {"rows", "cols", "nonzeros", "transport"}) {
            entry[key] = plan.at(key);
        }
        double bytes = 0;
        for (const Json& shard : plan.at("shards")) {
            bytes += shard.at("apply_bytes").get<double>();
        }
        entry["apply_bytes"] = bytes;
        entry["setup_seconds"] = document.at("context").at("setup_seconds");
        entry["prepare_seconds"] = median(prepared);
        entry["first_prepare_seconds"] = prepared.front();
        entry["preparations"] = prepared.size();
        failed_ = failed_ || !report.verification.passed;
        fmt::print(
            "  {:62} {:10.2f} us {:8.1f} GFLOP/s {:7.1f} GB/s {:5.1f} %, prepared in {:.3f} ms (first {:.3f}){}{}\n",
            name, entry.at("real_time").get<double>(), entry.at("gflops").get<double>(),
            entry.at("bytes_per_second").get<double>() * 1e-9, entry.at("share_of_limit").get<double>() * 100,
            median(prepared) * 1e3, prepared.front() * 1e3,
            kernel == "auto" ? " " + entry.at("chosen").get<std::string>() : "",
            report.verification.passed ? "" : " WRONG");
        benchmarks_.push_back(std::move(entry));
    }

    Options options_;
    ResultLines lines_;
    Clock::time_point start_ = Clock::now();
    std::vector<Machine> runtimes_;
    Json benchmarks_ = Json::array();
    bool failed_ = false;
};

int run(const Options& options)
{
    std::vector<NamedMatrix> matrices;
    for (const std::string& text : options.matrices) {
        matrices.push_back(parse_matrix(text));
    }
    Bench bench(options);
    for (const NamedMatrix& matrix : matrices) {
        for (const std::string& precision : options.precisions) {
            precision == "float" ? bench.run<float>(matrix) : bench.run<double>(matrix);
        }
    }
    if (!options.json.empty()) {
        write_file(options.json, bench.document());
    }
    return bench.failed() ? static_cast<int>(rmsp::ErrorCode::verification) : 0;
}

}  // namespace

int main(int argc, char** argv)
{
    Options options;
    CLI::App app("Times SpMV with many kernels on many matrices; verifies every result.");
    app.add_option("MATRIX", options.matrices, matrix_argument_help)->required();
    app.add_option("--devices", options.devices, "device set; may be repeated")->allow_extra_args(false);
    app.add_option("--precision", options.precisions, "double, float")->delimiter(',')->allow_extra_args(false);
    app.add_option("--cache", options.caches, "cold (flushed before each apply), warm")
        ->delimiter(',')
        ->check(CLI::IsMember({"cold", "warm"}))
        ->allow_extra_args(false);
    app.add_option("--case", options.cases,
                   "replicated, rows, kernel-order (by rows, in the kernel's order), host (vectors of a resident "
                   "matrix), streamed")
        ->delimiter(',')
        ->check(CLI::IsMember({"replicated", "rows", "kernel-order", "host", "streamed"}))
        ->allow_extra_args(false);
    app.add_option("--kernels", options.kernels,
                   "names, of COO and CSC too, or all: auto, and on one device each of CSR but ehyb")
        ->delimiter(',')
        ->allow_extra_args(false);
    app.add_option("--set", options.sets, "key=value of the configuration; may be repeated")->allow_extra_args(false);
    app.add_option("--iterations", options.iterations, "timed applies; ten times as many in a row");
    app.add_option("--warmup", options.warmup, "applies before them");
    app.add_option("--kernel-seconds", options.kernel_seconds,
                   "fewer of both, three at least, for a named kernel whose applies would take longer than this");
    app.add_option("--preparations", options.preparations,
                   "times that a matrix is made ready, at most; large ones three times or once");
    app.add_option("--limit", options.limit_gbs, "bandwidth limit of a device in GB/s; 0: measured");
    app.add_option("--seconds", options.seconds, "begin no measurement after this time; 0: no limit");
    app.add_flag("--queued", options.queued,
                 "also time warm applies to replicated vectors that are queued one after the other, by the wall clock");
    app.add_option("--json", options.json, "file for the results");
    app.add_option("--lines", options.lines,
                   "file that each matrix's results are appended to, as a line of JSON; what it has is not measured "
                   "again, and a matrix that was begun is finished");
    CLI11_PARSE(app, argc, argv);
    return report_errors([&] { return run(options); });
}
