#include <array>
#include <vector>

#include <core/value_types.hpp>
#include <rmsp/error.hpp>

#include "core/edit_distance.hpp"
#include "runtime/solvers/cg.hpp"
#include "runtime/solvers/recipe.hpp"

namespace rmsp {
namespace solvers {
namespace {

int few(const SolverOptions&) { return 256; }

/// Every method; the order is that of lists.
template <class T>
const auto& methods()
{
    static const std::array rows{
        Method<T>{{.name = "cg",
                   .description = "conjugate gradients; symmetric positive definite matrices",
                   .symmetric = true,
                   .definite = true},
                  cg<T>,
                  few},
    };
    return rows;
}

}  // namespace

template <class T>
const Method<T>& method_named(const std::string& name)
{
    std::vector<std::string> names;
    for (const Method<T>& row : methods<T>()) {
        if (row.info.name == name) {
            return row;
        }
        names.emplace_back(row.info.name);
    }
    throw Error(ErrorCode::usage, core::unknown_name("solver", name, names));
}

#define RMSP_INSTANTIATE(T) template const Method<T>& method_named(const std::string&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace solvers

std::span<const SolverInfo> list_solvers() noexcept
{
    static const auto all = [] {
        std::vector<SolverInfo> infos;
        for (const auto& row : solvers::methods<double>()) {
            infos.push_back(row.info);
        }
        return infos;
    }();
    return all;
}

}  // namespace rmsp
