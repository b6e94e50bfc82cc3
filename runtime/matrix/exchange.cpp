#include "runtime/matrix/exchange.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <kernels/steps/ghosts/ghosts.hpp>

#include "runtime/plan/plan_exchange.hpp"

namespace rmsp::detail {
namespace {

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

/// Counts the columns of the shard outside the device's slice of x.
template <class T>
void find_ghosts(MatrixState<T>& matrix, engine::Worker& worker, GhostSearch& search)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const Shard<T>& shard = *matrix.shards[rank];
    const auto context = worker.context();
    const std::int64_t base = matrix.plan.shards[rank].index_base;
    kernels::ColumnSet set(shard.owned.cols, context);
    for (const Piece& piece : pieces_of(shard)) {
        kernels::add_outside(set, shard.col_idx.data() + piece.position, piece.n, matrix.x_slices[rank] - base,
                             matrix.x_slices[rank + 1] - base, context);
    }
    matrix.ghosts[rank] = kernels::count_columns(set, context);
    search.sets[other_ghosts][rank] = std::move(set);
}

/// Divides the ghosts into the popular ones and the others.
template <class T>
void find_popular(MatrixState<T>& matrix, engine::Worker& worker, GhostSearch& search)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const Shard<T>& shard = *matrix.shards[rank];
    const auto context = worker.context();
    const std::int64_t base = matrix.plan.shards[rank].index_base;
    kernels::ColumnUses uses(shard.owned.cols, context);
    for (const Piece& piece : pieces_of(shard)) {
        kernels::add_uses(uses, shard.col_idx.data() + piece.position, piece.n, matrix.x_slices[rank] - base,
                          matrix.x_slices[rank + 1] - base, context);
    }
    kernels::ColumnSet set(shard.owned.cols, context);
    kernels::take_popular(search.sets[other_ghosts][rank], set, uses, transport::most_popular_ghosts(sizeof(T)),
                          context);
    matrix.popular[rank] = kernels::count_columns(set, context);
    kernels::count_columns(search.sets[other_ghosts][rank], context);
    search.sets[popular_ghosts][rank] = std::move(set);
}

/// Numbers the columns of the shard anew, the ghosts behind the device's slice of x, and lists the ghosts.
template <class T>
void renumber_shard(MatrixState<T>& matrix, engine::Worker& worker, GhostSearch& search)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    engine::Device& device = worker.device();
    Shard<T>& shard = *matrix.shards[rank];
    const auto context = worker.context();
    const std::int64_t base = matrix.plan.shards[rank].index_base;
    for (const Piece& piece : pieces_of(shard)) {
        kernels::renumber_columns(search.sets[popular_ghosts][rank], search.sets[other_ghosts][rank],
                                  shard.col_idx.data() + piece.position, piece.n, matrix.x_slices[rank] - base,
                                  matrix.x_slices[rank + 1] - base, context);
    }
    shard.ghosts = kernels::DeviceArray<std::int32_t>(device, static_cast<std::size_t>(matrix.ghosts[rank]));
    const std::array<std::int64_t, ghost_messages + 1> ends{0, matrix.popular[rank], matrix.ghosts[rank]};
    for (std::size_t message = 0; message < ghost_messages; ++message) {
        std::int32_t* const columns = shard.ghosts.data() + ends[message];
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

/// Makes what a device needs to send and to receive entries.
template <class T>
void open_halo(MatrixState<T>& matrix, engine::Worker& worker, const GhostSearch& search)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    engine::Device& device = worker.device();
    Shard<T>& shard = *matrix.shards[rank];
    for (std::size_t i = 0; i < ghost_messages; ++i) {
        GhostMessage& message = matrix.messages[i];
        PackedEntries<T>& packed = shard.packed[i];
        const auto list = message.halo.packed(worker.rank(), search.lists[i], matrix.x_slices);
        packed.list = kernels::DeviceArray<std::int32_t>(device, list.size());
        device.upload(worker.stream(), packed.list.data(), list.data(), list.size() * sizeof(std::int32_t));
        packed.entries = kernels::DeviceArray<T>(device, list.size());
        message.packed[rank] = packed.entries.data();
    }
    // Aligned as its slice is in an x by rows, since either may be what arrives there.
    constexpr std::int64_t line = 32;
    const std::int64_t first = matrix.x_slices[rank];
    const std::int64_t begin = first / line * line;
    shard.local_x = kernels::DeviceArray<T>(
        device, static_cast<std::size_t>(matrix.x_slices[rank + 1] - begin + matrix.ghosts[rank]));
    matrix.local_x[rank] = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(shard.local_x.data()) -
                                                   static_cast<std::uintptr_t>(begin) * sizeof(T));
}

}  // namespace

template <class T>
void choose_exchange(MatrixState<T>& matrix, Exchange wanted)
{
    RuntimeState& runtime = *matrix.runtime;
    GhostSearch search(runtime.devices());
    const std::int64_t range = largest_halo(matrix.plan);
    const bool may_pay =
        wanted == Exchange::entries || (wanted == Exchange::automatic && transport::entries_pay(0, range, sizeof(T)));
    if (!may_pay || runtime.devices() == 1 || matrix.columns.size() > std::numeric_limits<std::int32_t>::max()) {
        return;
    }
    runtime.submit([&](engine::Worker& worker, engine::Rendezvous&) { find_ghosts(matrix, worker, search); }).get();
    const std::int64_t entries = *std::max_element(matrix.ghosts.begin(), matrix.ghosts.end());
    matrix.by_entries = wanted == Exchange::entries || transport::entries_pay(entries, range, sizeof(T));
    if (!matrix.by_entries) {
        std::fill(matrix.ghosts.begin(), matrix.ghosts.end(), 0);
        runtime
            .submit([&](engine::Worker& worker, engine::Rendezvous&) {
                search.clear_sets(static_cast<std::size_t>(worker.rank()));
            })
            .get();
        return;
    }
    matrix.hides_entries = transport::entries_worth_hiding(entries, sizeof(T));
    if (matrix.hides_entries) {
        runtime.submit([&](engine::Worker& worker, engine::Rendezvous&) { find_popular(matrix, worker, search); })
            .get();
    }
    runtime.submit([&](engine::Worker& worker, engine::Rendezvous&) { renumber_shard(matrix, worker, search); }).get();
    for (std::size_t i = 0; i < ghost_messages; ++i) {
        const auto& lists = search.lists[i];
        GhostMessage& message = matrix.messages[i];
        message.halo = transport::Halo(lists, matrix.x_slices, sizeof(T),
                                       i == popular_ghosts ? std::span<const std::int64_t>() : matrix.popular);
        message.packed.resize(lists.size());
        message.empty = std::all_of(lists.begin(), lists.end(), [](const auto& list) { return list.empty(); });
    }
    set_ghosts(matrix.plan, matrix.x_slices, matrix.ghosts);
    runtime.submit([&](engine::Worker& worker, engine::Rendezvous&) { open_halo(matrix, worker, search); }).get();
}

template void choose_exchange(MatrixState<float>&, Exchange);
template void choose_exchange(MatrixState<double>&, Exchange);

}  // namespace rmsp::detail
