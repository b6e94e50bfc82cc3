// Compiles with -DTYPE=... or must not: see CMakeLists.txt.
#include <cstddef>

#include <rmsp/matrix.hpp>

const TYPE indices[] = {0, 1};
rmsp::IndexView refused(indices);
