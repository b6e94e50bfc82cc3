#include "runtime/matrix/part_columns.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include <kernels/steps/convert/convert.hpp>
#include <kernels/steps/support/support.hpp>

namespace rmsp::distributed {

using kernels::EntryRange;

kernels::IndexRange PartColumns::extent(const EntryRange& entries)
{
    if (entries.count == 0) {
        return {};
    }
    const kernels::Context context = worker_.context();
    const kernels::DeviceArray<std::int32_t> there(*context.memory, 2);
    kernels::index_extent(columns_ + (entries.first - first_), entries.count, there.data(), context);
    std::int32_t found[2] = {0, 0};
    worker_.device().download(worker_.stream(), found, there.data(), sizeof found);
    worker_.stream().synchronize();
    return {found[0], std::int64_t{found[1]} + 1};
}

std::vector<IndexView> PartColumns::ranges(std::span<const EntryRange> ranges)
{
    std::vector<IndexView> out;
    const auto place_of = [this](const EntryRange& range) { return columns_ + (range.first - first_); };
    if (worker_.device().shares_host_memory()) {
        std::transform(ranges.begin(), ranges.end(), std::back_inserter(out),
                       [&](const EntryRange& range) { return IndexView(place_of(range)); });
        return out;
    }
    // Side by side on the device first: a transfer each takes longer than all that they bring.
    constexpr std::size_t line = 16 / sizeof(std::int32_t);
    std::vector<std::size_t> places;
    std::size_t size = 0;
    for (const EntryRange& range : ranges) {
        const std::size_t from = reinterpret_cast<std::uintptr_t>(place_of(range)) / sizeof(std::int32_t) % line;
        places.push_back((size + line - 1) / line * line + from);  // aligned as it is there
        size = places.back() + static_cast<std::size_t>(range.count);
    }
    const kernels::Context context = worker_.context();
    const kernels::DeviceArray<std::int32_t> there(*context.memory, size);
    std::vector<kernels::CopyPart> parts;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        parts.push_back({there.data() + places[i], place_of(ranges[i]),
                         ranges[i].count * static_cast<std::int64_t>(sizeof(std::int32_t))});
        if (parts.size() == kernels::most_copy_parts || i + 1 == ranges.size()) {
            kernels::copy_parts(parts.data(), static_cast<int>(parts.size()), context);
            parts.clear();
        }
    }
    copy_.resize(size);
    worker_.device().download(worker_.stream(), copy_.data(), there.data(), size * sizeof(std::int32_t));
    worker_.stream().synchronize();
    std::transform(places.begin(), places.end(), std::back_inserter(out), [&](std::size_t place) {
        return IndexView(static_cast<const std::int32_t*>(copy_.data() + place));
    });
    return out;
}

std::vector<std::int64_t> PartColumns::spread(std::int64_t first, std::int64_t step, std::int64_t count)
{
    if (count == 0) {
        return {};
    }
    const auto n = static_cast<std::size_t>(count);
    std::vector<std::int64_t> places(n);
    for (std::size_t i = 0; i < n; ++i) {
        places[i] = first - first_ + static_cast<std::int64_t>(i) * step;
    }
    if (worker_.device().shares_host_memory()) {
        std::transform(places.begin(), places.end(), places.begin(),
                       [&](std::int64_t place) { return std::int64_t{columns_[place]}; });
        return places;
    }
    const kernels::Context context = worker_.context();
    const kernels::DeviceArray<std::int64_t> from(*context.memory, n);
    const kernels::DeviceArray<std::int32_t> there(*context.memory, n);
    worker_.device().upload(worker_.stream(), from.data(), places.data(), n * sizeof(std::int64_t));
    kernels::take_from(count, static_cast<const std::int64_t*>(from.data()), columns_, there.data(), context);
    std::vector<std::int32_t> found(n);
    worker_.device().download(worker_.stream(), found.data(), there.data(), n * sizeof(std::int32_t));
    worker_.stream().synchronize();
    return {found.begin(), found.end()};
}

}  // namespace rmsp::distributed
