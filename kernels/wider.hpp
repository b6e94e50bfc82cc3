#pragma once

namespace rmsp::kernels {

/// The next wider type, in which references add up, so that a difference from them is the error of the kernel under
/// test.
template <class T>
struct Wider;
template <>
struct Wider<float> {
    using type = double;
};
template <>
struct Wider<double> {
    using type = long double;
};

}  // namespace rmsp::kernels
