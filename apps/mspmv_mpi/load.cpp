#include "apps/mspmv_mpi/load.hpp"

#include <rmsp/value_types.hpp>

#include "apps/mspmv_mpi/vectors.hpp"

namespace rmsp::mpi {
namespace {

/// The key by which the matrix is another one than the file's; null: there is none.
const char* changed_by(const Config::Matrix& config)
{
    return config.plus_identity          ? "matrix.plus_identity"
           : config.kron != 1            ? "matrix.kron"
           : config.values != "auto"     ? "matrix.values"
           : config.renumber             ? "matrix.renumber"
           : !config.permutation.empty() ? "matrix.permutation"
                                         : nullptr;
}

}  // namespace

template <class T>
ClusterRows<T> load_rows(Cluster& cluster, const Config::Matrix& config, Balance balance,
                         HostVector<std::int64_t>* row_at, nlohmann::ordered_json& report, nlohmann::ordered_json& own)
{
    const char* const key = changed_by(config);
    if (!config.file.empty() && key == nullptr) {
        ReadOptions options;
        options.max_bytes = config.max_bytes;
        ReadReport how;
        ClusterRows<T> rows = cluster.read<T>(config.file, options, &how, balance);
        report["read"] = {{"in_parts", how.in_parts}, {"reason", how.reason}};
        own["entries_read"] = how.entries;
        own["entries_sent"] = how.sent;
        return rows;
    }
    CsrMatrix<T> whole;
    on_first(MPI_COMM_WORLD, [&] { whole = load_matrix<T>(config, {}, row_at); });
    if (!config.file.empty()) {
        report["read"] = {{"in_parts", false}, {"reason", std::string(key) + " needs the whole matrix"}};
        own["entries_read"] = whole.nnz();
        own["entries_sent"] = whole.nnz();
    }
    ClusterRows<T> rows = cluster.scatter(whole, balance);
    if (own.contains("entries_sent") && cluster.rank() == 0) {
        own["entries_sent"] = whole.nnz() - rows.rows.nnz();
    }
    return rows;
}

#define RMSP_INSTANTIATE(T)                                                                                \
    template ClusterRows<T> load_rows(Cluster&, const Config::Matrix&, Balance, HostVector<std::int64_t>*, \
                                      nlohmann::ordered_json&, nlohmann::ordered_json&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::mpi
