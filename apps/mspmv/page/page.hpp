#pragma once

#include <string>

#include "apps/mspmv/page/drawings.hpp"

/// A report as people read it, from its JSON.
namespace rmsp::mspmv {

/// Which build made a report, when and where.
std::string source_line(const Json& context);

/// The JSON that `mspmv run`, `spgemm`, `solve` or `eigen` wrote. \throws Error(io) if it is none
Json read_report(const std::string& path);

/// The text that was printed beside the JSON. \throws Error(io) if that is not in `report`; `name` stands for it in
/// messages
std::string report_text(const Json& report, const std::string& name);

/// One page of HTML that needs nothing beside itself: no script, no font, no picture from elsewhere.
/// \throws as report_text()
std::string report_page(const Json& report, const std::string& name);

}  // namespace rmsp::mspmv
