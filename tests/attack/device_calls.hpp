#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <rmsp/rmsp.hpp>

/// The library's larger calls, each with its right result, for attacks that let something in them fail.
namespace rmsp::attack {

/// What is multiplied.
struct Inputs {
    CsrMatrix<double> a = generate<double>("stencil7 9 8 7");
    CsrMatrix<double> spd;
    CsrMatrix<double> small = generate<double>("stencil7 4 4 4");
    std::vector<double> x;
    std::vector<double> twice;  ///< the values of `a` times two

    Inputs()
    {
        GenerateOptions poisson;
        poisson.values = ValueKind::poisson;
        spd = generate<double>("stencil7 10 10 10", poisson);
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

struct Wrong : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline void expect(bool holds, const char* what)
{
    if (!holds) {
        throw Wrong(std::string(what) + " is wrong");
    }
}

/// The calls of a run. What fails is tried once more if only one request is refused; the second try has to succeed.
class Steps {
public:
    explicit Steps(bool again, bool transfers = false) : again_(again), transfers_(transfers) {}
    void operator()(const std::function<void()>& call)
    {
        try {
            call();
        } catch (const Error& e) {
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
    void note(const Error& e)
    {
        const std::string what = e.what();
        const auto has = [&](const char* text) { return what.find(text) != std::string::npos; };
        const bool of_memory = e.code() == ErrorCode::out_of_memory && has(" bytes");
        const bool of_transport = e.code() == ErrorCode::device && what.find("transport ") == 0;
        if (!(transfers_ ? of_transport : of_memory) || !(has("host:") || has("cuda:") || has("GPU "))) {
            throw Wrong("unnamed error: " + what);
        }
        ++errors_;
    }
    bool again_;
    bool transfers_;
    std::int64_t errors_ = 0;
};

inline void multiply(DistributedMatrix<double>& matrix, const CsrMatrix<double>& a, const Inputs& in)
{
    std::vector<double> y(static_cast<std::size_t>(a.rows), 1e300);
    matrix.apply(1.0, in.x.data(), 0.0, y.data());
    expect(verify_spmv<double>(a.view(), 1.0, in.x.data(), 0.0, nullptr, y.data()).passed, "A x");
}

inline void on_vectors(DistributedMatrix<double>& matrix, const CsrMatrix<double>& a, const Inputs& in, Layout layout)
{
    std::vector<double> y(static_cast<std::size_t>(a.rows), 1e300);
    auto there_x = matrix.make_x(layout);
    auto there_y = matrix.make_y();
    there_x.upload(in.x.data());
    matrix.apply(1.0, there_x, 0.0, there_y);
    there_y.download(y.data());
    expect(verify_spmv<double>(a.view(), 1.0, in.x.data(), 0.0, nullptr, y.data()).passed, "A x on the devices");
}

inline void transposed(DistributedMatrix<double>& matrix, const CsrMatrix<double>& a, const Inputs& in)
{
    std::vector<double> y(static_cast<std::size_t>(a.cols), 1e300);
    matrix.apply_transposed(1.0, in.x.data(), 0.0, y.data());
    const auto t = transposed(a.view());
    expect(verify_spmv<double>(t.view(), 1.0, in.x.data(), 0.0, nullptr, y.data()).passed, "A^T x");
}

inline void resident(Runtime& runtime, Steps& then, const Inputs& in)
{
    DistributedMatrix<double> matrix;
    then([&] { matrix = runtime.distribute(in.a.view()); });
    then([&] { multiply(matrix, in.a, in); });
    then([&] { on_vectors(matrix, in.a, in, Layout::rows); });
    then([&] { on_vectors(matrix, in.a, in, Layout::replicated); });
    then([&] { transposed(matrix, in.a, in); });
    then([&] { (void)matrix.diagonal(); });
    then([&] { multiply(matrix, in.a, in); });
}

inline void entries(Runtime& runtime, Steps& then, const Inputs& in)
{
    DistributeOptions options;
    options.exchange = Exchange::entries;
    DistributedMatrix<double> matrix;
    then([&] { matrix = runtime.distribute(in.a.view(), options); });
    then([&] { on_vectors(matrix, in.a, in, Layout::rows); });
    then([&] { multiply(matrix, in.a, in); });
}

inline void columns(Runtime& runtime, Steps& then, const Inputs& in)
{
    const auto csc = to_csc(in.a.view());
    DistributedMatrix<double> matrix;
    then([&] { matrix = runtime.distribute(csc.view()); });
    then([&] { multiply(matrix, in.a, in); });
    then([&] { on_vectors(matrix, in.a, in, Layout::rows); });
    then([&] { multiply(matrix, in.a, in); });
}

inline void update(Runtime& runtime, Steps& then, const Inputs& in)
{
    CsrMatrix<double> now = in.a;
    DistributeOptions within_rows;
    within_rows.alignment = RowAlignment::exact;
    DistributedMatrix<double> matrix;
    then([&] { matrix = runtime.distribute(in.a.view(), within_rows); });
    then([&] { matrix.update_values(in.twice.data()); });
    now.values.assign(in.twice.begin(), in.twice.end());
    then([&] { multiply(matrix, now, in); });
}

inline void convert(Runtime& runtime, Steps& then, const Inputs& in)
{
    CscMatrix<double> csc;
    CsrMatrix<double> back;
    then([&] { csc = to_csc(runtime, in.a.view()); });
    then([&] { back = to_csr(runtime, csc.view()); });
    expect(back.row_ptr == in.a.row_ptr && back.values == in.a.values, "A as CSC and back");
}

inline void streamed(Runtime& runtime, Steps& then, const Inputs& in)
{
    for (const auto encoding : {StreamEncoding::none, StreamEncoding::automatic}) {
        DistributeOptions options;
        options.mode = Mode::streamed;
        options.encoding = encoding;
        options.chunk_bytes = 4096;
        DistributedMatrix<double> matrix;
        then([&] { matrix = runtime.distribute(in.a.view(), options); });
        then([&] { multiply(matrix, in.a, in); });
        then([&] { on_vectors(matrix, in.a, in, Layout::rows); });
    }
}

inline void spgemm(Runtime& runtime, Steps& then, const Inputs& in)
{
    SparseProduct<double> square;
    DistributedMatrix<double> matrix;
    CsrMatrix<double> c;
    then([&] { square = SparseProduct<double>(runtime, in.a.view(), in.a.view()); });
    then([&] { square.compute(); });
    then([&] { c = square.download(); });
    expect(verify_spgemm<double>(in.a.view(), in.a.view(), 1.0, c.view(), c.rows).passed, "A A");
    // In runs of rows where a device had no room for C, which is then nowhere to be distributed from.
    if (!square.plan().chunked()) {
        then([&] { matrix = square.distribute(); });
        then([&] { multiply(matrix, c, in); });
    }
    then([&] { square.update_values(in.twice.data(), in.a.values.data()); });
    then([&] { square.compute(0.5); });
    then([&] { c = square.download(); });
    expect(verify_spgemm<double>(in.a.view(), in.a.view(), 1.0, c.view(), c.rows).passed, "A A anew");
}

inline void solve_with(Runtime& runtime, Steps& then, const Inputs& in, const char* method, const char* preconditioner)
{
    const std::vector<double>& b = in.x;
    std::vector<double> x;
    std::vector<double> product(b.size());
    SolverOptions options;
    options.method = method;
    options.preconditioner = preconditioner;
    DistributedMatrix<double> matrix;
    std::optional<Solver<double>> solver;
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

inline void solve(Runtime& runtime, Steps& then, const Inputs& in)
{
    solve_with(runtime, then, in, "cg", "none");
    solve_with(runtime, then, in, "gmres", "jacobi");
}

inline void multigrid(Runtime& runtime, Steps& then, const Inputs& in)
{
    solve_with(runtime, then, in, "cg", "amg");
    solve_with(runtime, then, in, "cg", "sa-amg");
}

struct Call {
    const char* name;
    void (*run)(Runtime&, Steps&, const Inputs&);
};
inline constexpr Call calls[] = {{"resident", resident}, {"entries", entries}, {"columns", columns},
                                 {"update", update},     {"convert", convert}, {"streamed", streamed},
                                 {"spgemm", spgemm},     {"solve", solve},     {"multigrid", multigrid}};

}  // namespace rmsp::attack
