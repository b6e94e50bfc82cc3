#include "runtime/transport/table.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <core/edit_distance.hpp>

#include "runtime/transport/cuda/cuda_transports.hpp"
#include "runtime/transport/host_transport.hpp"

namespace rmsp::transport {
namespace {

#ifdef RMSP_HAVE_CUDA
constexpr auto* connect_peers = connect_peer_transport;
#else
constexpr decltype(TransportRow::connect) connect_peers = nullptr;
#endif
#ifdef RMSP_HAVE_NCCL
constexpr auto* connect_nccl = connect_nccl_transport;
#else
constexpr decltype(TransportRow::connect) connect_nccl = nullptr;
#endif

// Costs are orders of magnitude for NVLink, NCCL's launch, and PCIe 5 both ways: links only have to be told from each
// other.
constexpr std::array<TransportRow, 3> table{{
    {.name = "peer", .connect = connect_peers, .latency = 8e-6, .bytes_per_second = 300e9, .peer_memory = true},
    {.name = "nccl", .connect = connect_nccl, .latency = 20e-6, .bytes_per_second = 300e9, .each_gpu_once = true},
    {.name = "host",
     .connect = connect_host_transport,
     .latency = 30e-6,
     .bytes_per_second = 50e9,
     .through_host = true},
}};

}  // namespace

std::span<const TransportRow> transports() { return table; }

const TransportRow* find_transport(std::string_view name) noexcept
{
    const auto* const row = std::find_if(table.begin(), table.end(), [&](const auto& one) { return one.name == name; });
    return row == table.end() ? nullptr : row;
}

const TransportRow& transport_named(const std::string& name, const std::string& what,
                                    std::initializer_list<const char*> others)
{
    if (const TransportRow* const row = find_transport(name)) {
        return *row;
    }
    throw Error(ErrorCode::usage, core::unknown_name(what, name, transport_names(others)));
}

const TransportRow& transport_through_host()
{
    return *std::find_if(table.begin(), table.end(), [](const TransportRow& row) { return row.through_host; });
}

std::vector<std::string> transport_names(std::initializer_list<const char*> before,
                                         std::initializer_list<const char*> behind)
{
    std::vector<std::string> names(before.begin(), before.end());
    for (const TransportRow& row : table) {
        names.emplace_back(row.name);
    }
    names.insert(names.end(), behind.begin(), behind.end());
    return names;
}

std::unique_ptr<Transport> make_transport(const std::string& name,
                                          std::span<const std::unique_ptr<engine::Worker>> workers,
                                          const ConnectOptions& options)
{
    const TransportRow row = transport_named(name);
    if (row.connect == nullptr) {
        throw NotCompiled(fmt::format("transport \"{}\"", name));
    }
    return row.connect(workers, options);
}

}  // namespace rmsp::transport
