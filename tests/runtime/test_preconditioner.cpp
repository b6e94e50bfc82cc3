#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/rmsp.hpp>

#include "matrix/diagonal.hpp"
#include "matrix/incomplete.hpp"
#include "matrix/levels.hpp"
#include "matrix/sparse_inverse.hpp"
#include "preconditioner_fixtures.hpp"
#include "solver_fixtures.hpp"

namespace rmsp::test {
namespace {

using matrix::SparseInverse;
using testing::HasSubstr;

class Preconditioners : public SolverTest {};

template <class T>
std::vector<double> times(const CsrView<T>& a, const std::vector<double>& x)
{
    std::vector<double> y(static_cast<std::size_t>(a.rows), 0.0);
    for (std::int64_t row = 0; row < a.rows; ++row) {
        for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
            y[static_cast<std::size_t>(row)] += double{a.values[k]} * x[static_cast<std::size_t>(a.col_idx[k])];
        }
    }
    return y;
}

template <class T>
std::vector<double> diagonal_of(const CsrMatrix<T>& a)
{
    std::vector<double> d(static_cast<std::size_t>(a.rows), 0.0);
    for (std::int64_t row = 0; row < a.rows; ++row) {
        for (auto k = a.row_ptr[static_cast<std::size_t>(row)]; k < a.row_ptr[static_cast<std::size_t>(row) + 1]; ++k) {
            d[static_cast<std::size_t>(row)] += a.col_idx[k] == row ? double{a.values[static_cast<std::size_t>(k)]} : 0;
        }
    }
    return d;
}

/// z = M r, through a sequence.
template <class T>
std::vector<T> applied(const Runtime& runtime, const DistributedMatrix<T>& matrix, Preconditioner<T>& m,
                       const std::vector<T>& r, bool of_transpose = false, Order order = Order::matrix)
{
    auto in = matrix.make_y(order);
    const auto out = matrix.make_y(order);
    in.upload(r.data());
    const Scalars scalars(runtime);
    Sequence sequence(scalars);
    const Vec<T> z(out);
    const Vec<T> from(in);
    if (of_transpose) {
        m.append_transposed(sequence, z, from);
    } else {
        m.append(sequence, z, from);
    }
    sequence.run();
    std::vector<T> result(r.size());
    out.download(result.data());
    return result;
}

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<double>& expected, double factor, const std::string& what)
{
    double largest = 0;
    for (const double value : expected) {
        largest = std::max(largest, std::fabs(value));
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(double{got[i]}, expected[i], factor * std::numeric_limits<T>::epsilon() * largest)
            << what << ", entry " << i;
    }
}

/// z of the solves with the factors of each device's block, one after the other on the host.
template <class T>
std::vector<double> schwarz_reference(const CsrMatrix<T>& a, std::span<const std::int64_t> slices, bool symmetric,
                                      const std::vector<T>& r, int fill_level = 0)
{
    std::vector<T> z(r);
    for (std::size_t rank = 0; rank + 1 < slices.size(); ++rank) {
        auto block = matrix::square_block(a.view(), slices[rank], slices[rank + 1]);
        matrix::add_fill(block, fill_level);
        const auto status = symmetric ? matrix::factor_ic0(block) : matrix::factor_ilu0(block);
        EXPECT_TRUE(status.complete);
        using matrix::Triangle;
        T* const own = z.data() + slices[rank];
        matrix::solve_reference(matrix::level_triangle(block, symmetric ? Triangle::lower : Triangle::unit_lower), own,
                                own);
        matrix::solve_reference(matrix::level_triangle(block, symmetric ? Triangle::transposed_lower : Triangle::upper),
                                own, own);
    }
    return {z.begin(), z.end()};
}

template <class T>
std::vector<double> blocks_reference(const CsrMatrix<T>& a, std::span<const std::int64_t> slices, int size,
                                     const std::vector<T>& r)
{
    std::vector<double> z(r.size(), 0.0);
    for (std::size_t rank = 0; rank + 1 < slices.size(); ++rank) {
        const auto inverses = matrix::block_inverses(a.view(), size, slices[rank], slices[rank + 1]);
        for (std::int64_t i = slices[rank]; i < slices[rank + 1]; ++i) {
            const std::int64_t block = (i - slices[rank]) / size;
            const std::int64_t first = slices[rank] + block * size;
            for (std::int64_t j = first; j < std::min(first + size, slices[rank + 1]); ++j) {
                const T entry =
                    inverses.blocks[static_cast<std::size_t>((block * size + j - first) * size + i - first)];
                z[static_cast<std::size_t>(i)] += double{entry} * double{r[static_cast<std::size_t>(j)]};
            }
        }
    }
    return z;
}

