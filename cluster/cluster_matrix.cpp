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
    report.receives_from = state.messages->receives_from();
    report.sends_to = state.messages->sends_to();
    report.bytes_sent = state.messages->bytes_sent();
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

template <class T>
void ClusterMatrix<T>::apply(T alpha, const T* x, T beta, T* y)
{
    auto& state = checked(state_);
    state.cluster->processes->guarded([&] {
        DistributedVector<T> from = make_x();
        DistributedVector<T> to = make_y();
        from.upload(x);
        if (beta != T{0}) {
            to.upload(y);
        }
        state.local.apply(alpha, from, beta, to);
        to.download(y);
    });
}

template <class T>
void ClusterMatrix<T>::apply_transposed(T alpha, const T* x, T beta, T* y)
{
    auto& state = checked(state_);
    state.cluster->processes->guarded([&] {
        DistributedVector<T> from = make_y();
        DistributedVector<T> to = make_x();
        from.upload(x);
        if (beta != T{0}) {
            to.upload(y);
        }
        state.local.apply_transposed(alpha, from, beta, to);
        to.download(y);
    });
}

template <class T>
void ClusterMatrix<T>::update_values(const T* values)
{
    auto& state = checked(state_);
    state.cluster->processes->together([&] { state.local.update_values(values); });
}

template <class T>
ClusterSolver<T>::ClusterSolver(const ClusterMatrix<T>& matrix, const SolverOptions& options,
                                std::shared_ptr<Preconditioner<T>> preconditioner)
    : cluster_(checked(matrix.state_).cluster)
{
    cluster_->processes->together([&] {
        // Made before anything is said to the others, where it may fail on one process alone.
        auto own = preconditioner ? std::move(preconditioner)
                                  : make_preconditioner(matrix.local().own(), options.preconditioner,
                                                        options.preconditioner_options);
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

template class ClusterMatrix<float>;
template class ClusterMatrix<double>;
template class ClusterSolver<float>;
template class ClusterSolver<double>;

}  // namespace rmsp
