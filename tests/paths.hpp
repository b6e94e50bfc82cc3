#pragma once

#include <string>

namespace rmsp::test {

/// A file or folder of the source tree, by its path in it; absolute. Paths of this machine are compiled into the
/// sources of these functions alone, so that a compiler cache finds the other objects for another clone.
std::string source_path(const std::string& name);

/// The same in the build tree.
std::string build_path(const std::string& name);

}  // namespace rmsp::test
