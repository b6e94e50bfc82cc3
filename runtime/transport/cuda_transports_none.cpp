#include "runtime/transport/cuda/cuda_transports.hpp"

namespace rmsp::transport {

std::unique_ptr<Transport> make_peer_transport(std::span<const std::unique_ptr<engine::Worker>>, bool)
{
    throw NotCompiled("the peer transport");
}

std::unique_ptr<Transport> make_nccl_transport(std::span<const std::unique_ptr<engine::Worker>>,
                                               std::chrono::steady_clock::duration)
{
    throw NotCompiled("the NCCL transport");
}

}  // namespace rmsp::transport
