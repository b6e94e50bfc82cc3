#pragma once

#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

namespace rmsp::mspmv {

/// The manual page of a program, section 1, in troff, of the texts that its --help has. \param what  it is, in a few
/// words
std::string man_page(const CLI::App& app, std::string_view what);

}  // namespace rmsp::mspmv
