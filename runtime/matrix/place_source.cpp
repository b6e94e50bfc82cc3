#include "runtime/matrix/place_source.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <numa/binding.hpp>
#include <numa/pages.hpp>

#include "core/clock.hpp"
#include "core/value_types.hpp"

namespace rmsp::distributed {
namespace {

using Bytes = std::span<const std::byte>;

/// What a device reads of an array with an entry for each nonzero.
Bytes entries_of(const void* array, std::size_t entry_bytes, const PartialCsr& part)
{
    return {static_cast<const std::byte*>(array) + static_cast<std::size_t>(part.start_idx) * entry_bytes,
            static_cast<std::size_t>(part.nnz()) * entry_bytes};
}

/// What a device reads of the rows' array, the columns and the values. Of row pointers those of its owned rows, so that
/// no two devices have the same.
template <class T>
std::array<Bytes, 3> read_by(const plan::Stored<T>& a, const Partition& partition, std::size_t rank)
{
    const PartialCsr& part = partition.parts[rank];
    Bytes rows;
    if (a.coordinates) {
        rows = entries_of(a.row_idx.data(), a.row_idx.element_bytes(), part);
    } else {
        const std::size_t entry = a.row_ptr.element_bytes();
        const std::int64_t end = rank + 1 == partition.parts.size() ? part.end_row + 1 : part.end_row;
        rows = {
            static_cast<const std::byte*>(a.row_ptr.data()) + static_cast<std::size_t>(part.first_owned_row()) * entry,
            static_cast<std::size_t>(std::max<std::int64_t>(0, end - part.first_owned_row())) * entry};
    }
    return {rows, entries_of(a.col_idx.data(), a.col_idx.element_bytes(), part), entries_of(a.values, sizeof(T), part)};
}

/// Room for `bytes`, whose pages lie where they are written first.
std::shared_ptr<std::byte> make_room(std::size_t bytes)
{
    return {static_cast<std::byte*>(numa::allocate_on_node(bytes, -1)),
            [bytes](std::byte* p) { numa::free_on_node(p, bytes); }};
}

IndexView same_type(IndexView like, const std::byte* data)
{
    return like.visit([&](const auto* p) { return IndexView(reinterpret_cast<decltype(p)>(data)); });
}

/// Where what the devices read lies, after it was placed.
template <class T>
std::string describe(const MatrixState<T>& matrix, const plan::Stored<T>& a, const std::vector<std::string>& reasons)
{
    const RuntimeState& runtime = *matrix.runtime;
    std::string text;
    for (std::size_t rank = 0; rank < matrix.shards.size(); ++rank) {
        const int own = runtime.infos[rank].numa_node;
        std::int64_t all = 0;
        std::int64_t near = 0;
        for (const Bytes range : read_by(a, matrix.plan.partition, rank)) {
            for (const auto& [node, bytes] : numa::nodes_of_pages(range.data(), range.size(), runtime.move_pages)) {
                all += bytes;
                near += node == own ? bytes : 0;
            }
        }
        const double share = all > 0 ? 100.0 * static_cast<double>(near) / static_cast<double>(all) : 100.0;
        text += fmt::format("{}device {} reads {:.1f} MB, {:.0f} % of them on its node{}", text.empty() ? "" : "; ",
                            rank, static_cast<double>(all) * 1e-6, share,
                            own >= 0 ? fmt::format(" {}", own) : ", which is not known");
        if (!reasons[rank].empty()) {
            text += fmt::format(" (some were not moved: {})", reasons[rank]);
        }
    }
    const StreamPlacement how = matrix.options.placement;
    return fmt::format("pages of the streamed matrix ({}): {}",
                       how == StreamPlacement::move   ? "moved"
                       : how == StreamPlacement::copy ? "copied"
                                                      : "kept",
                       text);
}

}  // namespace

template <class T>
plan::Stored<T> place_source(MatrixState<T>& matrix, const plan::Stored<T>& a)
{
    RuntimeState& runtime = *matrix.runtime;
    const StreamPlacement how = matrix.options.placement;
    const bool known = std::any_of(runtime.infos.begin(), runtime.infos.end(),
                                   [](const DeviceInfo& info) { return info.numa_node >= 0; });
    if (runtime.topology.nodes.size() < 2 || !known) {
        return a;
    }
    const auto begin = core::Clock::now();
    const Partition& partition = matrix.plan.partition;
    std::vector<std::string> reasons(matrix.shards.size());
    plan::Stored<T> placed = a;
    if (how == StreamPlacement::copy) {
        const auto entries = static_cast<std::size_t>(a.nnz);
        const std::size_t rows_bytes = a.coordinates ? entries * a.row_idx.element_bytes()
                                                     : static_cast<std::size_t>(a.rows + 1) * a.row_ptr.element_bytes();
        matrix.origin.copies = {make_room(rows_bytes), make_room(entries * a.col_idx.element_bytes()),
                                make_room(entries * sizeof(T))};
        matrix.origin.copied_values = a.values;
        const auto& copies = matrix.origin.copies;
        if (a.coordinates) {
            placed.row_idx = same_type(a.row_idx, copies[0].get());
        } else {
            placed.row_ptr = same_type(a.row_ptr, copies[0].get());
        }
        placed.col_idx = same_type(a.col_idx, copies[1].get());
        placed.values = reinterpret_cast<const T*>(copies[2].get());
    }
    runtime
        .submit([&](engine::Worker& worker, engine::Rendezvous&) {
            const auto rank = static_cast<std::size_t>(worker.rank());
            const int node = runtime.infos[rank].numa_node;
            const std::array<Bytes, 3> from = read_by(a, partition, rank);
            const std::array<Bytes, 3> to = read_by(placed, partition, rank);
            for (std::size_t i = 0; i < from.size(); ++i) {
                if (from[i].empty()) {
                    continue;
                }
                if (how == StreamPlacement::copy) {
                    auto* const out = const_cast<std::byte*>(to[i].data());
                    numa::prefer_node(out, to[i].size(), node);
                    std::memcpy(out, from[i].data(), from[i].size());
                } else if (how == StreamPlacement::move && node >= 0) {
                    const numa::Moved moved =
                        numa::move_to_node(from[i].data(), from[i].size(), node, runtime.move_pages);
                    if (reasons[rank].empty()) {
                        reasons[rank] = moved.reason;
                    }
                }
            }
        })
        .get();
    matrix.record.notes.push_back(describe(matrix, placed, reasons));
    matrix.record.setup.push_back({"place", {core::seconds_since(begin)}, true});
    return placed;
}

template <class T>
void renew_copy(const MatrixState<T>& matrix, const engine::Worker& worker)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const PartialCsr& part = matrix.plan.partition.parts[rank];
    const Bytes from = entries_of(matrix.origin.copied_values, sizeof(T), part);
    if (!from.empty()) {
        std::memcpy(matrix.origin.copies[2].get() + static_cast<std::size_t>(part.start_idx) * sizeof(T), from.data(),
                    from.size());
    }
}

#define RMSP_INSTANTIATE(T)                                                         \
    template plan::Stored<T> place_source(MatrixState<T>&, const plan::Stored<T>&); \
    template void renew_copy(const MatrixState<T>&, const engine::Worker&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
