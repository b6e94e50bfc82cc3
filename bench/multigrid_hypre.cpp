// hypre's BoomerAMG on the cases of bench_multigrid, with the settings that are closest to `amg`'s: PMIS, extended+i
// interpolation of 4 entries a row, l1-Jacobi, a last matrix of at most 256 rows; conjugate gradients, or GMRES. One
// process, threads by OMP_NUM_THREADS where hypre was built with OpenMP. hypre's headers bring MPI's.

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <HYPRE.h>
#include <HYPRE_krylov.h>
#include <HYPRE_parcsr_ls.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include <rmsp/rmsp.hpp>

#include "multigrid_cases.hpp"
#include "program.hpp"

namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct Options {
    std::vector<std::string> cases;
    int repeat = 3;
    double tolerance = 1e-8;
    std::string json;
};

void check(HYPRE_Int error, const char* what)
{
    if (error != 0) {
        throw rmsp::Error(rmsp::ErrorCode::internal, fmt::format("hypre: {} fails with error {}", what, error));
    }
}

/// A and two vectors as hypre holds them.
class System {
public:
    explicit System(const MultigridCase& problem) : rows_(static_cast<HYPRE_BigInt>(problem.a.rows))
    {
        const auto n = static_cast<HYPRE_Int>(rows_);
        std::vector<HYPRE_BigInt> numbers(static_cast<std::size_t>(n));
        std::vector<HYPRE_Int> counts(numbers.size());
        for (std::size_t row = 0; row < numbers.size(); ++row) {
            numbers[row] = static_cast<HYPRE_BigInt>(row);
            counts[row] = static_cast<HYPRE_Int>(problem.a.row_ptr[row + 1] - problem.a.row_ptr[row]);
        }
        std::vector<HYPRE_BigInt> columns(problem.a.values.size());
        for (std::size_t k = 0; k < columns.size(); ++k) {
            columns[k] = static_cast<HYPRE_BigInt>(problem.a.col_idx[static_cast<std::int64_t>(k)]);
        }
        check(HYPRE_IJMatrixCreate(MPI_COMM_SELF, 0, rows_ - 1, 0, rows_ - 1, &matrix_), "IJMatrixCreate");
        HYPRE_IJMatrixSetObjectType(matrix_, HYPRE_PARCSR);
        HYPRE_IJMatrixSetRowSizes(matrix_, counts.data());
        HYPRE_IJMatrixInitialize(matrix_);
        check(
            HYPRE_IJMatrixSetValues(matrix_, n, counts.data(), numbers.data(), columns.data(), problem.a.values.data()),
            "IJMatrixSetValues");
        check(HYPRE_IJMatrixAssemble(matrix_), "IJMatrixAssemble");
        void* object = nullptr;
        HYPRE_IJMatrixGetObject(matrix_, &object);
        a = static_cast<HYPRE_ParCSRMatrix>(object);
        b = vector(numbers, problem.b, b_);
        x = vector(numbers, std::vector<double>(problem.b.size(), 0.0), x_);
    }
    ~System()
    {
        HYPRE_IJMatrixDestroy(matrix_);
        HYPRE_IJVectorDestroy(b_);
        HYPRE_IJVectorDestroy(x_);
    }
    System(const System&) = delete;
    System& operator=(const System&) = delete;

    HYPRE_ParCSRMatrix a = nullptr;
    HYPRE_ParVector b = nullptr;
    HYPRE_ParVector x = nullptr;

private:
    HYPRE_ParVector vector(const std::vector<HYPRE_BigInt>& numbers, const std::vector<double>& entries,
                           HYPRE_IJVector& made) const
    {
        check(HYPRE_IJVectorCreate(MPI_COMM_SELF, 0, rows_ - 1, &made), "IJVectorCreate");
        HYPRE_IJVectorSetObjectType(made, HYPRE_PARCSR);
        HYPRE_IJVectorInitialize(made);
        HYPRE_IJVectorSetValues(made, static_cast<HYPRE_Int>(rows_), numbers.data(), entries.data());
        check(HYPRE_IJVectorAssemble(made), "IJVectorAssemble");
        void* object = nullptr;
        HYPRE_IJVectorGetObject(made, &object);
        return static_cast<HYPRE_ParVector>(object);
    }

    HYPRE_BigInt rows_;
    HYPRE_IJMatrix matrix_ = nullptr;
    HYPRE_IJVector b_ = nullptr;
    HYPRE_IJVector x_ = nullptr;
};

HYPRE_Solver boomer_amg()
{
    HYPRE_Solver amg = nullptr;
    HYPRE_BoomerAMGCreate(&amg);
    HYPRE_BoomerAMGSetCoarsenType(amg, 8);  // PMIS
    HYPRE_BoomerAMGSetInterpType(amg, 6);   // extended+i
    HYPRE_BoomerAMGSetPMaxElmts(amg, 4);
    HYPRE_BoomerAMGSetStrongThreshold(amg, 0.25);
    HYPRE_BoomerAMGSetMaxRowSum(amg, 1.0);  // every row is coarsened, as here
    HYPRE_BoomerAMGSetRelaxType(amg, 18);   // l1-Jacobi
    HYPRE_BoomerAMGSetNumSweeps(amg, 1);
    HYPRE_BoomerAMGSetCycleRelaxType(amg, 9, 3);  // the last matrix is factored
    HYPRE_BoomerAMGSetMaxCoarseSize(amg, 256);
    HYPRE_BoomerAMGSetTol(amg, 0.0);
    HYPRE_BoomerAMGSetMaxIter(amg, 1);
    HYPRE_BoomerAMGSetPrintLevel(amg, 0);
    return amg;
}

