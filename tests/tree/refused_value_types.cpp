// Must not compile: see CMakeLists.txt.
#include <complex>

#include <rmsp/matrix.hpp>

rmsp::CsrView<std::complex<double>> complex_values;
