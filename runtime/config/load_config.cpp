#include <rmsp/config.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "core/data_folder.hpp"
#include "core/reading.hpp"

namespace rmsp {
namespace {

/// The file, or one of that name among the configurations that come with librmsp.
std::string found_configuration(const std::string& path)
{
    namespace fs = std::filesystem;
    std::error_code none;
    if (fs::exists(path, none) || fs::path(path).is_absolute()) {
        return path;
    }
    for (const fs::path& place : {core::data_folder() / path, core::data_folder() / "configs" / path}) {
        if (fs::is_regular_file(place, none)) {
            return place.string();
        }
    }
    return path;
}

/// The text of a configuration. \throws Error(io)
std::string configuration_text(const std::string& path)
{
    const auto fail_read = [&] {
        throw Error(ErrorCode::io, fmt::format("{}: cannot read the configuration: {}", path, std::strerror(errno)));
    };
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
    if (file == nullptr) {
        fail_read();
    }
    // Far more than any has; what may have no end, /dev/zero for one, is not read to it.
    constexpr std::size_t most_bytes = std::size_t{16} << 20;
    std::string text;
    std::array<char, 4096> block;
    while (const std::size_t n = std::fread(block.data(), 1, block.size(), file.get())) {
        text.append(block.data(), n);
        if (text.size() > most_bytes) {
            throw Error(ErrorCode::io, fmt::format("{}: a configuration of more than {} bytes", path, most_bytes));
        }
    }
    if (std::ferror(file.get()) != 0) {
        fail_read();
    }
    return text;
}

}  // namespace

Config load_config(const std::string& given, const std::vector<std::string>& overrides)
{
    return core::reading(given, [&] {
        const std::string path = found_configuration(given);
        return parse_config(configuration_text(path), path, overrides);
    });
}

}  // namespace rmsp
