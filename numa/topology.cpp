#include <rmsp/topology.hpp>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/reading.hpp"
#include "numa/description.hpp"
#include "numa/hwloc_topology.hpp"

namespace rmsp {
namespace {

std::string read_file(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    std::string text;
    std::array<char, 65536> chunk;
    // read() alone turns the failure to read a directory into a state instead of an exception.
    while (file.read(chunk.data(), chunk.size()) || file.gcount() > 0) {
        text.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
    }
    if (!file.is_open() || file.bad()) {
        throw Error(ErrorCode::io, fmt::format("cannot read the topology {}: {}", path, std::strerror(errno)));
    }
    return text;
}

}  // namespace

Topology Topology::detect() { return numa::live_topology(); }

Topology Topology::load(const std::string& path)
{
    return core::reading(path, [&] {
        const std::string text = read_file(path);
        const std::size_t first = text.find_first_not_of(" \t\r\n");
        const bool xml = first != std::string::npos && text[first] == '<';
        Topology topology = xml ? numa::topology_from_xml(text, path) : numa::parse_description(text, path);
        topology.source = path;
        return topology;
    });
}

}  // namespace rmsp
