#pragma once

#include <cstdint>

namespace rmsp::plan {

/// What an apply on several GPUs costs besides its memory traffic, in seconds and GB/s. Measured with H200s.
struct ApplyCosts {
    double exchange_by_peers = 6e-6;    ///< of an x by rows, through peer memory
    double exchange_by_copies = 30e-6;  ///< through NCCL or the host
    double device = 0.2e-6;             ///< of each device more: they do not start and end together
    double link_gbs = 330;              ///< that a device receives of ranges from its peers
    double packed_gbs = 200;            ///< of single entries, their packing included
    double host_gbs = 25;               ///< of what goes through the host
    double first_step = 0.6;            ///< of a product in two steps: with own columns and popular ghosts
    double second_step = 1.05;          ///< a product in two steps over one in one
    double assumed_gbs = 4000;          ///< read by a GPU whose bandwidth is not known
    bool operator==(const ApplyCosts&) const = default;
};
inline constexpr ApplyCosts apply_costs{};

/// Seconds of an apply that reads `bytes` in all, on that many devices.
constexpr double apply_seconds(double bytes, int devices, double gbs, double exchange,
                               const ApplyCosts& costs = apply_costs)
{
    return bytes / (devices * (gbs > 0 ? gbs : costs.assumed_gbs) * 1e9) + (devices > 1 ? exchange : 0.0) +
           (devices - 1) * costs.device;
}

/// On how many devices of 1 to `most` such an apply takes least.
constexpr int fastest_device_count(double bytes, int most, double gbs, double exchange,
                                   const ApplyCosts& costs = apply_costs)
{
    int best = 1;
    for (int devices = 2; devices <= most; ++devices) {
        if (apply_seconds(bytes, devices, gbs, exchange, costs) < apply_seconds(bytes, best, gbs, exchange, costs)) {
            best = devices;
        }
    }
    return best;
}

}  // namespace rmsp::plan
