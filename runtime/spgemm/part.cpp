#include "runtime/spgemm/part.hpp"

#include <limits>

#include <fmt/format.h>

#include <kernels/steps/support/support.hpp>

#include "core/clock.hpp"
#include "runtime/spgemm/plan.hpp"
#include "runtime/spgemm/work.hpp"

namespace rmsp::spgemm {

template <class T>
std::unique_ptr<kernels::SpgemmOperator<T>> prepare_product(engine::Worker& worker, engine::MemoryBudget& memory,
                                                            const SpgemmOptions& options, const DeviceRows<T>& left,
                                                            const DeviceRows<T>& right, kernels::KnownProducts known)
{
    const kernels::CsrShard<T>& a = left.shard;
    const kernels::CsrShard<T>& b = right.shard;
    const kernels::SpgemmKernel<T>& kernel =
        kernels::choose_spgemm<T>(worker.device().info().kind, options.kernel, options.determinism);
    if (const char* const why = kernel.unsupported == nullptr ? nullptr : kernel.unsupported(a, b); why != nullptr) {
        throw Error(ErrorCode::usage,
                    fmt::format("SpGEMM kernel \"{}\" cannot multiply {} x {} ({} nonzeros) by {} x {} ({}): {}",
                                kernel.info.name, a.rows, a.cols, a.nnz, b.rows, b.cols, b.nnz, why));
    }
    return kernel.prepare(a, b, {options.accumulator, memory.left(), right.filled, right.selected, left.in_b, known},
                          context_of(worker, memory));
}

template <class T>
void check_counts(const kernels::SpgemmOperator<T>& product, std::int64_t products, std::int64_t cols)
{
    if (product.products() != products || product.nnz() < 0 || product.nnz() > products ||
        (cols == 0 && product.nnz() > 0)) {
        throw Error(ErrorCode::internal,
                    fmt::format("the SpGEMM kernel found {} products and {} entries where {} products were planned",
                                product.products(), product.nnz(), products));
    }
}

template <class T>
void fill_or_renew(ProductPart<T>& part, engine::Worker& worker, T alpha)
{
    const kernels::Context context = context_of(worker, part.budget);
    if (part.columns_known) {
        part.product->numeric(alpha, part.a.shard.values, part.b.shard.values, part.col_idx.data(), part.values.data(),
                              context);
    } else {
        part.product->fill(alpha, part.a.shard.values, part.b.shard.values, part.col_idx.data(), part.values.data(),
                           context);
        part.columns_known = true;
    }
}

namespace {

std::size_t pointer_bytes(std::int64_t nnz)
{
    return nnz > std::numeric_limits<std::int32_t>::max() ? sizeof(std::int64_t) : sizeof(std::int32_t);
}

/// Row pointers of the part's rows of B, all of them between two, from the devices that have them. Every worker of the
/// job calls it.
template <class T>
void exchange_pointers(const Factors<T>& factors, const PointerExchange::Room& room, ProductPart<T>& part,
                       engine::Worker& worker, engine::Rendezvous& meeting)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const std::int64_t first = part.b_rows.runs.empty() ? 0 : part.b_rows.runs.front().first;
    factors.pointers->gather(worker, meeting, factors.resident_b->parts[rank].row_ptr, room, [&](IndexView global) {
        const auto spread = [&]<class Pointer>(Pointer* to) {
            kernels::spread_row_ptr(global, first, part.b_rows.rows, factors.b.rows, factors.exchange->here[rank].first,
                                    part.b_rows.nnz, to, worker.context());
            part.b.shard.row_ptr = IndexView(static_cast<const Pointer*>(to));
        };
        if (pointer_bytes(part.b_rows.nnz) == sizeof(std::int32_t)) {
            spread(reinterpret_cast<std::int32_t*>(part.b.row_ptr.data()));
        } else {
            spread(reinterpret_cast<std::int64_t*>(part.b.row_ptr.data()));
        }
    });
}

/// A, B and the structure of C of all rows of the part, and memory for C.
template <class T>
void build_whole(const Factors<T>& factors, const SpgemmShardPlan& shard, ProductPart<T>& part, engine::Worker& worker,
                 PartSeconds& seconds)
{
    const auto begin = core::Clock::now();
    if (factors.in_place && !factors.exchange) {
        const FactorPart<T>& there = factors.resident_b->parts.front();
        part.b.describe(part.b_rows,
                        {factors.b.rows, factors.b.cols, factors.b.nnz, there.row_ptr, there.col_idx, there.values});
    } else if (factors.exchange && !factors.exchange->given_up) {
        take_exchanged(*factors.exchange, factors.b, part.b_rows, part.budget, part.b, worker);
    } else {
        upload_rows(worker, part.budget, factors.b, part.b_rows, 0, factors.b.rows, part.b);
    }
    if (factors.resident_a && factors.resident_a->in_place()) {
        const FactorPart<T>& there = factors.resident_a->parts[static_cast<std::size_t>(worker.rank())];
        part.a.shard = {
            part.end_row - part.first_row, factors.a.cols, shard.a_nnz, there.row_ptr, there.col_idx, there.values};
    } else {
        upload_a(worker, part.budget, factors.a, factors.b, part.first_row, part.end_row, part.b_rows, part.b, part.a);
    }
    worker.stream().synchronize();
    seconds.upload = core::seconds_since(begin);
    part.product = prepare_product(worker, part.budget, factors.options, part.a, part.b,
                                   known_products(factors.work, part.first_row, part.end_row));
    check_counts(*part.product,
                 factors.in_place ? part.product->products() : products_of(factors.work, part.first_row, part.end_row),
                 factors.b.cols);
    const auto nnz = static_cast<std::size_t>(part.product->nnz());
    part.col_idx = kernels::DeviceArray<std::int32_t>(part.budget, nnz);
    part.values = kernels::DeviceArray<T>(part.budget, nnz);
    worker.stream().synchronize();
    seconds.symbolic = core::seconds_since(begin) - seconds.upload;
}

}  // namespace

