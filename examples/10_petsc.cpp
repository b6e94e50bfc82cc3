// A program of PETSc whose products, and preconditioner, go to librmsp: mpirun -n 2 example_10_petsc -ksp_type cg. It
// solves with PETSc's own matrix (AIJ) as well and compares.
#include <cmath>
#include <cstdio>

#include "rmsp_petsc.hpp"

namespace {

/// A five-point matrix of an n x n grid, row by row; with `skew` not symmetric.
PetscErrorCode make_matrix(PetscInt n, double skew, Mat* a)
{
    PetscFunctionBegin;
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n * n, n * n, 5, nullptr, 4, nullptr, a));
    PetscInt first = 0;
    PetscInt end = 0;
    PetscCall(MatGetOwnershipRange(*a, &first, &end));
    for (PetscInt row = first; row < end; ++row) {
        const PetscInt x = row % n;
        const auto add = [&](PetscInt column, double value, bool inside) {
            return inside ? MatSetValue(*a, row, column, value, INSERT_VALUES) : 0;
        };
        PetscCall(add(row - n, -1, row >= n));
        PetscCall(add(row - 1, -1 - skew, x > 0));
        PetscCall(add(row, 4.01 + 0.001 * static_cast<double>(x), true));
        PetscCall(add(row + 1, -1 + skew, x + 1 < n));
        PetscCall(add(row + n, -1, row + n < n * n));
    }
    PetscCall(MatAssemblyBegin(*a, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*a, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

/// Adds 1 to `wrong`, and says so, where a and b differ by more than `tolerance` of a.
PetscErrorCode compare(const char* what, Vec a, Vec b, double tolerance, int* wrong)
{
    PetscFunctionBegin;
    PetscReal norm = 0;
    PetscReal difference = 0;
    PetscCall(VecNorm(a, NORM_2, &norm));
    PetscCall(VecAXPY(b, -1, a));
    PetscCall(VecNorm(b, NORM_2, &difference));
    const bool good = difference <= tolerance * norm;
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-28s relative difference %.2g%s\n", what, difference / norm,
                          good ? "" : ", which is WRONG"));
    *wrong += good ? 0 : 1;
    PetscFunctionReturn(0);
}

/// Solves with the options of the command line.
PetscErrorCode solve(Mat operators, Mat for_preconditioner, const char* preconditioner, Vec b, Vec x, PetscInt* count)
{
    PetscFunctionBegin;
    KSP ksp = nullptr;
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, operators, for_preconditioner));
    PetscCall(KSPSetTolerances(ksp, 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, 2000));
    PC pc = nullptr;
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCJACOBI));
    if (preconditioner != nullptr) {
        PetscCall(rmsp::petsc::PCSetRmsp(pc, operators, preconditioner));
    }
    PetscCall(KSPSetFromOptions(ksp));
    PetscCall(VecSet(x, 0));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetIterationNumber(ksp, count));
    KSPConvergedReason reason = KSP_CONVERGED_ITERATING;
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED, "KSP ended with reason %d", reason);
    PetscCall(KSPDestroy(&ksp));
    PetscFunctionReturn(0);
}

PetscErrorCode run(int* wrong)
{
    PetscFunctionBegin;
    PetscInt n = 40;
    PetscCall(PetscOptionsGetInt(nullptr, nullptr, "-n", &n, nullptr));
    const rmsp::Cluster cluster(PETSC_COMM_WORLD, rmsp::RuntimeOptions::from_environment({}));
    for (const double skew : {0.0, 0.3}) {
        Mat a = nullptr;
        Mat shell = nullptr;
        PetscCall(make_matrix(n, skew, &a));
        PetscCall(rmsp::petsc::MatCreateRmsp(cluster, a, &shell));
        Vec x = nullptr;
        Vec y = nullptr;
        PetscCall(MatCreateVecs(a, &x, &y));
        Vec z = nullptr;
        PetscCall(VecDuplicate(y, &z));
        PetscCall(VecSetRandom(x, nullptr));

        PetscCall(MatMult(a, x, y));
        PetscCall(MatMult(shell, x, z));
        PetscCall(compare("A x", y, z, 1e-14, wrong));
        PetscCall(MatMultTranspose(a, x, y));
        PetscCall(MatMultTranspose(shell, x, z));
        PetscCall(compare("A^T x", y, z, 1e-14, wrong));
        PetscCall(MatMultAdd(a, x, x, y));
        PetscCall(MatMultAdd(shell, x, x, z));
        PetscCall(compare("A x + x", y, z, 1e-14, wrong));
        PetscCall(MatScale(a, 1.5));
        PetscCall(rmsp::petsc::MatUpdateRmsp(shell, a));
        PetscCall(MatMult(a, x, y));
        PetscCall(MatMult(shell, x, z));
        PetscCall(compare("A x of new values", y, z, 1e-14, wrong));

        if (skew == 0) {
            Vec of_aij = nullptr;
            PetscCall(VecDuplicate(x, &of_aij));
            PetscInt own = 0;
            PetscInt with_products = 0;
            PetscInt with_both = 0;
            PetscCall(solve(a, a, nullptr, y, of_aij, &own));
            PetscCall(solve(shell, a, nullptr, y, z, &with_products));
            PetscCall(compare("x of PETSc, and of products", of_aij, z, 1e-7, wrong));
            PetscCall(solve(shell, a, "schwarz-ic0", y, z, &with_both));
            PetscCall(compare("x with a preconditioner too", of_aij, z, 1e-7, wrong));
            PetscCall(PetscPrintf(PETSC_COMM_WORLD,
                                  "iterations: PETSc %d, products by librmsp %d, its schwarz-ic0 as well %d\n",
                                  static_cast<int>(own), static_cast<int>(with_products), static_cast<int>(with_both)));
            *wrong += std::abs(own - with_products) > 1 || with_both >= own ? 1 : 0;
            PetscCall(VecDestroy(&of_aij));
        }
        PetscCall(VecDestroy(&x));
        PetscCall(VecDestroy(&y));
        PetscCall(VecDestroy(&z));
        PetscCall(MatDestroy(&shell));
        PetscCall(MatDestroy(&a));
    }
    PetscFunctionReturn(0);
}

}  // namespace

int main(int argc, char** argv)
{
    // With more than MPI_THREAD_FUNNELED, PETSc's default, workers of librmsp speak MPI without a detour.
    PETSC_MPI_THREAD_REQUIRED = MPI_THREAD_SERIALIZED;
    PetscCall(
        PetscInitialize(&argc, &argv, nullptr, "Products and preconditioners of librmsp in a program of PETSc\n"));
    int wrong = 0;
    PetscCall(run(&wrong));
    PetscCall(PetscFinalize());
    return wrong == 0 ? 0 : 1;
}
