#include "runtime/spgemm/factors.hpp"

#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "runtime/node/node.hpp"

namespace rmsp::spgemm {

void check_runtime(const RuntimeState& of_factor, const RuntimeState& of_product, const char* name)
{
    if (&of_factor != &of_product) {
        throw Error(ErrorCode::usage, fmt::format("{} is on the devices of another runtime", name));
    }
}

template <class T>
CsrView<T> ResidentFactor<T>::view() const
{
    CsrView<T> view{rows_, cols_, 0, IndexView(host_.row_ptr.data()), {}, nullptr};
    view.nnz = in_place() ? slices.back() : host_.row_ptr.empty() ? 0 : host_.row_ptr.back();
    if (host_.col_idx.size() > 0) {
        view.col_idx = host_.view().col_idx;
    }
    if (!host_.values.empty()) {
        view.values = host_.values.data();
    }
    return view;
}

template <class T>
void ResidentFactor<T>::bring_structure(RuntimeState& runtime, bool columns)
{
    if (!in_place()) {
        bring_all(runtime);
    } else {
        bring(runtime, columns, false);
    }
}

template <class T>
void ResidentFactor<T>::bring(RuntimeState& runtime, bool columns, bool values)
{
    const auto nnz = static_cast<std::size_t>(slices.back());
    host_.rows = rows_;
    host_.cols = cols_;
    host_.row_ptr.resize(static_cast<std::size_t>(rows_) + 1);
    host_.row_ptr[0] = 0;
    HostVector<std::int32_t> col_idx(columns ? nnz : 0);
    host_.values.resize(values ? nnz : 0);
    runtime
        .submit(
            [&](engine::Worker& worker, engine::Rendezvous& meeting) {
                if (values) {
                    refresh(worker, meeting);
                }
                const auto rank = static_cast<std::size_t>(worker.rank());
                const FactorPart<T>& part = parts[rank];
                const std::int64_t first_row = first_rows[rank];
                const std::int64_t rows = first_rows[rank + 1] - first_row;
                const std::int64_t first = slices[rank];
                const auto entries = static_cast<std::size_t>(slices[rank + 1] - first);
                engine::Device& device = worker.device();
                if (columns && entries > 0) {
                    device.download(worker.stream(), col_idx.data() + first, part.col_idx,
                                    entries * sizeof(std::int32_t));
                }
                if (values && entries > 0) {
                    device.download(worker.stream(), host_.values.data() + first, part.values, entries * sizeof(T));
                }
                if (rows > 0) {
                    part.row_ptr.visit([&](const auto* p) {
                        using Pointer = std::remove_cvref_t<decltype(*p)>;
                        std::int64_t* const to = host_.row_ptr.data() + first_row;
                        if constexpr (std::is_same_v<Pointer, std::int64_t>) {
                            if (first == 0) {
                                device.download(worker.stream(), to + 1, p + 1,
                                                static_cast<std::size_t>(rows) * sizeof(*p));
                                return;
                            }
                        }
                        HostVector<Pointer> local(static_cast<std::size_t>(rows) + 1);
                        device.download(worker.stream(), local.data(), p, local.size() * sizeof(*p));
                        worker.stream().synchronize();
#pragma omp parallel for num_threads(worker.context().threads) schedule(static)
                        for (std::int64_t i = 1; i <= rows; ++i) {
                            to[i] = first + local[static_cast<std::size_t>(i)];
                        }
                    });
                }
                worker.stream().synchronize();
            },
            {}, true)
        .get();
    host_.col_idx = std::move(col_idx);
}

template <class T>
std::vector<std::int64_t> ResidentFactor<T>::entries_before(RuntimeState& runtime,
                                                            const std::vector<std::int64_t>& rows) const
{
    std::vector<std::int64_t> before(rows.size(), slices.back());
    runtime
        .submit([&](engine::Worker& worker, engine::Rendezvous&) {
            const auto rank = static_cast<std::size_t>(worker.rank());
            for (std::size_t i = 0; i < rows.size(); ++i) {
                const std::int64_t row = rows[i] - first_rows[rank];
                if (row >= 0 && rows[i] < first_rows[rank + 1]) {
                    before[i] = slices[rank] + pointer_at(worker, parts[rank].row_ptr, row);
                }
            }
        })
        .get();
    return before;
}

#define RMSP_INSTANTIATE(T) template class ResidentFactor<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
