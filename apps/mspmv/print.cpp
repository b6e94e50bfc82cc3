#include "apps/mspmv/print.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "apps/mspmv/terminal.hpp"

namespace rmsp::mspmv {

void print(std::string_view text)
{
    if ((!text.empty() && std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) ||
        std::fflush(stdout) != 0) {
        throw Error(ErrorCode::io, fmt::format("cannot write to standard output: {}", std::strerror(errno)));
    }
}

void print_fitted(std::string_view text) { print(fitted(text, terminal_width())); }

void print_error(std::string_view text) noexcept
{
    // An empty text may have no address, which fwrite() must not get.
    if (!text.empty()) {
        std::fwrite(text.data(), 1, text.size(), stderr);
        std::fflush(stderr);
    }
}

}  // namespace rmsp::mspmv
