#pragma once

#include <string_view>

namespace rmsp::mspmv {

/// Calls f.operator()<T>() for the type that a configuration's `matrix.precision` names.
template <class F>
auto with_precision(std::string_view precision, const F& f)
{
    return precision == "float" ? f.template operator()<float>() : f.template operator()<double>();
}

}  // namespace rmsp::mspmv
