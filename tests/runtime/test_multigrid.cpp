#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/rmsp.hpp>

#include "multigrid_fixtures.hpp"

namespace rmsp::test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class Multigrid : public SolverTest {};

TEST_P(Multigrid, TakesAboutAsManyIterationsWhateverTheSize)
{
    for (const char* const name : {"amg", "sa-amg"}) {
        std::vector<std::int64_t> iterations;
        for (const std::int64_t n : {6, 10, 16}) {
            const auto a = poisson<double>(n);
            const auto result = solve(*runtime_, a, random_vector<double>(a.rows, 3), by(name, small()));
            EXPECT_TRUE(result.converged()) << name << ": " << result.reason;
            iterations.push_back(result.iterations);
        }
        EXPECT_LE(iterations.back(), 25) << name;
        EXPECT_LE(static_cast<double>(iterations[2]), 1.3 * static_cast<double>(iterations[1]) + 1) << name;
    }
}

TEST_P(Multigrid, TakesTheSameIterationsOnAnyNumberOfDevices)
{
    const auto a = poisson<double>(11);
    const auto b = random_vector<double>(a.rows, 3);
    Runtime one({.devices = "host:1"});
    for (const char* const name : {"amg", "sa-amg"}) {
        const auto alone = solve(one, a, b, by(name, small()));
        const auto here = solve(*runtime_, a, b, by(name, small()));
        EXPECT_EQ(here.iterations, alone.iterations) << name;
        const auto matrix = runtime_->distribute(a.view());
        const auto levels =
            make_preconditioner<double>(matrix, name, by(name, small()).preconditioner_options)->report().levels;
        const auto alone_matrix = one.distribute(a.view());
        const auto alone_levels =
            make_preconditioner<double>(alone_matrix, name, by(name, small()).preconditioner_options)->report().levels;
        ASSERT_EQ(levels.size(), alone_levels.size());
        for (std::size_t i = 0; i < levels.size(); ++i) {
            EXPECT_EQ(levels[i].rows, alone_levels[i].rows);
            EXPECT_EQ(levels[i].nonzeros, alone_levels[i].nonzeros);
        }
    }
}

TEST_P(Multigrid, IsSetUpOnTheGpusWhereverRowsAre)
{
    if (GetParam().gpus == 0) {
        GTEST_SKIP() << "on host devices P is made on the host";
    }
    const auto a = poisson<double>(11);
    auto matrix = runtime_->distribute(a.view());
    for (const char* const name : {"amg", "sa-amg"}) {
        const auto preconditioner = make_preconditioner<double>(matrix, name, by(name, small()).preconditioner_options);
        EXPECT_EQ(preconditioner->report().host_bytes, 0) << name << ": P was made on the host";
        preconditioner->renew();
        EXPECT_EQ(preconditioner->report().host_bytes, 0) << name;
    }
}

TEST_P(Multigrid, ConvergesWithEveryOption)
{
    const auto a = poisson<double>(8);
    const auto b = random_vector<double>(a.rows, 3);
    for (const char* const name : {"amg", "sa-amg"}) {
        const std::vector<std::string> interpolations = name == std::string("amg")
                                                            ? std::vector<std::string>{"direct", "extended"}
                                                            : std::vector<std::string>{"smoothed", "tentative"};
        for (const std::string& interpolation : interpolations) {
            MultigridOptions options = small();
            options.interpolation = interpolation;
            const auto result = solve(*runtime_, a, b, by(name, options));
            EXPECT_TRUE(result.converged()) << interpolation << ": " << result.reason;
            EXPECT_LE(result.iterations, 40) << interpolation;
        }
        const auto v = solve(*runtime_, a, b, by(name, small()));
        for (const char* const cycle : {"w", "f"}) {
            MultigridOptions options = small();
            options.cycle = cycle;
            options.coarse_rows = 5;
            const auto result = solve(*runtime_, a, b, by(name, options, *cycle == 'f' ? "fcg" : "cg"));
            EXPECT_TRUE(result.converged()) << cycle << ": " << result.reason;
            EXPECT_LE(result.iterations, v.iterations + 2) << cycle;
        }
        for (const char* const smoother : {"jacobi", "spai-0", "polynomial", "block-jacobi"}) {
            MultigridOptions options = small();
            options.smoother = smoother;
            const auto result = solve(*runtime_, a, b, by(name, options, "bicgstab"));
            EXPECT_TRUE(result.converged()) << smoother << ": " << result.reason;
            EXPECT_LE(result.iterations, 25) << smoother;
        }
        MultigridOptions two = small();
        two.sweeps = 2;
        EXPECT_LT(solve(*runtime_, a, b, by(name, two)).iterations, v.iterations);
    }
}

