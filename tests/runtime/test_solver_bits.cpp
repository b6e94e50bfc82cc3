#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/eigen.hpp>
#include <rmsp/solver.hpp>

#include "solver_fixtures.hpp"

// With determinism "device_count" solvers give the same bits on any number of devices.
namespace rmsp::test {
namespace {

class SolverBits : public SolverTest {};

/// Symmetric, positive definite, with entries whose sums depend on their order.
template <class T>
CsrMatrix<T> uneven_poisson(std::int64_t n)
{
    auto a = poisson<T>(n);
    const auto scale = [](std::int64_t i) { return 1.1 + std::sin(0.37 * static_cast<double>(i)); };
    for (std::int64_t i = 0; i < a.rows; ++i) {
        for (std::int64_t k = a.row_ptr[static_cast<std::size_t>(i)]; k < a.row_ptr[static_cast<std::size_t>(i) + 1];
             ++k) {
            a.values[static_cast<std::size_t>(k)] *= static_cast<T>(scale(i) * scale(a.col_idx[k]));
        }
    }
    return a;
}

DistributeOptions of_any_count(const std::string& kernel)
{
    DistributeOptions options;
    options.determinism = Determinism::device_count;
    options.kernel = kernel;
    return options;
}

/// SpMV kernels that keep their bits on any number of such devices.
std::vector<std::string> kernels_on(DeviceKind kind)
{
    std::vector<std::string> names;
    for (const auto& kernel : list_kernels()) {
        if (kernel.family == "spmv" && kernel.format == Format::csr && kernel.device == kind && kernel.compiled &&
            kernel.determinism == Determinism::device_count) {
            names.push_back(kernel.name);
        }
    }
    return names;
}

Runtime one_device(bool gpu)
{
    RuntimeOptions options;
    options.devices = gpu ? "0" : "host:1";
    return Runtime(options);
}

/// What a solve leaves, bit for bit.
template <class T>
struct Bits {
    std::vector<T> x;
    SolveResult result;
};

template <class T>
Bits<T> bits_of(Runtime& runtime, const CsrMatrix<T>& a, const std::string& kernel, const SolverOptions& options,
                const std::vector<T>& b)
{
    auto matrix = runtime.distribute(a.view(), of_any_count(kernel));
    Bits<T> bits{std::vector<T>(b.size(), T{0}), {}};
    bits.result = Solver<T>(matrix, options).solve(b.data(), bits.x.data());
    return bits;
}

template <class T>
void expect_same_bits(const Bits<T>& found, const Bits<T>& alone)
{
    EXPECT_EQ(found.result.outcome, alone.result.outcome);
    EXPECT_EQ(found.result.iterations, alone.result.iterations);
    EXPECT_EQ(found.result.history, alone.result.history);
    EXPECT_EQ(found.result.true_residual, alone.result.true_residual);
    for (std::size_t i = 0; i < found.x.size(); ++i) {
        ASSERT_EQ(found.x[i], alone.x[i]) << "entry " << i;
    }
}

template <class T>
void compare_bits(Runtime& single, Runtime& runtime, std::int64_t n, const SolverOptions& options,
                  const std::string& kernel)
{
    SCOPED_TRACE(options.method + ", " + options.preconditioner + ", " + kernel);
    const auto a = uneven_poisson<T>(n);
    const auto b = random_vector<T>(a.rows, 4);
    // Machines of a kind are held against the same bits, which one device has found once.
    using Solve = std::tuple<DeviceKind, std::string, std::string, std::string, std::int64_t, std::int64_t>;
    static std::map<Solve, Bits<T>> found_alone;
    const auto [known, is_new] = found_alone.try_emplace(
        {single.devices().front().kind, kernel, options.method, options.preconditioner, options.max_iterations, n});
    Bits<T>& alone = known->second;
    if (is_new) {
        alone = bits_of(single, a, kernel, options, b);
    }
    EXPECT_GT(alone.result.history.size(), 3u);
    expect_same_bits(bits_of(runtime, a, kernel, options, b), alone);
}

TEST_P(SolverBits, AreTheSameOnAnyNumberOfDevices)
{
    Runtime single = one_device(GetParam().gpus > 0);
    const auto kernels = kernels_on(single.devices().front().kind);
    ASSERT_FALSE(kernels.empty());
    SolverOptions options;
    options.max_iterations = 25;
    options.tolerance = 1e-13;
    options.relaxation = 0.01;  // ir without a preconditioner
    for (const SolverInfo& info : list_solvers()) {
        if (!info.transposed) {  // products with A^T do not keep their bits
            options.method = info.name;
            compare_bits<double>(single, *runtime_, 17, options, kernels.front());
        }
    }
    options.preconditioner = "jacobi";
    for (const char* const method : {"cg", "cg_pipelined", "bicgstab", "gmres"}) {
        options.method = method;
        compare_bits<double>(single, *runtime_, 17, options, kernels.front());
        compare_bits<float>(single, *runtime_, 17, options, kernels.front());
    }
    options.method = "cg";
    compare_bits<double>(single, *runtime_, 17, options, "auto");
    for (const std::string& kernel : kernels) {
        compare_bits<double>(single, *runtime_, 17, options, kernel);
    }
    options.max_iterations = 12;
    options.tolerance = 0;
    compare_bits<double>(single, *runtime_, 40, options, kernels.front());
}

TEST_P(SolverBits, OfWhatIsNotFinite)
{
    Runtime single = one_device(GetParam().gpus > 0);
    const auto a = uneven_poisson<double>(12);
    const std::string kernel = kernels_on(single.devices().front().kind).front();
    for (const double value : {HUGE_VAL, -HUGE_VAL, std::nan(""), 1e300}) {
        SCOPED_TRACE(value);
        auto b = random_vector<double>(a.rows, 4);
        b[b.size() / 3] = value;
        const auto alone = bits_of(single, a, kernel, {}, b);
        const auto found = bits_of(*runtime_, a, kernel, {}, b);
        EXPECT_EQ(found.result.outcome, alone.result.outcome) << found.result.reason;
        EXPECT_EQ(found.result.iterations, alone.result.iterations);
        EXPECT_NE(found.result.outcome, Outcome::converged);
    }
}

TEST_P(SolverBits, OfEigenpairs)
{
    Runtime single = one_device(GetParam().gpus > 0);
    const auto a = uneven_poisson<double>(sanitized ? 6 : 9);
    const std::string kernel = kernels_on(single.devices().front().kind).front();
    struct Found {
        EigenResult<double> result;
        std::vector<std::vector<double>> vectors;
    };
    const auto find = [&](Runtime& runtime, const EigenOptions& options) {
        Found found{EigenSolver<double>(runtime.distribute(a.view(), of_any_count(kernel)), options).solve(), {}};
        for (const auto& vector : found.result.vectors) {
            vector.download(found.vectors.emplace_back(static_cast<std::size_t>(a.rows)).data());
        }
        found.result.vectors.clear();
        return found;
    };
    // As of the solves: by one device once.
    static std::map<std::pair<DeviceKind, std::string>, Found> found_alone;
    for (const char* const method : {"lobpcg", "lanczos"}) {
        SCOPED_TRACE(method);
        EigenOptions options;
        options.method = method;
        options.count = 2;
        const auto [known, is_new] = found_alone.try_emplace({single.devices().front().kind, method});
        Found& alone = known->second;
        if (is_new) {
            alone = find(single, options);
        }
        const Found found = find(*runtime_, options);
        EXPECT_EQ(found.result.iterations, alone.result.iterations);
        EXPECT_EQ(found.result.values, alone.result.values);
        EXPECT_EQ(found.result.residuals, alone.result.residuals);
        EXPECT_EQ(found.vectors, alone.vectors);
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, SolverBits, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
