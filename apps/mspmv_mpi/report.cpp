#include "apps/mspmv_mpi/report.hpp"

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "apps/mspmv/terminal.hpp"
#include "apps/mspmv_mpi/prediction.hpp"

namespace rmsp::mpi {

using Json = nlohmann::ordered_json;

std::string read_text(const Json& report)
{
    if (!report.contains("read")) {
        return {};
    }
    return report["read"]["in_parts"].get<bool>()
               ? fmt::format("read       in {} parts, by all processes\n", report["processes"].size())
               : fmt::format("read       by the first process: {}\n", report["read"]["reason"].get<std::string>());
}

std::string part_text(const Json& report, const char* part)
{
    if (!report.contains(part)) {
        return {};
    }
    std::string text = part;
    for (const auto& [key, value] : report[part].items()) {
        if (value != "" && !value.is_null() && key != "predicted") {
            text +=
                fmt::format("\n           {}: {}", key, value.is_string() ? value.get<std::string>() : value.dump());
        }
    }
    text += '\n';
    if (report[part].contains("predicted")) {
        text +=
            predicted_text(report[part]["predicted"], part == std::string_view("product") ? "product" : "iteration");
    }
    return text;
}

std::string text_of(const Json& report)
{
    std::string text = fmt::format("matrix     {}: {} x {}, {} nonzeros\n", report["matrix"].get<std::string>(),
                                   report["rows"].get<std::int64_t>(), report["cols"].get<std::int64_t>(),
                                   report["nonzeros"].get<std::int64_t>());
    text += read_text(report);
    if (report["balance"] == "time") {
        text += "balance    time: bytes of a product at the bandwidth of each process's devices\n";
    }
    for (const Json& p : report["processes"]) {
        text +=
            fmt::format("process {}  {}, {} devices ({}): {} rows, {} nonzeros; {} ghosts of {} processes, {} sent\n",
                        p["process"].get<int>(), p["node"].get<std::string>(), p["devices"].size(),
                        p["devices"].empty() ? "" : p["devices"][0].get<std::string>(), p["rows"].get<std::int64_t>(),
                        p["nonzeros"].get<std::int64_t>(), p["ghosts"].get<std::int64_t>(),
                        p["receives_from"].get<int>(), p["sent"].get<std::int64_t>());
    }
    text += fmt::format("transport  {}: {}\n", report["transport"]["name"].get<std::string>(),
                        report["transport"]["reason"].get<std::string>());
    text += fmt::format("messages   {}: {}\n",
                        report["between_nodes"]["gathered"].get<bool>() ? "gathered by nodes" : "direct",
                        report["between_nodes"]["reason"].get<std::string>());
    for (const char* part : {"product", "solve", "eigen"}) {
        text += part_text(report, part);
    }
    return text;
}

void print(const std::string& text, const Json& report, const std::string& json)
{
    if (json != "-") {
        std::fputs(mspmv::fitted(text, mspmv::terminal_width()).c_str(), stdout);
    }
    if (json == "-") {
        std::puts(report.dump(2).c_str());
    } else if (!json.empty()) {
        std::ofstream file(json);
        file << report.dump(2) << '\n';
        if (!file) {
            throw Error(ErrorCode::io, fmt::format("{} cannot be written", json));
        }
    }
}

}  // namespace rmsp::mpi
