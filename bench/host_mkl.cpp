/// Times products on host devices beside Intel MKL's, in turns in one process: y = A x beside mkl_sparse_?_mv() of a
/// handle that was optimised for it, and C = A A (A A^T) with sorted columns beside mkl_sparse_sp2m() and
/// mkl_sparse_order(). Verifies both. A line of JSON for each matrix and precision, as bench_spmv and bench_spgemm
/// write them; bench/run_host_mkl.sh runs it on the corpus.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <mkl_service.h>
#include <mkl_spblas.h>
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
    std::vector<std::string> precisions{"double", "float"};
    std::string product = "spmv";
    int threads = 2;
    std::int64_t rounds = 5;
    double turn_ms = 2;
    double pause_ms = 5;
    std::int64_t most_products = 0;
    double seconds = 0;
    std::string lines;
};

/// \throws rmsp::Error(internal) naming the function
void check(sparse_status_t status, const char* function)
{
    if (status != SPARSE_STATUS_SUCCESS) {
        throw rmsp::Error(rmsp::ErrorCode::internal, fmt::format("{} returned {}", function, static_cast<int>(status)));
    }
}

template <class T>
struct Mkl;
template <>
struct Mkl<double> {
    static constexpr auto create = mkl_sparse_d_create_csr;
    static constexpr auto exported = mkl_sparse_d_export_csr;
    static constexpr auto mv = mkl_sparse_d_mv;
};
template <>
struct Mkl<float> {
    static constexpr auto create = mkl_sparse_s_create_csr;
    static constexpr auto exported = mkl_sparse_s_export_csr;
    static constexpr auto mv = mkl_sparse_s_mv;
};

const matrix_descr general{SPARSE_MATRIX_TYPE_GENERAL, SPARSE_FILL_MODE_LOWER, SPARSE_DIAG_NON_UNIT};

/// A copy of a matrix in MKL's handle.
template <class T>
class MklMatrix {
public:
    explicit MklMatrix(const rmsp::CsrMatrix<T>& a) : row_ptr_(a.row_ptr.begin(), a.row_ptr.end()), values_(a.values)
    {
        col_idx_.reserve(a.values.size());
        for (std::int64_t i = 0; i < a.nnz(); ++i) {
            col_idx_.push_back(static_cast<MKL_INT>(a.col_idx[i]));
        }
        check(
            Mkl<T>::create(&handle_, SPARSE_INDEX_BASE_ZERO, static_cast<MKL_INT>(a.rows), static_cast<MKL_INT>(a.cols),
                           row_ptr_.data(), row_ptr_.data() + 1, col_idx_.data(), values_.data()),
            "mkl_sparse_create_csr");
    }
    ~MklMatrix() { mkl_sparse_destroy(handle_); }
    MklMatrix(const MklMatrix&) = delete;
    MklMatrix& operator=(const MklMatrix&) = delete;

    sparse_matrix_t handle() const { return handle_; }

private:
    std::vector<MKL_INT> row_ptr_;
    std::vector<MKL_INT> col_idx_;
    rmsp::HostVector<T> values_;
    sparse_matrix_t handle_ = nullptr;
};

/// C = A B with sorted columns; whoever gets it destroys it.
sparse_matrix_t mkl_product(sparse_matrix_t a, sparse_matrix_t b)
{
    sparse_matrix_t c = nullptr;
    check(mkl_sparse_sp2m(SPARSE_OPERATION_NON_TRANSPOSE, general, a, SPARSE_OPERATION_NON_TRANSPOSE, general, b,
                          SPARSE_STAGE_FULL_MULT, &c),
          "mkl_sparse_sp2m");
    check(mkl_sparse_order(c), "mkl_sparse_order");
    return c;
}

