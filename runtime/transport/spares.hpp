#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <kernels/context.hpp>

#include "runtime/engine/worker.hpp"

namespace rmsp::transport {

/// What channels of each device have left, for the next ones: memory that peers reach takes long to get and to free,
/// and multigrid has a dozen matrices. What a peer that gave up may still write there has an epoch that is past. Each
/// device's is its worker's.
class Spares {
public:
    explicit Spares(std::size_t devices) : of_(devices), keeps_(devices, 0)
    {
        for (auto& blocks : of_) {
            blocks.reserve(most);
        }
    }

    /// Matrices are made of what is on the devices.
    void keep_from_now_on(int rank) noexcept { keeps_[static_cast<std::size_t>(rank)] = 1; }
    /// Memory is short: gives back what is there, and keeps nothing more. Others may be waiting for it.
    void give_back(int rank) noexcept
    {
        keeps_[static_cast<std::size_t>(rank)] = 0;
        of_[static_cast<std::size_t>(rank)].clear();
    }
    /// A block of that size, from here or else of the device's memory. \throws Error(out_of_memory)
    kernels::DeviceArray<std::byte> take(engine::Worker& worker, std::size_t bytes)
    {
        auto& blocks = of_[static_cast<std::size_t>(worker.rank())];
        const auto found =
            std::find_if(blocks.begin(), blocks.end(), [&](const auto& block) { return block.size() == bytes; });
        if (found == blocks.end()) {
            return {worker.device(), bytes};
        }
        kernels::DeviceArray<std::byte> block = std::move(*found);
        blocks.erase(found);
        return block;
    }
    void leave(int rank, kernels::DeviceArray<std::byte> block) noexcept
    {
        auto& blocks = of_[static_cast<std::size_t>(rank)];
        if (keeps_[static_cast<std::size_t>(rank)] != 0 && block.size() > 0 && blocks.size() < most) {
            blocks.push_back(std::move(block));  // within what was reserved
        }
    }

private:
    static constexpr std::size_t most = 16;
    std::vector<std::vector<kernels::DeviceArray<std::byte>>> of_;
    std::vector<char> keeps_;
};

}  // namespace rmsp::transport
