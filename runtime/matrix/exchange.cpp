#include "runtime/matrix/row_product.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <kernels/steps/ghosts/ghosts.hpp>

#include "runtime/plan/plan_exchange.hpp"

namespace rmsp::distributed {
/// The ghosts of each device while a matrix is distributed.
struct GhostSearch {
    explicit GhostSearch(int devices)
    {
        for (std::size_t message = 0; message < ghost_messages; ++message) {
            sets[message].resize(static_cast<std::size_t>(devices));
            lists[message].resize(static_cast<std::size_t>(devices));
        }
    }
    void clear_sets(std::size_t rank)
    {
        for (auto& of_devices : sets) {
            of_devices[rank] = {};
        }
    }
    // Of each message and device.
    std::array<std::vector<kernels::ColumnSet>, ghost_messages> sets;  ///< made, used and freed on the workers
    std::array<std::vector<std::vector<std::int32_t>>, ghost_messages> lists;
};

template <class T>
void RowProduct<T>::find_ghosts(engine::Worker& worker, GhostSearch& search)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const Shard<T>& shard = *matrix_.shards[rank];
    const auto context = worker.context();
    const std::int64_t base = matrix_.plan.shards[rank].index_base;
    kernels::ColumnSet set(shard.owned.cols, context);
    for (const Piece& piece : pieces_of(shard)) {
        kernels::add_outside(set, shard.col_idx.data() + piece.position, piece.n, x_slices_[rank] - base,
                             x_slices_[rank + 1] - base, context);
    }
    ghosts_[rank] = kernels::count_columns(set, context);
    search.sets[other_ghosts][rank] = std::move(set);
}

template <class T>
void RowProduct<T>::find_popular(engine::Worker& worker, GhostSearch& search)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const Shard<T>& shard = *matrix_.shards[rank];
    const auto context = worker.context();
    const std::int64_t base = matrix_.plan.shards[rank].index_base;
    kernels::ColumnUses uses(shard.owned.cols, context);
    for (const Piece& piece : pieces_of(shard)) {
        kernels::add_uses(uses, shard.col_idx.data() + piece.position, piece.n, x_slices_[rank] - base,
                          x_slices_[rank + 1] - base, context);
    }
    kernels::ColumnSet set(shard.owned.cols, context);
    kernels::take_popular(search.sets[other_ghosts][rank], set, uses, transport::most_popular_ghosts(sizeof(T)),
                          context);
    popular_[rank] = kernels::count_columns(set, context);
    kernels::count_columns(search.sets[other_ghosts][rank], context);
    search.sets[popular_ghosts][rank] = std::move(set);
}

template <class T>
void RowProduct<T>::renumber_shard(engine::Worker& worker, GhostSearch& search)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    engine::Device& device = worker.device();
    Shard<T>& shard = *matrix_.shards[rank];
    RowShard<T>& own = *shards_[rank];
    const auto context = worker.context();
    const std::int64_t base = matrix_.plan.shards[rank].index_base;
    for (const Piece& piece : pieces_of(shard)) {
        kernels::renumber_columns(search.sets[popular_ghosts][rank], search.sets[other_ghosts][rank],
                                  shard.col_idx.data() + piece.position, piece.n, x_slices_[rank] - base,
                                  x_slices_[rank + 1] - base, context);
    }
    own.ghosts = kernels::DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(ghosts_[rank]));
    const std::array<std::int64_t, ghost_messages + 1> ends{0, popular_[rank], ghosts_[rank]};
    for (std::size_t message = 0; message < ghost_messages; ++message) {
        std::int32_t* const columns = own.ghosts.data() + ends[message];
        kernels::list_columns(search.sets[message][rank], columns, context);
        auto& list = search.lists[message][rank];
        list.resize(static_cast<std::size_t>(ends[message + 1] - ends[message]));
        device.download(worker.stream(), list.data(), columns, list.size() * sizeof(std::int32_t));
        worker.stream().synchronize();
        for (std::int32_t& column : list) {
            column += static_cast<std::int32_t>(base);
        }
    }
    search.clear_sets(rank);
}

