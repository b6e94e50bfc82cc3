#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/engine/worker.hpp"
#include "runtime/transport/row.hpp"
#include "runtime/transport/transport.hpp"

/// The transports: a row each, in the order in which they are tried. A transport is its sources and its row; all else
/// asks the row.
namespace rmsp::transport {

/// Every transport, also those that this build lacks.
std::span<const TransportRow> transports();
/// The row of that name, or null.
const TransportRow* find_transport(std::string_view name) noexcept;
/// The row of that name. `what` the name is of, and `others` that would do too, are for the message.
/// \throws Error(usage) naming the known ones and the nearest
const TransportRow& transport_named(const std::string& name, const std::string& what = "transport",
                                    std::initializer_list<const char*> others = {});
/// The one that goes through the host's memory, which connects any devices.
const TransportRow& transport_through_host();
/// The names of all, with `others` before and behind: what a configuration key may say.
std::vector<std::string> transport_names(std::initializer_list<const char*> before = {},
                                         std::initializer_list<const char*> behind = {});

/// \throws Error(usage) for an unknown name, NotCompiled, Error(device) if the devices cannot be connected that way
std::unique_ptr<Transport> make_transport(const std::string& name,
                                          std::span<const std::unique_ptr<engine::Worker>> workers,
                                          const ConnectOptions& options = {});

}  // namespace rmsp::transport
