#include "apps/mspmv/config_command.hpp"

#include <cmath>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "apps/mspmv/machine.hpp"
#include "apps/mspmv/output.hpp"

namespace rmsp::mspmv {

void ConfigOptions::add_inputs(CLI::App& command)
{
    command.add_option("CONFIG", config_file, "configuration (docs/configuration.md)")->type_name("FILE");
    add_text(command, "--matrix", matrix, "FILE",
             "read this matrix (of a product: A), whatever the configuration says");
    add_text(command, "--devices", devices, "LIST",
             "auto, CUDA ordinals (0,1), or host devices (host:4; host:4x2 of two threads each)");
}

void ConfigOptions::add_others(CLI::App& command, bool verifies)
{
    command.add_option("--set", overrides, "set one key, run.iterations=200 for example; may be repeated")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
    add_text(command, "--json", json, "FILE",
             "also write the report as JSON; - : to standard output, the table to standard error");
    add_text(command, "--topology", topology, "FILE", "plan for the machine that this file describes; with --dry-run");
    add_text(command, "--machine", machine, "NAME",
             "plan for this one of mspmv machines, or several of it (\"16 x dgx-h200\"); with --dry-run");
    command.add_flag("--dry-run", dry_run, "print the plan and compute nothing");
    if (verifies) {
        command.add_flag("--no-verify", no_verify, "do not check what was computed");
    }
}

void ConfigOptions::add_metrics(CLI::App& command)
{
    add_text(command, "--metrics", metrics, "PORT",
             "meanwhile, serve http://127.0.0.1:PORT/metrics for Prometheus (docs/service.md)");
}

Config configuration(const ConfigOptions& options, const char* command,
                     const std::vector<std::pair<const char*, std::string>>& more)
{
    if (options.config_file.empty() && options.matrix.empty() && options.overrides.empty()) {
        throw Error(ErrorCode::usage,
                    fmt::format("{} needs a CONFIG.toml or --matrix FILE (see mspmv {} --help)", command, command));
    }
    std::vector<std::string> overrides = options.overrides;
    const auto add = [&](const char* key, const std::string& value) {
        if (!value.empty()) {
            overrides.push_back(fmt::format("{}={}", key, value));
        }
    };
    add("matrix.file", options.matrix);
    add("runtime.devices", options.devices);
    for (const auto& [key, value] : more) {
        add(key, value);
    }
    if (!options.topology.empty() && !options.machine.empty()) {
        throw Error(ErrorCode::usage, fmt::format("--topology {} and --machine {} are two machines: a plan is for one",
                                                  options.topology, options.machine));
    }
    if (!options.machine.empty() && !options.dry_run) {
        throw Error(ErrorCode::usage,
                    fmt::format("--machine {} names another machine: only --dry-run can use it", options.machine));
    }
    add("runtime.topology", options.topology);
    add("runtime.machine", options.machine);
    add("output.json", options.json);
    add("run.verify", options.no_verify ? "false" : "");
    Config config = options.config_file.empty() ? parse_config("", "command line", overrides)
                                                : load_config(options.config_file, overrides);
    spdlog::set_level(config.output.log_level == "off" ? spdlog::level::off
                                                       : spdlog::level::from_str(config.output.log_level));
    if (!config.runtime.topology.empty() && !options.dry_run) {
        throw Error(ErrorCode::usage,
                    fmt::format("runtime.topology (\"{}\") describes another machine: only --dry-run can use it",
                                config.runtime.topology));
    }
    if (options.dry_run && !config.runtime.machine.empty()) {
        const NamedMachine machine = machine_named(config.runtime.machine);
        const bool is_file = machine.nodes && machine.name.ends_with(".toml");
        config.runtime.topology = is_file ? machine.name : machine_file(machine.name);
        if (machine.nodes && std::string_view(command) != "run" && std::string_view(command) != "solve") {
            throw Error(ErrorCode::usage,
                        fmt::format("machine \"{}\": mspmv {} plans for one, run and solve for several",
                                    config.runtime.machine, command));
        }
    }
    require_writable(config.output.json);
    return config;
}

void compare_with_vendor(const Runtime& runtime, std::string_view family, std::vector<std::string>& notes,
                         const std::function<void(const std::string& kernel)>& measure)
{
    const DeviceKind kind = runtime.devices().front().kind;
    bool compared = false;
    for (const KernelInfo& kernel : list_kernels()) {
        if (kernel.family != family || kernel.device != kind || !kernel.compiled || !kernel.vendor) {
            continue;
        }
        compared = true;
        try {
            measure(kernel.name);
        } catch (const Error& e) {
            if (e.code() != ErrorCode::usage && e.code() != ErrorCode::out_of_memory) {
                throw;
            }
            notes.push_back(fmt::format("{} was not timed: {}", kernel.name, e.what()));
        }
    }
    if (!compared) {
        notes.emplace_back("run.compare_vendor: these devices have no vendor's kernel to compare with");
    }
}

double seconds_since(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void combine(Verification& all, const Verification& one)
{
    const bool passed = one.passed && (all.passed || !all.done);
    const std::int64_t overflowed = all.overflows + one.overflows;
    // Not a plain maximum: an error that is not a number is the worst.
    if (!all.done || !(one.error <= all.error)) {
        all = one;
    }
    all.passed = passed;
    all.overflows = overflowed;
}

void require_verified(const Verification& verification)
{
    if (verification.done && !verification.passed) {
        throw Error(
            ErrorCode::verification,
            fmt::format("verification failed: error {:.3e} exceeds the bound {:.3e}, worst in row {}{}",
                        verification.error, verification.bound, verification.worst_row,
                        std::isfinite(verification.error) ? "" : " (NaN or infinity where the reference has none)"));
    }
    if (verification.done && verification.overflows > 0) {
        throw Error(ErrorCode::verification,
                    fmt::format("{} of the results overflowed: their terms add up to more than the precision holds",
                                verification.overflows));
    }
}

}  // namespace rmsp::mspmv