template <class T>
rmsp::CsrMatrix<T> taken_from(sparse_matrix_t c)
{
    sparse_index_base_t base = SPARSE_INDEX_BASE_ZERO;
    MKL_INT rows = 0;
    MKL_INT cols = 0;
    MKL_INT* begins = nullptr;
    MKL_INT* ends = nullptr;
    MKL_INT* columns = nullptr;
    T* values = nullptr;
    check(Mkl<T>::exported(c, &base, &rows, &cols, &begins, &ends, &columns, &values), "mkl_sparse_export_csr");
    rmsp::CsrMatrix<T> out;
    out.rows = rows;
    out.cols = cols;
    out.row_ptr.assign(begins, begins + rows);
    out.row_ptr.push_back(rows > 0 ? ends[rows - 1] : 0);
    const auto nnz = static_cast<std::size_t>(out.row_ptr.back());
    out.col_idx = rmsp::HostVector<std::int32_t>(columns, columns + nnz);
    out.values.assign(values, values + nnz);
    return out;
}

/// Times of calls, over all turns, in microseconds.
struct Times {
    std::vector<double> us;

    double least() const { return *std::min_element(us.begin(), us.end()); }
    double median() const
    {
        std::vector<double> sorted = us;
        const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
        std::nth_element(sorted.begin(), middle, sorted.end());
        return *middle;
    }
};

class Bench {
public:
    explicit Bench(const Options& options) : options_(options), lines_(options.lines)
    {
        rmsp::RuntimeOptions of_runtime;
        of_runtime.devices = fmt::format("host:1x{}", options.threads);
        runtime_ = rmsp::Runtime(of_runtime);
        mkl_set_num_threads(options.threads);
    }

    template <class T>
    void run(const NamedMatrix& matrix)
    {
        const std::string precision = sizeof(T) == sizeof(double) ? "double" : "float";
        if ((options_.seconds > 0 && seconds_since(begin_) > options_.seconds) ||
            lines_.is_done(matrix.name, precision)) {
            return;
        }
        lines_.begin(matrix.name, precision);
        Json benchmarks = Json::array();
        try {
            const rmsp::CsrMatrix<T> a = load<T>(matrix);
            if (options_.product == "spmv") {
                spmv<T>(matrix, precision, a, benchmarks);
            } else if (a.rows == a.cols) {
                spgemm<T>(matrix, precision, a, a, benchmarks);
            } else {
                spgemm<T>(matrix, precision, a, rmsp::transposed(a.view()), benchmarks);
            }
        } catch (const rmsp::Error& e) {
            failed_ = failed_ || e.code() != rmsp::ErrorCode::out_of_memory;
            fmt::print("{:40} {:6} {}\n", matrix.name, precision, e.what());
            benchmarks.push_back({{"name", options_.product + '/' + matrix.name},
                                  {"error_occurred", true},
                                  {"error_message", e.what()}});
        }
        std::fflush(stdout);
        lines_.finish(matrix.name, precision, context(), benchmarks);
    }

    bool failed() const { return failed_; }

private:
    Json context() const
    {
        Json context = run_context("bench_host_mkl");
        MKLVersion version;
        mkl_get_version(&version);
        context["mkl"] = {
            {"version", fmt::format("{}.{}.{}", version.MajorVersion, version.MinorVersion, version.UpdateVersion)},
            {"code", version.Processor},
            {"threads", options_.threads}};
        for (const char* name : {"MKL_THREADING_LAYER", "MKL_ENABLE_INSTRUCTIONS", "KMP_BLOCKTIME"}) {
            if (const char* value = std::getenv(name)) {
                context["mkl"][name] = value;
            }
        }
        context["devices"] = device_names(runtime_);
        return context;
    }