template <class T>
CsrMatrix<T> sparse_inverse(const CsrMatrix<T>& a, SparseInverse kind, int power)
{
    auto m = matrix::inverse_pattern(a.view(), kind, {.power = power});
    matrix::fill_inverse(a.view(), kind, m);
    return m;
}

template <class T>
std::vector<double> times_inverse(const CsrMatrix<T>& m, SparseInverse kind, const std::vector<T>& r, bool of_transpose)
{
    const auto transpose = transposed(m.view());
    std::vector<double> z(r.begin(), r.end());
    if (kind == SparseInverse::fsai) {
        return times(transpose.view(), times(m.view(), z));
    }
    return times(of_transpose ? transpose.view() : m.view(), z);
}

template <class T>
void compare_with_references(Runtime& runtime)
{
    constexpr double factor = 400;  // of rows with few entries, and solves of some dozen levels
    // The same on every machine, and made for the first: a least-squares problem for each row.
    static std::map<std::tuple<bool, SparseInverse, int>, CsrMatrix<T>> inverses;
    for (const bool symmetric : {true, false}) {
        const auto a = symmetric ? definite<T>(9) : lopsided<T>(9);
        DistributeOptions distribute;
        distribute.transposed = true;
        const auto matrix = runtime.distribute(a.view(), distribute);
        const auto r = random_vector<T>(a.rows, 3);
        const auto slices = matrix.make_y();
        const auto made = [&](const char* name, const PreconditionerOptions& options = {}) {
            auto m = make_preconditioner(matrix, name, options);
            EXPECT_EQ(m->name(), name);
            EXPECT_EQ(m->report().name, name);
            EXPECT_GT(m->report().device_bytes, 0) << name;
            EXPECT_GT(m->report().seconds, 0) << name;
            return m;
        };
        const auto of = [&](const char* name, const PreconditionerOptions& options = {}) {
            return applied(runtime, matrix, *made(name, options), r);
        };
        const auto expect_inverse = [&](const char* name, SparseInverse kind, int power) {
            auto& inverse = inverses[{symmetric, kind, power}];
            if (inverse.rows == 0) {
                inverse = sparse_inverse(a, kind, power);
            }
            const auto m = made(name, {.pattern_power = std::max(power, 1)});
            for (const bool transpose : {false, true}) {
                expect_near(applied(runtime, matrix, *m, r, transpose), times_inverse(inverse, kind, r, transpose),
                            factor, name);
            }
        };
        auto divided = diagonal_of(a);
        for (std::size_t i = 0; i < r.size(); ++i) {
            divided[i] = double{r[i]} / divided[i];
        }
        expect_near(of("jacobi"), divided, 4, "jacobi");
        for (const int size : {1, 3, 8, 32}) {
            expect_near(of("block-jacobi", {.block_size = size}), blocks_reference(a, slices.offsets(), size, r),
                        factor, "block-jacobi");
        }
        expect_inverse("spai-0", SparseInverse::spai, 0);
        for (const int power : {1, 2}) {
            expect_inverse("spai", SparseInverse::spai, power);
            expect_inverse("isai", SparseInverse::isai, power);
        }
        expect_near(of("schwarz-ilu0"), schwarz_reference(a, slices.offsets(), false, r), factor, "schwarz-ilu0");
        for (const int level : {0, 1, 3}) {
            expect_near(of("schwarz-iluk", {.fill_level = level}),
                        schwarz_reference(a, slices.offsets(), false, r, level), factor, "schwarz-iluk");
        }
        if (symmetric) {
            expect_inverse("fsai", SparseInverse::fsai, 1);
            expect_near(of("schwarz-ic0"), schwarz_reference(a, slices.offsets(), true, r), factor, "schwarz-ic0");
            expect_near(applied(runtime, matrix, *made("schwarz-ic0"), r, true),
                        schwarz_reference(a, slices.offsets(), true, r), factor, "its transpose");
        }
        // Of degree 0 the polynomial is a number times the inverse of the diagonal.
        const auto constant = of("polynomial", {.degree = 0});
        double ratio = double{constant[0]} / divided[0];
        for (std::size_t i = 0; i < r.size(); ++i) {
            divided[i] *= ratio;
        }
        expect_near(constant, divided, factor, "polynomial");
    }
}

TEST_P(Preconditioners, GiveWhatTheirReferencesGive)
{
    compare_with_references<double>(*runtime_);
    compare_with_references<float>(*runtime_);
}

