#pragma once

#include <string>

#include "apps/mspmv/page/drawings.hpp"

/// A report as people read it, from its JSON.
namespace rmsp::mspmv {

/// The text that was printed beside the JSON. \throws Error(io) if `report` is no report of mspmv; `name` stands for it
/// in messages
std::string report_text(const Json& report, const std::string& name);

/// One page of HTML that needs nothing beside itself: no script, no font, no picture from elsewhere.
/// \throws as report_text()
std::string report_page(const Json& report, const std::string& name);

}  // namespace rmsp::mspmv
