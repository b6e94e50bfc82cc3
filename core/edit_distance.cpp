#include "core/edit_distance.hpp"

#include <rmsp/names.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rmsp {

std::string nearest_name(std::string_view name, std::span<const std::string> known)
{
    // Distances of very long names would cost time and mean nothing.
    const std::string_view head = name.substr(0, 64);
    const auto nearest = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
        return core::edit_distance(a, head) < core::edit_distance(b, head);
    });
    return nearest == known.end() ? "" : *nearest;
}

std::string similar_name(std::string_view name, std::span<const std::string> known)
{
    std::string nearest = nearest_name(name, known);
    const std::size_t most = std::max<std::size_t>(2, name.size() / 3);
    return name.size() <= 64 && core::edit_distance(nearest, name) <= most ? nearest : "";
}

namespace core {

std::string unknown_name(const std::string& what, const std::string& name, const std::vector<std::string>& known)
{
    return fmt::format("{} \"{}\" is not one of {}; the nearest is \"{}\"", what, name, fmt::join(known, ", "),
                       nearest_name(name, known));
}

}  // namespace core

}  // namespace rmsp
