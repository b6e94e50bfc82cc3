// Requests for memory of the devices, and for pinned memory, refused one by one or all from one on, in each of the
// library's larger calls. Each run has to give the right result, or an error that names bytes and device; afterwards
// nothing stays taken, and a small matrix is distributed and multiplied by the same runtime. Exit status 0: all that
// holds. A run that does not end within a minute ends the program.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <rmsp/rmsp.hpp>
#include <runtime/engine/refusals.hpp>
#include <runtime/node/node.hpp>

namespace {

using rmsp::engine::Refusals;
using rmsp::engine::Request;

struct Settings {
    std::string devices = "host:2x1";
    std::int64_t sample = 0;  ///< most requests of each call and mode; 0: each
    std::vector<std::string> names;
};

/// What is multiplied, and what it is called while that runs.
struct Inputs {
    rmsp::CsrMatrix<double> a = rmsp::generate<double>("stencil7 9 8 7");
    rmsp::CsrMatrix<double> spd;
    rmsp::CsrMatrix<double> small = rmsp::generate<double>("stencil7 4 4 4");
    std::vector<double> x;
    std::vector<double> twice;  ///< the values of `a` times two

    Inputs()
    {
        rmsp::GenerateOptions poisson;
        poisson.values = rmsp::ValueKind::poisson;
        spd = rmsp::generate<double>("stencil7 10 10 10", poisson);
        x.resize(static_cast<std::size_t>(spd.rows));
        for (std::size_t i = 0; i < x.size(); ++i) {
            x[i] = static_cast<double>(i % 7) - 3;
        }
        twice.assign(a.values.begin(), a.values.end());
        for (double& value : twice) {
            value *= 2;
        }
    }
};

char running[256];

void tell_that_it_hangs(int)
{
    (void)!::write(STDERR_FILENO, running, sizeof running);
    ::_exit(1);
}

struct Wrong : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void expect(bool holds, const char* what)
{
    if (!holds) {
        throw Wrong(std::string(what) + " is wrong");
    }
}

/// The calls of a run. What fails is tried once more if only one request is refused; the second try has to succeed.
class Steps {
public:
    explicit Steps(bool again) : again_(again) {}
    void operator()(const std::function<void()>& call)
    {
        try {
            call();
        } catch (const rmsp::Error& e) {
            note(e);
            if (!again_) {
                throw;
            }
            try {
                call();
            } catch (const std::exception& second) {
                throw Wrong(std::string("the second try failed: ") + second.what());
            }
        }
    }
    std::int64_t errors() const { return errors_; }

private:
    void note(const rmsp::Error& e)
    {
        const std::string what = e.what();
        const auto has = [&](const char* text) { return what.find(text) != std::string::npos; };
        if (e.code() != rmsp::ErrorCode::out_of_memory || !has(" bytes") ||
            !(has("host:") || has("cuda:") || has("GPU "))) {
            throw Wrong("unnamed error: " + what);
        }
        ++errors_;
    }
    bool again_;
    std::int64_t errors_ = 0;
};

void multiply(rmsp::DistributedMatrix<double>& matrix, const rmsp::CsrMatrix<double>& a, const Inputs& in)
{
    std::vector<double> y(static_cast<std::size_t>(a.rows), 1e300);
    matrix.apply(1.0, in.x.data(), 0.0, y.data());
    expect(rmsp::verify_spmv<double>(a.view(), 1.0, in.x.data(), 0.0, nullptr, y.data()).passed, "A x");
}

void on_vectors(rmsp::DistributedMatrix<double>& matrix, const rmsp::CsrMatrix<double>& a, const Inputs& in,
                rmsp::Layout layout)
{
    std::vector<double> y(static_cast<std::size_t>(a.rows), 1e300);
    auto there_x = matrix.make_x(layout);
    auto there_y = matrix.make_y();
    there_x.upload(in.x.data());
    matrix.apply(1.0, there_x, 0.0, there_y);
    there_y.download(y.data());
    expect(rmsp::verify_spmv<double>(a.view(), 1.0, in.x.data(), 0.0, nullptr, y.data()).passed, "A x on the devices");
}

void transposed(rmsp::DistributedMatrix<double>& matrix, const rmsp::CsrMatrix<double>& a, const Inputs& in)
{
    std::vector<double> y(static_cast<std::size_t>(a.cols), 1e300);
    matrix.apply_transposed(1.0, in.x.data(), 0.0, y.data());
    const auto t = rmsp::transposed(a.view());
    expect(rmsp::verify_spmv<double>(t.view(), 1.0, in.x.data(), 0.0, nullptr, y.data()).passed, "A^T x");
}

void resident(rmsp::Runtime& runtime, Steps& then, const Inputs& in)
{
    rmsp::DistributedMatrix<double> matrix;
    then([&] { matrix = runtime.distribute(in.a.view()); });
    then([&] { multiply(matrix, in.a, in); });
    then([&] { on_vectors(matrix, in.a, in, rmsp::Layout::rows); });
    then([&] { on_vectors(matrix, in.a, in, rmsp::Layout::replicated); });
    then([&] { transposed(matrix, in.a, in); });
    then([&] { (void)matrix.diagonal(); });
    then([&] { multiply(matrix, in.a, in); });
}

void entries(rmsp::Runtime& runtime, Steps& then, const Inputs& in)
{
    rmsp::DistributeOptions options;
    options.exchange = rmsp::Exchange::entries;
    rmsp::DistributedMatrix<double> matrix;
    then([&] { matrix = runtime.distribute(in.a.view(), options); });
    then([&] { on_vectors(matrix, in.a, in, rmsp::Layout::rows); });
    then([&] { multiply(matrix, in.a, in); });
}

void columns(rmsp::Runtime& runtime, Steps& then, const Inputs& in)
{
    const auto csc = rmsp::to_csc(in.a.view());
    rmsp::DistributedMatrix<double> matrix;
    then([&] { matrix = runtime.distribute(csc.view()); });
    then([&] { multiply(matrix, in.a, in); });
    then([&] { on_vectors(matrix, in.a, in, rmsp::Layout::rows); });
    then([&] { multiply(matrix, in.a, in); });
}

void update(rmsp::Runtime& runtime, Steps& then, const Inputs& in)
{
    rmsp::CsrMatrix<double> now = in.a;
    rmsp::DistributeOptions within_rows;
    within_rows.alignment = rmsp::RowAlignment::exact;
    rmsp::DistributedMatrix<double> matrix;
    then([&] { matrix = runtime.distribute(in.a.view(), within_rows); });
    then([&] { matrix.update_values(in.twice.data()); });
    now.values.assign(in.twice.begin(), in.twice.end());
    then([&] { multiply(matrix, now, in); });
}

void convert(rmsp::Runtime& runtime, Steps& then, const Inputs& in)
{
    rmsp::CscMatrix<double> csc;
    rmsp::CsrMatrix<double> back;
    then([&] { csc = rmsp::to_csc(runtime, in.a.view()); });
    then([&] { back = rmsp::to_csr(runtime, csc.view()); });
    expect(back.row_ptr == in.a.row_ptr && back.values == in.a.values, "A as CSC and back");
}

void streamed(rmsp::Runtime& runtime, Steps& then, const Inputs& in)
{
    for (const auto encoding : {rmsp::StreamEncoding::none, rmsp::StreamEncoding::automatic}) {
        rmsp::DistributeOptions options;
        options.mode = rmsp::Mode::streamed;
        options.encoding = encoding;
        options.chunk_bytes = 4096;
        rmsp::DistributedMatrix<double> matrix;
        then([&] { matrix = runtime.distribute(in.a.view(), options); });
        then([&] { multiply(matrix, in.a, in); });
        then([&] { on_vectors(matrix, in.a, in, rmsp::Layout::rows); });
    }
}

void spgemm(rmsp::Runtime& runtime, Steps& then, const Inputs& in)
{
    rmsp::SparseProduct<double> square;
    rmsp::DistributedMatrix<double> matrix;
    rmsp::CsrMatrix<double> c;
    then([&] { square = rmsp::SparseProduct<double>(runtime, in.a.view(), in.a.view()); });
    then([&] { square.compute(); });
    then([&] { c = square.download(); });
    expect(rmsp::verify_spgemm<double>(in.a.view(), in.a.view(), 1.0, c.view(), c.rows).passed, "A A");
    // In runs of rows where a device had no room for C, which is then nowhere to be distributed from.
    if (!square.plan().chunked()) {
        then([&] { matrix = square.distribute(); });
        then([&] { multiply(matrix, c, in); });
    }
    then([&] { square.update_values(in.twice.data(), in.a.values.data()); });
    then([&] { square.compute(0.5); });
    then([&] { c = square.download(); });
    expect(rmsp::verify_spgemm<double>(in.a.view(), in.a.view(), 1.0, c.view(), c.rows).passed, "A A anew");
}

void solve_with(rmsp::Runtime& runtime, Steps& then, const Inputs& in, const char* method, const char* preconditioner)
{
    const std::vector<double>& b = in.x;
    std::vector<double> x;
    std::vector<double> product(b.size());
    rmsp::SolverOptions options;
    options.method = method;
    options.preconditioner = preconditioner;
    rmsp::DistributedMatrix<double> matrix;
    std::optional<rmsp::Solver<double>> solver;
    then([&] { matrix = runtime.distribute(in.spd.view()); });
    then([&] { solver.emplace(matrix, options); });
    then([&] {
        x.assign(b.size(), 0.0);
        expect(solver->solve(b.data(), x.data()).converged(), "whether the solve converged");
    });
    then([&] { matrix.apply(1.0, x.data(), 0.0, product.data()); });
    double residual = 0;
    double norm = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
        residual += (b[i] - product[i]) * (b[i] - product[i]);
        norm += b[i] * b[i];
    }
    expect(residual <= 1e-14 * norm, "the solution");
}

