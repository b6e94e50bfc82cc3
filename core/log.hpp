#pragma once

#include <string>

/// Messages to spdlog's default logger, which is the program's to set. Its headers are heavy, so one source has them.
namespace rmsp::core {

void log_warning(const std::string& message);
void log_info(const std::string& message);
void log_debug(const std::string& message);
/// Whether such a message goes anywhere: to be asked where making it costs something.
bool logs_debug() noexcept;

}  // namespace rmsp::core