template <class T>
void clear(ProductPart<T>& part)
{
    part.col_idx.reset();
    part.values.reset();
    part.product.reset();
    part.a = {};
    part.b = {};
    part.columns_known = false;
}

template <class T>
PartSeconds build_part(const Factors<T>& factors, SpgemmShardPlan& shard, ProductPart<T>& part, engine::Worker& worker,
                       engine::Rendezvous& meeting)
{
    PartSeconds seconds;
    if (factors.exchange) {
        const auto begin = core::Clock::now();
        EntryExchange& exchange = *factors.exchange;
        PointerExchange::Room room;
        const auto room_for_pointers = [&] {
            if (factors.pointers) {
                room = factors.pointers->make_room(worker);
                part.b.row_ptr = kernels::DeviceArray<std::byte>(
                    part.budget, (static_cast<std::size_t>(factors.b.rows) + 1) * pointer_bytes(part.b_rows.nnz));
            }
        };
        if (make_room(exchange, part.budget, part.b, worker, meeting, room_for_pointers)) {
            exchange_columns(exchange, factors.b, worker, meeting);
            exchange_values(exchange, factors.b.values, worker, meeting);
            if (factors.pointers) {
                exchange_pointers(factors, room, part, worker, meeting);
                if (!exchange.needed[static_cast<std::size_t>(worker.rank())].empty()) {
                    factors.resident_b->let_go(worker);
                }
            }
            worker.stream().synchronize();
        } else if (exchange.of_resident()) {
            shard.chunks = runs_of(shard);
        }
        seconds.gather = core::seconds_since(begin);
    }
    if (shard.chunks > 1) {
        return seconds;
    }
    try {
        build_whole(factors, shard, part, worker, seconds);
        shard.c_nnz = part.product->nnz();
        shard.c_bytes = bytes_of_c<T>(shard);
    } catch (const Error& e) {
        // The estimate was too low, or others took memory since.
        if (e.code() != ErrorCode::out_of_memory || part.end_row - part.first_row < 2) {
            throw;
        }
        clear(part);
        shard.chunks = runs_of(shard);
    }
    shard.peak_bytes = part.budget.peak();
    return seconds;
}

template <class T>
void renew_a(const Factors<T>& factors, ProductPart<T>& part, engine::Worker& worker, const T* a_values,
             const T* b_values)
{
    const RowSelection a_rows = consecutive(factors.a, part.first_row, part.end_row);
    if (part.a.values.size() == 0 && a_rows.nnz > 0 && a_values != b_values) {
        // A's values were a part of B's; they are two matrices from now on.
        part.a.values = kernels::DeviceArray<T>(part.budget, static_cast<std::size_t>(a_rows.nnz));
        worker.stream().copy(part.a.values.data(), part.a.shard.values,
                             static_cast<std::size_t>(a_rows.nnz) * sizeof(T));
        part.a.shard.values = part.a.values.data();
    }
    if (a_values != nullptr && part.a.values.size() > 0) {
        upload_values(worker, factors.a.row_ptr, a_rows, a_values, part.a.values.data());
    }
}

template <class T>
void renew_b(const Factors<T>& factors, ProductPart<T>& part, engine::Worker& worker, engine::Rendezvous& meeting,
             const T* values)
{
    if (factors.exchange && !factors.exchange->given_up) {
        exchange_values(*factors.exchange, values, worker, meeting);
    } else if (part.product && !factors.in_place) {
        upload_values(worker, factors.b.row_ptr, part.b_rows, values, part.b.values.data());
    }
}

#define RMSP_INSTANTIATE(T)                                                                                       \
    template void clear(ProductPart<T>&);                                                                         \
    template std::unique_ptr<kernels::SpgemmOperator<T>> prepare_product(                                         \
        engine::Worker&, engine::MemoryBudget&, const SpgemmOptions&, const DeviceRows<T>&, const DeviceRows<T>&, \
        kernels::KnownProducts);                                                                                  \
    template void check_counts(const kernels::SpgemmOperator<T>&, std::int64_t, std::int64_t);                    \
    template PartSeconds build_part(const Factors<T>&, SpgemmShardPlan&, ProductPart<T>&, engine::Worker&,        \
                                    engine::Rendezvous&);                                                         \
    template void renew_a(const Factors<T>&, ProductPart<T>&, engine::Worker&, const T*, const T*);               \
    template void renew_b(const Factors<T>&, ProductPart<T>&, engine::Worker&, engine::Rendezvous&, const T*);    \
    template void fill_or_renew(ProductPart<T>&, engine::Worker&, T);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
