#pragma once

#include <filesystem>

namespace rmsp::core {

/// share/rmsp of where librmsp is: of the nearest folder above the library (or the program that it is linked into) that
/// has one, be that a build or an install tree. A path that does not exist where there is none.
std::filesystem::path data_folder();

}  // namespace rmsp::core
