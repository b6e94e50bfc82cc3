#include "apps/mspmv_mpi/prediction.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <vector>

#include <mpi.h>

#include <fmt/format.h>

#include <rmsp/value_types.hpp>

#include "apps/mspmv/cluster_plan.hpp"
#include "apps/mspmv/cluster_steps.hpp"
#include "apps/mspmv_mpi/doctor.hpp"

namespace rmsp::mpi {
namespace {

using Json = nlohmann::ordered_json;

/// Columns of own rows: those of the process from 0 on, then the others in their order, each once.
struct LocalColumns {
    IndexArray columns;
    std::int64_t count = 0;
    std::int64_t outside = 0;  ///< nonzeros in columns of others
};

template <class T>
LocalColumns local_columns(const CsrMatrix<T>& rows, std::int64_t first, std::int64_t end)
{
    LocalColumns out;
    rows.view().col_idx.visit([&](const auto* from) {
        const auto is_own = [&](std::int64_t column) { return column >= first && column < end; };
        std::vector<std::int64_t> ghosts;
        std::copy_if(from, from + rows.nnz(), std::back_inserter(ghosts),
                     [&](std::int64_t column) { return !is_own(column); });
        out.outside = static_cast<std::int64_t>(ghosts.size());
        std::sort(ghosts.begin(), ghosts.end());
        ghosts.erase(std::unique(ghosts.begin(), ghosts.end()), ghosts.end());
        out.count = end - first + static_cast<std::int64_t>(ghosts.size());
        out.columns = IndexArray(index_type_for(out.count), static_cast<std::size_t>(rows.nnz()));
        out.columns.visit([&](auto& to) {
            using Index = typename std::decay_t<decltype(to)>::value_type;
            std::transform(from, from + rows.nnz(), to.begin(), [&](std::int64_t column) {
                if (is_own(column)) {
                    return static_cast<Index>(column - first);
                }
                const auto ghost = std::lower_bound(ghosts.begin(), ghosts.end(), column) - ghosts.begin();
                return static_cast<Index>(end - first + ghost);
            });
        });
    });
    return out;
}

}  // namespace

template <class T>
OwnPart plan_own_part(Cluster& cluster, const ClusterMatrix<T>& a, const CsrMatrix<T>& rows,
                      const DistributeOptions& options)
{
    double wait = 0;
    cluster.sum({&wait, 1});  // devices that share a memory are measured together, as they multiply
    cluster.runtime().measure_limits();
    cluster.sum({&wait, 1});
    OwnPart part;
    part.network = measure_network(MPI_COMM_WORLD, {});
    const auto rank = static_cast<std::size_t>(cluster.rank());
    const LocalColumns local = local_columns(rows, a.column_offsets()[rank], a.column_offsets()[rank + 1]);
    const CsrView<T> own = rows.view();
    part.plan = cluster.runtime().plan(
        CsrView<T>{own.rows, local.count, own.nnz, own.row_ptr, local.columns.view(), own.values}, options);
    part.ghosts = static_cast<double>(a.halo().ghosts);
    part.messages = a.halo().receives_from;
    part.outside = own.nnz > 0 ? static_cast<double>(local.outside) / static_cast<double>(own.nnz) : 0;
    part.nonzeros_a_row = static_cast<double>(a.nnz()) / static_cast<double>(std::max<std::int64_t>(1, a.rows()));
    return part;
}

Json foretell(const Config& config, const OwnPart& part, const std::string& method, double measured_seconds)
{
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mspmv::StepCounts counts;
    if (!method.empty()) {
        try {
            counts = mspmv::count_steps(config, method, part.nonzeros_a_row);
        } catch (const Error& error) {
            // Alike on all processes, as it depends on the configuration alone.
            return {{"reason", error.what()}};
        }
    }
    Plan plan = part.plan;
    ClusterPlan& cluster = plan.cluster;
    cluster.nodes = size;
    cluster.network = part.network;
    cluster.products = counts.products;
    cluster.sums = counts.sums;
    cluster.sums_beside = counts.sums_beside;
    cluster.vector_bytes = counts.vector_bytes;
    const ClusterStep step = mspmv::predict_step(plan, {part.ghosts, part.messages, part.outside});
    const std::array<double, 5> own{step.seconds, step.bytes_seconds, step.exchange_seconds, step.latency_seconds,
                                    step.launch_seconds};
    std::vector<double> all(own.size() * static_cast<std::size_t>(size));
    MPI_Gather(own.data(), static_cast<int>(own.size()), MPI_DOUBLE, all.data(), static_cast<int>(own.size()),
               MPI_DOUBLE, 0, MPI_COMM_WORLD);
    std::size_t slowest = 0;
    for (std::size_t p = 0; p < all.size(); p += own.size()) {
        slowest = all[p] > all[slowest] ? p : slowest;
    }
    const double* const of = &all[slowest];
    if (rank == 0 && !(of[0] > 0)) {
        return {{"reason", "the matrix has no nonzeros, or the bandwidth of the devices is not known"}};
    }
    Json predicted{{"seconds", of[0]},
                   {"bytes_seconds", of[1]},
                   {"exchange_seconds", of[2]},
                   {"latency_seconds", of[3]},
                   {"launch_seconds", of[4]},
                   {"process", slowest / own.size()},
                   {"bandwidth_gbs", part.network.bandwidth_gbs},
                   {"latency_us", part.network.latency_us}};
    if (measured_seconds > 0) {
        predicted["error"] = of[0] / measured_seconds - 1;
    }
    return predicted;
}

std::string predicted_text(const Json& predicted, const char* step)
{
    if (!predicted.contains("seconds")) {
        return fmt::format("predicted  nothing: {}\n", predicted.value("reason", ""));
    }
    const auto microseconds = [&](const char* key) { return predicted[key].get<double>() * 1e6; };
    std::string text = fmt::format(
        "predicted  {:.4g} us {} {}, of process {}: bytes {:.4g}, exchange {:.4g}, latency {:.4g}, launches {:.4g} "
        "us\n",
        microseconds("seconds"), *step == 'i' ? "an" : "a", step, predicted["process"].get<int>(),
        microseconds("bytes_seconds"), microseconds("exchange_seconds"), microseconds("latency_seconds"),
        microseconds("launch_seconds"));
    if (predicted.contains("error")) {
        text += fmt::format("           error against what was measured: {:+.1f} %\n",
                            100 * predicted["error"].get<double>());
    }
    return text;
}

#define RMSP_INSTANTIATE(T) \
    template OwnPart plan_own_part(Cluster&, const ClusterMatrix<T>&, const CsrMatrix<T>&, const DistributeOptions&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::mpi
