#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// From the rows in each class of a phase, StructureClass or NumericClass, to its launches.
namespace rmsp::kernels::spgemm {

/// Classes with fewer rows than this do not fill a GPU: they join the next class, so that there are fewer launches.
inline constexpr std::int64_t rows_for_a_launch = 4096;

/// A run of the list of rows, worked on as rows of one class.
template <class Class>
struct Launch {
    Class as;
    std::int64_t first;
    std::int64_t rows;
    bool operator==(const Launch&) const = default;
};

/// The launches of a phase, from the rows in each class; class 0 has none.
template <class Class>
std::vector<Launch<Class>> plan_launches(std::span<const unsigned> rows_of_class,
                                         std::int64_t least = rows_for_a_launch)
{
    std::vector<Launch<Class>> launches;
    std::int64_t first = rows_of_class[0];
    std::int64_t rows = 0;
    Class as{};
    for (int i = 1; i < static_cast<int>(Class::count); ++i) {
        const auto c = static_cast<Class>(i);
        if (rows_of_class[static_cast<std::size_t>(i)] > 0) {
            rows += rows_of_class[static_cast<std::size_t>(i)];
            as = c;
        }
        if (rows > 0 && (rows >= least || !grows_into_next(c))) {
            launches.push_back({as, first, rows});
            first += rows;
            rows = 0;
        }
    }
    return launches;
}

}  // namespace rmsp::kernels::spgemm
