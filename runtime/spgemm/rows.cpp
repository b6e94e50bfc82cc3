#include "runtime/spgemm/rows.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <type_traits>

namespace rmsp::spgemm {
namespace {

/// The run that holds selected entry `entry`.
const RowRun& run_of(const RowSelection& selection, std::int64_t entry)
{
    return *(std::upper_bound(selection.runs.begin(), selection.runs.end(), entry,
                              [](std::int64_t e, const RowRun& run) { return e < run.nnz_before; }) -
             1);
}

/// Writes local row pointers [begin, begin + n) of `rows` + 1, where row 0 is row first_row of the matrix: a row that
/// is not selected is empty.
template <class Index, class RowPtr>
void fill_row_pointers(const RowPtr* row_ptr, const RowSelection& selection, std::int64_t first_row, std::int64_t begin,
                       std::int64_t n, Index* out)
{
    auto run = std::upper_bound(selection.runs.begin(), selection.runs.end(), first_row + begin,
                                [](std::int64_t row, const RowRun& r) { return row < r.end; });
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t row = first_row + begin + i;
        while (run != selection.runs.end() && row >= run->end) {
            ++run;
        }
        // At a run's end the next one's count is the same number.
        std::int64_t pointer = run == selection.runs.end() ? selection.nnz : run->nnz_before;
        if (run != selection.runs.end() && row > run->first) {
            pointer += std::int64_t{row_ptr[row]} - row_ptr[run->first];
        }
        out[i] = static_cast<Index>(pointer);
    }
}

/// Copies selected entries [begin, begin + n) of an array that has one for each nonzero, converted to Out.
template <class Out, class In>
void fill_entries(IndexView row_ptr, const RowSelection& selection, const In* from, std::int64_t begin, std::int64_t n,
                  Out* out)
{
    const RowRun* run = &run_of(selection, begin);
    for (std::int64_t done = 0; done < n; ++run) {
        const std::int64_t into = begin + done - run->nnz_before;
        const std::int64_t first = row_ptr[run->first] + into;
        const std::int64_t count = std::min(n - done, row_ptr[run->end] - first);
        if constexpr (std::is_same_v<Out, In>) {
            std::memcpy(out + done, from + first, static_cast<std::size_t>(count) * sizeof(Out));
        } else {
            for (std::int64_t i = 0; i < count; ++i) {
                out[done + i] = static_cast<Out>(from[first + i]);
            }
        }
        done += count;
    }
}

template <class Out, class In>
void upload_entries(engine::Worker& worker, IndexView row_ptr, const RowSelection& selection, const In* from, Out* to)
{
    engine::Device& device = worker.device();
    const std::size_t bytes = static_cast<std::size_t>(selection.nnz) * sizeof(Out);
    if (bytes == 0) {
        return;
    }
    if constexpr (std::is_same_v<Out, In>) {
        if (selection.runs.size() == 1) {
            device.upload(worker.stream(), to, from + row_ptr[selection.runs.front().first], bytes);
            return;
        }
    }
    device.upload(worker.stream(), to, bytes, [&](std::byte* out, std::size_t begin, std::size_t n) {
        fill_entries(row_ptr, selection, from, static_cast<std::int64_t>(begin / sizeof(Out)),
                     static_cast<std::int64_t>(n / sizeof(Out)), reinterpret_cast<Out*>(out));
    });
}

}  // namespace

