#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <rmsp/preconditioner.hpp>
#include <rmsp/report.hpp>

#include "core/text.hpp"

/// What the reports of all operations have in common.
namespace rmsp::report {

using Json = nlohmann::ordered_json;
using Context = std::map<std::string, std::string>;

/// What joins the devices, as a plan has it.
Json links_json(const std::vector<MachineLink>& links);

/// "librmsp VERSION (commit ...; FEATURES) on HOST, DATE", with its heading.
std::string library_text(const Context& context);

/// As the plan calls them: "cuda:0 NVIDIA H200".
std::vector<std::string> device_names(const Plan& plan);

/// Phases of the whole machine on one line, those with a time for each device in tables of devices by phases.
/// `devices`: "cuda:0 NVIDIA H200".
std::string phases_text(const std::vector<PhaseTimes>& phases, const std::vector<std::string>& devices);

/// What a report begins with: matrix, machine, program, plan and what setting up took, fields of the report.
template <class Of>
std::string head_text(const Of& report)
{
    std::string out = text::wrapped("Matrix        ", report.matrix);
    out += text::wrapped("Machine       ", report.topology);
    out += library_text(report.context);
    out += '\n' + report.plan.to_text();
    const std::string setup = phases_text(report.setup, device_names(report.plan));
    if (!setup.empty()) {
        out += "\nSet-up\n" + setup;
    }
    return out;
}

/// "median ..., min ..., max ...; N iterations in ...".
std::string times_text(const Measurement& m);
std::string verification_text(const Verification& v);
std::string notes_text(const std::vector<std::string>& notes);
/// What a preconditioner takes of the devices' memory; "": nothing.
std::string memory_text(const PreconditionerReport& preconditioner);

/// What is said of the program, and what else the caller knows.
Json context_json(const Context& context);
Json plan_json(const Plan& plan);
/// The times of each phase, in seconds times `unit`.
Json phases_json(const std::vector<PhaseTimes>& phases, double unit);
/// The fields of Google Benchmark, phases and verification; number `index` of the document.
Json benchmark_json(const Measurement& m, const Verification& v, std::size_t index);
/// The fields of a solve of so many seconds, whose operations are not counted.
Json solve_json(std::string name, double seconds, std::vector<PhaseTimes> phases = {});
/// The whole document, with the lines of `text` as context.text.
std::string document(Json context, Json benchmarks, const std::string& text);

/// What is said of the program and of a solve: its matrix, machine, plan and what setting up took, fields of the
/// report.
template <class Of>
Json solve_context_json(const Of& report)
{
    Json about = context_json(report.context);
    about["matrix"] = report.matrix;
    about["topology"] = report.topology;
    about["devices"] = device_names(report.plan);
    about["plan"] = plan_json(report.plan);
    about["setup_seconds"] = phases_json(report.setup, 1);
    return about;
}

}  // namespace rmsp::report
