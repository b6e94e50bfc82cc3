#include <rmsp/device_convert.hpp>

#include <algorithm>
#include <limits>
#include <utility>

#include <kernels/steps/convert/convert.hpp>

#include "core/parallel.hpp"
#include "runtime/node/node.hpp"

namespace rmsp {
namespace {

/// Entries sorted by line.
template <class T>
struct Sorted {
    HostVector<std::int64_t> pointers;
    HostVector<std::int32_t> others;
    HostVector<T> values;
};

/// The index of an entry in the other direction: as it is, or the line of `pointers` that the entry lies in.
struct Others {
    IndexView indices;
    IndexView pointers;
    std::int64_t lines = 0;  ///< of `pointers`
};

template <class View>
bool on_device(const detail::RuntimeState& runtime, const View& a)
{
    runtime.require_live();
    return a.nnz > 0 && !runtime.shared_memory() &&
           std::max(a.rows, a.cols) <= std::numeric_limits<std::int32_t>::max();
}

/// Runs f once, on the first device's worker, with memory that is taken and given back in the order of its stream.
template <class F>
void run_on_first(detail::RuntimeState& runtime, const F& f)
{
    runtime
        .submit(
            [&](engine::Worker& worker, engine::Rendezvous&) {
                if (worker.rank() == 0) {
                    const auto pool = worker.device().make_pool(worker.stream());
                    kernels::Context context = worker.context();
                    context.memory = pool.get();
                    f(worker, context);
                    worker.stream().synchronize();
                }
            },
            {}, true)
        .get();
}

template <class Item>
kernels::DeviceArray<Item> uploaded(engine::Worker& worker, const kernels::Context& context, std::int64_t n,
                                    const Item* from)
{
    kernels::DeviceArray<Item> to(*context.memory, static_cast<std::size_t>(n));
    worker.device().upload(worker.stream(), to.data(), from, to.size() * sizeof(Item));
    return to;
}

/// Narrowed on the way.
kernels::DeviceArray<std::int32_t> uploaded_indices(engine::Worker& worker, const kernels::Context& context,
                                                    std::int64_t n, IndexView from)
{
    return from.visit([&](const auto* p) {
        if constexpr (sizeof(*p) == sizeof(std::int32_t)) {
            return uploaded(worker, context, n, p);
        } else {
            kernels::DeviceArray<std::int32_t> to(*context.memory, static_cast<std::size_t>(n));
            worker.device().upload(worker.stream(), to.data(), to.size() * sizeof(std::int32_t), engine::narrowed(p));
            return to;
        }
    });
}

template <class Item>
void download(engine::Worker& worker, const kernels::DeviceArray<Item>& from, HostVector<Item>& to)
{
    to.resize(from.size());
    worker.device().download(worker.stream(), to.data(), from.data(), from.size() * sizeof(Item));
}

/// out[i] = the line of entry i, or of entry from[i].
template <class Offset>
void find_lines(engine::Worker& worker, const kernels::Context& context, std::int64_t nnz, const Offset* from,
                std::int64_t lines, IndexView pointers, std::int32_t* out)
{
    pointers.visit([&](const auto* p) {
        const auto there = uploaded(worker, context, lines + 1, p);
        kernels::find_lines(nnz, from, 0, lines, IndexView(there.data()), out, context);
    });
}

template <class Offset, class T>
void sort(engine::Worker& worker, const kernels::Context& context, std::int64_t nnz, std::int64_t lines,
          IndexView line_of, const Others& others, const T* values, Sorted<T>& out)
{
    kernels::LineOrder<Offset> order;
    {
        const auto keys = uploaded_indices(worker, context, nnz, line_of);
        order = kernels::sort_by_line<Offset>(nnz, keys.data(), 0, lines, context);
    }
    if constexpr (sizeof(Offset) == sizeof(std::int64_t)) {
        download(worker, order.pointers, out.pointers);
    } else {
        HostVector<Offset> narrow;
        download(worker, order.pointers, narrow);
        worker.stream().synchronize();
        out.pointers.assign(narrow.begin(), narrow.end());
    }
    {
        const kernels::DeviceArray<std::int32_t> sorted(*context.memory, static_cast<std::size_t>(nnz));
        if (others.lines > 0) {
            find_lines(worker, context, nnz, order.from.data(), others.lines, others.pointers, sorted.data());
        } else {
            const auto indices = uploaded_indices(worker, context, nnz, others.indices);
            kernels::take_from(nnz, order.from.data(), indices.data(), sorted.data(), context);
        }
        download(worker, sorted, out.others);
    }
    const auto there = uploaded(worker, context, nnz, values);
    const kernels::DeviceArray<T> sorted(*context.memory, static_cast<std::size_t>(nnz));
    kernels::take_from(nnz, order.from.data(), there.data(), sorted.data(), context);
    download(worker, sorted, out.values);
}

template <class T>
Sorted<T> sorted_by_line(detail::RuntimeState& runtime, std::int64_t nnz, std::int64_t lines, IndexView line_of,
                         const Others& others, const T* values)
{
    Sorted<T> out;
    run_on_first(runtime, [&](engine::Worker& worker, const kernels::Context& context) {
        if (nnz <= std::numeric_limits<std::int32_t>::max()) {
            sort<std::int32_t>(worker, context, nnz, lines, line_of, others, values, out);
        } else {
            sort<std::int64_t>(worker, context, nnz, lines, line_of, others, values, out);
        }
    });
    return out;
}

/// The line of each entry.
IndexArray expanded(detail::RuntimeState& runtime, std::int64_t nnz, std::int64_t lines, IndexView pointers)
{
    HostVector<std::int32_t> out;
    run_on_first(runtime, [&](engine::Worker& worker, const kernels::Context& context) {
        const kernels::DeviceArray<std::int32_t> found(*context.memory, static_cast<std::size_t>(nnz));
        find_lines<std::int64_t>(worker, context, nnz, nullptr, lines, pointers, found.data());
        download(worker, found, out);
    });
    return out;
}

/// 32-bit copies.
IndexArray copied(std::int64_t n, IndexView in)
{
    HostVector<std::int32_t> out(static_cast<std::size_t>(n));
    in.visit([&](const auto* p) {
#pragma omp parallel for schedule(static) if (n > core::least_parallel)
        for (std::int64_t i = 0; i < n; ++i) {
            out[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(p[i]);
        }
    });
    return out;
}

template <class T>
HostVector<T> copied_values(std::int64_t n, const T* in)
{
    HostVector<T> out(static_cast<std::size_t>(n));
#pragma omp parallel for schedule(static) if (n > core::least_parallel)
    for (std::int64_t i = 0; i < n; ++i) {
        out[static_cast<std::size_t>(i)] = in[i];
    }
    return out;
}

}  // namespace

template <class T>
CscMatrix<T> to_csc(Runtime& runtime, const CsrView<T>& a)
{
    auto& state = *detail::RuntimeAccess::state(runtime);
    if (!on_device(state, a)) {
        return to_csc(a);
    }
    validate(a);
    auto s = sorted_by_line(state, a.nnz, a.cols, a.col_idx, {{}, a.row_ptr, a.rows}, a.values);
    return {a.rows, a.cols, std::move(s.pointers), std::move(s.others), std::move(s.values)};
}

template <class T>
CscMatrix<T> to_csc(Runtime& runtime, const CooView<T>& a)
{
    auto& state = *detail::RuntimeAccess::state(runtime);
    if (!on_device(state, a)) {
        return to_csc(a);
    }
    validate(a);
    auto s = sorted_by_line(state, a.nnz, a.cols, a.col_idx, {a.row_idx, {}, 0}, a.values);
    return {a.rows, a.cols, std::move(s.pointers), std::move(s.others), std::move(s.values)};
}

template <class T>
CsrMatrix<T> to_csr(Runtime& runtime, const CscView<T>& a)
{
    CscMatrix<T> t = to_csc(runtime, transpose(a));
    return {a.rows, a.cols, std::move(t.col_ptr), std::move(t.row_idx), std::move(t.values)};
}

template <class T>
CsrMatrix<T> to_csr(Runtime& runtime, const CooView<T>& a)
{
    CscMatrix<T> t = to_csc(runtime, transpose(a));
    return {a.rows, a.cols, std::move(t.col_ptr), std::move(t.row_idx), std::move(t.values)};
}

template <class T>
CooMatrix<T> to_coo(Runtime& runtime, const CsrView<T>& a)
{
    auto& state = *detail::RuntimeAccess::state(runtime);
    if (!on_device(state, a)) {
        return to_coo(a);
    }
    validate(a);
    return {a.rows, a.cols, expanded(state, a.nnz, a.rows, a.row_ptr), copied(a.nnz, a.col_idx),
            copied_values(a.nnz, a.values)};
}

template <class T>
CooMatrix<T> to_coo(Runtime& runtime, const CscView<T>& a)
{
    CooMatrix<T> t = to_coo(runtime, transpose(a));
    return {a.rows, a.cols, std::move(t.col_idx), std::move(t.row_idx), std::move(t.values)};
}

#define RMSP_INSTANTIATE(T)                                    \
    template CscMatrix<T> to_csc(Runtime&, const CsrView<T>&); \
    template CscMatrix<T> to_csc(Runtime&, const CooView<T>&); \
    template CsrMatrix<T> to_csr(Runtime&, const CscView<T>&); \
    template CsrMatrix<T> to_csr(Runtime&, const CooView<T>&); \
    template CooMatrix<T> to_coo(Runtime&, const CsrView<T>&); \
    template CooMatrix<T> to_coo(Runtime&, const CscView<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp
