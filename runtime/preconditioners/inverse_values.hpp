#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <kernels/steps/sparse_inverse/sparse_inverse.hpp>

#include "core/device_kind.hpp"
#include "matrix/for_each_row.hpp"
#include "runtime/matrix/row_product.hpp"
#include "runtime/preconditioners/base.hpp"

namespace rmsp::preconditioners {

/// Computes the values of a sparse inverse M, each device those of its own rows, from the rows of A that they name. One
/// GPU that has all of A reads them where they are, others get them from the host. What devices cannot do (columns of
/// 64 bits, repeated entries, systems that are too large, no room) the host does for all rows.
template <class T>
class InverseValues {
public:
    /// \param slices  first row of each device, and the number of rows at the end
    InverseValues(std::shared_ptr<MatrixState<T>> matrix, matrix::SparseInverse kind, std::vector<std::int64_t> slices)
        : matrix_(std::move(matrix)), kind_(kind), slices_(std::move(slices)), held_(matrix_->runtime)
    {
    }

    /// Brings the patterns of A and M, which stay as they are, where they are worked on. Blocks.
    void prepare(const CsrMatrix<T>& a, const CsrMatrix<T>& m)
    {
        on_devices_ = a.col_idx.view().type() == IndexType::i32 && has_each_entry_once(a);
        in_host_memory_ = core::shares_host_memory(matrix_->runtime->infos.front().kind);
        if (!on_devices_ || in_host_memory_) {
            return;
        }
        whole_ = has_whole_matrix();
        try {
            run([&](engine::Worker& worker, Held& own, std::size_t rank) { bring(worker, own, rank, a, m); });
        } catch (const Error& error) {
            if (error.code() != ErrorCode::out_of_memory) {
                throw;
            }
            leave_to_host(fmt::format("the host computed it, since devices have no room to: {}", error.what()));
            return;
        }
        for (const Held& own : held_.parts) {
            if (own.classes.refused > 0) {
                leave_to_host(
                    fmt::format("the host computed it, since row {} is made of too many entries of the matrix",
                                own.classes.first_refused));
                return;
            }
        }
    }

    /// Whether compute() reads A on the host.
    bool reads_host() const { return !on_devices_ || in_host_memory_ || !whole_; }
    /// \param a  null unless reads_host() \param m  gets the values; null: they stay on the device, which reads A there
    matrix::InverseStatus compute(const CsrMatrix<T>* a, CsrMatrix<T>* m)
    {
        if (!on_devices_) {
            return matrix::fill_inverse(a->view(), kind_, *m);
        }
        std::vector<matrix::InverseStatus> found(held_.parts.size());
        run([&](engine::Worker& worker, Held& own, std::size_t rank) {
            found[rank] = in_host_memory_ ? compute_there(worker, rank, *a, *m) : compute_on(worker, own, rank, a, m);
        });
        matrix::InverseStatus all;
        for (const matrix::InverseStatus& own : found) {
            all.first_singular = all.first_singular < 0 ? own.first_singular : all.first_singular;
            all.singular_rows += own.singular_rows;
        }
        return all;
    }
    /// What compute() left on the device, until release().
    const T* resident() const { return held_.parts.front().values.data(); }
    void release()
    {
        run([](engine::Worker&, Held& own, std::size_t) { own.values.reset(); });
    }
    std::int64_t device_bytes() const
    {
        std::int64_t bytes = 0;
        for (const Held& own : held_.parts) {
            bytes += own.bytes;
        }
        return bytes;
    }
    /// Sentences for the report.
    const std::vector<std::string>& notes() const { return notes_; }

private:
    /// On one GPU.
    struct Held {
        kernels::DeviceArray<std::int64_t> row_ptr;  ///< of its rows of M
        kernels::DeviceArray<std::int32_t> col_idx;
        kernels::DeviceArray<T> values;
        kernels::InverseClasses classes;
        // Rows of A, unless it has the whole matrix. Those that no row of M names are empty.
        std::int64_t first = 0;
        kernels::DeviceArray<std::int64_t> named_row_ptr;
        kernels::DeviceArray<std::int32_t> named_columns;
        kernels::DeviceArray<T> named_values;
        /// Stretches of the entries of A that those are, one behind the other.
        std::vector<std::pair<std::int64_t, std::int64_t>> stretches;
        std::int64_t bytes = 0;
    };