void solve(rmsp::Runtime& runtime, Steps& then, const Inputs& in)
{
    solve_with(runtime, then, in, "cg", "none");
    solve_with(runtime, then, in, "gmres", "jacobi");
}

void multigrid(rmsp::Runtime& runtime, Steps& then, const Inputs& in)
{
    solve_with(runtime, then, in, "cg", "amg");
    solve_with(runtime, then, in, "cg", "sa-amg");
}

struct Call {
    const char* name;
    void (*run)(rmsp::Runtime&, Steps&, const Inputs&);
};
constexpr Call calls[] = {{"resident", resident}, {"entries", entries}, {"columns", columns},
                          {"update", update},     {"convert", convert}, {"streamed", streamed},
                          {"spgemm", spgemm},     {"solve", solve},     {"multigrid", multigrid}};

rmsp::Runtime open(const Settings& settings)
{
    rmsp::RuntimeOptions options;
    options.devices = settings.devices;
    options.bind = rmsp::BindPolicy::none;
    return rmsp::Runtime(options);
}

/// Bytes taken of all devices, once what was let go is free; those promised count too.
std::int64_t taken(const rmsp::Runtime& runtime)
{
    const auto state = rmsp::detail::RuntimeAccess::state(runtime);
    state->catch_up();
    rmsp::Metrics metrics;
    metrics.devices.resize(static_cast<std::size_t>(state->devices()));
    state->memory->add_to(metrics);
    std::int64_t bytes = 0;
    for (const auto& device : metrics.devices) {
        bytes += device.resident_bytes + device.reserved_bytes;
    }
    return bytes;
}

