// Must not compile with -DTYPE=...: see CMakeLists.txt.
#include <cstddef>

#include <rmsp/matrix.hpp>

const TYPE indices[] = {0, 1};
rmsp::IndexView refused(indices);