TEST_P(Preconditioners, PolynomialsAreSymmetricAndComeAsCloseAsTheirDegreeSays)
{
    const auto a = definite<double>(8);
    DistributeOptions distribute;
    distribute.transposed = true;
    const auto matrix = runtime_->distribute(a.view(), distribute);
    const auto u = random_vector<double>(a.rows, 3);
    const auto v = random_vector<double>(a.rows, 4);
    const std::vector<double> x(u);
    const std::vector<double> b = times(a.view(), x);
    // The eigenvalues of the matrix divided by its diagonal are 1 - cos(k pi / 9) and means of these.
    constexpr double ratio = 60;
    constexpr double sigma = (1 + 1 / ratio) / (1 - 1 / ratio);
    for (const int degree : {0, 2, 5, 12}) {
        const auto m = make_preconditioner(matrix, "polynomial", {.degree = degree, .eigenvalue_ratio = ratio});
        const auto mu = applied(*runtime_, matrix, *m, u);
        const auto mv = applied(*runtime_, matrix, *m, v);
        double umv = 0;
        double vmu = 0;
        double umu = 0;
        for (std::size_t i = 0; i < u.size(); ++i) {
            umv += u[i] * mv[i];
            vmu += v[i] * mu[i];
            umu += u[i] * mu[i];
        }
        EXPECT_NEAR(umv, vmu, 1e-12 * umu);
        EXPECT_GT(umu, 0);
        expect_near(applied(*runtime_, matrix, *m, u, true), mu, 1000, "of the transpose");
        const auto z = applied(*runtime_, matrix, *m, b);
        const auto d = diagonal_of(a);
        double error = 0;  // in the norm in which D^-1 A is symmetric
        double size = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            error += d[i] * (z[i] - x[i]) * (z[i] - x[i]);
            size += d[i] * x[i] * x[i];
        }
        EXPECT_LE(std::sqrt(error / size), 1.0 / std::cosh((degree + 1) * std::acosh(sigma)));
    }
}

/// Conjugate gradients of a definite matrix.
template <class T>
SolveResult solve(const DistributedMatrix<T>& matrix, const std::vector<T>& b, const std::string& name,
                  std::shared_ptr<Preconditioner<T>> own = nullptr)
{
    SolverOptions options;
    options.tolerance = sizeof(T) == 8 ? 1e-9 : 1e-4;
    options.preconditioner = name;
    Solver<T> solver(matrix, options, std::move(own));
    std::vector<T> x(b.size(), T{0});
    return solver.solve(b.data(), x.data());
}

template <class T>
void expect_fewer_iterations(Runtime& runtime)
{
    const auto a = definite<T>(12);
    const auto matrix = runtime.distribute(a.view());
    const auto b = random_vector<T>(a.rows, 4);
    const SolveResult without = solve(matrix, b, "none");
    for (const PreconditionerInfo& info : list_preconditioners()) {
        if (!info.definite || info.name == "none") {
            continue;
        }
        const SolveResult with = solve(matrix, b, std::string(info.name));
        EXPECT_EQ(with.outcome, Outcome::converged) << info.name << ": " << with.reason;
        EXPECT_LT(with.iterations, without.iterations) << info.name;
    }
    const std::vector<double> diagonal = diagonal_of(a);
    const auto offsets = matrix.make_y();
    const auto scale = [&](const DeviceCall& call, std::span<const T> r, std::span<T> z) {
        for (std::size_t i = 0; i < r.size(); ++i) {
            const auto row = static_cast<std::size_t>(offsets.offsets()[static_cast<std::size_t>(call.device)]) + i;
            z[i] = static_cast<T>(double{r[i]} / diagonal[row]);
        }
    };
    if (runtime.devices().front().kind == DeviceKind::host) {
        const auto user = make_preconditioner(matrix, scale);
        EXPECT_EQ(user->name(), "user");
        const SolveResult own = solve<T>(matrix, b, "none", user);
        EXPECT_EQ(own.outcome, Outcome::converged) << own.reason;
        EXPECT_NEAR(static_cast<double>(own.iterations), static_cast<double>(solve(matrix, b, "jacobi").iterations), 1);
    }
}

TEST_P(Preconditioners, TakeFewerIterations)
{
    expect_fewer_iterations<double>(*runtime_);
    expect_fewer_iterations<float>(*runtime_);
}

