// Must not compile: see CMakeLists.txt.
#include <cstddef>

#include <rmsp/matrix.hpp>

const std::size_t columns[] = {0, 1};
rmsp::IndexView unsigned_indices(columns);
