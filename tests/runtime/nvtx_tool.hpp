#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// This program as a tool of NVTX, as Nsight Systems is one: hears of the ranges that are begun and ended in it.
namespace rmsp::test {

struct Range {
    std::string domain;
    std::string name;
    std::uint64_t payload = 0;  ///< 0: none
    bool ended = false;
};

/// All so far, as they began, of all threads.
std::vector<Range> nvtx_ranges();

}  // namespace rmsp::test
