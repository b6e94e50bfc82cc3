// PETSc's matrices and preconditioners over rmsp::cluster: each process's rows on all its devices. To be copied into a
// program that has PETSc with real double scalars; compiled with it, linked with rmsp::cluster.
//
//     Mat shell;
//     PetscCall(rmsp::petsc::MatCreateRmsp(cluster, a, &shell));  // a: assembled, of any type that has rows
//     PetscCall(KSPSetOperators(ksp, shell, a));                  // products by librmsp, preconditioners by PETSc,
//     PetscCall(rmsp::petsc::PCSetRmsp(pc, shell, "schwarz-ic0"));  // or these by librmsp as well
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <petscksp.h>

#include <rmsp/cluster.hpp>
#include <rmsp/rmsp.hpp>

namespace rmsp::petsc {

static_assert(std::is_same_v<PetscScalar, double>, "librmsp's values are PETSc's real double scalars");

namespace detail {

/// f(), whose exceptions become errors of PETSc.
template <class F>
PetscErrorCode guarded(MPI_Comm communicator, F&& f)
{
    try {
        return f();
    } catch (const std::exception& error) {
        SETERRQ(communicator, PETSC_ERR_LIB, "librmsp: %s", error.what());
    }
}

/// What a shell points to.
struct Product {
    Cluster cluster;
    ClusterMatrix<double> matrix;
    DistributedVector<double> x;
    DistributedVector<double> y;
    ::Vec diagonal = nullptr;
};

/// This process's rows of a PETSc matrix.
struct Rows {
    std::int64_t cols = 0;
    PetscInt first = 0;
    std::vector<std::int64_t> row_ptr{0};
    std::vector<std::int64_t> col_idx;
    std::vector<double> values;

