#pragma once

#include <string>

#include <rmsp/characterize.hpp>

namespace rmsp::mspmv {

/// A page with the advice, the bounds as bars, a roofline, row lengths, where the nonzeros are, and the orders.
std::string characterize_page(const CharacterizeReport& report);

}  // namespace rmsp::mspmv
