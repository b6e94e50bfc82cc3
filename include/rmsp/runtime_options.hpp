#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rmsp/export.hpp>
#include <rmsp/topology.hpp>

namespace rmsp {

/// How a node-wide runtime is set up.
struct RuntimeOptions {
    /// Which devices: "auto" (every GPU, else two or more host devices), "0,1,3" (CUDA ordinals), "shared:0,0,1" (two
    /// devices on a GPU, for tests), "host:4" (four host devices), "host:4x2" (four of two threads each).
    std::string devices = "auto";
    BindPolicy bind = BindPolicy::automatic;
    /// Relative speed of each device; empty: all equal.
    std::vector<double> weights{};
    /// Transports in the order in which they are tried: of "nccl", "peer", "host". Empty: the default order.
    std::vector<std::string> transports{};
    /// Bandwidth limit of one device in GB/s for the report; 0: measured when first needed.
    double limit_gbs = 0;
    /// One thread drives all devices, as a simple program would: each job is done for one device after the other, and
    /// only what a GPU was given meanwhile goes on by itself; data move between GPUs through the host. For comparisons.
    /// (MSREP, section 5.3: baseline)
    bool one_thread = false;
    /// Described machine to plan for; only plan() works then, nothing is run. Empty: the live machine.
    std::string topology_file{};
    /// Where findings are kept for later processes: a folder, "auto" ($XDG_CACHE_HOME/rmsp, else ~/.cache/rmsp), or
    /// "off".
    std::string cache = "off";
    /// Bytes of each device's memory that may be taken; 0: as many as it has, of GPUs those that are free.
    std::int64_t memory_limit = 0;
    /// Most jobs that may wait for their turn; 0: any number. What a call does then: JobOptions::when_full.
    std::int64_t queue_limit = 0;
    /// A job that makes no progress for so long, and up to twice as long, ends with Error(device) that says which
    /// devices are not done, and which transport carries data in it; 0: however long it takes. Longer than the longest
    /// job takes between two exchanges. (docs/service.md)
    double stall_seconds = 0;

    /// Options with RMSP_DEVICES, RMSP_BIND, RMSP_TRANSPORT, RMSP_CACHE_DIR applied over `base`; an empty one counts as
    /// not set.
    /// \throws Error(usage) naming the variable
    RMSP_API static RuntimeOptions from_environment(RuntimeOptions base);
};

/// Parses "auto", "none", "strict". \throws Error(usage)
RMSP_API BindPolicy parse_bind_policy(const std::string& text);

}  // namespace rmsp