TEST_P(Multigrid, MultipliesInSlabsWhereMemoryIsShort)
{
    const auto a = poisson<double>(16);
    const auto b = random_vector<double>(a.rows, 3);
    const auto options = by("sa-amg", small());
    const auto plenty = solve(*runtime_, a, b, options);
    std::int64_t kept = 0;
    {
        const auto matrix = runtime_->distribute(a.view());
        const auto preconditioner = make_preconditioner<double>(matrix, "sa-amg", options.preconditioner_options);
        for (const auto& device : runtime_->metrics().devices) {
            kept = std::max(kept, device.resident_bytes);
        }
    }
    bool in_slabs = false;
    for (std::int64_t percent = 280; percent >= 140; percent -= 20) {
        auto short_of_memory = options_for(GetParam());
        short_of_memory.memory_limit = kept * percent / 100;
        if (runtime_->devices().size() > 1) {
            // What transports need for their first test, of which each device has 768 KiB.
            short_of_memory.memory_limit += std::int64_t{GetParam().gpus > 1 ? 4 : 1} << 20;
        }
        Runtime runtime(short_of_memory);
        try {
            const auto matrix = runtime.distribute(a.view());
            const auto preconditioner = make_preconditioner<double>(matrix, "sa-amg", options.preconditioner_options);
            Solver<double> solver(matrix, options, preconditioner);
            for (int round = 0; round < 2; ++round) {
                std::vector<double> x(b.size(), 0.0);
                EXPECT_EQ(solver.solve(b.data(), x.data()).iterations, plenty.iterations) << percent;
                for (const std::string& note : preconditioner->report().notes) {
                    in_slabs = in_slabs || note.find("slabs of rows") != std::string::npos;
                }
                solver.renew();
            }
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
        }
    }
    EXPECT_TRUE(in_slabs || runtime_->devices().size() > 1);
}

TEST_P(Multigrid, SolvesInFloat)
{
    const auto a = poisson<float>(10);
    SolverOptions options = by("amg", small());
    options.tolerance = 1e-4;
    const auto result = solve(*runtime_, a, random_vector<float>(a.rows, 3), options);
    EXPECT_TRUE(result.converged()) << result.reason;
    EXPECT_LE(result.iterations, 12);
}

TEST_P(Multigrid, RenewedIsAsMadeAnew)
{
    auto a = poisson<double>(10);
    const auto b = random_vector<double>(a.rows, 3);
    for (const char* const name : {"amg", "sa-amg"}) {
        auto matrix = runtime_->distribute(a.view());
        Solver<double> solver(matrix, by(name, small()));
        std::vector<double> x(b.size(), 0.0);
        const auto before = solver.solve(b.data(), x.data());
        // The same matrix but for a factor: strength and interpolation are the same.
        auto scaled = a;
        for (double& value : scaled.values) {
            value *= 4;
        }
        matrix.update_values(scaled.values.data());
        solver.renew();
        std::vector<double> renewed(b.size(), 0.0);
        const auto after = solver.solve(b.data(), renewed.data());
        EXPECT_EQ(after.iterations, before.iterations) << name;
        EXPECT_TRUE(after.converged());
        for (std::size_t i = 0; i < x.size(); ++i) {
            ASSERT_NEAR(4 * renewed[i], x[i], 1e-6);
        }
        // Other values: as a hierarchy of these values from the start, whose structure is the same here.
        for (std::size_t k = 0; k < a.values.size(); ++k) {
            scaled.values[k] = a.values[k];
        }
        for (std::int64_t i = 0; i < a.rows; ++i) {
            for (auto k = a.row_ptr[static_cast<std::size_t>(i)]; k < a.row_ptr[static_cast<std::size_t>(i) + 1]; ++k) {
                if (a.col_idx[k] == i) {
                    scaled.values[static_cast<std::size_t>(k)] += 0.5;
                }
            }
        }
        matrix.update_values(scaled.values.data());
        solver.renew();
        std::vector<double> again(b.size(), 0.0);
        const auto other = solver.solve(b.data(), again.data());
        const auto fresh = solve(*runtime_, scaled, b, by(name, small()));
        EXPECT_EQ(other.iterations, fresh.iterations) << name;
        EXPECT_LT(other.iterations, before.iterations);
    }
}

