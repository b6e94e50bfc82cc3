#include "runtime/matrix/part_columns.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>

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
    const std::int64_t count =
        std::accumulate(ranges.begin(), ranges.end(), std::int64_t{0},
                        [](std::int64_t sum, const EntryRange& range) { return sum + range.count; });
    copy_.resize(static_cast<std::size_t>(count));
    std::vector<engine::Download> downloads;
    std::vector<IndexView> out;
    std::int32_t* to = copy_.data();
    for (const EntryRange& range : ranges) {
        out.emplace_back(static_cast<const std::int32_t*>(to));
        if (range.count > 0) {
            downloads.push_back(
                {to, columns_ + (range.first - first_), static_cast<std::size_t>(range.count) * sizeof(std::int32_t)});
        }
        to += range.count;
    }
    worker_.device().download(worker_.stream(), downloads);
    worker_.stream().synchronize();
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