    CsrView<double> view() const
    {
        return {static_cast<std::int64_t>(row_ptr.size()) - 1,
                cols,
                row_ptr.back(),
                row_ptr.data(),
                col_idx.data(),
                values.data()};
    }
};

inline PetscErrorCode read_rows(Mat a, Rows* rows)
{
    PetscFunctionBegin;
    PetscInt end = 0;
    PetscInt cols = 0;
    PetscCall(MatGetOwnershipRange(a, &rows->first, &end));
    PetscCall(MatGetSize(a, nullptr, &cols));
    rows->cols = cols;
    for (PetscInt row = rows->first; row < end; ++row) {
        PetscInt count = 0;
        const PetscInt* columns = nullptr;
        const PetscScalar* values = nullptr;
        PetscCall(MatGetRow(a, row, &count, &columns, &values));
        rows->col_idx.insert(rows->col_idx.end(), columns, columns + count);
        rows->values.insert(rows->values.end(), values, values + count);
        rows->row_ptr.push_back(static_cast<std::int64_t>(rows->values.size()));
        PetscCall(MatRestoreRow(a, row, &count, &columns, &values));
    }
    PetscFunctionReturn(0);
}

inline PetscErrorCode upload(::Vec from, DistributedVector<double>& to)
{
    PetscFunctionBegin;
    const PetscScalar* entries = nullptr;
    PetscCall(VecGetArrayRead(from, &entries));
    to.upload(entries);
    PetscCall(VecRestoreArrayRead(from, &entries));
    PetscFunctionReturn(0);
}

inline PetscErrorCode download(const DistributedVector<double>& from, ::Vec to)
{
    PetscFunctionBegin;
    PetscScalar* entries = nullptr;
    PetscCall(VecGetArrayWrite(to, &entries));
    from.download(entries);
    PetscCall(VecRestoreArrayWrite(to, &entries));
    PetscFunctionReturn(0);
}

template <bool Transposed>
PetscErrorCode multiply(Mat shell, ::Vec x, ::Vec y)
{
    PetscFunctionBegin;
    Product* product = nullptr;
    PetscCall(MatShellGetContext(shell, &product));
    PetscCall(guarded(PETSC_COMM_SELF, [&]() -> PetscErrorCode {
        auto& from = Transposed ? product->y : product->x;
        auto& to = Transposed ? product->x : product->y;
        PetscCall(upload(x, from));
        if constexpr (Transposed) {
            product->matrix.apply_transposed(1.0, from, 0.0, to);
        } else {
            product->matrix.apply(1.0, from, 0.0, to);
        }
        PetscCall(download(to, y));
        return 0;
    }));
    PetscFunctionReturn(0);
}

inline PetscErrorCode get_diagonal(Mat shell, ::Vec diagonal)
{
    PetscFunctionBegin;
    Product* product = nullptr;
    PetscCall(MatShellGetContext(shell, &product));
    PetscCall(VecCopy(product->diagonal, diagonal));
    PetscFunctionReturn(0);
}

inline PetscErrorCode destroy_product(Mat shell)
{
    PetscFunctionBegin;
    Product* product = nullptr;
    PetscCall(MatShellGetContext(shell, &product));
    PetscCall(VecDestroy(&product->diagonal));
    delete product;
    PetscFunctionReturn(0);
}

/// What a preconditioner's shell points to: z = M r, recorded once.
struct Preconditioning {
    std::shared_ptr<Preconditioner<double>> m;
    DistributedVector<double> r;
    DistributedVector<double> z;
    Sequence sequence;
};

inline PetscErrorCode precondition(PC pc, ::Vec r, ::Vec z)
{
    PetscFunctionBegin;
    Preconditioning* own = nullptr;
    PetscCall(PCShellGetContext(pc, &own));
    PetscCall(guarded(PETSC_COMM_SELF, [&]() -> PetscErrorCode {
        PetscCall(upload(r, own->r));
        own->sequence.run();
        PetscCall(download(own->z, z));
        return 0;
    }));
    PetscFunctionReturn(0);
}

inline PetscErrorCode destroy_preconditioning(PC pc)
{
    PetscFunctionBegin;
    Preconditioning* own = nullptr;
    PetscCall(PCShellGetContext(pc, &own));
    delete own;
    PetscFunctionReturn(0);
}

}  // namespace detail

/// A MATSHELL with products, also transposed, and the diagonal of an assembled matrix, whose rows are copied to the
/// devices. It holds the cluster, so that it is destroyed before PetscFinalize(). Rows and columns are cut as PETSc has
/// cut them; where librmsp cuts columns otherwise, those of a matrix that is not square, it refuses. Collective.
inline PetscErrorCode MatCreateRmsp(const Cluster& cluster, Mat from, Mat* shell, const DistributeOptions& options = {})
{
    PetscFunctionBegin;
    const MPI_Comm communicator = PetscObjectComm(reinterpret_cast<PetscObject>(from));
    PetscInt rows = 0;
    PetscInt cols = 0;
    PetscInt first_col = 0;
    PetscCall(MatGetLocalSize(from, &rows, &cols));
    PetscCall(MatGetOwnershipRangeColumn(from, &first_col, nullptr));
    auto product = std::make_unique<detail::Product>(detail::Product{cluster, {}, {}, {}, nullptr});
    PetscCall(detail::guarded(communicator, [&]() -> PetscErrorCode {
        detail::Rows own;
        PetscCall(detail::read_rows(from, &own));
        product->matrix = product->cluster.distribute(own.view(), own.first, options);
        const auto at = product->matrix.column_offsets().subspan(static_cast<std::size_t>(cluster.rank()), 2);
        double others = at[0] == first_col && at[1] == first_col + cols ? 0 : 1;
        cluster.sum({&others, 1});
        if (others != 0) {
            throw Error(ErrorCode::usage, "PETSc has the columns of this matrix cut otherwise than librmsp");
        }
        product->x = product->matrix.make_x();
        product->y = product->matrix.make_y();
        return 0;
    }));
    PetscInt all_rows = 0;
    PetscInt all_cols = 0;
    PetscCall(MatGetSize(from, &all_rows, &all_cols));
    PetscCall(MatCreateVecs(from, nullptr, &product->diagonal));
    if (all_rows == all_cols) {
        PetscCall(MatGetDiagonal(from, product->diagonal));
    }
    PetscCall(MatCreateShell(communicator, rows, cols, all_rows, all_cols, product.get(), shell));
    const auto set = [&](MatOperation operation, auto* f) {
        return MatShellSetOperation(*shell, operation, reinterpret_cast<void (*)()>(f));
    };
    PetscCall(set(MATOP_MULT, detail::multiply<false>));
    PetscCall(set(MATOP_MULT_TRANSPOSE, detail::multiply<true>));
    PetscCall(set(MATOP_DESTROY, detail::destroy_product));
    if (all_rows == all_cols) {
        PetscCall(set(MATOP_GET_DIAGONAL, detail::get_diagonal));
    }
    (void)product.release();  // the shell's
    PetscFunctionReturn(0);
}

/// Takes new values over from the matrix that the shell was made of, or another of the same structure. Collective.
inline PetscErrorCode MatUpdateRmsp(Mat shell, Mat from)
{
    PetscFunctionBegin;
    detail::Product* product = nullptr;
    PetscCall(MatShellGetContext(shell, &product));
    PetscCall(detail::guarded(PetscObjectComm(reinterpret_cast<PetscObject>(from)), [&]() -> PetscErrorCode {
        detail::Rows own;
        PetscCall(detail::read_rows(from, &own));
        product->matrix.update_values(own.values.data());
        return 0;
    }));
    PetscInt rows = 0;
    PetscInt cols = 0;
    PetscCall(MatGetSize(from, &rows, &cols));
    if (rows == cols) {
        PetscCall(MatGetDiagonal(from, product->diagonal));
    }
    PetscCall(MatAssemblyBegin(shell, MAT_FINAL_ASSEMBLY));  // what depends on values hears that they are new
    PetscCall(MatAssemblyEnd(shell, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

/// Makes `pc` a PCSHELL that applies a preconditioner of librmsp, by its name, to each process's own rows and columns
/// (additive Schwarz over processes). Made anew by calling this again after MatUpdateRmsp().
inline PetscErrorCode PCSetRmsp(PC pc, Mat shell, const std::string& name, const PreconditionerOptions& options = {})
{
    PetscFunctionBegin;
    detail::Product* product = nullptr;
    PetscCall(MatShellGetContext(shell, &product));
    PetscCall(detail::guarded(PetscObjectComm(reinterpret_cast<PetscObject>(pc)), [&]() -> PetscErrorCode {
        const DistributedMatrix<double>& rows = product->matrix.local().own();
        // Made of each process's rows, so it may fail on one alone, which all hear of.
        std::shared_ptr<Preconditioner<double>> m;
        std::string failed = name == "none" ? "preconditioner \"none\" is PETSc's PCNONE" : "";
        try {
            m = make_preconditioner(rows, name, options);
        } catch (const std::exception& error) {
            failed = error.what();
        }
        double wrong = failed.empty() ? 0 : 1;
        product->cluster.sum({&wrong, 1});
        if (wrong != 0) {
            throw Error(ErrorCode::usage, failed.empty() ? "another process has no such preconditioner" : failed);
        }
        auto own = std::make_unique<detail::Preconditioning>(
            detail::Preconditioning{std::move(m), product->matrix.make_y(), product->matrix.make_y(),
                                    Sequence(Scalars(product->cluster.runtime()))});
        own->m->append(own->sequence, rmsp::Vec<double>(own->z), rmsp::Vec<double>(own->r));
        PetscCall(PCSetType(pc, PCNONE));  // frees what a shell was set to before
        PetscCall(PCSetType(pc, PCSHELL));
        PetscCall(PCShellSetName(pc, ("librmsp " + name).c_str()));
        PetscCall(PCShellSetContext(pc, own.get()));
        PetscCall(PCShellSetApply(pc, detail::precondition));
        PetscCall(PCShellSetDestroy(pc, detail::destroy_preconditioning));
        (void)own.release();
        return 0;
    }));
    PetscFunctionReturn(0);
}

}  // namespace rmsp::petsc