TEST_P(Multigrid, KeepsTheInterpolationIfAskedTo)
{
    auto a = poisson<double>(10);
    const auto b = random_vector<double>(a.rows, 3);
    auto matrix = runtime_->distribute(a.view());
    MultigridOptions options = small();
    options.keep_interpolation = true;
    const auto preconditioner = make_preconditioner<double>(matrix, "amg", by("amg", options).preconditioner_options);
    for (double& value : a.values) {
        value *= 2;
    }
    matrix.update_values(a.values.data());
    preconditioner->renew();
    for (const auto& phase : preconditioner->report().phases) {
        EXPECT_NE(phase.name, "interpolate");
    }
    Solver<double> solver(matrix, by("amg", options), preconditioner);
    std::vector<double> x(b.size(), 0.0);
    const auto result = solver.solve(b.data(), x.data());
    EXPECT_TRUE(result.converged());
    EXPECT_EQ(result.iterations, solve(*runtime_, a, b, by("amg", options)).iterations);
}

TEST_P(Multigrid, MakesLevelsAnewWhereConvergenceHasDecayed)
{
    // Strong along x, and then along y: what was coarsened along x is of no use.
    const auto along_x = anisotropic(32, 1000);
    auto along_y = anisotropic(32, 0.001);
    for (double& value : along_y.values) {
        value *= 1000;
    }
    const auto b = random_vector<double>(along_x.rows, 3);
    for (const char* const name : {"amg", "sa-amg"}) {
        for (const double factor : {0.0, 1.5}) {
            MultigridOptions options = small();
            options.rebuild_factor = factor;
            auto matrix = runtime_->distribute(along_x.view());
            const auto preconditioner =
                make_preconditioner<double>(matrix, name, by(name, options).preconditioner_options);
            Solver<double> solver(matrix, by(name, options), preconditioner);
            Solver<double> another(matrix, by(name, options), preconditioner);
            const auto iterations = [&](Solver<double>& with) {
                std::vector<double> x(b.size(), 0.0);
                const SolveResult result = with.solve(b.data(), x.data());
                return result.converged() ? result.iterations : std::int64_t{1000};
            };
            const std::int64_t first = iterations(solver);
            matrix.update_values(along_y.values.data());
            solver.renew();
            const std::int64_t kept = iterations(solver);
            EXPECT_GT(kept, 2 * first) << name;
            EXPECT_THAT(preconditioner->report().notes, Not(Contains(HasSubstr("made anew")))) << name;
            solver.renew();
            const auto fresh = solve(*runtime_, along_y, b, by(name, options));
            if (factor == 0) {
                EXPECT_EQ(iterations(solver), kept) << name;
                continue;
            }
            EXPECT_THAT(preconditioner->report().notes, Contains(HasSubstr("made anew"))) << name;
            EXPECT_EQ(iterations(solver), fresh.iterations) << name;
            EXPECT_EQ(iterations(another), fresh.iterations) << name;
            // And no more, as long as it converges.
            solver.renew();
            EXPECT_THAT(preconditioner->report().notes, Not(Contains(HasSubstr("made anew")))) << name;
            EXPECT_EQ(iterations(solver), fresh.iterations) << name;
        }
    }
}

TEST_P(Multigrid, OfAnisotropyAndJumps)
{
    const auto stretched = anisotropic(30, 1000);
    const auto jumps = jumping(12, 1e6);
    for (const char* const name : {"amg", "sa-amg"}) {
        for (const auto& a : {stretched, jumps}) {
            const auto result = solve(*runtime_, a, random_vector<double>(a.rows, 3), by(name, small()));
            EXPECT_TRUE(result.converged()) << name << ": " << result.reason;
            EXPECT_LE(result.iterations, 60) << name;
        }
    }
}