template <class T>
RowSelection select_rows(const CsrView<T>& a, std::int64_t first_row, std::int64_t end_row, const CsrView<T>& b,
                         int threads)
{
    const std::int64_t begin = a.row_ptr[first_row];
    const std::int64_t end = a.row_ptr[end_row];
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = -1;
    a.col_idx.visit([&](const auto* col) {
#pragma omp parallel for num_threads(threads) reduction(min : first) reduction(max : last) schedule(static)
        for (std::int64_t i = begin; i < end; ++i) {
            first = std::min<std::int64_t>(first, col[i]);
            last = std::max<std::int64_t>(last, col[i]);
        }
    });
    RowSelection selection;
    if (last < first) {
        return selection;
    }
    HostVector<std::uint8_t> touched(static_cast<std::size_t>(last - first + 1));
    std::int64_t rows = 0;
    std::int64_t nnz = 0;
    a.col_idx.visit([&](const auto* col) {
#pragma omp parallel num_threads(threads)
        {
#pragma omp for schedule(static)
            for (std::int64_t k = 0; k <= last - first; ++k) {
                touched[static_cast<std::size_t>(k)] = 0;
            }
#pragma omp for schedule(static)
            for (std::int64_t i = begin; i < end; ++i) {
                std::atomic_ref flag(touched[static_cast<std::size_t>(col[i] - first)]);
                // Most are set already: reading leaves the line shared.
                if (flag.load(std::memory_order_relaxed) == 0) {
                    flag.store(1, std::memory_order_relaxed);
                }
            }
#pragma omp for schedule(static) reduction(+ : rows, nnz)
            for (std::int64_t k = first; k <= last; ++k) {
                if (touched[static_cast<std::size_t>(k - first)] != 0) {
                    ++rows;
                    nnz += b.row_ptr[k + 1] - b.row_ptr[k];
                }
            }
        }
    });
    const std::int64_t between = b.row_ptr[last + 1] - b.row_ptr[first];
    if (b_is_on_devices(b) || between - nnz <= between / 8) {
        selection.runs.push_back({first, last + 1, 0});
        selection.rows = last + 1 - first;
        selection.nnz = between;
        return selection;
    }
    selection.rows = rows;
    for (std::int64_t k = first; k <= last; ++k) {
        if (touched[static_cast<std::size_t>(k - first)] == 0) {
            continue;
        }
        if (selection.runs.empty() || selection.runs.back().end != k) {
            selection.runs.push_back({k, k, selection.nnz});
        }
        selection.runs.back().end = k + 1;
        selection.nnz += b.row_ptr[k + 1] - b.row_ptr[k];
    }
    return selection;
}

template <class T>
std::int64_t position_in_b(const CsrView<T>& a, const CsrView<T>& b, std::int64_t first_row, std::int64_t end_row,
                           const RowSelection& b_rows)
{
    if (a.row_ptr.data() != b.row_ptr.data() || a.col_idx.data() != b.col_idx.data() || a.values != b.values) {
        return -1;
    }
    for (const RowRun& run : b_rows.runs) {
        if (run.first <= first_row && end_row <= run.end) {
            return run.nnz_before + a.row_ptr[first_row] - a.row_ptr[run.first];
        }
    }
    return -1;
}

template <class T>
RowSelection consecutive(const CsrView<T>& a, std::int64_t first_row, std::int64_t end_row)
{
    RowSelection selection;
    selection.rows = end_row - first_row;
    selection.nnz = a.row_ptr[end_row] - a.row_ptr[first_row];
    if (selection.rows > 0) {
        selection.runs.push_back({first_row, end_row, 0});
    }
    return selection;
}

template <class T>
IndexView upload_row_pointers(engine::Worker& worker, engine::MemoryBudget& memory, const CsrView<T>& matrix,
                              const RowSelection& selection, std::int64_t first_row, std::int64_t rows,
                              kernels::DeviceArray<std::byte>& storage)
{
    const auto upload = [&]<class Index>(Index*) {
        const std::size_t bytes = (static_cast<std::size_t>(rows) + 1) * sizeof(Index);
        storage = kernels::DeviceArray<std::byte>(memory, bytes);
        matrix.row_ptr.visit([&](const auto* row_ptr) {
            worker.device().upload(
                worker.stream(), storage.data(), bytes, [&](std::byte* out, std::size_t begin, std::size_t n) {
                    fill_row_pointers(row_ptr, selection, first_row, static_cast<std::int64_t>(begin / sizeof(Index)),
                                      static_cast<std::int64_t>(n / sizeof(Index)), reinterpret_cast<Index*>(out));
                });
        });
        return IndexView(reinterpret_cast<const Index*>(storage.data()));
    };
    if (selection.nnz <= std::numeric_limits<std::int32_t>::max()) {
        return upload(static_cast<std::int32_t*>(nullptr));
    }
    return upload(static_cast<std::int64_t*>(nullptr));
}

