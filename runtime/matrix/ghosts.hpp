#pragma once

#include <cstddef>
#include <vector>

#include "runtime/transport/halo.hpp"

/// The entries of x that a device gets from others, where x is exchanged by entries.
namespace rmsp::distributed {

/// Ghosts travel in two messages: the popular ones, with which most entries of a graph are multiplied, and the others.
inline constexpr std::size_t ghost_messages = 2;
inline constexpr std::size_t popular_ghosts = 0;
inline constexpr std::size_t other_ghosts = 1;
struct GhostMessage {
    transport::Halo halo;
    std::vector<void*> packed;  ///< where each device packs what others need
    bool empty = true;
};

}  // namespace rmsp::distributed
