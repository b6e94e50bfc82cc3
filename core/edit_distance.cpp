#include "core/edit_distance.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rmsp::core {

std::string unknown_name(const std::string& what, const std::string& name, const std::vector<std::string>& known)
{
    // Distances of very long names would cost time and mean nothing.
    const std::string head = name.substr(0, 64);
    const auto nearest = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
        return edit_distance(a, head) < edit_distance(b, head);
    });
    return fmt::format("{} \"{}\" is not one of {}; the nearest is \"{}\"", what, name, fmt::join(known, ", "),
                       *nearest);
}

}  // namespace rmsp::core
