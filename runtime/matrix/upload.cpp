#include "runtime/matrix/upload.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <type_traits>

#include <kernels/steps/coarsening/coarsening.hpp>
#include <kernels/steps/support/support.hpp>

namespace rmsp::distributed {
template <class T>
void upload_values(Shard<T>& shard, engine::Worker& worker, const T* values)
{
    for (const Piece& piece : pieces_of(shard)) {
        T* const out = shard.values.data() + piece.position;
        const T* const from = values + piece.first;
        const auto bytes = static_cast<std::size_t>(piece.n) * sizeof(T);
        if constexpr (std::is_same_v<T, double>) {
            if (shard.owned.floats) {
                worker.device().upload(worker.stream(), out, bytes, engine::rounded_to_float(from));
                continue;
            }
        }
        worker.device().upload(worker.stream(), out, from, bytes);
    }
}

namespace {

template <class T>
void upload_indices(const Shard<T>& shard, engine::Worker& worker, IndexView indices, std::int64_t base,
                    std::int32_t* to)
{
    for (const Piece& piece : pieces_of(shard)) {
        std::int32_t* const out = to + piece.position;
        const auto bytes = static_cast<std::size_t>(piece.n) * sizeof(std::int32_t);
        indices.visit([&](const auto* index) {
            const auto* const from = index + piece.first;
            if constexpr (sizeof(*from) == sizeof(std::int32_t)) {
                worker.device().upload(worker.stream(), out, from, bytes);
            } else {
                // Narrowed on the way, so that the link carries half of it.
                worker.device().upload(worker.stream(), out, bytes, engine::narrowed(from, base));
            }
        });
    }
}

/// Builds the owned rows' local pointers: on the device from the caller's, whose slice is uploaded as it is (MSREP,
/// section 4.1), or on the way there.
template <class T>
IndexView build_row_pointers(Shard<T>& shard, engine::Worker& worker, engine::Rendezvous& meeting,
                             const plan::Stored<T>& a, RowPointers where, kernels::Memory& memory)
{
    const std::int64_t rows = shard.part.owned_rows();
    const std::int64_t start = shard.part.start_idx + shard.carry_nnz;
    const std::int64_t nnz = shard.part.nnz() - shard.carry_nnz;
    const auto context = worker.context();
    const std::size_t entry = nnz > std::numeric_limits<std::int32_t>::max() ? 8 : 4;
    shard.row_ptr = kernels::DeviceArray<std::byte>(memory, static_cast<std::size_t>(rows + 1) * entry);
    if (a.rows_on_devices()) {
        const auto gather = [&](auto* out) {
            a.resident->gather_row_ptr(worker, meeting, out);
            return IndexView(out);
        };
        return entry == 4 ? gather(reinterpret_cast<std::int32_t*>(shard.row_ptr.data()))
                          : gather(reinterpret_cast<std::int64_t*>(shard.row_ptr.data()));
    }

    const auto localize = [&](IndexView global) {
        if (entry == 4) {
            auto* const out = reinterpret_cast<std::int32_t*>(shard.row_ptr.data());
            kernels::localize_row_ptr(global, rows, start, nnz, out, context);
            return IndexView(out);
        }
        auto* const out = reinterpret_cast<std::int64_t*>(shard.row_ptr.data());
        kernels::localize_row_ptr(global, rows, start, nnz, out, context);
        return IndexView(out);
    };
    if (a.only_on_device()) {
        static constexpr std::int32_t none = 0;
        if (rows > 0) {
            return localize(a.device_row_ptr);
        }
        worker.device().upload(worker.stream(), shard.row_ptr.data(), &none, sizeof none);
        return IndexView(reinterpret_cast<const std::int32_t*>(shard.row_ptr.data()));
    }
    return a.row_ptr.visit([&](const auto* p) {
        const auto* const slice = p + shard.part.first_owned_row();
        if (worker.device().shares_host_memory()) {
            return localize(IndexView(slice));
        }
        if (where == RowPointers::host) {
            const auto bytes = static_cast<std::size_t>(rows + 1) * entry;
            const auto upload = [&](const auto* type) {
                worker.device().upload(worker.stream(), shard.row_ptr.data(), bytes,
                                       engine::localized(slice, start, nnz, type));
                return IndexView(reinterpret_cast<decltype(type)>(shard.row_ptr.data()));
            };
            return entry == 4 ? upload(static_cast<const std::int32_t*>(nullptr))
                              : upload(static_cast<const std::int64_t*>(nullptr));
        }
        using Pointer = std::remove_cvref_t<decltype(*p)>;
        kernels::DeviceArray<Pointer> staged(*context.memory, static_cast<std::size_t>(rows + 1));
        worker.device().upload(worker.stream(), staged.data(), slice,
                               static_cast<std::size_t>(rows + 1) * sizeof(Pointer));
        const IndexView local = localize(IndexView(staged.data()));
        worker.stream().synchronize();  // before `staged` goes
        return local;
    });
}

/// One past the last entry of the part's first row, which began in a part before.
template <class T>
std::int64_t end_of_first_row(const plan::Stored<T>& a, const PartialCsr& part)
{
    if (!a.coordinates) {
        return std::min(part.end_idx, a.row_ptr[part.start_row + 1]);
    }
    return a.row_idx.visit([&](const auto* row) -> std::int64_t {
        return std::upper_bound(row + part.start_idx, row + part.end_idx, part.start_row) - row;
    });
}

}  // namespace

template <class T>
void build_shard(MatrixState<T>& matrix, engine::Worker& worker, engine::Rendezvous& meeting, const plan::Stored<T>& a,
                 UploadProgress& progress)
{
    const DistributeOptions& options = matrix.options;
    const auto rank = static_cast<std::size_t>(worker.rank());
    engine::Device& device = worker.device();
    auto shard_owner = std::make_unique<Shard<T>>();
    Shard<T>& shard = *shard_owner;
    matrix.shards[rank] = std::move(shard_owner);
    ShardPlan& plan = matrix.plan.shards[rank];
    shard.part = plan.part;
    shard.owned.floats = options.values == StoredValues::floats;
    const std::int64_t nnz = shard.part.nnz();
    // What was made on devices goes where such memory was freed before: to map it anew takes longer than to fill it.
    kernels::Memory& memory = a.from_devices() ? *worker.context().memory : device;
    if (shard.part.start_flag) {
        shard.carry_nnz = end_of_first_row(a, shard.part) - shard.part.start_idx;
    }
    const bool coo = a.coordinates;
    const bool in_place = device.shares_host_memory() && a.col_idx.type() == IndexType::i32 &&
                          (!coo || a.row_idx.type() == IndexType::i32);
    if (matrix.origin.source && !in_place) {
        shard.owned.rows = shard.part.owned_rows();
        shard.streams = true;
        progress.add(static_cast<double>(nnz) * (sizeof(T) + sizeof(std::int32_t)));
        return;
    }

    const std::int32_t* rows = nullptr;
    const std::int32_t* columns = nullptr;
    const T* values = nullptr;
    std::int64_t owned_position = plan::whole_lines(shard.carry_nnz);
    if (in_place && a.device_values == nullptr && (options.borrow || matrix.origin.source)) {
        columns = static_cast<const std::int32_t*>(a.col_idx.data()) + shard.part.start_idx;
        values = a.values + shard.part.start_idx;
        rows = coo ? static_cast<const std::int32_t*>(a.row_idx.data()) + shard.part.start_idx : nullptr;
        owned_position = shard.carry_nnz;
    } else {
        const auto entries = static_cast<std::size_t>(owned_position + nnz - shard.carry_nnz);
        shard.col_idx = kernels::DeviceArray<std::int32_t>(memory, entries);
        shard.values = kernels::DeviceArray<T>(memory, entries);
        if (a.device_col_idx.data() != nullptr) {
            upload_indices(shard, worker, a.device_col_idx, plan.index_base, shard.col_idx.data());
        } else if (a.columns_on_devices) {
            a.resident->gather_columns(worker, meeting, shard.col_idx.data());
        } else {
            upload_indices(shard, worker, a.col_idx, plan.index_base, shard.col_idx.data());
        }
        if (coo) {
            shard.row_idx = kernels::DeviceArray<std::int32_t>(device, entries);
            upload_indices(shard, worker, a.row_idx, 0, shard.row_idx.data());
            rows = shard.row_idx.data();
        }
        progress.add(static_cast<double>(nnz) * sizeof(std::int32_t));
        if (a.resident != nullptr) {
            a.resident->gather(worker, meeting, shard.values.data());
        } else {
            upload_values(shard, worker, a.device_values != nullptr ? a.device_values : a.values);
        }
        progress.add(static_cast<double>(nnz) * sizeof(T));
        columns = shard.col_idx.data();
        values = shard.values.data();
    }

    shard.owned = {shard.part.owned_rows(),
                   plan.indices,
                   nnz - shard.carry_nnz,
                   {},
                   columns + owned_position,
                   values + owned_position,
                   shard.part.first_owned_row() - plan.index_base,
                   0,
                   shard.owned.floats};
    if (coo) {
        shard.owned_rows = rows + owned_position;
    } else {
        shard.owned.row_ptr = build_row_pointers(shard, worker, meeting, a, options.row_pointers, memory);
        if (a.only_on_device()) {
            shard.statistics = shard.owned.rows > 0 ? a.device_rows : RowStatistics{};
        } else if ((a.rows_on_devices() || a.columns_on_devices) && shard.owned.rows > 0) {
            shard.statistics =
                device.shares_host_memory()
                    ? row_statistics(shard.owned.rows, shard.owned.row_ptr)
                    : kernels::statistics_of_rows(shard.owned.rows, shard.owned.row_ptr, worker.context());
        } else if (shard.owned.rows > 0) {
            shard.statistics = a.row_ptr.visit([&](const auto* p) {
                return row_statistics(shard.owned.rows, IndexView(p + shard.part.first_owned_row()));
            });
        }
    }
    if (shard.carry_nnz > 0) {
        const std::int64_t pointers[2] = {0, shard.carry_nnz};
        shard.carry_row_ptr = kernels::DeviceArray<std::int64_t>(device, 2);
        device.upload(worker.stream(), shard.carry_row_ptr.data(), pointers, sizeof(pointers));
        shard.carry = {1, plan.indices, shard.carry_nnz, IndexView(shard.carry_row_ptr.data()), columns, values};
    }
    worker.stream().synchronize();
}

#define RMSP_INSTANTIATE(T)                                                                                  \
    template void upload_values(Shard<T>&, engine::Worker&, const T*);                                       \
    template void build_shard(MatrixState<T>&, engine::Worker&, engine::Rendezvous&, const plan::Stored<T>&, \
                              UploadProgress&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
