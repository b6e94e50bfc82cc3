#include "runtime/matrix/device_columns.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include <kernels/steps/convert/convert.hpp>
#include <kernels/steps/support/support.hpp>

namespace rmsp::distributed {

using kernels::EntryRange;

DeviceColumns::DeviceColumns(detail::RuntimeState& runtime, std::vector<const std::int32_t*> parts,
                             std::vector<std::int64_t> slices)
    : runtime_(runtime), parts_(std::move(parts)), slices_(std::move(slices))
{
}

EntryRange DeviceColumns::held(std::size_t rank, const EntryRange& entries) const
{
    const std::int64_t first = std::max(entries.first, slices_[rank]);
    return {first, std::max<std::int64_t>(std::min(entries.first + entries.count, slices_[rank + 1]) - first, 0)};
}

template <class F>
void DeviceColumns::on_devices(const F& f)
{
    runtime_
        .submit(
            [&](engine::Worker& worker, engine::Rendezvous&) {
                f(worker, static_cast<std::size_t>(worker.rank()));
                worker.stream().synchronize();
            },
            {}, true)
        .get();
}

kernels::IndexRange DeviceColumns::extent(const EntryRange& entries)
{
    struct Extent {
        std::int32_t least = std::numeric_limits<std::int32_t>::max();
        std::int32_t largest = std::numeric_limits<std::int32_t>::min();
    };
    std::vector<Extent> found(parts_.size());
    on_devices([&](engine::Worker& worker, std::size_t rank) {
        const EntryRange here = held(rank, entries);
        if (here.count > 0) {
            const kernels::Context context = worker.context();
            const kernels::DeviceArray<std::int32_t> there(*context.memory, 2);
            kernels::index_extent(at(rank, here.first), here.count, there.data(), context);
            worker.device().download(worker.stream(), &found[rank], there.data(), sizeof(Extent));
            worker.stream().synchronize();
        }
    });
    Extent all;
    for (const Extent& one : found) {
        all.least = std::min(all.least, one.least);
        all.largest = std::max(all.largest, one.largest);
    }
    return all.largest < all.least ? kernels::IndexRange{}
                                   : kernels::IndexRange{all.least, std::int64_t{all.largest} + 1};
}

std::vector<IndexView> DeviceColumns::ranges(std::span<const EntryRange> ranges)
{
    std::int64_t count = 0;
    for (const EntryRange& range : ranges) {
        count += range.count;
    }
    copy_.resize(static_cast<std::size_t>(count));
    on_devices([&](engine::Worker& worker, std::size_t rank) {
        std::vector<engine::Download> downloads;
        std::int32_t* to = copy_.data();
        for (const EntryRange& range : ranges) {
            const EntryRange here = held(rank, range);
            if (here.count > 0) {
                downloads.push_back({to + (here.first - range.first), at(rank, here.first),
                                     static_cast<std::size_t>(here.count) * sizeof(std::int32_t)});
            }
            to += range.count;
        }
        worker.device().download(worker.stream(), downloads);
    });
    std::vector<IndexView> out;
    const std::int32_t* from = copy_.data();
    for (const EntryRange& range : ranges) {
        out.emplace_back(from);
        from += range.count;
    }
    return out;
}

std::vector<std::int64_t> DeviceColumns::spread(std::int64_t first, std::int64_t step, std::int64_t count)
{
    HostVector<std::int32_t> found(static_cast<std::size_t>(count));
    const auto steps_to = [&](std::int64_t entry) {
        return std::clamp<std::int64_t>((entry - first + step - 1) / step, 0, count);
    };
    on_devices([&](engine::Worker& worker, std::size_t rank) {
        const std::int64_t begin = steps_to(slices_[rank]);
        const std::int64_t end = steps_to(slices_[rank + 1]);
        std::vector<std::int64_t> places;
        for (std::int64_t i = begin; i < end; ++i) {
            places.push_back(first + i * step - slices_[rank]);
        }
        if (places.empty()) {
            return;
        }
        std::int32_t* const to = found.data() + begin;
        if (worker.device().shares_host_memory()) {
            std::transform(places.begin(), places.end(), to, [&](std::int64_t place) { return parts_[rank][place]; });
            return;
        }
        const kernels::Context context = worker.context();
        const kernels::DeviceArray<std::int64_t> from(*context.memory, places.size());
        const kernels::DeviceArray<std::int32_t> there(*context.memory, places.size());
        worker.device().upload(worker.stream(), from.data(), places.data(), places.size() * sizeof(std::int64_t));
        kernels::take_from(static_cast<std::int64_t>(places.size()), static_cast<const std::int64_t*>(from.data()),
                           parts_[rank], there.data(), context);
        worker.device().download(worker.stream(), to, there.data(), places.size() * sizeof(std::int32_t));
        worker.stream().synchronize();
    });
    return {found.begin(), found.end()};
}

}  // namespace rmsp::distributed
