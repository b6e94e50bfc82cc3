#include "core/log.hpp"

#include <spdlog/spdlog.h>

namespace rmsp::core {

void log_warning(const std::string& message) { spdlog::warn("{}", message); }
void log_info(const std::string& message) { spdlog::info("{}", message); }
void log_debug(const std::string& message) { spdlog::debug("{}", message); }

}  // namespace rmsp::core
