/// Times products of sparse matrices with every kernel and accumulator on every device set that is asked for, in one
/// process, and verifies each. One JSON document in Google Benchmark's shape; bench/plot_spgemm.py draws it.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
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
using Csr = rmsp::CsrMatrix<double>;

struct Options {
    std::vector<std::string> matrices;
    std::vector<std::string> devices{"auto"};
    std::vector<std::string> kernels{"auto"};
    bool pairs = false;
    std::int64_t parts = 1;
    bool no_verify = false;
    std::int64_t iterations = 10;
    std::int64_t warmup = 2;
    double seconds = 0;
    std::int64_t untimed = 0;
    std::int64_t most_products = 0;
    std::string json;
    std::string lines;
};

class Bench {
public:
    explicit Bench(const Options& options) : options_(options), lines_(options.lines)
    {
        for (const std::string& devices : options_.devices) {
            rmsp::RuntimeOptions of_runtime;
            of_runtime.devices = devices;
            runtimes_.emplace_back(devices, rmsp::Runtime(of_runtime));
        }
    }

    /// Where the time of the program goes.
    enum Spent { loading, preparing, timing, downloading, verifying, all_spent };

    /// Runs f, whose time goes to `to`.
    template <class F>
    auto spend(Spent to, const F& f)
    {
        const auto begin = Clock::now();
        auto result = f();
        spent_[to] += seconds_since(begin);
        return result;
    }

    void run(const std::string& name, const rmsp::CsrView<double>& a, const rmsp::CsrView<double>& b)
    {
        if (options_.most_products > 0) {
            if (const std::int64_t products = count_products(a, b); products > options_.most_products) {
                refuse(name, fmt::format("{} products, more than {}", products, options_.most_products));
                return;
            }
        }
        for (auto& [devices, runtime] : runtimes_) {
            for (const auto& [kernel, accumulator] : variants(runtime)) {
                if (!(late() && !lines_.kept()) && !broken_) {
                    measure(name, a, b, runtime, devices, kernel, accumulator);
                }
            }
        }
    }
    bool late() const { return options_.seconds > 0 && seconds_since(begin_) > options_.seconds; }
    bool failed() const { return failed_; }
    /// After an error of the device.
    bool broken() const { return broken_; }
    void refuse(const std::string& name, const std::string& why)
    {
        fmt::print("{:28} {}\n", name, why);
        benchmarks_.push_back(
            {{"name", "spgemm/" + name}, {"matrix", name}, {"error_occurred", true}, {"error_message", why}});
    }

    /// Calls f, which measures the matrix of that name, unless the lines have it; theirs becomes what it finds.
    template <class F>
    void keep_line(const std::string& name, const F& f)
    {
        constexpr const char* precision = "double";
        if (lines_.is_done(name, precision)) {
            return;
        }
        if (!lines_.kept()) {
            f();
            return;
        }
        lines_.begin(name, precision);
        const std::size_t before = benchmarks_.size();
        try {
            f();
        } catch (const rmsp::Error& e) {
            // The next matrix may fit, or be there.
            failed_ = failed_ || (e.code() != rmsp::ErrorCode::out_of_memory && e.code() != rmsp::ErrorCode::io);
            refuse(name, e.what());
        }
        lines_.finish(name, precision, context(),
                      Json(benchmarks_.begin() + static_cast<std::ptrdiff_t>(before), benchmarks_.end()));
    }

    Json document() const { return {{"schema", results_schema}, {"context", context()}, {"benchmarks", benchmarks_}}; }

private:
    Json context() const
    {
        constexpr const char* phases[all_spent] = {"load", "prepare", "measure", "download", "verify"};
        Json spent = Json::object();
        for (int i = 0; i < all_spent; ++i) {
            spent[phases[i]] = spent_[i];
        }
        Json context = run_context("bench_spgemm");
        context["seconds"] = std::move(spent);
        context["devices"] = Json::object();
        for (const auto& [name, runtime] : runtimes_) {
            context["devices"][name] = device_names(runtime);
        }
        return context;
    }

    static std::int64_t count_products(const rmsp::CsrView<double>& a, const rmsp::CsrView<double>& b)
    {
        std::int64_t products = 0;
        for (std::int64_t i = 0; i < a.nnz; ++i) {
            const std::int64_t k = a.col_idx[i];
            products += b.row_ptr[k + 1] - b.row_ptr[k];
        }
        return products;
    }

    /// "KERNEL" or "KERNEL/ACCUMULATOR"; "all": every kernel of these devices but the serial reference.
    std::vector<std::pair<std::string, std::string>> variants(const rmsp::Runtime& runtime) const
    {
        const rmsp::DeviceKind kind = runtime.devices().front().kind;
        std::vector<std::pair<std::string, std::string>> out;
        for (const std::string& word : options_.kernels) {
            if (word != "all") {
                const std::size_t slash = std::min(word.find('/'), word.size());
                out.emplace_back(word.substr(0, slash), slash < word.size() ? word.substr(slash + 1) : "auto");
                continue;
            }
            for (const rmsp::KernelInfo& info : rmsp::list_kernels()) {
                if (info.family == "spgemm" && info.device == kind && info.compiled &&
                    info.name != "spgemm-reference") {
                    out.emplace_back(info.name, "auto");
                }
            }
        }
        return out;
    }

