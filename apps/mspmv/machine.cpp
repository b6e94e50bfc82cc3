#include "apps/mspmv/machine.hpp"

#include <ctime>
#include <regex>

#include <unistd.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/version.hpp>

namespace rmsp::mspmv {
namespace {

std::string host_name()
{
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace

NamedMachine machine_named(const std::string& text)
{
    std::smatch parts;
    if (!std::regex_match(text, parts, std::regex(R"(\s*(\d+)\s*x\s+(\S.*))"))) {
        return {text, {}};
    }
    constexpr int most = 1'000'000;
    const std::string number = parts[1];
    // More digits than the largest has are out of range, and of the type.
    const int nodes = number.size() > 7 ? most + 1 : std::stoi(number);
    if (nodes < 1 || nodes > most) {
        throw Error(ErrorCode::usage,
                    fmt::format("machine \"{}\": from 1 to {} of them can be planned for", text, most));
    }
    return {parts[2], nodes};
}

std::string topology_line(const Topology& topology)
{
    std::size_t cores = 0;
    std::size_t threads = 0;
    for (const NumaNode& node : topology.nodes) {
        cores += node.cores.size();
        threads += node.pus.size();
    }
    const auto count = [](std::size_t n, const char* what) {
        return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
    };
    return fmt::format("{}: {}, {}, {}, {}", topology.name.empty() ? "this machine" : topology.name,
                       count(topology.nodes.size(), "NUMA node"), count(cores, "core"),
                       count(threads, "hardware thread"), count(topology.gpus.size(), "GPU"));
}

std::map<std::string, std::string> run_context()
{
    const std::time_t now = std::time(nullptr);
    return {{"date", fmt::format("{:%Y-%m-%dT%H:%M:%S%z}", fmt::localtime(now))},
            {"host_name", host_name()},
            {"executable", "mspmv"},
            {"library_version", version()},
            {"commit", commit()},
            {"features", build_features()}};
}

}  // namespace rmsp::mspmv
