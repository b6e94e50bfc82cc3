#include "runtime/transport/row.hpp"

#include <fmt/format.h>

namespace rmsp::transport {

std::string TransportRow::why_skipped(const DeviceFacts& facts) const
{
    if (facts.devices < 2) {
        return "one device needs none";
    }
    if (facts.share_memory) {
        return "host devices share memory and need none";
    }
    if (peer_memory && !facts.all_reachable) {
        return "not every device reaches the memory of every other";
    }
    if (each_gpu_once && facts.share_gpus) {
        return "it takes each GPU once, and devices share one";
    }
    return connect == nullptr ? fmt::format("transport \"{}\" was not compiled into this librmsp", name) : "";
}

}  // namespace rmsp::transport