TEST_P(Multigrid, OfAnUnsymmetricMatrix)
{
    const auto a = convection_diffusion<double>(12);
    for (const char* const name : {"amg", "sa-amg"}) {
        const auto result = solve(*runtime_, a, random_vector<double>(a.rows, 3), by(name, small(), "gmres"));
        EXPECT_TRUE(result.converged()) << name << ": " << result.reason;
        EXPECT_LE(result.iterations, 30) << name;
    }
}

TEST_P(Multigrid, OfASingularMatrixLeavesItsNullspaceOut)
{
    const auto a = stencil7<double>(11, 10, 9, {.values = ValueKind::laplace});
    auto b = random_vector<double>(a.rows, 3);
    double sum = 0;
    for (const double entry : b) {
        sum += entry;
    }
    for (double& entry : b) {
        entry -= sum / static_cast<double>(b.size());
    }
    for (const char* const name : {"amg", "sa-amg"}) {
        const auto result = solve(*runtime_, a, b, by(name, small()));
        EXPECT_TRUE(result.converged()) << name << ": " << result.reason;
        EXPECT_LE(result.iterations, 30) << name;
        const auto matrix = runtime_->distribute(a.view());
        const auto report =
            make_preconditioner<double>(matrix, name, by(name, small()).preconditioner_options)->report();
        ASSERT_FALSE(report.notes.empty()) << name;
        EXPECT_THAT(report.notes.front(), HasSubstr("singular"));
    }
}

TEST_P(Multigrid, SaysWhereCoarseningStalls)
{
    // A diagonal matrix has nothing to coarsen, and more rows than are inverted.
    CsrMatrix<double> a;
    a.rows = a.cols = 5000;
    HostVector<std::int32_t> columns;
    a.row_ptr.push_back(0);
    for (std::int32_t i = 0; i < 5000; ++i) {
        columns.push_back(i);
        a.values.push_back(1.0 + i % 7);
        a.row_ptr.push_back(i + 1);
    }
    a.col_idx = std::move(columns);
    for (const char* const name : {"amg", "sa-amg"}) {
        const auto matrix = runtime_->distribute(a.view());
        const auto preconditioner = make_preconditioner<double>(matrix, name);
        EXPECT_EQ(preconditioner->report().levels.size(), 1U);
        ASSERT_FALSE(preconditioner->report().notes.empty());
        EXPECT_THAT(preconditioner->report().notes.front(), HasSubstr("stalled at level 0"));
        EXPECT_TRUE(solve(*runtime_, a, random_vector<double>(a.rows, 3), by(name)).converged());
    }
}

TEST_P(Multigrid, OfBadMatricesEndsInAnOutcome)
{
    const auto good = poisson<double>(9);
    const auto b = random_vector<double>(good.rows, 3);
    for (const double bad : {0.0, -6.0, std::numeric_limits<double>::quiet_NaN()}) {
        auto a = good;
        for (std::int64_t i = 0; i < a.rows; i += 50) {
            for (auto k = a.row_ptr[static_cast<std::size_t>(i)]; k < a.row_ptr[static_cast<std::size_t>(i) + 1]; ++k) {
                if (a.col_idx[k] == i) {
                    a.values[static_cast<std::size_t>(k)] = bad;
                }
            }
        }
        for (const char* const name : {"amg", "sa-amg"}) {
            try {
                const auto result = solve(*runtime_, a, b, by(name, small()));
                EXPECT_NE(result.outcome, Outcome::converged) << bad;
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), ErrorCode::usage);
                EXPECT_THAT(error.what(), HasSubstr("not finite"));
            }
        }
    }
    // Rows of zeros: nothing is found for them, the rest is solved.
    auto a = good;
    auto with_zeros = b;
    for (std::int64_t i = 0; i < a.rows; ++i) {
        for (auto k = a.row_ptr[static_cast<std::size_t>(i)]; k < a.row_ptr[static_cast<std::size_t>(i) + 1]; ++k) {
            if (i % 50 == 0 || a.col_idx[k] % 50 == 0) {
                a.values[static_cast<std::size_t>(k)] = 0;
            }
        }
        with_zeros[static_cast<std::size_t>(i)] *= i % 50 == 0 ? 0 : 1;
    }
    for (const char* const name : {"amg", "sa-amg"}) {
        const auto result = solve(*runtime_, a, with_zeros, by(name, small()));
        EXPECT_TRUE(result.converged()) << name << ": " << result.reason;
    }
}

