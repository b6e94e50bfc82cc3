#include "runtime/matrix/caller_indices.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/value_types.hpp"
#include "runtime/engine/caller_memory.hpp"

namespace rmsp::distributed {
namespace {

/// The index arrays of a view, the second of nnz entries, and how many entries the first has.
struct Arrays {
    IndexView* first;
    IndexView* second;
    std::int64_t lines;
    bool pointers;  ///< the first has one more than lines
};

template <class T>
Arrays arrays_of(CsrView<T>& a)
{
    return {&a.row_ptr, &a.col_idx, a.rows, true};
}
template <class T>
Arrays arrays_of(CscView<T>& a)
{
    return {&a.col_ptr, &a.row_idx, a.cols, true};
}
template <class T>
Arrays arrays_of(CooView<T>& a)
{
    return {&a.row_idx, &a.col_idx, a.nnz, false};
}
template <class T>
Arrays arrays_of(BsrView<T>& a)
{
    return {&a.row_ptr, &a.col_idx, a.rows, true};
}

}  // namespace

bool in_gpu_memory(const RuntimeState& runtime, const void* array)
{
    return !runtime.shared_memory() && engine::gpu_of(array) >= 0;
}

template <class Entry>
void bring_to_host(RuntimeState& runtime, Entry* to, const Entry* from, std::int64_t count)
{
    runtime.require_live();
    const std::int64_t devices = runtime.devices();
    runtime
        .submit(
            [&](engine::Worker& worker, engine::Rendezvous&) {
                const std::int64_t first = count / devices * worker.rank();
                const std::int64_t end = worker.rank() + 1 == devices ? count : first + count / devices;
                worker.device().download(worker.stream(), to + first, from + first,
                                         static_cast<std::size_t>(end - first) * sizeof(Entry));
            },
            {}, true)
        .get();
}

IndexView HostIndices::bring(IndexView given, std::int64_t count, int base)
{
    const bool there = in_gpu_memory(*runtime_, given.data());
    if (given.data() == nullptr || (!there && base == 0)) {
        return given;
    }
    IndexArray& copy = copies_.emplace_back(given.type(), static_cast<std::size_t>(count));
    copy.visit([&](auto& to) {
        using Index = typename std::decay_t<decltype(to)>::value_type;
        const auto* const from = static_cast<const Index*>(given.data());
        if (there) {
            bring_to_host(*runtime_, to.data(), from, count);
        } else {
            std::copy_n(from, count, to.data());
        }
        if (base != 0) {
            // The least index has no other one below it: it stays negative, which no matrix takes.
            for (Index& index : to) {
                index = index == std::numeric_limits<Index>::min() ? index : static_cast<Index>(index - base);
            }
        }
    });
    if (there && base == 0 && given.type() == IndexType::i32) {
        alike_.emplace_back(copy.view().data(), given);
    }
    return copy.view();
}

IndexView HostIndices::in_gpu(IndexView copy) const
{
    for (const auto& [data, original] : alike_) {
        if (data == copy.data()) {
            return original;
        }
    }
    return {};
}

template <class View>
View HostIndices::operator()(const View& a)
{
    if (a.base != 0 && a.base != 1) {
        throw Error(ErrorCode::usage,
                    fmt::format("base of a {} x {} matrix is {}; indices count from 0 or 1", a.rows, a.cols, a.base));
    }
    View out = a;
    const Arrays arrays = arrays_of(out);
    if (arrays.lines < 0 || a.nnz < 0 || arrays.lines == std::numeric_limits<std::int64_t>::max()) {
        return out;  // validate() says what is wrong
    }
    *arrays.first = bring(*arrays.first, arrays.lines + (arrays.pointers ? 1 : 0), a.base);
    *arrays.second = bring(*arrays.second, a.nnz, a.base);
    out.base = 0;
    return out;
}

template <class View>
void wait_for_caller(const View& a, StreamRef after)
{
    View there = a;
    const Arrays arrays = arrays_of(there);
    for (const void* const array : {static_cast<const void*>(a.values), arrays.first->data(), arrays.second->data()}) {
        if (const int gpu = engine::gpu_of(array); gpu >= 0) {
            engine::wait_for(gpu, after.handle);
            return;
        }
    }
}

void wait_for_caller(const char* name, const void* array, std::int64_t entries, StreamRef after)
{
    const int gpu = engine::gpu_of(array);
    if (gpu >= 0) {
        engine::wait_for(gpu, after.handle);
    } else if (entries > 0) {
        throw Error(ErrorCode::usage,
                    fmt::format("{} is not in the memory of a GPU, so there is no stream to wait for", name));
    }
}

#define RMSP_INSTANTIATE(T)                                                     \
    template CsrView<T> HostIndices::operator()<CsrView<T>>(const CsrView<T>&); \
    template CscView<T> HostIndices::operator()<CscView<T>>(const CscView<T>&); \
    template CooView<T> HostIndices::operator()<CooView<T>>(const CooView<T>&); \
    template void wait_for_caller(const CsrView<T>&, StreamRef);                \
    template void wait_for_caller(const CscView<T>&, StreamRef);                \
    template void wait_for_caller(const CooView<T>&, StreamRef);                \
    template void wait_for_caller(const BsrView<T>&, StreamRef);                \
    template void bring_to_host(RuntimeState&, T*, const T*, std::int64_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
