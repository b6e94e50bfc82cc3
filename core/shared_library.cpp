#include "core/shared_library.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include <dlfcn.h>
#include <link.h>

#include <fmt/format.h>

namespace rmsp::core {
namespace {

constexpr const char* path_variable = "RMSP_LIBRARY_PATH";

bool is_there(const std::string& path)
{
    std::error_code none;
    return std::filesystem::exists(path, none);
}

/// The file in the first folder of the environment variable that has it; "" if none has.
std::string in_given_folders(const char* file)
{
    const char* const value = std::getenv(path_variable);
    std::string_view folders = value != nullptr ? value : "";
    while (!folders.empty()) {
        const std::string_view folder = folders.substr(0, folders.find(':'));
        folders.remove_prefix(std::min(folder.size() + 1, folders.size()));
        std::string path = fmt::format("{}/{}", folder, file);
        if (!folder.empty() && is_there(path)) {
            return path;
        }
    }
    return "";
}

/// dlopen(), or null and what it says appended to `why`.
void* open(const std::string& path, std::string& why)
{
    void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* const error = ::dlerror();
        why += fmt::format("{}{}", why.empty() ? "" : "; ", error != nullptr ? error : path);
    }
    return handle;
}

}  // namespace

SharedLibrary::SharedLibrary(const OptionalLibrary& library) : library_(library)
{
    std::string why;
    if (const std::string given = in_given_folders(library.file); !given.empty()) {
        handle_ = open(given, why);
    } else {
        handle_ = open(library.file, why);
        const std::string built_with = fmt::format("{}/{}", library.folder, library.file);
        if (handle_ == nullptr && *library.folder != '\0' && is_there(built_with)) {
            handle_ = open(built_with, why);
        }
    }
    if (handle_ == nullptr) {
        throw MissingLibrary(
            fmt::format("{}, for {}, cannot be loaded ({}): it comes with {}; {} names its folder where the system "
                        "does not know it",
                        library.name, library.purpose, why, library.source, path_variable));
    }
}

std::string SharedLibrary::path() const
{
    const link_map* map = nullptr;
    return ::dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : library_.file;
}

void* SharedLibrary::symbol(const char* name) const
{
    void* const found = ::dlsym(handle_, name);
    if (found == nullptr) {
        throw MissingLibrary(
            fmt::format("{}, for {}: {} has no function {}, as it is older than what librmsp was built with; a newer "
                        "one comes with {}",
                        library_.name, library_.purpose, path(), name, library_.source));
    }
    return found;
}

}  // namespace rmsp::core
