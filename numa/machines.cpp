#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/topology.hpp>

#include "core/data_folder.hpp"
#include "core/edit_distance.hpp"

namespace rmsp {
namespace {

namespace fs = std::filesystem;

fs::path folder() { return core::data_folder() / "machines"; }

}  // namespace

std::vector<std::string> machine_names()
{
    std::vector<std::string> names;
    std::error_code none;
    for (fs::directory_iterator it(folder(), none), end; it != end; it.increment(none)) {
        if (it->path().extension() == ".toml") {
            names.push_back(it->path().stem().string());
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::string machine_file(const std::string& name)
{
    const std::vector<std::string> names = machine_names();
    if (names.empty()) {
        throw Error(ErrorCode::usage,
                    fmt::format("machine \"{}\": no descriptions are installed beside librmsp (share/rmsp/machines); a "
                                "file of one can be named instead",
                                name));
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) {
        throw Error(ErrorCode::usage, core::unknown_name("machine", name, names));
    }
    return folder() / (name + ".toml");
}

}  // namespace rmsp
