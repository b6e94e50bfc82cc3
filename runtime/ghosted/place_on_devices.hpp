#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <rmsp/ghosted.hpp>

#include "runtime/ghosted/split_columns.hpp"

namespace rmsp::ghosted {

/// Where what is exchanged is: of each device its own entries that are sent, then those that are copied there.
struct Placed {
    std::vector<std::int64_t> picked;       ///< own columns, those of each device in turn
    std::vector<std::int64_t> pick_slices;  ///< how `picked` is cut; empty: the entries are in host memory
    std::vector<std::int64_t> rest_slices;  ///< how columns of Split::rest are cut; empty: in host memory
    std::vector<std::size_t> copied;        ///< entries of each device that are copied there
    std::vector<std::int64_t> ghost_of;     ///< what number each column of Split::rest had
};

/// Leaves each entry that is sent or copied on its device, and brings each ghost to the first one whose rows have it:
/// from there to others it goes as between the devices of any product. The columns of Split::rest are numbered anew.
/// Collective.
/// \param rest_first_rows  where the devices' rows of Split::rest begin
/// \throws Error(usage) if the exchange does not give each entry a place, what it throws
template <class T>
Placed place_on_devices(GhostExchange& exchange, const std::vector<std::int64_t>& sent, Split<T>& split,
                        const std::vector<std::int64_t>& rest_first_rows,
                        const std::vector<std::int64_t>& column_slices);

}  // namespace rmsp::ghosted
