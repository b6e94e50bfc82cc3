#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <rmsp/config.hpp>

#include "apps/mspmv/options.hpp"

/// What commands that read a configuration have in common.
namespace rmsp::mspmv {

struct ConfigOptions {
    std::string config_file;
    std::string matrix;
    std::string devices;
    std::string topology;
    std::string machine;
    std::string json;
    std::string metrics;  ///< the port; of the commands that have add_metrics()
    std::vector<std::string> overrides;
    bool dry_run = false;
    bool no_verify = false;

    /// Adds the options that all such commands have; those that say what is multiplied, and the rest,
    /// with --no-verify if the command compares its result with a reference.
    void add_inputs(CLI::App& command);
    void add_others(CLI::App& command, bool verifies = true);
    void add_metrics(CLI::App& command);
};

/// The file with the options over it, and `more` of the command's own: keys and values, of which empty ones do not
/// count. Sets the log level. \throws Error(usage) if there is nothing to multiply, or if it is another machine's and
/// no dry run, Error(io) if output.json cannot be written
Config configuration(const ConfigOptions& options, const char* command,
                     const std::vector<std::pair<const char*, std::string>>& more);

/// Calls `measure` with the name of each of the vendor's kernels of a family for the devices in use. A note says of
/// each that refuses the matrix, or has no room for it, why; another one, that there are none.
void compare_with_vendor(const Runtime& runtime, std::string_view family, std::vector<std::string>& notes,
                         const std::function<void(const std::string& kernel)>& measure);

double seconds_since(std::chrono::steady_clock::time_point begin);

/// The worst of several comparisons.
void combine(Verification& all, const Verification& one);

/// \throws Error(verification) if it failed
void require_verified(const Verification& verification);

}  // namespace rmsp::mspmv