    template <class F>
    void run(const F& f)
    {
        matrix_->runtime
            ->submit(
                [&](engine::Worker& worker, engine::Rendezvous&) {
                    const auto rank = static_cast<std::size_t>(worker.rank());
                    f(worker, held_.parts[rank], rank);
                    worker.stream().synchronize();
                },
                {}, true)
            .get();
    }
    void leave_to_host(std::string why)
    {
        on_devices_ = false;
        notes_ = {std::move(why)};
        run([](engine::Worker&, Held& own, std::size_t) { own = Held(); });
    }
    static bool has_each_entry_once(const CsrMatrix<T>& a)
    {
        std::atomic<bool> once{true};
        const IndexView columns = a.col_idx.view();
        columns.visit([&](const auto* col_idx) {
            matrix::for_each_row(a.rows, [&](std::int64_t row) {
                for (auto k = a.row_ptr[static_cast<std::size_t>(row)] + 1;
                     k < a.row_ptr[static_cast<std::size_t>(row) + 1]; ++k) {
                    if (col_idx[k] <= col_idx[k - 1]) {
                        once = false;
                    }
                }
            });
        });
        return once;
    }
    /// In its own columns, and not streamed.
    bool has_whole_matrix() const
    {
        const distributed::Shard<T>& first = *matrix_->shards.front();
        const auto* const product = distributed::row_product(*matrix_);
        return matrix_->plan.devices == 1 && first.owned.rows == matrix_->plan.rows && !matrix_->origin.source &&
               !matrix_->origin.coordinates && matrix_->plan.shards.front().index_base == 0 &&
               (product == nullptr || !product->by_entries()) && !plan::transposed(matrix_->plan);
    }

    void bring(engine::Worker& worker, Held& own, std::size_t rank, const CsrMatrix<T>& a, const CsrMatrix<T>& m)
    {
        const std::int64_t begin = slices_[rank];
        const std::int64_t end = slices_[rank + 1];
        const auto of_m = [&](std::int64_t row) { return m.row_ptr[static_cast<std::size_t>(row)]; };
        HostVector<std::int64_t> row_ptr(static_cast<std::size_t>(end - begin) + 1);
        std::transform(m.row_ptr.begin() + begin, m.row_ptr.begin() + end + 1, row_ptr.begin(),
                       [&](std::int64_t place) { return place - of_m(begin); });
        const auto* const columns = static_cast<const std::int32_t*>(m.col_idx.view().data());
        const std::span<const std::int32_t> named(columns + of_m(begin),
                                                  static_cast<std::size_t>(of_m(end) - of_m(begin)));
        own.bytes = put(worker, own.row_ptr, row_ptr) + put(worker, own.col_idx, named);
        NamedRows rows;
        if (!whole_ && !named.empty()) {
            rows = named_rows(a, named);
            const auto* const from = static_cast<const std::int32_t*>(a.col_idx.view().data());
            const HostVector<std::int32_t> of_a = packed(rows.stretches, rows.row_ptr.back(), from);
            own.first = rows.first;
            own.stretches = std::move(rows.stretches);
            own.bytes += put(worker, own.named_row_ptr, rows.row_ptr) + put(worker, own.named_columns, of_a);
            worker.stream().synchronize();
        }
        own.classes = kernels::classify_inverse_rows(source(worker, own), kind_, target(own, rank), worker.context());
        own.bytes += 2 * (end - begin) * std::int64_t{sizeof(std::int32_t)};
        worker.stream().synchronize();
    }
    struct NamedRows {
        std::int64_t first = 0;
        HostVector<std::int64_t> row_ptr;
        std::vector<std::pair<std::int64_t, std::int64_t>> stretches;
    };
    static NamedRows named_rows(const CsrMatrix<T>& a, std::span<const std::int32_t> named)
    {
        const auto [low, high] = std::minmax_element(named.begin(), named.end());
        NamedRows out;
        out.first = *low;
        std::vector<bool> is_named(static_cast<std::size_t>(*high - *low) + 1);
        for (const std::int32_t row : named) {
            is_named[static_cast<std::size_t>(row - *low)] = true;
        }
        out.row_ptr.assign(is_named.size() + 1, 0);
        for (std::size_t i = 0; i < is_named.size(); ++i) {
            const auto row = static_cast<std::size_t>(out.first) + i;
            const std::int64_t from = a.row_ptr[row];
            const std::int64_t to = is_named[i] ? a.row_ptr[row + 1] : from;
            out.row_ptr[i + 1] = out.row_ptr[i] + to - from;
            if (to == from) {
                continue;
            }
            if (!out.stretches.empty() && out.stretches.back().second == from) {
                out.stretches.back().second = to;
            } else {
                out.stretches.emplace_back(from, to);
            }
        }
        return out;
    }
    template <class X>
    static HostVector<X> packed(const std::vector<std::pair<std::int64_t, std::int64_t>>& stretches, std::int64_t n,
                                const X* from)
    {
        HostVector<X> out(static_cast<std::size_t>(n));
        auto to = out.begin();
        for (const auto& [begin, end] : stretches) {
            to = std::copy(from + begin, from + end, to);
        }
        return out;
    }
    kernels::InverseSource<T> source(const engine::Worker& worker, const Held& own) const
    {
        if (whole_ && worker.rank() == 0) {
            const kernels::CsrShard<T>& a = matrix_->shards.front()->owned;
            return {0, a.row_ptr, a.col_idx, a.values};
        }
        return {own.first, own.named_row_ptr.data(), own.named_columns.data(), own.named_values.data()};
    }
    kernels::InverseRows target(const Held& own, std::size_t rank) const
    {
        return {slices_[rank], slices_[rank + 1] - slices_[rank], own.row_ptr.data(), own.col_idx.data()};
    }

