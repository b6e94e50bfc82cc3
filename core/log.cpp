#include "core/log.hpp"

#include <exception>

#include <spdlog/spdlog.h>

namespace rmsp::core {

void log_warning(const std::string& message) { spdlog::warn("{}", message); }
void log_info(const std::string& message) { spdlog::info("{}", message); }
void log_debug(const std::string& message) { spdlog::debug("{}", message); }
bool logs_debug() noexcept
{
    try {
        const auto* const logger = spdlog::default_logger_raw();
        return logger != nullptr && logger->should_log(spdlog::level::debug);
    } catch (const std::exception&) {
        return false;  // spdlog makes its loggers when they are first asked for, and there is no memory
    }
}

}  // namespace rmsp::core
