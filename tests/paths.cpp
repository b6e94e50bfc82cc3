#include "tests/paths.hpp"

namespace rmsp::test {

std::string source_path(const std::string& name) { return RMSP_SOURCE_DIR "/" + name; }
std::string build_path(const std::string& name) { return RMSP_BUILD_DIR "/" + name; }

}  // namespace rmsp::test