TEST_P(Preconditioners, RenewedOnesHaveTheBitsOfNewOnes)
{
    auto a = definite<double>(9);
    DistributeOptions options;
    options.determinism = Determinism::run;
    auto matrix = runtime_->distribute(a.view(), options);
    const auto r = random_vector<double>(a.rows, 3);
    std::vector<std::shared_ptr<Preconditioner<double>>> made;
    std::vector<std::vector<double>> old;
    for (const PreconditionerInfo& info : list_preconditioners().subspan(1)) {
        // Products of sparse matrices, of which multigrid is made, add in no fixed order on GPUs.
        if (GetParam().gpus > 0 && info.name.find("amg") != std::string_view::npos) {
            EXPECT_THAT(usage_message([&] { static_cast<void>(make_preconditioner(matrix, std::string(info.name))); }),
                        HasSubstr("determinism \"run\""));
            continue;
        }
        made.push_back(make_preconditioner(matrix, std::string(info.name)));
        old.push_back(applied(*runtime_, matrix, *made.back(), r));
    }
    for (std::int64_t row = 0; row < a.rows; ++row) {
        for (auto k = a.row_ptr[static_cast<std::size_t>(row)]; k < a.row_ptr[static_cast<std::size_t>(row) + 1]; ++k) {
            a.values[static_cast<std::size_t>(k)] *= a.col_idx[k] == row ? 1.5 : 1.25;
        }
    }
    matrix.update_values(a.values.data());
    for (std::size_t i = 0; i < made.size(); ++i) {
        made[i]->renew();
        const auto renewed = applied(*runtime_, matrix, *made[i], r);
        const auto anew = make_preconditioner(matrix, made[i]->name());
        EXPECT_EQ(renewed, applied(*runtime_, matrix, *anew, r)) << made[i]->name();
        EXPECT_NE(renewed, old[i]) << made[i]->name();
    }
}

TEST_P(Preconditioners, TakeVectorsInTheOrderOfTheKernel)
{
    const auto a = definite<double>(12);
    DistributeOptions options;
    options.kernel = GetParam().gpus > 0 ? "sell-reordered" : "auto";
    const auto matrix = runtime_->distribute(a.view(), options);
    const auto r = random_vector<double>(a.rows, 3);
    for (const PreconditionerInfo& info : list_preconditioners().subspan(1)) {
        const auto m = make_preconditioner(matrix, std::string(info.name));
        const auto plain = applied(*runtime_, matrix, *m, r);
        if (m->takes_kernel_order() || matrix.make_y(Order::kernel).order() == Order::matrix) {
            const auto in_order = applied(*runtime_, matrix, *m, r, false, Order::kernel);
            expect_near(in_order, plain, 1000, std::string(info.name));
        } else {
            EXPECT_THAT(usage_message([&] { applied(*runtime_, matrix, *m, r, false, Order::kernel); }),
                        HasSubstr("Order::matrix"));
        }
        const SolveResult solved = info.definite ? solve(matrix, r, std::string(info.name)) : SolveResult{};
        EXPECT_EQ(solved.converged(), info.definite) << info.name << ": " << solved.reason;
    }
}

TEST_P(Preconditioners, AreMadeForEveryFormatAndNumberOfDevices)
{
    const auto a = definite<double>(8);
    const auto csc = to_csc(a.view());
    const auto coo = shuffled(to_coo(a.view()));
    const auto b = random_vector<double>(a.rows, 3);
    DistributeOptions one;
    one.devices = 1;
    DistributeOptions split;
    split.unsorted = Unsorted::split;
    DistributeOptions cut_rows;
    cut_rows.alignment = RowAlignment::exact;
    DistributeOptions streamed;
    streamed.mode = Mode::streamed;
    const DistributedMatrix<double> matrices[] = {
        runtime_->distribute(a.view(), one), runtime_->distribute(csc.view()), runtime_->distribute(coo.view(), split),
        runtime_->distribute(a.view(), cut_rows), runtime_->distribute(a.view(), streamed)};
    std::map<std::string, std::vector<double>> expected;
    for (const auto& [name, kind] : {std::pair("spai", SparseInverse::spai), std::pair("isai", SparseInverse::isai)}) {
        expected[name] = times_inverse(sparse_inverse(a, kind, 1), kind, b, false);
    }
    for (const auto& matrix : matrices) {
        for (const PreconditionerInfo& info : list_preconditioners()) {
            if (info.definite) {
                const SolveResult result = solve(matrix, b, std::string(info.name));
                EXPECT_TRUE(result.converged()) << info.name << ": " << result.reason;
            }
        }
        for (const char* const name : {"spai", "isai"}) {
            const auto m = make_preconditioner(matrix, name);
            expect_near(applied(*runtime_, matrix, *m, b), expected.at(name), 400, name);
        }
    }
}