template <class T>
void upload_rows(engine::Worker& worker, engine::MemoryBudget& memory, const CsrView<T>& matrix,
                 const RowSelection& selection, std::int64_t first_row, std::int64_t rows, DeviceRows<T>& out)
{
    const IndexView row_ptr = upload_row_pointers(worker, memory, matrix, selection, first_row, rows, out.row_ptr);
    out.col_idx = kernels::DeviceArray<std::int32_t>(memory, static_cast<std::size_t>(selection.nnz));
    out.values = kernels::DeviceArray<T>(memory, static_cast<std::size_t>(selection.nnz));
    matrix.col_idx.visit(
        [&](const auto* col) { upload_entries(worker, matrix.row_ptr, selection, col, out.col_idx.data()); });
    upload_entries(worker, matrix.row_ptr, selection, matrix.values, out.values.data());
    out.describe(selection, {rows, matrix.cols, selection.nnz, row_ptr, out.col_idx.data(), out.values.data()});
}

template <class T>
void upload_a(engine::Worker& worker, engine::MemoryBudget& memory, const CsrView<T>& a, const CsrView<T>& b,
              std::int64_t first_row, std::int64_t end_row, const RowSelection& b_rows, const DeviceRows<T>& device_b,
              DeviceRows<T>& out)
{
    const RowSelection rows = consecutive(a, first_row, end_row);
    const std::int64_t position = position_in_b(a, b, first_row, end_row, b_rows);
    if (position < 0) {
        upload_rows(worker, memory, a, rows, first_row, end_row - first_row, out);
        return;
    }
    out.in_b = first_row;
    if (rows.rows == b.rows && b_rows.rows == b.rows) {
        out.shard = device_b.shard;  // kernels see that it is a square
        return;
    }
    const IndexView row_ptr = upload_row_pointers(worker, memory, a, rows, first_row, end_row - first_row, out.row_ptr);
    out.shard = {end_row - first_row,
                 a.cols,
                 rows.nnz,
                 row_ptr,
                 device_b.shard.col_idx + position,
                 device_b.shard.values + position};
}

template <class T>
void upload_values(engine::Worker& worker, IndexView row_ptr, const RowSelection& selection, const T* from, T* to)
{
    upload_entries(worker, row_ptr, selection, from, to);
}

std::int64_t pointer_at(engine::Worker& worker, IndexView row_ptr, std::int64_t row)
{
    return row_ptr.visit([&](const auto* p) -> std::int64_t {
        std::remove_cvref_t<decltype(*p)> pointer = 0;
        worker.device().download(worker.stream(), &pointer, p + row, sizeof pointer);
        worker.stream().synchronize();
        return pointer;
    });
}

#define RMSP_INSTANTIATE(T)                                                                                            \
    template RowSelection select_rows(const CsrView<T>&, std::int64_t, std::int64_t, const CsrView<T>&, int);          \
    template RowSelection consecutive(const CsrView<T>&, std::int64_t, std::int64_t);                                  \
    template std::int64_t position_in_b(const CsrView<T>&, const CsrView<T>&, std::int64_t, std::int64_t,              \
                                        const RowSelection&);                                                          \
    template IndexView upload_row_pointers(engine::Worker&, engine::MemoryBudget&, const CsrView<T>&,                  \
                                           const RowSelection&, std::int64_t, std::int64_t,                            \
                                           kernels::DeviceArray<std::byte>&);                                          \
    template void upload_rows(engine::Worker&, engine::MemoryBudget&, const CsrView<T>&, const RowSelection&,          \
                              std::int64_t, std::int64_t, DeviceRows<T>&);                                             \
    template void upload_a(engine::Worker&, engine::MemoryBudget&, const CsrView<T>&, const CsrView<T>&, std::int64_t, \
                           std::int64_t, const RowSelection&, const DeviceRows<T>&, DeviceRows<T>&);                   \
    template void upload_values(engine::Worker&, IndexView, const RowSelection&, const T*, T*);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
