#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include <rmsp/value_types.hpp>
#include <rmsp/vector_operations.hpp>
#include <rmsp/version.hpp>

#include "cluster/cluster_state.hpp"
#include "cluster/node_messages.hpp"
#include "cluster/read.hpp"
#include "cluster/scatter.hpp"
#include "cluster/shares.hpp"
#include "cluster/transport.hpp"

namespace rmsp {
namespace {

using cluster::checked;
using cluster::Communicator;

/// The first one of each process and their number, of the counts in one place of eight.
std::vector<std::int64_t> offsets_of(const std::vector<std::int64_t>& numbers, std::size_t place)
{
    std::vector<std::int64_t> offsets{0};
    for (std::size_t i = place; i < numbers.size(); i += 8) {
        offsets.push_back(offsets.back() + numbers[i]);
    }
    return offsets;
}

std::vector<std::int64_t> even_offsets(std::int64_t count, int processes)
{
    std::vector<std::int64_t> offsets;
    for (std::int64_t i = 0; i <= processes; ++i) {
        offsets.push_back(count / processes * i + std::min<std::int64_t>(i, count % processes));
    }
    return offsets;
}

/// What all processes know to be wrong, since all have the same numbers: rows, columns, first row, bytes of a value.
void check_sizes(const std::vector<std::int64_t>& numbers, const std::vector<std::int64_t>& rows)
{
    const auto refuse = [](const std::string& text) { throw cluster::Agreed(ErrorCode::usage, text); };
    for (std::size_t p = 0; p + 1 < rows.size(); ++p) {
        const std::int64_t* const of = &numbers[8 * p];
        if (of[1] != numbers[1]) {
            refuse(fmt::format("process 0 gives rows of {} columns, process {} of {}", numbers[1], p, of[1]));
        }
        if (of[3] != numbers[3]) {
            refuse(fmt::format("process 0 gives values of {} bytes, process {} of {}", numbers[3], p, of[3]));
        }
        if (of[2] != rows[p]) {
            refuse(fmt::format("process {} gives rows from number {} on, but the processes before it give {} rows", p,
                               of[2], rows[p]));
        }
    }
}

double seconds_since(std::chrono::steady_clock::time_point began)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

Cluster::Cluster(MPI_Comm communicator, const RuntimeOptions& runtime, const ClusterOptions& options)
    : state_(std::make_shared<detail::ClusterState>())
{
    state_->processes = std::make_shared<Communicator>(communicator, options);
    Communicator& processes = *state_->processes;
    std::int64_t built[4] = {RMSP_VERSION_MAJOR, RMSP_VERSION_MINOR, RMSP_VERSION_PATCH, 0};
    std::strncpy(reinterpret_cast<char*>(&built[3]), commit(), sizeof(built[3]));
    const std::vector<std::int64_t> all = processes.numbers_of_all(built);
    for (int p = 1; p < processes.size(); ++p) {
        const std::int64_t* const of = &all[8 * static_cast<std::size_t>(p)];
        if (!std::equal(of, of + 4, all.begin())) {
            throw Error(ErrorCode::usage,
                        fmt::format("process 0 runs librmsp {}.{}.{} and process {} {}.{}.{}, or another commit of it",
                                    all[0], all[1], all[2], p, of[0], of[1], of[2]));
        }
    }
    processes.together([&] {
        RuntimeOptions own = runtime;
        own.devices = processes.node().devices(runtime);
        const cluster::Node::OwnCores cores(processes.node(), own);
        state_->runtime.emplace(own);
        state_->weight = own.weights.empty() ? static_cast<double>(state_->runtime->devices().size())
                                             : std::accumulate(own.weights.begin(), own.weights.end(), 0.0);
    });
    processes.together([&] { cluster::connect_processes(processes, *state_->runtime, options.transport); });
}

int Cluster::rank() const { return checked(state_).processes->rank(); }
int Cluster::size() const { return checked(state_).processes->size(); }
bool Cluster::usable() const { return checked(state_).processes->usable(); }
ClusterTransport Cluster::transport() const { return checked(state_).processes->transport(); }
Runtime& Cluster::runtime() const { return *checked(state_).runtime; }

template <class T>
ClusterMatrix<T> Cluster::distribute(const CsrView<T>& rows, std::int64_t first_row, const DistributeOptions& options)
{
    Communicator& processes = *checked(state_).processes;
    ClusterMatrix<T> matrix;
    matrix.state_ = std::make_shared<detail::ClusterMatrixState<T>>();
    detail::ClusterMatrixState<T>& state = *matrix.state_;
    state.cluster = state_;
    processes.together([&] {
        validate(rows);
        const auto began = std::chrono::steady_clock::now();
        const std::int64_t own[5] = {rows.rows, rows.cols, first_row, static_cast<std::int64_t>(sizeof(T)), rows.nnz};
        const std::vector<std::int64_t> all = processes.numbers_of_all(own);
        state.rows = offsets_of(all, 0);
        check_sizes(all, state.rows);
        state.columns = state.rows.back() == rows.cols ? state.rows : even_offsets(rows.cols, processes.size());
        state.nnz = offsets_of(all, 4).back();
        IndexArray columns;
        const cluster::Halo halo = rows.col_idx.visit([&](const auto* col_idx) {
            return cluster::find_halo(processes, state.columns, col_idx, rows.nnz, columns);
        });
        state.exchange = cluster::make_exchange(state_->processes, halo.receives, halo.sends, halo.sent, sizeof(T));
        state.halo.find_seconds = seconds_since(began);

        const auto found = std::chrono::steady_clock::now();
        const auto rank = static_cast<std::size_t>(processes.rank());
        const std::int64_t own_cols = state.columns[rank + 1] - state.columns[rank];
        GhostedRows<T> local;
        local.rows = {rows.rows,      own_cols + static_cast<std::int64_t>(halo.ghosts.size()),
                      rows.nnz,       rows.row_ptr,
                      columns.view(), rows.values};
        local.own_cols = own_cols;
        local.first_row = first_row;
        local.sent = halo.sent;
        local.exchange = state.exchange;
        local.processes = state_->processes;
        state.local = GhostedMatrix<T>(*state_->runtime, local, options);
        state.ghosts = halo.ghosts;
        state.halo.distribute_seconds = seconds_since(found);
    });
    return matrix;
}

template <class T>
ClusterRows<T> Cluster::scatter(const CsrMatrix<T>& whole, Balance balance)
{
    ClusterRows<T> own;
    Communicator& processes = *checked(state_).processes;
    processes.together([&] {
        own = cluster::scatter_rows(
            processes, whole, cluster::find_shares(processes, *state_->runtime, state_->weight, balance, sizeof(T)));
    });
    return own;
}

template <class T>
ClusterRows<T> Cluster::read(const std::string& path, const ReadOptions& options, ReadReport* report, Balance balance)
{
    ClusterRows<T> own;
    ReadReport how;
    Communicator& processes = *checked(state_).processes;
    processes.together([&] {
        own = cluster::read_rows<T>(
            processes, path, options,
            cluster::find_shares(processes, *state_->runtime, state_->weight, balance, sizeof(T)), how);
    });
    if (report != nullptr) {
        *report = how;
    }
    return own;
}

template <class T>
double Cluster::dot(const DistributedVector<T>& a, const DistributedVector<T>& b) const
{
    double result = 0;
    checked(state_).processes->guarded([&] {
        result = static_cast<double>(rmsp::dot(a, b));
        state_->processes->sum({&result, 1});
    });
    return result;
}

template <class T>
double Cluster::norm2(const DistributedVector<T>& a) const
{
    return std::sqrt(dot(a, a));
}

void Cluster::sum(std::span<double> numbers) const
{
    Communicator& processes = *checked(state_).processes;
    processes.guarded([&] {
        for (std::size_t first = 0; first < numbers.size(); first += 8) {
            processes.sum(numbers.subspan(first, std::min<std::size_t>(8, numbers.size() - first)));
        }
    });
}

#define RMSP_INSTANTIATE(T)                                                                                   \
    template ClusterMatrix<T> Cluster::distribute(const CsrView<T>&, std::int64_t, const DistributeOptions&); \
    template ClusterRows<T> Cluster::scatter(const CsrMatrix<T>&, Balance);                                   \
    template ClusterRows<T> Cluster::read(const std::string&, const ReadOptions&, ReadReport*, Balance);      \
    template double Cluster::dot(const DistributedVector<T>&, const DistributedVector<T>&) const;             \
    template double Cluster::norm2(const DistributedVector<T>&) const;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
