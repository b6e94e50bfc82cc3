#include "core/data_folder.hpp"

#include <dlfcn.h>

namespace rmsp::core {
namespace {

const int in_this_library = 0;

}  // namespace

std::filesystem::path data_folder()
{
    namespace fs = std::filesystem;
    const fs::path share = fs::path("share") / "rmsp";
    Dl_info info{};
    std::error_code none;
    const bool known = ::dladdr(&in_this_library, &info) != 0 && info.dli_fname != nullptr;
    fs::path file = known ? fs::canonical(info.dli_fname, none) : fs::path();
    if (file.empty()) {
        // A program that was found in PATH is called by its bare name.
        file = fs::read_symlink("/proc/self/exe", none);
    }
    // PREFIX/lib/x86_64-linux-gnu/librmsp.so is the deepest.
    fs::path folder = file.parent_path();
    for (int level = 0; level < 3; ++level, folder = folder.parent_path()) {
        if (fs::is_directory(folder / share, none)) {
            return folder / share;
        }
    }
    return file.parent_path() / share;
}

}  // namespace rmsp::core