template <class T>
void RowProduct<T>::open_halo(engine::Worker& worker, const GhostSearch& search)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    engine::Device& device = worker.device();
    // Of the pool, which peers reach as they reach vectors: what they read is there once the stream has been waited
    // for.
    kernels::Memory& memory = *worker.context().memory;
    RowShard<T>& own = *shards_[rank];
    for (std::size_t i = 0; i < ghost_messages; ++i) {
        GhostMessage& message = messages_[i];
        PackedEntries<T>& packed = own.packed[i];
        const auto list = message.halo.packed(worker.rank(), search.lists[i], x_slices_);
        packed.list = kernels::DeviceArray<std::int32_t>(memory, list.size());
        device.upload(worker.stream(), packed.list.data(), list.data(), list.size() * sizeof(std::int32_t));
        packed.entries = kernels::DeviceArray<T>(memory, list.size());
        message.packed[rank] = packed.entries.data();
    }
    // Aligned as its slice is in an x by rows, since either may be what arrives there.
    constexpr std::int64_t line = 32;
    const std::int64_t first = x_slices_[rank];
    const std::int64_t begin = first / line * line;
    own.local_x =
        kernels::DeviceArray<T>(memory, static_cast<std::size_t>(x_slices_[rank + 1] - begin + ghosts_[rank]));
    worker.stream().synchronize();
    local_x_[rank] = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(own.local_x.data()) -
                                             static_cast<std::uintptr_t>(begin) * sizeof(T));
}

template <class T>
void RowProduct<T>::choose_exchange(Exchange wanted)
{
    RuntimeState& runtime = *matrix_.runtime;
    GhostSearch search(runtime.devices());
    const std::int64_t range = plan::largest_halo(matrix_.plan);
    const bool may_pay =
        wanted == Exchange::entries || (wanted == Exchange::automatic && transport::entries_pay(0, range, sizeof(T)));
    if (!may_pay || runtime.devices() == 1 || matrix_.columns.size() > std::numeric_limits<std::int32_t>::max()) {
        return;
    }
    runtime.submit([&](engine::Worker& worker, engine::Rendezvous&) { find_ghosts(worker, search); }).get();
    const std::int64_t entries = *std::max_element(ghosts_.begin(), ghosts_.end());
    by_entries_ = wanted == Exchange::entries || transport::entries_pay(entries, range, sizeof(T));
    if (!by_entries_) {
        std::fill(ghosts_.begin(), ghosts_.end(), 0);
        runtime
            .submit([&](engine::Worker& worker, engine::Rendezvous&) {
                search.clear_sets(static_cast<std::size_t>(worker.rank()));
            })
            .get();
        return;
    }
    hides_entries_ = transport::entries_worth_hiding(entries, sizeof(T));
    if (hides_entries_) {
        runtime.submit([&](engine::Worker& worker, engine::Rendezvous&) { find_popular(worker, search); }).get();
    }
    runtime.submit([&](engine::Worker& worker, engine::Rendezvous&) { renumber_shard(worker, search); }).get();
    for (std::size_t i = 0; i < ghost_messages; ++i) {
        const auto& lists = search.lists[i];
        GhostMessage& message = messages_[i];
        message.halo = transport::Halo(lists, x_slices_, sizeof(T),
                                       i == popular_ghosts ? std::span<const std::int64_t>() : popular_);
        message.packed.resize(lists.size());
        message.empty = std::all_of(lists.begin(), lists.end(), [](const auto& list) { return list.empty(); });
    }
    plan::set_ghosts(matrix_.plan, x_slices_, ghosts_);
    runtime.submit([&](engine::Worker& worker, engine::Rendezvous&) { open_halo(worker, search); }).get();
}

template <class T>
void RowProduct<T>::restore_columns(engine::Worker& worker, const std::int32_t* columns, std::int64_t n,
                                    std::int32_t* to) const
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const std::int64_t base = matrix_.plan.shards[rank].index_base;
    const std::int64_t first = by_entries_ ? x_slices_[rank] : base;
    const std::int64_t own = by_entries_ ? x_slices_[rank + 1] - first : std::numeric_limits<std::int64_t>::max();
    kernels::restore_columns(columns, n, first, own, shards_[rank]->ghosts.data(), base, to, worker.context());
}

#define RMSP_INSTANTIATE(T)                                                                                         \
    template void RowProduct<T>::choose_exchange(Exchange);                                                         \
    template void RowProduct<T>::restore_columns(engine::Worker&, const std::int32_t*, std::int64_t, std::int32_t*) \
        const;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::distributed