    matrix::InverseStatus compute_there(engine::Worker& worker, std::size_t rank, const CsrMatrix<T>& a,
                                        CsrMatrix<T>& m) const
    {
        const kernels::InverseSource<T> from{
            0, a.row_ptr.data(), static_cast<const std::int32_t*>(a.col_idx.view().data()), a.values.data()};
        const kernels::InverseRows rows{slices_[rank], slices_[rank + 1] - slices_[rank],
                                        m.row_ptr.data() + slices_[rank],
                                        static_cast<const std::int32_t*>(m.col_idx.view().data())};
        const kernels::InverseClasses none;
        return kernels::fill_inverse_rows(from, kind_, rows, none, m.values.data(), worker.context());
    }
    matrix::InverseStatus compute_on(engine::Worker& worker, Held& own, std::size_t rank, const CsrMatrix<T>* a,
                                     CsrMatrix<T>* m) const
    {
        HostVector<T> values;
        if (!whole_) {
            values = packed(own.stretches, static_cast<std::int64_t>(own.named_columns.size()), a->values.data());
            put(worker, own.named_values, values);
        }
        own.values = kernels::DeviceArray<T>(*worker.context().memory, own.col_idx.size());
        const matrix::InverseStatus status = kernels::fill_inverse_rows(
            source(worker, own), kind_, target(own, rank), own.classes, own.values.data(), worker.context());
        if (m != nullptr && own.values.size() > 0) {
            worker.device().download(worker.stream(),
                                     m->values.data() + m->row_ptr[static_cast<std::size_t>(slices_[rank])],
                                     own.values.data(), own.values.size() * sizeof(T));
            worker.stream().synchronize();
            own.values.reset();
        }
        own.named_values.reset();
        return status;
    }

    std::shared_ptr<MatrixState<T>> matrix_;
    matrix::SparseInverse kind_;
    std::vector<std::int64_t> slices_;
    bool on_devices_ = false;
    bool in_host_memory_ = false;
    bool whole_ = false;  ///< one GPU has all rows
    std::vector<std::string> notes_;
    PerDevice<Held> held_;
};

}  // namespace rmsp::preconditioners