    /// Threads of the other side that wait for more work by spinning go to sleep.
    void pause() const { std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options_.pause_ms)); }

    /// Calls f so often, behind two calls that are not counted.
    template <class F>
    static void take_turn(Times& times, std::int64_t calls, const F& f)
    {
        f();
        f();
        for (std::int64_t i = 0; i < calls; ++i) {
            const auto begin = Clock::now();
            f();
            times.us.push_back(seconds_since(begin) * 1e6);
        }
    }
    /// Calls of a turn, by one that is timed.
    template <class F>
    std::int64_t calls_of_turn(const F& f) const
    {
        f();
        const auto begin = Clock::now();
        f();
        return std::clamp(static_cast<std::int64_t>(options_.turn_ms * 1e-3 / seconds_since(begin)), std::int64_t{3},
                          std::int64_t{1000});
    }

    template <class T>
    void spmv(const NamedMatrix& matrix, const std::string& precision, const rmsp::CsrMatrix<T>& a, Json& benchmarks)
    {
        using Distributed = rmsp::DistributedMatrix<T>;
        constexpr std::int64_t expected = 1000;
        const auto x = rmsp::random_uniform<T>(a.cols, 1, 1).values;
        rmsp::HostVector<T> y(static_cast<std::size_t>(a.rows));

        MklMatrix<T> theirs(a);
        const auto optimise = Clock::now();
        check(mkl_sparse_set_mv_hint(theirs.handle(), SPARSE_OPERATION_NON_TRANSPOSE, general, expected),
              "mkl_sparse_set_mv_hint");
        check(mkl_sparse_set_memory_hint(theirs.handle(), SPARSE_MEMORY_AGGRESSIVE), "mkl_sparse_set_memory_hint");
        check(mkl_sparse_optimize(theirs.handle()), "mkl_sparse_optimize");
        const double optimised = seconds_since(optimise);
        const auto mv = [&] {
            check(Mkl<T>::mv(SPARSE_OPERATION_NON_TRANSPOSE, T{1}, theirs.handle(), general, x.data(), T{0}, y.data()),
                  "mkl_sparse_mv");
        };
        const std::int64_t calls = calls_of_turn(mv);
        const bool right = rmsp::verify_spmv<T>(a.view(), T{1}, x.data(), T{0}, nullptr, y.data()).passed;

        rmsp::DistributeOptions options;
        options.expected_applies = expected;
        Distributed ours = runtime_.distribute(a.view(), options);
        auto own_x = ours.make_x(rmsp::Layout::replicated);
        auto own_y = ours.make_y();
        own_x.upload(x.data());
        constexpr std::int64_t ends_races = 80;  // more than the longest takes
        ours.measure(Distributed::Vectors::replicated, 2, ends_races, T{1}, x.data(), T{0}, nullptr, y.data());
        const bool own_right = rmsp::verify_spmv<T>(a.view(), T{1}, x.data(), T{0}, nullptr, y.data()).passed;

        Times of_mkl;
        Times device;
        Times called;
        Times queued;
        for (std::int64_t round = 0; round < options_.rounds; ++round) {
            pause();
            take_turn(of_mkl, calls, mv);
            pause();
            const rmsp::Measurement measured =
                ours.measure(Distributed::Vectors::replicated, 2, calls, T{1}, x.data(), T{0}, nullptr, nullptr);
            device.us.push_back(measured.median_seconds * 1e6);
            least_of_device_ = round == 0 ? measured.min_seconds : std::min(least_of_device_, measured.min_seconds);
            take_turn(called, std::min<std::int64_t>(calls, 100), [&] { ours.apply(T{1}, own_x, T{0}, own_y); });
            const auto begin = Clock::now();
            for (std::int64_t i = 0; i < calls; ++i) {
                static_cast<void>(ours.apply_async(T{1}, own_x, T{0}, own_y));
            }
            runtime_.synchronize();
            queued.us.push_back(seconds_since(begin) * 1e6 / static_cast<double>(calls));
        }
        const std::string kernel = ours.plan().shards.front().kernel;
        const auto entry = [&](const char* who, const Times& times, double least, bool verified) {
            return Json{{"name", fmt::format("spmv/{}/{}/{}", matrix.name, precision, who)},
                        {"matrix", matrix.name},
                        {"kernel", who},
                        {"precision", precision},
                        {"cache", "warm"},
                        {"rows", a.rows},
                        {"nonzeros", a.nnz()},
                        {"real_time", times.median()},
                        {"min_time", least},
                        {"time_unit", "us"},
                        {"verified", verified}};
        };
        benchmarks.push_back(entry("auto", device, least_of_device_ * 1e6, own_right));
        benchmarks.back()["chosen"] = kernel;
        benchmarks.back()["called_us"] = called.median();
        benchmarks.back()["queued_us"] = queued.median();
        benchmarks.push_back(entry("mkl", of_mkl, of_mkl.least(), right));
        benchmarks.back()["queued_us"] = of_mkl.median();
        benchmarks.back()["prepare_seconds"] = optimised;
        failed_ = failed_ || !right || !own_right;
        fmt::print(
            "{:40} {:6} {:9} nonzeros  MKL {:9.2f} us (least {:9.2f})  {:11} {:9.2f} us (least {:9.2f})  "
            "ratio {:5.2f} ({:5.2f})  called {:9.2f}  queued {:9.2f}{}\n",
            matrix.name, precision, a.nnz(), of_mkl.median(), of_mkl.least(), kernel, device.median(),
            least_of_device_ * 1e6, of_mkl.median() / device.median(), of_mkl.least() / (least_of_device_ * 1e6),
            called.median(), queued.median(), right && own_right ? "" : " WRONG");
    }

    template <class T>
    void spgemm(const NamedMatrix& matrix, const std::string& precision, const rmsp::CsrMatrix<T>& a,
                const rmsp::CsrMatrix<T>& b, Json& benchmarks)
    {
        std::int64_t products = 0;
        for (std::int64_t i = 0; i < a.nnz(); ++i) {
            const auto k = static_cast<std::size_t>(a.col_idx[i]);
            products += b.row_ptr[k + 1] - b.row_ptr[k];
        }
        if (options_.most_products > 0 && products > options_.most_products) {
            throw rmsp::Error(rmsp::ErrorCode::out_of_memory,
                              fmt::format("{} products, more than {}", products, options_.most_products));
        }
        const MklMatrix<T> their_a(a);
        const MklMatrix<T> their_b(b);
        sparse_matrix_t first = mkl_product(their_a.handle(), their_b.handle());
        const rmsp::CsrMatrix<T> their_c = taken_from<T>(first);
        check(mkl_sparse_destroy(first), "mkl_sparse_destroy");
        const bool right = rmsp::verify_spgemm<T>(a.view(), b.view(), T{1}, their_c.view(), 200).passed;

        rmsp::SparseProduct<T> ours(runtime_, a.view(), b.view());
        ours.compute();
        const bool own_right = rmsp::verify_spgemm<T>(a.view(), b.view(), T{1}, ours.download().view(), 200).passed;

        Times of_mkl;
        Times whole;
        Times values;
        double least = 0;
        const auto begin_all = Clock::now();
        ours.measure(0, 1);
        const std::int64_t calls =
            std::clamp(static_cast<std::int64_t>(options_.turn_ms * 1e-3 / seconds_since(begin_all)), std::int64_t{1},
                       std::int64_t{100});
        for (std::int64_t round = 0; round < options_.rounds; ++round) {
            pause();
            for (std::int64_t i = 0; i <= calls; ++i) {
                const auto begin = Clock::now();
                sparse_matrix_t c = mkl_product(their_a.handle(), their_b.handle());
                if (i > 0) {  // the first one wakes the threads
                    of_mkl.us.push_back(seconds_since(begin) * 1e6);
                }
                check(mkl_sparse_destroy(c), "mkl_sparse_destroy");
            }
            pause();
            const auto measured = ours.measure(1, calls);
            whole.us.push_back(measured[0].median_seconds * 1e6);
            values.us.push_back(measured[1].median_seconds * 1e6);
            least = round == 0 ? measured[0].min_seconds : std::min(least, measured[0].min_seconds);
        }
        const auto entry = [&](const char* who, double median, double shortest, bool verified) {
            return Json{{"name", fmt::format("spgemm/{}/{}/{}", matrix.name, precision, who)},
                        {"matrix", matrix.name},
                        {"kernel", who},
                        {"precision", precision},
                        {"rows", a.rows},
                        {"nonzeros_a", a.nnz()},
                        {"nonzeros_c", ours.nnz()},
                        {"products", products},
                        {"real_time", median},
                        {"min_time", shortest},
                        {"time_unit", "us"},
                        {"verified", verified}};
        };
        benchmarks.push_back(entry("spgemm-openmp", whole.median(), least * 1e6, own_right));
        benchmarks.back()["numeric_us"] = values.median();
        benchmarks.push_back(entry("mkl", of_mkl.median(), of_mkl.least(), right));
        failed_ = failed_ || !right || !own_right;
        fmt::print(
            "{:40} {:6} {:9} products  MKL {:10.1f} us (least {:10.1f})  spgemm-openmp {:10.1f} us (least "
            "{:10.1f})  ratio {:5.2f} ({:5.2f})  values alone {:10.1f}{}\n",
            matrix.name, precision, products, of_mkl.median(), of_mkl.least(), whole.median(), least * 1e6,
            of_mkl.median() / whole.median(), of_mkl.least() / (least * 1e6), values.median(),
            right && own_right ? "" : " WRONG");
    }

    Options options_;
    ResultLines lines_;
    Clock::time_point begin_ = Clock::now();
    rmsp::Runtime runtime_;
    double least_of_device_ = 0;
    bool failed_ = false;
};