TEST_P(Multigrid, OfTheSmallestMatrices)
{
    for (const std::int64_t n : {0, 1, 2}) {
        const auto a = stencil7<double>(std::max<std::int64_t>(n, 1), 1, 1, {.values = ValueKind::poisson});
        CsrMatrix<double> empty;
        empty.row_ptr.push_back(0);
        empty.col_idx = HostVector<std::int32_t>();
        const auto& m = n == 0 ? empty : a;
        for (const char* const name : {"amg", "sa-amg"}) {
            const auto result = solve(*runtime_, m, random_vector<double>(m.rows, 3), by(name));
            EXPECT_TRUE(result.converged()) << n;
            EXPECT_LE(result.iterations, 1);
        }
    }
}

TEST_P(Multigrid, OfSeveralUnknownsANode)
{
    // Two equations that are coupled at each node.
    const auto scalar = poisson<double>(8);
    CsrMatrix<double> a;
    a.rows = a.cols = 2 * scalar.rows;
    a.row_ptr.push_back(0);
    HostVector<std::int32_t> columns;
    for (std::int64_t i = 0; i < a.rows; ++i) {
        for (auto k = scalar.row_ptr[static_cast<std::size_t>(i / 2)];
             k < scalar.row_ptr[static_cast<std::size_t>(i / 2) + 1]; ++k) {
            const std::int64_t j = scalar.col_idx[k];
            for (std::int64_t u = 0; u < 2; ++u) {
                const bool own = u == i % 2;
                if (own || j == i / 2) {
                    columns.push_back(static_cast<std::int32_t>(2 * j + u));
                    a.values.push_back(own ? scalar.values[static_cast<std::size_t>(k)] : 0.25);
                }
            }
        }
        a.row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
    }
    a.col_idx = std::move(columns);
    MultigridOptions options = small();
    options.unknowns = 2;
    const auto b = random_vector<double>(a.rows, 3);
    const auto result = solve(*runtime_, a, b, by("sa-amg", options));
    EXPECT_TRUE(result.converged()) << result.reason;
    EXPECT_LE(result.iterations, 25);
    // The same vectors, given by the caller.
    for (std::int64_t i = 0; i < a.rows; ++i) {
        options.near_nullspace.push_back(i % 2 == 0 ? 1 : 0);
        options.near_nullspace.push_back(i % 2 == 0 ? 0 : 1);
    }
    options.near_null_vectors = 2;
    EXPECT_EQ(solve(*runtime_, a, b, by("sa-amg", options)).iterations, result.iterations);
    options.near_nullspace.pop_back();
    EXPECT_THROW(solve(*runtime_, a, b, by("sa-amg", options)), Error);
}

TEST_P(Multigrid, RefusesBadOptions)
{
    const auto a = poisson<double>(4);
    const auto matrix = runtime_->distribute(a.view());
    const auto refuses = [&](const char* name, const auto& change) {
        PreconditionerOptions options;
        change(options.multigrid);
        EXPECT_THROW((void)make_preconditioner<double>(matrix, name, options), Error);
    };
    for (const char* const name : {"amg", "sa-amg"}) {
        refuses(name, [](auto& o) { o.threshold = 2; });
        refuses(name, [](auto& o) { o.interpolation = "best"; });
        refuses(name, [](auto& o) { o.cycle = "x"; });
        refuses(name, [](auto& o) { o.smoother = "amg"; });
        refuses(name, [](auto& o) { o.sweeps = 0; });
        refuses(name, [](auto& o) { o.coarse_rows = 5000; });
        refuses(name, [](auto& o) { o.levels = 0; });
    }
    refuses("amg", [](auto& o) { o.interpolation = "smoothed"; });
    refuses("sa-amg", [](auto& o) { o.interpolation = "direct"; });
    refuses("sa-amg", [](auto& o) { o.unknowns = 3; });
}

INSTANTIATE_TEST_SUITE_P(All, Multigrid, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