    /// The times of each phase on each device.
    static Json devices_us(const std::vector<rmsp::Measurement>& measured)
    {
        Json out = Json::object();
        for (const rmsp::Measurement& m : measured) {
            for (const rmsp::PhaseTimes& phase : m.phases) {
                for (const double seconds : phase.seconds) {
                    out[phase.name].push_back(seconds * 1e6);
                }
            }
        }
        return out;
    }

    void measure(const std::string& name, const rmsp::CsrView<double>& a, const rmsp::CsrView<double>& b,
                 rmsp::Runtime& runtime, const std::string& devices, const std::string& kernel,
                 const std::string& accumulator)
    {
        const std::string variant = accumulator == "auto" ? kernel : kernel + '/' + accumulator;
        Json entry = {{"name", fmt::format("spgemm/{}/{}@{}", name, variant, devices)},
                      {"matrix", name},
                      {"kernel", variant},
                      {"devices", devices}};
        try {
            rmsp::SpgemmOptions options;
            options.kernel = kernel;
            options.accumulator = accumulator;
            if (options_.untimed > 0) {
                for (std::int64_t i = 0; i < options_.untimed; ++i) {
                    rmsp::SparseProduct<double>(runtime, a, b, options).compute();
                }
                return;
            }
            auto product = spend(preparing, [&] { return rmsp::SparseProduct<double>(runtime, a, b, options); });
            const auto measured = spend(timing, [&] { return product.measure(options_.warmup, options_.iterations); });
            rmsp::Verification verified;
            if (!options_.no_verify) {
                const Csr c = spend(downloading, [&] { return product.download(); });
                verified = spend(verifying, [&] { return rmsp::verify_spgemm<double>(a, b, 1.0, c.view(), 200); });
                failed_ = failed_ || !verified.passed;
            }
            const auto seconds_of = [&](std::size_t of, const char* phase) {
                for (const rmsp::PhaseTimes& p : measured[of].phases) {
                    if (p.name == phase) {
                        return *std::max_element(p.seconds.begin(), p.seconds.end());
                    }
                }
                return 0.0;
            };
            // cuSPARSE's first three algorithms count by computing everything; the values then come in one more go.
            const bool counts_by_computing = kernel.starts_with("cusparse-spgemm-alg");
            const double whole = counts_by_computing ? seconds_of(0, "fill") : measured[0].median_seconds;
            std::int64_t peak = 0;
            std::int64_t operands = 0;
            for (const auto& shard : product.plan().shards) {
                peak = std::max(peak, shard.peak_bytes);
                operands = std::max(operands, shard.a_bytes + shard.b_bytes + shard.c_bytes);
            }
            const double flops = measured[0].flops;
            entry.update({{"run_type", "iteration"},
                          {"iterations", measured[0].iterations},
                          {"real_time", whole * 1e6},
                          {"cpu_time", whole * 1e6},
                          {"time_unit", "us"},
                          {"rows", a.rows},
                          {"nonzeros_a", a.nnz},
                          {"nonzeros_b", b.nnz},
                          {"nonzeros_c", product.nnz()},
                          {"products", product.plan().products},
                          {"gflops", whole > 0 ? flops / whole * 1e-9 : 0},
                          {"symbolic_us", seconds_of(0, "symbolic") * 1e6},
                          {"allocate_us", seconds_of(0, "allocate") * 1e6},
                          {"fill_us", seconds_of(0, "fill") * 1e6},
                          {"numeric_us", measured[1].median_seconds * 1e6},
                          {"numeric_gflops", measured[1].gflops()},
                          {"devices_us", devices_us(measured)},
                          {"peak_bytes", peak},
                          {"operand_bytes", operands},
                          {"verified", verified.done ? Json(verified.passed) : Json()},
                          {"error", verified.error}});
            fmt::print(
                "{:28} {:28} {:10} {:10.3f} ms {:8.1f} GFLOP/s  numeric {:9.3f} ms {:8.1f}  peak/operands {:.2f}{}\n",
                name, variant, devices, whole * 1e3, flops / whole * 1e-9, measured[1].median_seconds * 1e3,
                measured[1].gflops(),
                static_cast<double>(peak) / static_cast<double>(std::max<std::int64_t>(operands, 1)),
                verified.passed || !verified.done ? "" : "  WRONG");
        } catch (const rmsp::Error& e) {
            // Not every kernel takes, or has room for, every product. After an error of the device all that follows
            // would fail.
            broken_ = e.code() != rmsp::ErrorCode::usage && e.code() != rmsp::ErrorCode::out_of_memory;
            failed_ = failed_ || broken_;
            entry["error_occurred"] = true;
            entry["error_message"] = e.what();
            fmt::print("{:28} {:28} {:10} {}\n", name, variant, devices, e.what());
        }
        benchmarks_.push_back(std::move(entry));
    }

