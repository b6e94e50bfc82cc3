#include <array>
#include <vector>

#include <core/value_types.hpp>
#include <rmsp/error.hpp>

#include "core/edit_distance.hpp"
#include "runtime/solvers/bicg.hpp"
#include "runtime/solvers/bicgstab.hpp"
#include "runtime/solvers/cg.hpp"
#include "runtime/solvers/cg_pipelined.hpp"
#include "runtime/solvers/cg_single.hpp"
#include "runtime/solvers/cgs.hpp"
#include "runtime/solvers/chebyshev.hpp"
#include "runtime/solvers/choose_method.hpp"
#include "runtime/solvers/fcg.hpp"
#include "runtime/solvers/gmres.hpp"
#include "runtime/solvers/idr.hpp"
#include "runtime/solvers/ir.hpp"
#include "runtime/solvers/lsqr.hpp"
#include "runtime/solvers/minres.hpp"
#include "runtime/solvers/recipe.hpp"

namespace rmsp {
namespace solvers {
namespace {

int few(const SolverOptions&) { return 512; }

/// Every method; the order is that of lists.
template <class T>
const auto& methods()
{
    static const std::array rows{
        Method<T>{{.name = "cg",
                   .description = "conjugate gradients; symmetric positive definite matrices",
                   .symmetric = true,
                   .definite = true,
                   .automatic = true},
                  cg<T>,
                  few},
        Method<T>{{.name = "cg_single",
                   .description = "conjugate gradients with one group of inner products an iteration",
                   .symmetric = true,
                   .definite = true,
                   .automatic = true},
                  cg_single<T>,
                  few},
        Method<T>{{.name = "cg_pipelined",
                   .description = "conjugate gradients whose inner products are summed beside the product",
                   .symmetric = true,
                   .definite = true,
                   .automatic = true,
                   .turn = pipelined_turn},
                  cg_pipelined<T>,
                  few},
        Method<T>{{.name = automatic,
                   .description = "cg, cg_single or cg_pipelined: what an iteration is expected to be fastest with",
                   .symmetric = true,
                   .definite = true},
                  nullptr,
                  nullptr},
        Method<T>{{.name = "fcg",
                   .description = "conjugate gradients with a preconditioner that may change between iterations",
                   .symmetric = true,
                   .definite = true,
                   .flexible = true},
                  fcg<T>,
                  few},
        Method<T>{{.name = "minres",
                   .description = "minimal residuals; symmetric matrices, definite or not; a preconditioner must be "
                                  "positive definite",
                   .symmetric = true},
                  minres<T>,
                  few},
        Method<T>{{.name = "gmres", .description = "generalised minimal residuals, restarted; any square matrix"},
                  gmres<T>,
                  gmres_scalars},
        Method<T>{{.name = "bicgstab", .description = "stabilised biconjugate gradients; any square matrix"},
                  bicgstab<T>,
                  few},
        Method<T>{
            {.name = "idr",
             .description = "induced dimension reduction with a shadow space of some dimensions; any square matrix"},
            idr<T>,
            few},
        Method<T>{{.name = "cgs", .description = "conjugate gradients squared; any square matrix"}, cgs<T>, few},
        Method<T>{{.name = "bicg",
                   .description = "biconjugate gradients; any square matrix, multiplied transposed as well",
                   .transposed = true},
                  bicg<T>,
                  few},
        Method<T>{
            {.name = "chebyshev",
             .description = "Chebyshev iteration; symmetric positive definite matrices, whose eigenvalues are given "
                            "or estimated",
             .symmetric = true,
             .definite = true},
            chebyshev<T>,
            few},
        Method<T>{
            {.name = "ir",
             .description = "iterative refinement, x += M (b - A x); matrices that the preconditioner, which may be "
                            "an inner solver, is close to the inverse of",
             .flexible = true},
            ir<T>,
            few},
        Method<T>{{.name = "lsqr",
                   .description = "least squares by bidiagonalisation; any matrix, multiplied transposed as well",
                   .transposed = true,
                   .rectangular = true},
                  lsqr<T>,
                  few},
    };
    return rows;
}

}  // namespace

template <class T>
const Method<T>& method_named(const std::string& name)
{
    std::vector<std::string> names;
    for (const Method<T>& row : methods<T>()) {
        if (row.info.name == name) {
            return row;
        }
        names.emplace_back(row.info.name);
    }
    throw Error(ErrorCode::usage, core::unknown_name("solver", name, names));
}

#define RMSP_INSTANTIATE(T) template const Method<T>& method_named(const std::string&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace solvers

std::span<const SolverInfo> list_solvers()
{
    static const auto all = [] {
        std::vector<SolverInfo> infos;
        for (const auto& row : solvers::methods<double>()) {
            infos.push_back(row.info);
        }
        return infos;
    }();
    return all;
}

}  // namespace rmsp