/// Fails requests in one call, and looks at the runtime afterwards.
class Sweep {
public:
    Sweep(const Settings& settings, const Inputs& in, const Call& call) : settings_(settings), in_(in), call_(call) {}

    /// Whether all was as it has to be.
    bool run()
    {
        if (!runtime_) {
            runtime_.emplace(open(settings_));
        }
        bool good = true;
        for (const Request kind : {Request::memory, Request::pinned}) {
            // Twice: what the runtime makes once, for the first call that needs it, stays.
            std::int64_t requests = 0;
            for (int i = 0; i < 2; ++i) {
                const Refusals counted(kind, 0, false);
                Steps then(false);
                call_.run(*runtime_, then, in_);
                requests = counted.asked();
            }
            before_ = taken(*runtime_);
            for (const bool all : {false, true}) {
                good = sweep(kind, requests, all) && good;
            }
        }
        return good;
    }

private:
    bool sweep(Request kind, std::int64_t requests, bool all)
    {
        const auto began = std::chrono::steady_clock::now();
        std::map<std::string, std::int64_t> outcomes;
        const std::int64_t runs = settings_.sample > 0 ? std::min(settings_.sample, requests) : requests;
        bool good = true;
        for (std::int64_t i = 0; i < runs; ++i) {
            const std::int64_t number = 1 + i * requests / runs;
            const std::string outcome = one(kind, number, all);
            ++outcomes[outcome.empty() ? "wrong" : outcome];
            good = good && !outcome.empty();
        }
        std::string text;
        for (const auto& [outcome, count] : outcomes) {
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, outcome);
        }
        fmt::print("{}: {}, {}: {} of {} requests: {} ({:.1f} s)\n", call_.name,
                   kind == Request::memory ? "memory of the devices" : "pinned memory",
                   all ? "all from one on fail" : "one fails", runs, requests, text.empty() ? "none" : text,
                   std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
        std::fflush(stdout);
        return good;
    }

