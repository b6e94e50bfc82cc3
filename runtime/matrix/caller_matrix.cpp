#include "runtime/matrix/caller_matrix.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

#include "core/parallel.hpp"
#include "core/value_types.hpp"
#include "runtime/matrix/distribute.hpp"
#include "runtime/plan/plan_exchange.hpp"
#include "runtime/plan/planner.hpp"

namespace rmsp::distributed {
namespace {

/// Row pointers of coordinates that are sorted by row.
template <class T>
HostVector<std::int64_t> row_pointers(const plan::Stored<T>& a)
{
    HostVector<std::int64_t> row_ptr(static_cast<std::size_t>(a.rows) + 1);
    a.row_idx.visit([&](const auto* row) {
#pragma omp parallel for schedule(static) if (a.nnz > core::least_parallel)
        for (std::int64_t i = 0; i <= a.nnz; ++i) {
            const std::int64_t end = i == a.nnz ? a.rows : std::int64_t{row[i]};
            for (std::int64_t r = i == 0 ? 0 : std::int64_t{row[i - 1]} + 1; r <= end; ++r) {
                row_ptr[static_cast<std::size_t>(r)] = i;
            }
        }
    });
    return row_ptr;
}

/// Seconds since it was made, or asked last.
class Lap {
public:
    double operator()()
    {
        const auto now = std::chrono::steady_clock::now();
        return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
    }

private:
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// A caller's matrix on its way to the devices: its structure on the host and counted from 0, checked, and sorted if
/// that was asked for.
template <class T>
class Prepared {
public:
    template <class View>
    Prepared(RuntimeState& runtime, const View& given, const DistributeOptions& options)
        : options_(options), indices_(runtime)
    {
        if (options.after) {
            wait_for_caller(given, *options.after);
        }
        Lap seconds;
        const View a = indices_(given);
        validate(a);
        setup_.push_back({"validate", {seconds()}, true});
        stored_ = plan::stored(a);
        if (in_gpu_memory(runtime, a.values)) {
            leave_values_there();
        }
        if constexpr (std::is_same_v<View, CooView<T>>) {
            if (stored_.order == CooOrder::unsorted && options.unsorted == Unsorted::sort) {
                if (stored_.device_values != nullptr) {
                    throw Error(ErrorCode::usage,
                                "coordinates with values in GPU memory are not sorted on the way: sort them there, or "
                                "let them be split as they are (Unsorted::split)");
                }
                copy_ = sort_by_row(a);
                stored_ = plan::stored(copy_->view());
                options_.borrow = false;
                setup_.push_back({"sort", {seconds()}, true});
            }
            if (options.mode == Mode::streamed && stored_.order == CooOrder::by_row &&
                options.coordinates == StreamCoordinates::pointers) {
                // They cost one pass, and spare sending the row indices at each apply.
                seconds();
                row_ptr_ = row_pointers(stored_);
                stored_.row_ptr = IndexView(row_ptr_.data());
                stored_.coordinates = false;
                setup_.push_back({"row pointers", {seconds()}, true});
            }
        }
    }

    Plan plan(const RuntimeState& runtime) const
    {
        Plan plan = plan::make_plan(runtime, stored_, options_);
        plan::plan_exchange(plan, runtime, stored_, options_);
        return plan;
    }
    /// Once.
    std::shared_ptr<MatrixState<T>> distribute(const std::shared_ptr<RuntimeState>& runtime)
    {
        auto matrix = distributed::distribute(runtime, stored_, options_);
        matrix->origin.sorted_copy = copy_.has_value();
        if (options_.mode == Mode::streamed) {
            matrix->origin.kept_row_ptr = std::move(row_ptr_);
            matrix->origin.kept_copy = copy_ ? std::move(*copy_) : CooMatrix<T>();
        }
        if (options_.mode == Mode::streamed || options_.borrow) {
            matrix->origin.kept_indices = indices_.take();
        }
        matrix->record.setup.insert(matrix->record.setup.begin(), setup_.begin(), setup_.end());
        return matrix;
    }

private:
    void leave_values_there()
    {
        if (options_.mode == Mode::streamed || options_.values == StoredValues::floats) {
            throw Error(ErrorCode::usage,
                        options_.mode == Mode::streamed
                            ? "a matrix is streamed from host memory, and its values are in GPU memory"
                            : "values are rounded to floats on their way from host memory, and they "
                              "are in GPU memory");
        }
        stored_.device_values = std::exchange(stored_.values, nullptr);
        stored_.device_col_idx = indices_.in_gpu(stored_.col_idx);
    }