    Options options_;
    ResultLines lines_;
    Clock::time_point begin_ = Clock::now();
    std::vector<std::pair<std::string, rmsp::Runtime>> runtimes_;
    Json benchmarks_ = Json::array();
    double spent_[all_spent] = {};
    bool failed_ = false;
    bool broken_ = false;
};

/// A A, with the rows of the left one cut into parts of equal products, each of which is a product of its own, as one
/// of so many devices would compute it.
void run_parts(Bench& bench, const std::string& name, const Csr& a, std::int64_t parts)
{
    if (parts == 1) {
        bench.run(name, a.view(), a.view());
        return;
    }
    std::vector<std::int64_t> products{0};
    for (std::int64_t row = 0; row < a.rows; ++row) {
        std::int64_t sum = products.back();
        for (std::int64_t i = a.row_ptr[static_cast<std::size_t>(row)];
             i < a.row_ptr[static_cast<std::size_t>(row) + 1]; ++i) {
            const auto k = static_cast<std::size_t>(a.col_idx[i]);
            sum += a.row_ptr[k + 1] - a.row_ptr[k];
        }
        products.push_back(sum);
    }
    auto begin = products.begin();
    for (std::int64_t part = 1; part <= parts; ++part) {
        const auto end = part == parts ? products.end() - 1
                                       : std::lower_bound(begin, products.end() - 1, products.back() / parts * part);
        const std::int64_t first = begin - products.begin();
        const std::int64_t nonzero = a.row_ptr[static_cast<std::size_t>(first)];
        std::vector<std::int64_t> row_ptr;
        for (auto at = begin; at <= end; ++at) {
            row_ptr.push_back(a.row_ptr[static_cast<std::size_t>(at - products.begin())] - nonzero);
        }
        const auto* const columns = static_cast<const std::int32_t*>(a.col_idx.view().data());
        bench.run(fmt::format("{}, part {} of {}", name, part, parts),
                  {end - begin, a.cols, row_ptr.back(), row_ptr.data(), columns + nonzero, a.values.data() + nonzero},
                  a.view());
        begin = end;
    }
}

int run(const Options& options)
{
    Bench bench(options);
    std::vector<NamedMatrix> cases;
    for (const std::string& text : options.matrices) {
        cases.push_back(parse_matrix(text, {"matrix.values=random"}));
    }
    if (options.pairs) {
        std::vector<Csr> all;
        for (const NamedMatrix& c : cases) {
            all.push_back(bench.spend(Bench::loading, [&] { return load<double>(c); }));
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            for (std::size_t j = 0; j < all.size(); ++j) {
                bench.run(cases[i].name + " * " + cases[j].name, all[i].view(), all[j].view());
            }
        }
    } else {
        for (const NamedMatrix& c : cases) {
            if (!bench.late() && !bench.broken()) {
                bench.keep_line(c.name, [&] {
                    const Csr a = bench.spend(Bench::loading, [&] { return load<double>(c); });
                    if (a.rows == a.cols) {
                        run_parts(bench, c.name, a, options.parts);
                    } else {
                        const Csr b = bench.spend(Bench::loading, [&] { return rmsp::transposed(a.view()); });
                        bench.run(c.name, a.view(), b.view());
                    }
                });
            }
        }
    }
    const Json document = bench.document();
    fmt::print("seconds: {}\n", document["context"]["seconds"].dump());
    if (!options.json.empty()) {
        write_file(options.json, document.dump(1) + '\n');
    }
    return bench.failed() ? static_cast<int>(rmsp::ErrorCode::verification) : 0;
}

}  // namespace

int main(int argc, char** argv)
{
    Options options;
    CLI::App app(
        "Times products of sparse matrices: A A of each matrix (A A^T if it is not square), or A B of all pairs",
        "bench_spgemm");
    app.add_option("MATRIX", options.matrices, matrix_argument_help)->required();
    app.add_option("--devices", options.devices, "device set; may be repeated")->capture_default_str();
    app.add_option("--kernels", options.kernels, "kernels, KERNEL/ACCUMULATOR, or all")
        ->delimiter(',')
        ->capture_default_str();
    app.add_flag("--pairs", options.pairs, "A B of every two of the matrices instead of A A of each");
    app.add_option("--parts", options.parts, "A A of each of so many parts of A's rows, as that many devices would")
        ->check(CLI::PositiveNumber);
    app.add_flag("--no-verify", options.no_verify, "do not check the products");
    app.add_option("--iterations", options.iterations, "timed products")->capture_default_str();
    app.add_option("--warmup", options.warmup, "products before them")->capture_default_str();
    app.add_option("--seconds", options.seconds, "start nothing new after so many seconds; 0: no limit");
    app.add_option("--most-products", options.most_products,
                   "do not compute products of more multiplications; 0: no limit")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--untimed", options.untimed,
                   "only make each product so many times, structure and values, for a profiler to look at")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--json", options.json, "file for the results");
    app.add_option("--lines", options.lines,
                   "file that each matrix's results are appended to, as a line of JSON; what it has is not measured "
                   "again, and a matrix that was begun is finished");
    CLI11_PARSE(app, argc, argv);
    return report_errors([&] { return run(options); });
}