struct Found {
    double setup = 0;
    double solve = 0;
    HYPRE_Int iterations = 0;
    double residual = 0;
};

Found solve(const Options& options, const MultigridCase& problem, const System& system)
{
    constexpr HYPRE_Int most = 1000;
    const auto apply = reinterpret_cast<HYPRE_PtrToSolverFcn>(HYPRE_BoomerAMGSolve);
    const auto prepare = reinterpret_cast<HYPRE_PtrToSolverFcn>(HYPRE_BoomerAMGSetup);
    Found found;
    HYPRE_Solver amg = boomer_amg();
    HYPRE_Solver solver = nullptr;
    auto* const a = reinterpret_cast<HYPRE_Matrix>(system.a);
    auto* const b = reinterpret_cast<HYPRE_Vector>(system.b);
    auto* const x = reinterpret_cast<HYPRE_Vector>(system.x);
    HYPRE_ParVectorSetConstantValues(system.x, 0.0);
    const auto timed = [](const auto& f) {
        const auto began = Clock::now();
        f();
        return seconds_since(began);
    };
    if (problem.symmetric) {
        HYPRE_ParCSRPCGCreate(MPI_COMM_SELF, &solver);
        HYPRE_PCGSetTwoNorm(solver, 1);
        HYPRE_PCGSetTol(solver, options.tolerance);
        HYPRE_PCGSetMaxIter(solver, most);
        HYPRE_PCGSetPrecond(solver, apply, prepare, amg);
        found.setup = timed([&] { HYPRE_PCGSetup(solver, a, b, x); });
        found.solve = timed([&] { HYPRE_PCGSolve(solver, a, b, x); });
        HYPRE_PCGGetNumIterations(solver, &found.iterations);
        HYPRE_PCGGetFinalRelativeResidualNorm(solver, &found.residual);
        HYPRE_ParCSRPCGDestroy(solver);
    } else {
        HYPRE_ParCSRGMRESCreate(MPI_COMM_SELF, &solver);
        HYPRE_GMRESSetKDim(solver, 30);
        HYPRE_GMRESSetTol(solver, options.tolerance);
        HYPRE_GMRESSetMaxIter(solver, most);
        HYPRE_GMRESSetPrecond(solver, apply, prepare, amg);
        found.setup = timed([&] { HYPRE_GMRESSetup(solver, a, b, x); });
        found.solve = timed([&] { HYPRE_GMRESSolve(solver, a, b, x); });
        HYPRE_GMRESGetNumIterations(solver, &found.iterations);
        HYPRE_GMRESGetFinalRelativeResidualNorm(solver, &found.residual);
        HYPRE_ParCSRGMRESDestroy(solver);
    }
    HYPRE_BoomerAMGDestroy(amg);
    HYPRE_ClearAllErrors();
    return found;
}

Json measured(const Options& options, const std::string& text)
{
    const MultigridCase problem = make_multigrid_case(text);
    const System system(problem);
    Found best;
    for (int i = 0; i < options.repeat; ++i) {
        const Found found = solve(options, problem, system);
        if (i == 0) {
            best = found;
        }
        best.setup = std::min(best.setup, found.setup);
        best.solve = std::min(best.solve, found.solve);
    }
    say("{:16} hypre    set-up {:.3f} s, solve {:.3f} s, {} iterations, {:.2g}", text, best.setup, best.solve,
        best.iterations, best.residual);
    return {{"name", text + "/hypre"},
            {"case", text},
            {"preconditioner", "BoomerAMG"},
            {"method", problem.symmetric ? "cg" : "gmres"},
            {"tolerance", options.tolerance},
            {"rows", problem.a.rows},
            {"nonzeros", problem.a.nnz()},
            {"setup_seconds", {{"least", best.setup}}},
            {"solve_seconds", {{"least", best.solve}}},
            {"solver_iterations", best.iterations},
            {"relative_residual", best.residual}};
}

int run(const Options& options, const char* executable)
{
    HYPRE_Init();
    Json results = Json::array();
    for (const std::string& text : options.cases) {
        results.push_back(measured(options, text));
    }
    HYPRE_Finalize();
    write_results(options.json, run_context(executable), results);
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    Options options;
    CLI::App app{"Measures hypre's BoomerAMG on the cases of bench_multigrid."};
    app.add_option("cases", options.cases, multigrid_case_help)->required();
    app.add_option("--repeat", options.repeat, "set-ups and solves, of which the fastest is told");
    app.add_option("--tolerance", options.tolerance, "relative");
    app.add_option("--json", options.json, "file; default: standard output");
    CLI11_PARSE(app, argc, argv);
    MPI_Init(&argc, &argv);
    const int code = report_errors([&] { return run(options, argv[0]); });
    MPI_Finalize();
    return code;
}