int run(const Options& options)
{
    std::vector<NamedMatrix> matrices;
    for (const std::string& text : options.matrices) {
        matrices.push_back(parse_matrix(text, {"matrix.values=random"}));
    }
    Bench bench(options);
    for (const NamedMatrix& matrix : matrices) {
        for (const std::string& precision : options.precisions) {
            precision == "float" ? bench.run<float>(matrix) : bench.run<double>(matrix);
        }
    }
    return bench.failed() ? static_cast<int>(rmsp::ErrorCode::verification) : 0;
}

}  // namespace

int main(int argc, char** argv)
{
    Options options;
    CLI::App app("Times products on host devices beside Intel MKL's, in turns; verifies both.");
    app.add_option("MATRIX", options.matrices, matrix_argument_help)->required();
    app.add_option("--product", options.product, "spmv (y = A x) or spgemm (A A, A A^T where A is not square)")
        ->check(CLI::IsMember({"spmv", "spgemm"}));
    app.add_option("--precision", options.precisions, "double, float")
        ->delimiter(',')
        ->check(CLI::IsMember({"double", "float"}))
        ->allow_extra_args(false);
    app.add_option("--threads", options.threads, "of the host device, and of MKL")->check(CLI::PositiveNumber);
    app.add_option("--rounds", options.rounds, "turns of each")->check(CLI::PositiveNumber);
    app.add_option("--turn", options.turn_ms, "milliseconds of a turn, about")->check(CLI::PositiveNumber);
    app.add_option(
        "--pause", options.pause_ms,
        "milliseconds between turns, in which threads that spin go to sleep; KMP_BLOCKTIME or GOMP_SPINCOUNT "
        "sets how long they spin");
    app.add_option("--most-products", options.most_products, "skip products of more multiplications; 0: none");
    app.add_option("--seconds", options.seconds, "begin no matrix after this time; 0: no limit");
    app.add_option("--lines", options.lines,
                   "file that each matrix's results are appended to, as a line of JSON; what it has is not measured "
                   "again");
    CLI11_PARSE(app, argc, argv);
    return report_errors([&] { return run(options); });
}
