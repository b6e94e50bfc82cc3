#include "runtime/matrix/redistribute.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/value_types.hpp"
#include "matrix/convert.hpp"
#include "runtime/engine/device.hpp"
#include "runtime/matrix/caller_matrix.hpp"
#include "runtime/matrix/download.hpp"
#include "runtime/matrix/stream_source.hpp"

namespace rmsp::distributed {
namespace {

/// distribute_view() of M in CSR, in the format in which A was given.
template <class T>
std::shared_ptr<MatrixState<T>> distribute_rows(const std::shared_ptr<RuntimeState>& target, const CsrView<T>& m,
                                                bool transposed, const DistributeOptions& options)
{
    return transposed
               ? distribute_view(target, CscView<T>{m.cols, m.rows, m.nnz, m.row_ptr, m.col_idx, m.values}, options)
               : distribute_view(target, m, options);
}

/// Distributes M in coordinates.
template <class T>
std::shared_ptr<MatrixState<T>> distribute_entries(const std::shared_ptr<RuntimeState>& target, const CooView<T>& m,
                                                   bool transposed, const DistributeOptions& options)
{
    return distribute_view(target, transposed ? CooView<T>{m.cols, m.rows, m.nnz, m.col_idx, m.row_idx, m.values} : m,
                           options);
}

/// Whether some of what it is streamed from is its own, or that of the matrix that it took the place of.
template <class T>
bool keeps_arrays(const MatrixOrigin<T>& origin)
{
    return !origin.kept_copy.values.empty() || !origin.kept_row_ptr.empty() || !origin.kept_indices.empty() ||
           !origin.copies.empty() || origin.before != nullptr;
}

}  // namespace

template <class T>
DistributeOptions options_for(const RuntimeState& target, const MatrixState<T>& matrix)
{
    DistributeOptions options = matrix.options;
    options.devices = std::min(options.devices, target.devices());
    options.after.reset();
    return options;
}

template <class T>
void require_whole(const MatrixState<T>& matrix)
{
    const bool by_column = plan::transposed(matrix.plan);
    const bool unsorted = matrix.plan.format == Format::coo && matrix.plan.order == CooOrder::unsorted;
    std::string gone;
    for (std::size_t i = 0; i < static_cast<std::size_t>(matrix.plan.devices); ++i) {
        const engine::Device& device = matrix.runtime->workers[i]->device();
        if (!device.lost()) {
            continue;
        }
        const PartialCsr& part = matrix.plan.partition.parts[i];
        gone += fmt::format("{}{} {} to {} were on {}", gone.empty() ? "" : ", ",
                            unsorted    ? "entries"
                            : by_column ? "columns"
                                        : "rows",
                            unsorted ? part.start_idx : part.start_row, (unsorted ? part.end_idx : part.end_row) - 1,
                            engine::label_of(device.info()));
    }
    if (!gone.empty()) {
        const std::string& name = matrix.options.name;
        throw Error(ErrorCode::device, fmt::format("the matrix{} is no longer whole: {}, lost since; give "
                                                   "Runtime::redistribute() the arrays",
                                                   name.empty() ? "" : fmt::format(" \"{}\"", name), gone));
    }
}

template <class T>
std::shared_ptr<MatrixState<T>> redistribute(const std::shared_ptr<RuntimeState>& target,
                                             const std::shared_ptr<MatrixState<T>>& matrix)
{
    DistributeOptions options = options_for(*target, *matrix);
    const bool transposed = plan::transposed(matrix->plan);
    if (const StreamSource<T>* const source = matrix->origin.source.get()) {
        const CsrView<T>& a = source->a;
        // Where the row indices were made row pointers, the caller's need not be there any more.
        const IndexArray rows = matrix->plan.format == Format::coo && !source->coordinates
                                    ? rmsp::matrix::expand(a.rows, a.nnz, a.row_ptr)
                                    : IndexArray();
        auto next =
            matrix->plan.format == Format::coo
                ? distribute_entries<T>(
                      target,
                      {a.rows, a.cols, a.nnz, source->coordinates ? source->row_idx : rows.view(), a.col_idx, a.values},
                      transposed, options)
                : distribute_rows<T>(target, a, transposed, options);
        next->origin.sorted_copy = matrix->origin.sorted_copy;
        if (keeps_arrays(matrix->origin)) {
            next->origin.before = matrix;
        }
        return next;
    }
    require_whole(*matrix);
    options.borrow = false;
    const StoredEntries<T> stored = download_entries(*matrix);
    auto next = stored.coordinates ? distribute_entries<T>(target, stored.as_coordinates(), transposed, options)
                                   : distribute_rows<T>(target, stored.rows.view(), transposed, options);
    next->origin.sorted_copy = matrix->origin.sorted_copy;
    next->origin.blocks = matrix->origin.blocks;
    return next;
}

#define RMSP_INSTANTIATE(T)                                                                     \
    template DistributeOptions options_for(const RuntimeState&, const MatrixState<T>&);         \
    template void require_whole(const MatrixState<T>&);                                         \
    template std::shared_ptr<MatrixState<T>> redistribute(const std::shared_ptr<RuntimeState>&, \
                                                          const std::shared_ptr<MatrixState<T>>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::distributed
