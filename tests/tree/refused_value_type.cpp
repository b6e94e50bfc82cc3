// Must not compile with -DTYPE=...: see CMakeLists.txt.
#include <complex>

#include <rmsp/matrix.hpp>

rmsp::CsrView<TYPE> refused;
