#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/spgemm/factors.hpp"

/// One device's part of a product. Everything here is called on the device's worker.
namespace rmsp::spgemm {

/// Rows of C that went to the host.
template <class T>
struct HostRows {
    std::int64_t first_row = 0;
    HostVector<std::int64_t> row_ptr;  ///< from 0
    HostVector<std::int32_t> col_idx;
    HostVector<T> values;
};

/// Made, used and freed on the device's worker.
template <class T>
struct ProductPart {
    ProductPart(std::unique_ptr<kernels::Memory> memory, std::int64_t limit)
        : pool(std::move(memory)), budget(*pool, limit, "a product")
    {
    }

    std::unique_ptr<kernels::Memory> pool;
    engine::MemoryBudget budget;  ///< of the pool
    std::int64_t first_row = 0;
    std::int64_t end_row = 0;
    RowSelection b_rows;
    DeviceRows<T> a;
    DeviceRows<T> b;
    std::unique_ptr<kernels::SpgemmOperator<T>> product;
    kernels::DeviceArray<std::int32_t> col_idx;  ///< of C
    kernels::DeviceArray<T> values;
    bool columns_known = false;       ///< col_idx is filled
    std::vector<HostRows<T>> chunks;  ///< instead, where the part is computed in runs
    /// Takes runs to the host while the next are computed: another queue and another pinned ring of the same device.
    std::unique_ptr<engine::Worker> copier;
};

inline kernels::Context context_of(engine::Worker& worker, engine::MemoryBudget& memory)
{
    kernels::Context context = worker.context();
    context.memory = &memory;
    return context;
}

/// The structure of a product of two matrices on the device, by the kernel that the options name. `known`: of its
/// rows.
template <class T>
std::unique_ptr<kernels::SpgemmOperator<T>> prepare_product(engine::Worker& worker, engine::MemoryBudget& memory,
                                                            const SpgemmOptions& options, const DeviceRows<T>& a,
                                                            const DeviceRows<T>& b, kernels::KnownProducts known);

/// \throws Error(internal) if the kernel did not count what the plan did
template <class T>
void check_counts(const kernels::SpgemmOperator<T>& product, std::int64_t products, std::int64_t cols);

/// Gives up the product and its factors, as far as the part has them; on the worker.
template <class T>
void clear(ProductPart<T>& part);

struct PartSeconds {
    double gather = 0;  ///< of B, from the other devices
    double upload = 0;
    double symbolic = 0;  ///< memory for C included
};

/// Makes the part ready, and decides whether C stays on the device: if not, shard.chunks is more than one and there is
/// no part.product. Every worker of the job calls it.
template <class T>
PartSeconds build_part(const Factors<T>& factors, SpgemmShardPlan& shard, ProductPart<T>& part, engine::Worker& worker,
                       engine::Rendezvous& meeting);

/// Memory that C of a part takes, all of its columns and values known.
template <class T>
constexpr std::int64_t bytes_of_c(const SpgemmShardPlan& shard)
{
    constexpr auto entry_bytes = static_cast<std::int64_t>(sizeof(T) + sizeof(std::int32_t));
    return shard.c_nnz * entry_bytes + (shard.end_row - shard.first_row + 1) * 8;
}

/// Queues new values of A; of B they are given as far as they are A's, too.
template <class T>
void renew_a(const Factors<T>& factors, ProductPart<T>& part, engine::Worker& worker, const T* a_values,
             const T* b_values);
/// Queues new values of B. Every worker of the job calls it.
template <class T>
void renew_b(const Factors<T>& factors, ProductPart<T>& part, engine::Worker& worker, engine::Rendezvous& meeting,
             const T* values);

/// Queues the values of C, and its columns if they are not there yet.
template <class T>
void fill_or_renew(ProductPart<T>& part, engine::Worker& worker, T alpha);

}  // namespace rmsp::spgemm
