#pragma once

#include <ctime>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <rmsp/rmsp.hpp>

/// What results say of when, where and with which build they were measured; the program adds to it.
inline nlohmann::ordered_json run_context(const char* executable)
{
    char host[256] = {};
    static_cast<void>(::gethostname(host, sizeof host - 1));
    return {{"date", fmt::format("{:%Y-%m-%dT%H:%M:%S%z}", fmt::localtime(std::time(nullptr)))},
            {"host_name", host},
            {"executable", executable},
            {"library_version", rmsp::version()},
            {"commit", rmsp::commit()},
            {"features", rmsp::build_features()}};
}

/// "cuda:0 NVIDIA H200", for each device.
inline std::vector<std::string> device_names(const rmsp::Runtime& runtime)
{
    std::vector<std::string> names;
    for (const rmsp::DeviceInfo& device : runtime.devices()) {
        names.push_back(fmt::format("{}:{} {}", rmsp::to_string(device.kind), device.index, device.name));
    }
    return names;
}
