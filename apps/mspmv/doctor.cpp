#include <memory>
#include <string>

#include <fmt/format.h>

#include <rmsp/doctor.hpp>
#include <rmsp/limits.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/options.hpp"
#include "apps/mspmv/output.hpp"
#include "apps/mspmv/page/limits_page.hpp"
#include "apps/mspmv/print.hpp"

namespace rmsp::mspmv {
namespace {

struct DoctorArguments {
    std::string devices;
    std::string json;
    std::int64_t mib = 32;
    double time_limit = 30;
    bool refresh = false;
    bool limits = false;
    std::string html;
    std::int64_t limit_mib = 0;
};

int show_limits(const DoctorArguments& options)
{
    require_writable(options.json);
    require_writable(options.html);
    RuntimeOptions runtime_options;
    runtime_options.cache = "auto";
    runtime_options = RuntimeOptions::from_environment(runtime_options);
    if (!options.devices.empty()) {
        runtime_options.devices = options.devices;
    }
    Runtime runtime(runtime_options);
    DeviceLimits limits;
    if (!options.refresh) {
        limits = kept_device_limits(runtime);
    }
    if (limits.devices.empty()) {
        LimitOptions measure;
        measure.bytes = options.limit_mib << 20;
        limits = measure_device_limits(runtime, measure);
    }
    if (options.json != "-") {
        print_fitted(limits.to_text());
    }
    if (options.json == "-") {
        print(limits.to_json());
    } else if (!options.json.empty()) {
        write_text(options.json, limits.to_json());
    }
    if (!options.html.empty()) {
        write_text(options.html, limits_page(limits));
    }
    return 0;
}

int examine(const DoctorArguments& options)
{
    if (options.limits) {
        return show_limits(options);
    }
    require_writable(options.json);
    DoctorOptions doctor;
    doctor.runtime.cache = "auto";
    doctor.runtime = RuntimeOptions::from_environment(doctor.runtime);
    if (!options.devices.empty()) {
        doctor.runtime.devices = options.devices;
    }
    doctor.bytes = options.mib << 20;
    doctor.time_limit_seconds = options.time_limit;
    doctor.refresh = options.refresh;
    const DoctorReport report = diagnose(doctor);
    if (options.json != "-") {
        print_fitted(report.to_text());
    }
    if (options.json == "-") {
        print(report.to_json());
    } else if (!options.json.empty()) {
        write_text(options.json, report.to_json());
    }
    return report.failures() == 0 ? 0 : static_cast<int>(ErrorCode::device);
}

}  // namespace

void add_doctor(CLI::App& app, Action& action)
{
    auto options = std::make_shared<DoctorArguments>();
    CLI::App* command = app.add_subcommand(
        "doctor",
        "Test the devices: binding, every link with data and for speed, NCCL; exit code 5 if something is broken");
    add_text(*command, "--devices", options->devices, "LIST",
             "test these: auto, CUDA ordinals (0,1), host devices (host:4); RMSP_DEVICES");
    auto* const limits = command->add_flag("--limits", options->limits,
                                           "measure what the devices reach instead: bandwidth over sizes, arithmetic "
                                           "over intensities; kept, and used by rooflines");
    add_text(*command, "--html", options->html, "FILE", "with --limits: also a page with the curves");
    command->get_option("--html")->needs(limits);
    const auto* const limit_mib =
        command
            ->add_option("--limits-mib", options->limit_mib,
                         "MiB of the largest of three arrays on each device; implies --refresh. 0: 1024 on GPUs, 128 "
                         "for all host devices")
            ->type_name("N")
            ->check(CLI::Range(0, 1 << 14))
            ->capture_default_str()
            ->needs(limits);
    command->add_flag("--refresh", options->refresh,
                      "test anew, even if a result for this machine is kept (RMSP_CACHE_DIR)");
    const auto* const mib = command->add_option("--mib", options->mib, "MiB of each copy; implies --refresh")
                                ->type_name("N")
                                ->check(CLI::Range(1, 1 << 14))
                                ->capture_default_str();
    const auto* const limit =
        command
            ->add_option("--time-limit", options->time_limit,
                         "seconds after which a transfer or NCCL counts as hung; implies --refresh")
            ->type_name("S")
            ->check(CLI::Range(0.001, 3600.0))
            ->capture_default_str();
    add_text(*command, "--json", options->json, "FILE",
             "also write the result as JSON; - : print it instead of the text");
    command->footer(
        "Examples:\n"
        "  mspmv doctor\n"
        "  mspmv doctor --refresh --json doctor.json\n"
        "  mspmv doctor --limits --html limits.html\n"
        "  mspmv doctor --devices host:2");
    command->callback([&action, options, mib, limit, limit_mib] {
        options->refresh = options->refresh || mib->count() + limit->count() + limit_mib->count() > 0;
        action = [options] { return examine(*options); };
    });
}

}  // namespace rmsp::mspmv