    DistributeOptions options_;
    HostIndices indices_;
    plan::Stored<T> stored_;
    std::optional<CooMatrix<T>> copy_;
    HostVector<std::int64_t> row_ptr_;
    std::vector<PhaseTimes> setup_;
};

/// Blocks where the host reads them: in place, or copies of those arrays that are in the memory of a GPU.
template <class T>
class HostBlocks {
public:
    /// \throws Error(usage) for a streamed matrix
    HostBlocks(RuntimeState& runtime, const BsrView<T>& a, const DistributeOptions& options)
        : indices_(runtime), view_(a)
    {
        if (options.mode == Mode::streamed) {
            throw Error(ErrorCode::usage, "a matrix of blocks is not streamed: make it CSR with to_csr()");
        }
        if (options.after) {
            wait_for_caller(a, *options.after);
        }
        constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() - 1;
        if (std::min(a.rows, a.blocks) < 0 || std::min(a.height, a.width) < 1 || a.width > most / a.height ||
            a.rows > most / a.height || a.blocks > most / (a.height * a.width)) {
            return;  // validate() says what is wrong
        }
        if (in_gpu_memory(runtime, a.row_ptr.data()) || in_gpu_memory(runtime, a.col_idx.data())) {
            const CsrView<T> structure =
                indices_(CsrView<T>{a.rows, a.cols, a.blocks, a.row_ptr, a.col_idx, nullptr, a.base});
            view_.row_ptr = structure.row_ptr;
            view_.col_idx = structure.col_idx;
            view_.base = structure.base;
        }
        if (in_gpu_memory(runtime, a.values)) {
            const std::int64_t entries = a.blocks * a.height * a.width;
            values_.resize(static_cast<std::size_t>(entries));
            bring_to_host(runtime, values_.data(), a.values, entries);
            view_.values = values_.data();
        }
    }
    const BsrView<T>& view() const { return view_; }

private:
    HostIndices indices_;
    HostVector<T> values_;
    BsrView<T> view_;
};

DistributeOptions copied(DistributeOptions options)
{
    options.borrow = false;
    return options;
}

}  // namespace

template <class View>
auto distribute_view(const std::shared_ptr<RuntimeState>& runtime, const View& a, const DistributeOptions& options)
    -> std::shared_ptr<MatrixState<ValueOf<View>>>
{
    using T = ValueOf<View>;
    runtime->require_live();
    if constexpr (std::is_same_v<View, BsrView<T>>) {
        const HostBlocks<T> blocks(*runtime, a, options);
        const CsrMatrix<T> rows = to_csr(blocks.view());
        auto matrix = Prepared<T>(*runtime, rows.view(), copied(options)).distribute(runtime);
        matrix->origin.blocks = rmsp::matrix::layout_of(blocks.view());
        return matrix;
    } else {
        return Prepared<T>(*runtime, a, options).distribute(runtime);
    }
}

template <class View>
Plan plan_view(RuntimeState& runtime, const View& a, const DistributeOptions& options)
{
    using T = ValueOf<View>;
    if constexpr (std::is_same_v<View, BsrView<T>>) {
        const CsrMatrix<T> rows = to_csr(HostBlocks<T>(runtime, a, options).view());
        return Prepared<T>(runtime, rows.view(), copied(options)).plan(runtime);
    } else {
        return Prepared<T>(runtime, a, options).plan(runtime);
    }
}

#define RMSP_INSTANTIATE(T, View)                                                                                  \
    template std::shared_ptr<MatrixState<T>> distribute_view(const std::shared_ptr<RuntimeState>&, const View<T>&, \
                                                             const DistributeOptions&);                            \
    template Plan plan_view(RuntimeState&, const View<T>&, const DistributeOptions&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE, CsrView)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE, CscView)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE, CooView)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE, BsrView)

}  // namespace rmsp::distributed
