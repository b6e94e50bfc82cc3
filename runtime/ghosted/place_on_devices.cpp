#include "runtime/ghosted/place_on_devices.hpp"

#include <algorithm>
#include <type_traits>

#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/value_types.hpp>

namespace rmsp::ghosted {
namespace {

std::vector<std::int64_t> slices_of(const std::vector<std::int64_t>& some, const std::vector<std::size_t>& more)
{
    std::vector<std::int64_t> slices{0};
    for (std::size_t i = 0; i < some.size(); ++i) {
        slices.push_back(slices.back() + some[i] + static_cast<std::int64_t>(more[i]));
    }
    return slices;
}

/// How many entries each device has. \throws Error(usage) unless each has a place below that
std::vector<std::int64_t> counts_of(const std::vector<int>& devices_of, const std::vector<std::int64_t>& places,
                                    std::size_t devices)
{
    std::vector<std::int64_t> counts(devices);
    for (const int device : devices_of) {
        ++counts[static_cast<std::size_t>(device)];
    }
    if (places.size() != devices_of.size()) {
        throw Error(ErrorCode::usage, fmt::format("an exchange has placed {} entries on the devices; there are {}",
                                                  places.size(), devices_of.size()));
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
        const std::int64_t count = counts[static_cast<std::size_t>(devices_of[i])];
        if (places[i] < 0 || places[i] >= count) {
            throw Error(ErrorCode::usage,
                        fmt::format("an exchange has placed entry {} at {}; its device has {}", i, places[i], count));
        }
    }
    return counts;
}

/// The first device whose rows have each ghost; of those that no row has, the first one.
template <class T>
std::vector<int> first_with(const CsrMatrix<T>& rest, std::size_t ghosts,
                            const std::vector<std::int64_t>& rest_first_rows)
{
    std::vector<int> found(ghosts, 0);
    // From the last device on, so that the first one stays.
    rest.view().col_idx.visit([&](const auto* columns) {
        for (std::size_t device = rest_first_rows.size() - 1; ghosts > 0 && device-- > 0;) {
            const auto pointer = [&](std::size_t i) {
                return rest.row_ptr[static_cast<std::size_t>(rest_first_rows[i])];
            };
            for (std::int64_t k = pointer(device); k < pointer(device + 1); ++k) {
                const auto column = static_cast<std::size_t>(columns[k]);
                if (column < ghosts) {
                    found[column] = static_cast<int>(device);
                }
            }
        }
    });
    return found;
}

}  // namespace

template <class T>
Placed place_on_devices(GhostExchange& exchange, const std::vector<std::int64_t>& sent, Split<T>& split,
                        const std::vector<std::int64_t>& rest_first_rows,
                        const std::vector<std::int64_t>& column_slices)
{
    const std::size_t devices = column_slices.size() - 1;
    const auto owner = [&](std::int64_t column) {
        return static_cast<int>(std::upper_bound(column_slices.begin(), column_slices.end(), column) -
                                column_slices.begin()) -
               1;
    };
    std::vector<int> of_sent(sent.size());
    std::transform(sent.begin(), sent.end(), of_sent.begin(), owner);
    const std::size_t ghosts = static_cast<std::size_t>(split.rest.cols) - split.copied.size();
    const std::vector<int> of_ghosts = first_with(split.rest, ghosts, rest_first_rows);
    const DevicePlaces places = exchange.place(of_sent, of_ghosts, static_cast<int>(devices));

    const std::vector<std::int64_t> leave = counts_of(of_sent, places.sent, devices);
    const std::vector<std::int64_t> come = counts_of(of_ghosts, places.ghosts, devices);
    Placed out;
    out.copied.resize(devices);
    for (const std::int64_t column : split.copied) {
        ++out.copied[static_cast<std::size_t>(owner(column))];
    }
    out.pick_slices = slices_of(leave, out.copied);
    out.rest_slices = slices_of(come, out.copied);
    out.picked.resize(static_cast<std::size_t>(out.pick_slices.back()));
    std::vector<std::int64_t> number(static_cast<std::size_t>(split.rest.cols));  // of each column
    for (std::size_t i = 0; i < sent.size(); ++i) {
        const auto device = static_cast<std::size_t>(of_sent[i]);
        out.picked[static_cast<std::size_t>(out.pick_slices[device] + places.sent[i])] = sent[i];
    }
    for (std::size_t i = 0; i < ghosts; ++i) {
        number[i] = out.rest_slices[static_cast<std::size_t>(of_ghosts[i])] + places.ghosts[i];
    }
    // Behind the others on each device; `copied` rises, as their devices do.
    std::vector<std::int64_t> next(devices);
    for (std::size_t i = 0; i < split.copied.size(); ++i) {
        const auto device = static_cast<std::size_t>(owner(split.copied[i]));
        const std::int64_t place = next[device]++;
        out.picked[static_cast<std::size_t>(out.pick_slices[device] + leave[device] + place)] = split.copied[i];
        number[ghosts + i] = out.rest_slices[device] + come[device] + place;
    }
    out.ghost_of.resize(number.size());
    for (std::size_t i = 0; i < number.size(); ++i) {
        out.ghost_of[static_cast<std::size_t>(number[i])] = static_cast<std::int64_t>(i);
    }
    split.rest.col_idx.visit([&](auto& columns) {
        for (auto& column : columns) {
            column = static_cast<std::decay_t<decltype(column)>>(number[static_cast<std::size_t>(column)]);
        }
    });
    return out;
}

#define RMSP_INSTANTIATE(T)                                                                       \
    template Placed place_on_devices(GhostExchange&, const std::vector<std::int64_t>&, Split<T>&, \
                                     const std::vector<std::int64_t>&, const std::vector<std::int64_t>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::ghosted