TEST_P(Preconditioners, RefuseByName)
{
    auto a = definite<double>(6);
    auto matrix = runtime_->distribute(a.view());
    const auto message = [&](const char* name, const PreconditionerOptions& options = {}) {
        return usage_message([&] { (void)make_preconditioner(matrix, name, options); });
    };
    EXPECT_THAT(message("jacobbi"), HasSubstr("jacobi"));
    EXPECT_THAT(message("block-jacobi", {.block_size = 33}), HasSubstr("block_size is 33"));
    EXPECT_THAT(message("spai", {.pattern_power = -1}), HasSubstr("pattern_power is -1"));
    EXPECT_THAT(message("fsai", {.most_entries = 0}), HasSubstr("most_entries is 0"));
    EXPECT_THAT(message("polynomial", {.degree = 65}), HasSubstr("degree is 65"));
    EXPECT_THAT(message("polynomial", {.eigenvalue_ratio = 1}), HasSubstr("eigenvalue_ratio is 1"));
    EXPECT_THAT(message("schwarz-iluk", {.fill_level = 17}), HasSubstr("fill_level is 17"));
    EXPECT_EQ(make_preconditioner(matrix, "none"), nullptr);

    const auto wide = with_row_lengths<double>({2, 1, 2}, 4);
    const auto rectangular = runtime_->distribute(wide.view());
    EXPECT_THAT(usage_message([&] { (void)make_preconditioner(rectangular, "jacobi"); }), HasSubstr("3 x 4"));

    const auto m = make_preconditioner(matrix, "schwarz-ilu0");
    const Scalars scalars(*runtime_);
    Sequence sequence(scalars);
    const Vec<double> r(matrix.make_y());
    EXPECT_THAT(usage_message([&] { m->append(sequence, r, r); }), HasSubstr("schwarz-ilu0"));
    EXPECT_THAT(usage_message([&] { m->append_transposed(sequence, Vec<double>(matrix.make_y()), r); }),
                HasSubstr("transposed"));

    // An indefinite matrix has no Cholesky factors; what was made before stays as it is.
    const auto cholesky = make_preconditioner(matrix, "schwarz-ic0");
    const auto b = random_vector<double>(a.rows, 3);
    const auto before = applied(*runtime_, matrix, *cholesky, b);
    auto indefinite = a;
    for (double& value : indefinite.values) {
        value = -value;
    }
    matrix.update_values(indefinite.values.data());
    EXPECT_THAT(usage_message([&] { cholesky->renew(); }), HasSubstr("not positive definite"));
    EXPECT_EQ(applied(*runtime_, matrix, *cholesky, b), before);
    EXPECT_THAT(message("schwarz-ic0"), HasSubstr("schwarz-ic0"));
    matrix.update_values(a.values.data());
    cholesky->renew();
    EXPECT_EQ(applied(*runtime_, matrix, *cholesky, b), before);
}

TEST_P(Preconditioners, NameWhatTheyReplaced)
{
    auto a = definite<double>(6);
    for (auto k = a.row_ptr[7]; k < a.row_ptr[8]; ++k) {
        a.values[static_cast<std::size_t>(k)] = 0;
    }
    const auto matrix = runtime_->distribute(a.view());
    for (const char* const name : {"jacobi", "block-jacobi", "spai", "polynomial"}) {
        const auto notes = make_preconditioner(matrix, name)->report().notes;
        EXPECT_THAT(notes, testing::Contains(testing::AnyOf(HasSubstr("zero"), HasSubstr("singular")))) << name;
    }
}

TEST_P(Preconditioners, TakeEveryShape)
{
    // No rows, fewer than devices, as many as fill a block, empty ones, and one that is full.
    const std::vector<std::vector<std::int64_t>> shapes{{},
                                                        {1},
                                                        {2, 1},
                                                        {0, 3, 0, 1, 2, 4, 0, 1},
                                                        {0, 0, 0, 40, 1, 2, 3, 0, 0, 5, 1, 1, 0},
                                                        std::vector<std::int64_t>(65, 3)};
    for (const auto& lengths : shapes) {
        const auto size = static_cast<std::int64_t>(lengths.size());
        const CsrMatrix<double> a = plus_identity<double>(with_row_lengths<double>(lengths, size).view());
        const auto matrix = runtime_->distribute(a.view());
        const auto r = random_vector<double>(a.rows, 3);
        for (const PreconditionerInfo& info : list_preconditioners().subspan(1)) {
            try {
                const auto m = make_preconditioner(matrix, std::string(info.name), {.most_entries = 16});
                EXPECT_EQ(applied(*runtime_, matrix, *m, r).size(), r.size());
            } catch (const Error& e) {
                EXPECT_THAT(std::string(e.what()), HasSubstr(std::string(info.name))) << size << " rows";
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, Preconditioners, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
