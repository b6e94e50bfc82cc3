#pragma once

#include <chrono>
#include <ctime>
#include <exception>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include <rmsp/rmsp.hpp>

/// What the benchmark programs have in common.

inline double seconds_since(std::chrono::steady_clock::time_point start)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline const std::chrono::steady_clock::time_point program_start = std::chrono::steady_clock::now();

/// A line on standard error, behind the time since the program began.
template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args)
{
    fmt::print(stderr, "{:6.1f} s  {}\n", seconds_since(program_start),
               fmt::format(format, std::forward<Args>(args)...));
}

/// The program's exit code: what `f` returns, or that of what it throws, which is reported. What librmsp logs meanwhile
/// goes to standard error, too.
template <class F>
int report_errors(const F& f)
{
    try {
        spdlog::set_default_logger(spdlog::stderr_logger_mt("rmsp"));
        return f();
    } catch (const rmsp::Error& e) {
        say("error: {}", e.what());
        return static_cast<int>(e.code());
    } catch (const std::exception& e) {
        say("error: {}", e.what());
        return static_cast<int>(rmsp::ErrorCode::internal);
    }
}

/// \throws Error(io)
inline void write_file(const std::string& path, std::string_view text)
{
    std::ofstream file(path);
    file << text;
    file.close();
    if (!file) {
        throw rmsp::Error(rmsp::ErrorCode::io, path + ": cannot write");
    }
}

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
            {"features", rmsp::build_features()},
            {"versions", rmsp::library_versions()}};
}

/// The schema of what benchmarks write, schemas/bench-1.json.
inline constexpr const char* results_schema = "rmsp-bench-1";

/// Results in the form of Google Benchmark's. \param path  empty: standard output
inline void write_results(const std::string& path, const nlohmann::ordered_json& context,
                          const nlohmann::ordered_json& benchmarks)
{
    const nlohmann::ordered_json document{{"schema", results_schema}, {"context", context}, {"benchmarks", benchmarks}};
    const std::string text = document.dump(2) + "\n";
    if (path.empty()) {
        fmt::print("{}", text);
    } else {
        write_file(path, text);
    }
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
