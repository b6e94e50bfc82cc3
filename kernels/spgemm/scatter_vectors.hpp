#pragma once

#include <algorithm>
#include <cstdint>

#include <kernels/spgemm/arrays.hpp>

namespace rmsp::kernels::spgemm {

/// A place for each column of B, in device memory, for each row that a block or virtual warp works on at a time.
struct ScatterVectors {
    DeviceArray<std::int32_t> map;
    std::int64_t rows = 0;  ///< of the map

    ScatterVectors() = default;
    /// As many as the device and the limit have room for, at most one for each of the rows of C. \param workspace_bytes
    /// taken so far; \throws Error(out_of_memory)
    ScatterVectors(std::int64_t rows_of_c, std::int64_t cols, bool of_virtual_warps, std::int64_t workspace_limit,
                   std::int64_t workspace_bytes, const Context& context)
    {
        constexpr std::int64_t blocks_a_unit = 3;
        constexpr std::int64_t virtual_warps_a_unit = 64;
        constexpr std::int64_t virtual_warps_a_block = 8;  // at most, and at least one block
        constexpr std::int64_t most_bytes = std::int64_t{4} << 30;
        const std::int64_t row_bytes = cols * static_cast<std::int64_t>(sizeof(std::int32_t));
        const std::int64_t least = of_virtual_warps ? virtual_warps_a_block : 1;
        const std::int64_t a_unit = of_virtual_warps ? virtual_warps_a_unit : blocks_a_unit;
        std::int64_t at_once = std::min(rows_of_c, a_unit * std::max(context.compute_units, 1));
        if (of_virtual_warps) {
            at_once = std::min(at_once, most_bytes / row_bytes);
        }
        if (workspace_limit > 0) {
            const std::int64_t left = workspace_limit - workspace_bytes;
            if (left < least * row_bytes) {
                over_limit(workspace_bytes + least * row_bytes, workspace_limit);
            }
            at_once = std::min(at_once, left / row_bytes);
        }
        rows = std::max(at_once, least);
        map = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(rows * cols));
    }

    std::int64_t bytes() const { return static_cast<std::int64_t>(map.size() * sizeof(std::int32_t)); }
};

}  // namespace rmsp::kernels::spgemm
