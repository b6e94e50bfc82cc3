#pragma once

#include <string>

#include <kernels/spgemm/numeric_policy.hpp>
#include <rmsp/error.hpp>

/// The ways to add up rows that kernel "spgemm" has a name for.
namespace rmsp::kernels::spgemm {

struct NamedAccumulator {
    const char* name;
    Accumulator accumulator;
    int virtual_warp = 0;  ///< lanes for a row of B; 0: adaptive
    VirtualWarps virtual_warps{};
};
inline constexpr NamedAccumulator named_accumulators[] = {{"auto", Accumulator::automatic},
                                                          {"scatter", Accumulator::scatter},
                                                          {"scatter-1", Accumulator::scatter, 1},
                                                          {"scatter-2", Accumulator::scatter, 2},
                                                          {"scatter-4", Accumulator::scatter, 4},
                                                          {"scatter-8", Accumulator::scatter, 8},
                                                          {"virtual", Accumulator::virtual_warps, 0, {16, 128}},
                                                          {"virtual-1", Accumulator::virtual_warps, 0, {128, 128}},
                                                          {"virtual-2", Accumulator::virtual_warps, 0, {64, 64}},
                                                          {"virtual-4", Accumulator::virtual_warps, 0, {32, 32}},
                                                          {"virtual-8", Accumulator::virtual_warps, 0, {16, 16}},
                                                          {"hybrid", Accumulator::hybrid, 0, {16, 512}},
                                                          {"hash", Accumulator::hash},
                                                          {"window", Accumulator::window},
                                                          {"chunks", Accumulator::chunks}};

/// \throws Error(usage) naming those there are
inline const NamedAccumulator& accumulator_of(const std::string& name)
{
    std::string names;
    for (const NamedAccumulator& a : named_accumulators) {
        if (a.name == name) {
            return a;
        }
        names.append(names.empty() ? "" : ", ").append(a.name);
    }
    throw Error(ErrorCode::usage, "SpGEMM kernel \"spgemm\" has no accumulator \"" + name + "\"; there are: " + names);
}

}  // namespace rmsp::kernels::spgemm
