#include <array>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <core/value_types.hpp>
#include <rmsp/error.hpp>
#include <rmsp/preconditioner.hpp>

#include "core/edit_distance.hpp"
#include "runtime/multigrid/linked_hierarchy.hpp"
#include "runtime/preconditioners/block_jacobi.hpp"
#include "runtime/preconditioners/fsai.hpp"
#include "runtime/preconditioners/jacobi.hpp"
#include "runtime/preconditioners/multigrid.hpp"
#include "runtime/preconditioners/polynomial.hpp"
#include "runtime/preconditioners/schwarz.hpp"
#include "runtime/preconditioners/sparse_inverse.hpp"
#include "runtime/preconditioners/user.hpp"

namespace rmsp {
namespace preconditioners {
namespace {

template <class T>
using Pointer = std::shared_ptr<Preconditioner<T>>;

/// A row of the table of preconditioners.
template <class T>
struct Kind {
    PreconditionerInfo info;
    Pointer<T> (*make)(const DistributedMatrix<T>& matrix, const PreconditionerOptions& options) = nullptr;
};

template <class T, template <class> class P>
Pointer<T> make(const DistributedMatrix<T>& matrix, const PreconditionerOptions& options)
{
    return std::make_shared<P<T>>(matrix, options);
}

template <class T, JacobiDivisor divisor>
Pointer<T> make_jacobi(const DistributedMatrix<T>& matrix, const PreconditionerOptions&)
{
    return std::make_shared<Jacobi<T>>(matrix, divisor == JacobiDivisor::diagonal ? "jacobi" : "l1-jacobi", divisor);
}

/// \throws Error(usage) for what does not smooth
template <class T>
multigrid::MakeSmoother<T> smoother_of(const PreconditionerOptions& options)
{
    const std::string& smoother = options.multigrid.smoother;
    if (smoother == "none" || smoother == "amg" || smoother == "sa-amg") {
        throw Error(ErrorCode::usage, fmt::format("multigrid smooths by any preconditioner but \"{}\"", smoother));
    }
    return [options](const DistributedMatrix<T>& of_level) {
        return make_preconditioner(of_level, options.multigrid.smoother, options);
    };
}

/// What is admitted for a hierarchy: the coarser matrices are known once they are made, and are about as many bytes as
/// the matrix has, or more.
template <class T>
engine::Placing admit_multigrid(const DistributedMatrix<T>& matrix)
{
    const auto& finest = *detail::checked(detail::MatrixAccess::state(matrix));
    std::vector<std::int64_t> bytes;
    for (const ShardPlan& shard : finest.plan.shards) {
        bytes.push_back(shard.part.nnz() * static_cast<std::int64_t>(sizeof(T) + sizeof(std::int32_t)));
    }
    return engine::Placing(finest.runtime->admit("the multigrid preconditioner", bytes));
}

template <class T, multigrid::Method method>
Pointer<T> make_multigrid(const DistributedMatrix<T>& matrix, const PreconditionerOptions& options)
{
    auto make_smoother = smoother_of<T>(options);
    const engine::Placing placing = admit_multigrid(matrix);
    using Levels = multigrid::Hierarchy<T>;
    return std::make_shared<Multigrid<T, Levels>>(matrix, method == multigrid::Method::classical ? "amg" : "sa-amg",
                                                  Levels(matrix, method, options.multigrid, std::move(make_smoother)),
                                                  options.multigrid.rebuild_factor);
}

template <class T>
Pointer<T> make_spai0(const DistributedMatrix<T>& matrix, const PreconditionerOptions&)
{
    return std::make_shared<SparseInverse<T>>(matrix, "spai-0", matrix::SparseInverse::spai,
                                              matrix::InversePattern{.power = 0});
}

template <class T>
Pointer<T> make_spai(const DistributedMatrix<T>& matrix, const PreconditionerOptions& options)
{
    return std::make_shared<SparseInverse<T>>(matrix, "spai", matrix::SparseInverse::spai, pattern_of(options));
}

template <class T>
Pointer<T> make_isai(const DistributedMatrix<T>& matrix, const PreconditionerOptions& options)
{
    return std::make_shared<SparseInverse<T>>(matrix, "isai", matrix::SparseInverse::isai, pattern_of(options));
}

template <class T, const Factors<T>& factors>
Pointer<T> make_schwarz(const DistributedMatrix<T>& matrix, const PreconditionerOptions& options)
{
    return std::make_shared<Schwarz<T>>(matrix, factors, options.fill_level);
}

/// Every preconditioner; the order is that of lists.
template <class T>
const auto& kinds()
{
    static const std::array rows{
        Kind<T>{{.name = "none", .description = "M = I", .symmetric = true, .definite = true}, nullptr},
        Kind<T>{{.name = "jacobi",
                 .description = "the inverse of the diagonal; joins the passes around it",
                 .symmetric = true,
                 .definite = true},
                make_jacobi<T, JacobiDivisor::diagonal>},
        Kind<T>{{.name = "l1-jacobi",
                 .description = "the inverse of the sum of a row's magnitudes; smooths in multigrid",
                 .symmetric = true,
                 .definite = true},
                make_jacobi<T, JacobiDivisor::row_norm>},
        Kind<T>{{.name = "block-jacobi",
                 .description = "inverses of dense blocks of block_size rows along the diagonal; matrices with several "
                                "unknowns a point",
                 .symmetric = true,
                 .definite = true},
                make<T, BlockJacobi>},
        Kind<T>{{.name = "spai-0",
                 .description = "the diagonal M with the least |M A - I|",
                 .symmetric = true,
                 .definite = true},
                make_spai0<T>},
        Kind<T>{{.name = "spai",
                 .description = "the M with the pattern of A^pattern_power and the least |M A - I|; one product an "
                                "iteration"},
                make_spai<T>},
        Kind<T>{
            {.name = "isai",
             .description = "the M with the pattern of A^pattern_power and M A = I there; cheaper to make than spai"},
            make_isai<T>},
        Kind<T>{{.name = "fsai",
                 .description = "M = G^T G with the pattern of A^pattern_power, of a symmetric positive definite A: a "
                                "sparse inverse for conjugate gradients",
                 .symmetric = true,
                 .definite = true},
                make<T, Fsai>},
        Kind<T>{{.name = "polynomial",
                 .description = "Chebyshev's polynomial of A divided by its diagonal; `degree` products and no inner "
                                "product an iteration; eigenvalues that are positive, or nearly",
                 .symmetric = true,
                 .definite = true},
                make<T, Polynomial>},
        Kind<T>{{.name = "schwarz-ilu0",
                 .description = "each device solves with incomplete factors L U of its rows; more devices take more "
                                "iterations"},
                make_schwarz<T, ilu0<T>>},
        Kind<T>{{.name = "schwarz-iluk",
                 .description = "the same with what elimination adds up to fill_level: fewer iterations for more "
                                "memory; flows whose pressure has small entries on the diagonal"},
                make_schwarz<T, iluk<T>>},
        Kind<T>{{.name = "schwarz-ic0",
                 .description = "each device solves with incomplete factors L L^T of its rows of a symmetric positive "
                                "definite A; more devices take more iterations",
                 .symmetric = true,
                 .definite = true},
                make_schwarz<T, ic0<T>>},
        Kind<T>{{.name = "gauss-seidel",
                 .description = "each device sweeps its own rows forward and backward, exactly, with what couples the "
                                "devices on the diagonal; smooths in multigrid",
                 .symmetric = true,
                 .definite = true},
                make_schwarz<T, gauss_seidel<T>>},
        Kind<T>{{.name = "amg",
                 .description = "a cycle of classical algebraic multigrid: coarse points and interpolation; diffusion "
                                "and other M-matrices, with about as many iterations whatever their size",
                 .symmetric = true,
                 .definite = true},
                make_multigrid<T, multigrid::Method::classical>},
        Kind<T>{{.name = "sa-amg",
                 .description = "a cycle of multigrid by smoothed aggregation, which needs less memory; diffusion, and "
                                "elasticity with its near-nullspace",
                 .symmetric = true,
                 .definite = true},
                make_multigrid<T, multigrid::Method::aggregation>},
    };
    return rows;
}

}  // namespace
}  // namespace preconditioners

double PreconditionerReport::operator_complexity() const
{
    double sum = 0;
    for (const MultigridLevel& level : levels) {
        sum += static_cast<double>(level.nonzeros);
    }
    return sum > 0 ? sum / static_cast<double>(levels.front().nonzeros) : 0;
}

double PreconditionerReport::grid_complexity() const
{
    double sum = 0;
    for (const MultigridLevel& level : levels) {
        sum += static_cast<double>(level.rows);
    }
    return sum > 0 ? sum / static_cast<double>(levels.front().rows) : 0;
}

std::vector<double> rigid_body_modes(int dimensions, std::span<const double> coordinates)
{
    const matrix::NearNullspace modes = matrix::rigid_body_modes(dimensions, coordinates);
    return {modes.values.begin(), modes.values.end()};
}

std::span<const PreconditionerInfo> list_preconditioners()
{
    static const auto all = [] {
        std::vector<PreconditionerInfo> infos;
        for (const auto& row : preconditioners::kinds<double>()) {
            infos.push_back(row.info);
        }
        return infos;
    }();
    return all;
}

template <class T>
std::shared_ptr<Preconditioner<T>> make_preconditioner(const DistributedMatrix<T>& matrix, const std::string& name,
                                                       const PreconditionerOptions& options)
{
    std::vector<std::string> names;
    for (const auto& row : preconditioners::kinds<T>()) {
        if (row.info.name == name) {
            return row.make == nullptr ? nullptr : row.make(matrix, options);
        }
        names.emplace_back(row.info.name);
    }
    throw Error(ErrorCode::usage, core::unknown_name("preconditioner", name, names));
}

template <class T>
std::shared_ptr<Preconditioner<T>> make_preconditioner(const DistributedMatrix<T>& matrix,
                                                       std::type_identity_t<LocalPreconditioner<T>> apply)
{
    return std::make_shared<preconditioners::User<T>>(matrix, std::move(apply));
}

template <class T>
std::shared_ptr<Preconditioner<T>> make_preconditioner(const GhostedMatrix<T>& matrix, const GhostedNumbers& numbers,
                                                       std::shared_ptr<LinkedProcesses> processes,
                                                       const std::string& name, const PreconditionerOptions& options)
{
    if (name != "amg" && name != "sa-amg") {
        throw Error(ErrorCode::usage,
                    fmt::format("preconditioner \"{}\" is one of each process's own rows: of processes together there "
                                "are \"amg\" and \"sa-amg\"",
                                name));
    }
    if (!processes || numbers.first_rows.size() != static_cast<std::size_t>(processes->size()) + 1 ||
        static_cast<std::int64_t>(numbers.ghosts.size()) != matrix.ghosts()) {
        throw Error(ErrorCode::usage,
                    fmt::format("numbers of {} first rows and {} ghosts; the matrix has {} ghosts, on {} processes",
                                numbers.first_rows.size(), numbers.ghosts.size(), matrix.ghosts(),
                                processes ? processes->size() : 0));
    }
    auto make_smoother = preconditioners::smoother_of<T>(options);
    const engine::Placing placing = preconditioners::admit_multigrid(matrix.own());
    using Levels = multigrid::LinkedHierarchy<T>;
    return std::make_shared<preconditioners::Multigrid<T, Levels>>(
        matrix.own(), name,
        Levels(matrix, numbers, std::move(processes),
               name == "amg" ? multigrid::Method::classical : multigrid::Method::aggregation, options.multigrid,
               std::move(make_smoother)),
        options.multigrid.rebuild_factor);
}

template <class T>
void Preconditioner<T>::append_transposed(Sequence&, const Vec<T>&, const Vec<T>&)
{
    throw Error(ErrorCode::usage,
                fmt::format("preconditioner \"{}\" cannot be applied transposed, as the solver needs it", name()));
}

#define RMSP_INSTANTIATE(T)                                                                                            \
    template std::shared_ptr<Preconditioner<T>> make_preconditioner(const DistributedMatrix<T>&, const std::string&,   \
                                                                    const PreconditionerOptions&);                     \
    template std::shared_ptr<Preconditioner<T>> make_preconditioner(const DistributedMatrix<T>&,                       \
                                                                    LocalPreconditioner<T>);                           \
    template std::shared_ptr<Preconditioner<T>> make_preconditioner(const GhostedMatrix<T>&, const GhostedNumbers&,    \
                                                                    std::shared_ptr<LinkedProcesses>,                  \
                                                                    const std::string&, const PreconditionerOptions&); \
    template void Preconditioner<T>::append_transposed(Sequence&, const Vec<T>&, const Vec<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