    /// How a run ended; empty: not as it has to.
    std::string one(Request kind, std::int64_t number, bool all)
    {
        const std::string what = fmt::format("{}: {} request {}{}", call_.name,
                                             kind == Request::memory ? "memory" : "pinned", number, all ? " on" : "");
        std::snprintf(running, sizeof running, "%s hangs\n", what.c_str());
        ::alarm(60);
        std::string outcome = "not reached";
        Steps then(!all);
        try {
            const Refusals refusals(kind, number, all);
            try {
                call_.run(*runtime_, then, in_);
            } catch (const rmsp::Error& e) {
                if (then.errors() == 0 || e.code() != rmsp::ErrorCode::out_of_memory) {
                    throw;
                }
            }
            outcome = then.errors() > 0 ? "named errors" : refusals.refused() > 0 ? "successes all the same" : outcome;
        } catch (const std::exception& e) {
            std::fprintf(stderr, "%s: %s\n", what.c_str(), e.what());
            outcome.clear();
        }
        try {
            const std::int64_t after = taken(*runtime_);
            expect(after == before_, fmt::format("what is taken, {} bytes and not {},", after, before_).c_str());
            auto matrix = runtime_->distribute(in_.small.view());
            multiply(matrix, in_.small, in_);
            on_vectors(matrix, in_.small, in_, rmsp::Layout::rows);
        } catch (const std::exception& e) {
            std::fprintf(stderr, "%s: afterwards: %s\n", what.c_str(), e.what());
            outcome.clear();
            runtime_.emplace(open(settings_));
        }
        ::alarm(0);
        return outcome;
    }

    const Settings& settings_;
    const Inputs& in_;
    const Call& call_;
    std::optional<rmsp::Runtime> runtime_;
    std::int64_t before_ = 0;
};

/// Requests that fail while a runtime is opened.
bool sweep_open(const Settings& settings, const Inputs& in)
{
    bool good = true;
    std::int64_t errors = 0;
    std::int64_t runs = 0;
    for (const Request kind : {Request::memory, Request::pinned}) {
        for (const bool all : {false, true}) {
            for (std::int64_t number = 1;; ++number, ++runs) {
                std::snprintf(running, sizeof running, "opening a runtime, request %d, hangs\n",
                              static_cast<int>(number));
                ::alarm(60);
                std::optional<rmsp::Runtime> runtime;
                bool reached = false;
                try {
                    Steps then(!all);
                    const Refusals refusals(kind, number, all);
                    try {
                        then([&] { runtime.emplace(open(settings)); });
                    } catch (const rmsp::Error&) {
                    }
                    reached = refusals.refused() > 0;
                    errors += then.errors();
                } catch (const std::exception& e) {
                    std::fprintf(stderr, "opening a runtime, request %d: %s\n", static_cast<int>(number), e.what());
                    good = false;
                }
                if (!runtime) {
                    runtime.emplace(open(settings));
                }
                auto matrix = runtime->distribute(in.small.view());
                multiply(matrix, in.small, in);
                ::alarm(0);
                if (!reached) {
                    break;
                }
            }
        }
    }
    fmt::print("open: {} runs: {} named errors\n", runs, errors);
    return good;
}

int attack(const Settings& settings)
{
    const Inputs in;
    bool good = true;
    const auto wanted = [&](const std::string& name) {
        return settings.names.empty() ||
               std::find(settings.names.begin(), settings.names.end(), name) != settings.names.end();
    };
    if (wanted("open")) {
        good = sweep_open(settings, in);
    }
    for (const Call& call : calls) {
        if (wanted(call.name)) {
            good = Sweep(settings, in, call).run() && good;
        }
    }
    return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv)
{
    Settings settings;
    settings.devices = argc > 1 ? argv[1] : settings.devices;
    settings.sample = argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 0;
    for (int i = 3; i < argc; ++i) {
        settings.names.emplace_back(argv[i]);
    }
    (void)std::signal(SIGALRM, tell_that_it_hangs);
    try {
        return attack(settings);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "attack_device_memory: error: %s\n", e.what());
        return 1;
    }
}
