#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rmsp/value_types.hpp>

#include "cluster/cluster_state.hpp"

namespace rmsp {

using cluster::checked;

template <class T>
std::int64_t ClusterMatrix<T>::rows() const
{
    return checked(state_).rows.back();
}

template <class T>
std::int64_t ClusterMatrix<T>::cols() const
{
    return checked(state_).columns.back();
}

template <class T>
std::int64_t ClusterMatrix<T>::nnz() const
{
    return checked(state_).nnz;
}

template <class T>
std::span<const std::int64_t> ClusterMatrix<T>::row_offsets() const
{
    return checked(state_).rows;
}

template <class T>
std::span<const std::int64_t> ClusterMatrix<T>::column_offsets() const
{
    return checked(state_).columns;
}

template <class T>
const GhostedMatrix<T>& ClusterMatrix<T>::local() const
{
    return checked(state_).local;
}

template <class T>
HaloReport ClusterMatrix<T>::halo() const
{
    const auto& state = checked(state_);
    HaloReport report = state.halo;
    report.ghosts = state.local.ghosts();
    report.sent = state.local.sent();
    const cluster::HaloExchange::Traffic& traffic = state.exchange->traffic();
    report.receives_from = traffic.receives_from;
    report.sends_to = traffic.sends_to;
    report.gathered = traffic.gathered;
    report.node_reason = traffic.reason;
    report.messages_between_nodes = traffic.messages_between_nodes;
    report.entries_between_nodes = traffic.entries_between_nodes;
    report.bytes_sent = state.exchange->bytes_sent();
    return report;
}

template <class T>
DistributedVector<T> ClusterMatrix<T>::make_x() const
{
    return local().own().make_x(Layout::rows);
}

template <class T>
DistributedVector<T> ClusterMatrix<T>::make_y() const
{
    return local().own().make_y();
}

template <class T>
void ClusterMatrix<T>::apply(T alpha, const DistributedVector<T>& x, T beta, DistributedVector<T>& y)
{
    auto& state = checked(state_);
    state.cluster->processes->guarded([&] { state.local.apply(alpha, x, beta, y); });
}

template <class T>
void ClusterMatrix<T>::apply_transposed(T alpha, const DistributedVector<T>& x, T beta, DistributedVector<T>& y)
{
    auto& state = checked(state_);
    state.cluster->processes->guarded([&] { state.local.apply_transposed(alpha, x, beta, y); });
}

namespace {

/// Calls product(from, to) with vectors that have x and, where it is read, y, and copies what `to` has then to y.
template <class T, class F>
void through_vectors(DistributedVector<T> from, DistributedVector<T> to, const T* x, T beta, T* y, const F& product)
{
    from.upload(x);
    if (beta != T{0}) {
        to.upload(y);
    }
    product(from, to);
    to.download(y);
}

}  // namespace

template <class T>
void ClusterMatrix<T>::apply(T alpha, const T* x, T beta, T* y)
{
    auto& state = checked(state_);
    state.cluster->processes->guarded([&] {
        through_vectors(make_x(), make_y(), x, beta, y,
                        [&](auto& from, auto& to) { state.local.apply(alpha, from, beta, to); });
    });
}

template <class T>
void ClusterMatrix<T>::apply_transposed(T alpha, const T* x, T beta, T* y)
{
    auto& state = checked(state_);
    state.cluster->processes->guarded([&] {
        through_vectors(make_y(), make_x(), x, beta, y,
                        [&](auto& from, auto& to) { state.local.apply_transposed(alpha, from, beta, to); });
    });
}

template <class T>
void ClusterMatrix<T>::update_values(const T* values)
{
    auto& state = checked(state_);
    state.cluster->processes->together([&] { state.local.update_values(values); });
}

namespace {

/// FNV-1a, the same on all machines.
std::int64_t hash_of(std::string_view text)
{
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    return std::bit_cast<std::int64_t>(hash);
}

using NamedNumber = std::pair<const char*, std::int64_t>;

/// Processes decide alike only by the same numbers. \throws Agreed(usage) naming the option that differs
void require_same(cluster::Communicator& processes, std::vector<NamedNumber> own)
{
    own.resize(8, {"", 0});  // as numbers_of_all() gives those of each
    std::vector<std::int64_t> numbers(own.size());
    std::transform(own.begin(), own.end(), numbers.begin(), [](const auto& option) { return option.second; });
    const std::vector<std::int64_t> all = processes.numbers_of_all(numbers);
    for (std::size_t i = own.size(); i < all.size(); ++i) {
        if (all[i] != all[i % own.size()]) {
            throw cluster::Agreed(ErrorCode::usage,
                                  fmt::format("processes 0 and {} have other solver options: {} differs",
                                              i / own.size(), own[i % own.size()].first));
        }
    }
}

void require_same(cluster::Communicator& processes, const SolverOptions& options)
{
    require_same(processes, {{"method", hash_of(options.method)},
                             {"tolerance", std::bit_cast<std::int64_t>(options.tolerance)},
                             {"absolute_tolerance", std::bit_cast<std::int64_t>(options.absolute_tolerance)},
                             {"max_iterations", options.max_iterations},
                             {"divergence", std::bit_cast<std::int64_t>(options.divergence)},
                             {"restart", options.restart},
                             {"shadow", options.shadow},
                             {"normal_tolerance, relaxation or an eigenvalue",
                              hash_of(fmt::format("{} {} {} {}", options.normal_tolerance, options.relaxation,
                                                  options.smallest_eigenvalue, options.largest_eigenvalue))}});
}

bool is_multigrid(std::string_view name) { return name == "amg" || name == "sa-amg"; }

/// Who makes a preconditioner.
enum class Maker : std::int64_t { each, all, caller };
Maker maker_of(std::string_view name) { return is_multigrid(name) ? Maker::all : Maker::each; }
/// \throws Agreed(usage) unless it is the same on all processes
void require_same(cluster::Communicator& processes, Maker maker)
{
    const std::vector<NamedNumber> own{
        {"preconditioner (each process's, multigrid of all, or the caller's)", static_cast<std::int64_t>(maker)}};
    require_same(processes, own);
}

void require_same(cluster::Communicator& processes, const std::string& name, const PreconditionerOptions& options)
{
    const MultigridOptions& o = options.multigrid;
    require_same(
        processes,
        {{"preconditioner", hash_of(name)},
         {"multigrid's coarsening",
          hash_of(fmt::format("{} {} {} {} {} {} {}", o.threshold, o.interpolation, o.truncation,
                              o.interpolation_entries, o.aggressive_levels, o.unknowns, o.near_null_vectors))},
         {"multigrid's cycle, smoother or sweeps", hash_of(fmt::format("{} {} {}", o.cycle, o.smoother, o.sweeps))},
         {"multigrid's coarse_rows or levels", hash_of(fmt::format("{} {}", o.coarse_rows, o.levels))}});
}

void require_same(cluster::Communicator& processes, const EigenOptions& options)
{
    require_same(processes, {{"method", hash_of(options.method)},
                             {"which", static_cast<std::int64_t>(options.which)},
                             {"count", options.count},
                             {"tolerance", std::bit_cast<std::int64_t>(options.tolerance)},
                             {"max_iterations", options.max_iterations},
                             {"basis", options.basis}});
}

/// Of processes that have the same Maker.
template <class T>
std::shared_ptr<Preconditioner<T>> make_by_name(const detail::ClusterMatrixState<T>& state, const std::string& name,
                                                const PreconditionerOptions& options)
{
    const auto& processes = state.cluster->processes;
    if (maker_of(name) == Maker::each || processes->size() == 1) {
        return make_preconditioner(state.local.own(), name, options);
    }
    require_same(*processes, name, options);
    if (state.rows.back() != state.columns.back()) {
        throw cluster::Agreed(ErrorCode::usage,
                              fmt::format("preconditioner \"{}\" needs a square matrix; this one is {} x {}", name,
                                          state.rows.back(), state.columns.back()));
    }
    return make_preconditioner(state.local, {state.rows, state.ghosts}, processes, name, options);
}

}  // namespace

template <class T>
std::shared_ptr<Preconditioner<T>> make_preconditioner(const ClusterMatrix<T>& matrix, const std::string& name,
                                                       const PreconditionerOptions& options)
{
    const auto& state = checked(matrix.state_);
    std::shared_ptr<Preconditioner<T>> made;
    state.cluster->processes->together([&] {
        require_same(*state.cluster->processes, maker_of(name));
        made = make_by_name(state, name, options);
    });
    return made;
}

template <class T>
ClusterSolver<T>::ClusterSolver(const ClusterMatrix<T>& matrix, const SolverOptions& options,
                                std::shared_ptr<Preconditioner<T>> preconditioner)
    : cluster_(checked(matrix.state_).cluster)
{
    cluster_->processes->together([&] {
        // Made before anything is said to the others, where it may fail on one process alone.
        require_same(*cluster_->processes, preconditioner ? Maker::caller : maker_of(options.preconditioner));
        auto own = preconditioner
                       ? std::move(preconditioner)
                       : make_by_name(*matrix.state_, options.preconditioner, options.preconditioner_options);
        require_same(*cluster_->processes, options);
        SolverOptions without = options;
        without.preconditioner = "none";
        solver_ = std::make_shared<Solver<T>>(matrix.local(), without, std::move(own));
    });
}

template <class T>
SolveResult ClusterSolver<T>::solve(const T* b, T* x)
{
    SolveResult result;
    checked(cluster_).processes->together([&] { result = solver_->solve(b, x); });
    return result;
}

template <class T>
SolveResult ClusterSolver<T>::solve(const DistributedVector<T>& b, DistributedVector<T>& x)
{
    SolveResult result;
    checked(cluster_).processes->together([&] { result = solver_->solve(b, x); });
    return result;
}

template <class T>
void ClusterSolver<T>::renew()
{
    checked(cluster_).processes->together([&] { solver_->renew(); });
}

template <class T>
const MethodChoice& ClusterSolver<T>::choice() const
{
    checked(cluster_);
    return solver_->choice();
}

template <class T>
ClusterEigenSolver<T>::ClusterEigenSolver(const ClusterMatrix<T>& matrix, const EigenOptions& options,
                                          std::shared_ptr<Preconditioner<T>> preconditioner)
    : cluster_(checked(matrix.state_).cluster)
{
    cluster_->processes->together([&] {
        require_same(*cluster_->processes, options);
        solver_ = std::make_shared<EigenSolver<T>>(matrix.local(), options, std::move(preconditioner));
    });
}

template <class T>
EigenResult<T> ClusterEigenSolver<T>::solve()
{
    EigenResult<T> result;
    checked(cluster_).processes->together([&] { result = solver_->solve(); });
    return result;
}

#define RMSP_INSTANTIATE(T)                                                                                      \
    template class ClusterMatrix<T>;                                                                             \
    template class ClusterSolver<T>;                                                                             \
    template class ClusterEigenSolver<T>;                                                                        \
    template std::shared_ptr<Preconditioner<T>> make_preconditioner(const ClusterMatrix<T>&, const std::string&, \
                                                                    const PreconditionerOptions&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
