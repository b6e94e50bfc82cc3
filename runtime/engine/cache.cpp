#include "runtime/engine/cache.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <unistd.h>

#include <fmt/format.h>

namespace rmsp::engine {
namespace {

std::string default_folder()
{
    const auto from = [](const char* variable, const char* below) {
        const char* const value = std::getenv(variable);
        // The XDG specification has relative paths ignored.
        return value != nullptr && *value == '/' ? value + std::string(below) : std::string();
    };
    const std::string folder = from("XDG_CACHE_HOME", "/rmsp");
    return folder.empty() ? from("HOME", "/.cache/rmsp") : folder;
}

/// The first line of a file: format, and the fingerprint of what follows.
std::string heading(std::string_view text) { return fmt::format("rmsp-cache 1 {:016x}\n", fingerprint(text)); }

}  // namespace

std::uint64_t fingerprint(std::string_view bytes, std::uint64_t hash) noexcept
{
    for (const char byte : bytes) {
        hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
    }
    return hash;
}

Cache::Cache(const std::string& setting)
    : folder_(setting == "off"    ? std::string()
              : setting == "auto" ? default_folder()
                                  : setting)
{
}

std::string Cache::path(std::string_view name) const { return fmt::format("{}/{}", folder_, name); }

bool Cache::has_any(std::string_view prefix) const
{
    std::error_code error;  // also of a folder without a name
    for (std::filesystem::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
        if (at->path().filename().native().starts_with(prefix)) {
            return true;
        }
    }
    return false;
}

std::optional<std::string> Cache::read(std::string_view name, std::string* damaged) const
{
    if (!enabled()) {
        return std::nullopt;
    }
    // A pipe in its place would be waited for, and a folder opens.
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path(name), ignored)) {
        return std::nullopt;
    }
    std::ifstream file(path(name), std::ios::binary);
    if (!file) {
        return std::nullopt;
    }
    std::string line;
    std::getline(file, line);
    std::string text(std::istreambuf_iterator<char>(file), {});
    if (line + '\n' != heading(text)) {
        if (damaged != nullptr) {
            *damaged = path(name) + ": not a whole file of this version's cache";
        }
        return std::nullopt;
    }
    return text;
}

bool Cache::write(std::string_view name, std::string_view text) const
{
    if (!enabled()) {
        return false;
    }
    std::error_code failed;
    std::filesystem::create_directories(folder_, failed);
    const std::string final_path = path(name);
    std::string pending = final_path + ".XXXXXX";
    const int descriptor = ::mkstemp(pending.data());
    if (descriptor < 0) {
        return false;
    }
    std::FILE* const file = ::fdopen(descriptor, "wb");
    if (file == nullptr) {
        ::close(descriptor);
        std::remove(pending.c_str());
        return false;
    }
    const std::string first = heading(text);
    bool good = std::fwrite(first.data(), 1, first.size(), file) == first.size() &&
                std::fwrite(text.data(), 1, text.size(), file) == text.size();
    good = std::fclose(file) == 0 && good;
    if (good) {
        std::filesystem::rename(pending, final_path, failed);
        good = !failed;
    }
    if (!good) {
        std::remove(pending.c_str());
    }
    return good;
}

}  // namespace rmsp::engine
