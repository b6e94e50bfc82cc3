#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include <rmsp/rmsp.h>
#include <rmsp/config.hpp>
#include <rmsp/runtime.hpp>

#include "capi/call.hpp"
#include "capi/host_matrix.hpp"

/// What is behind the handles of rmsp.h that several sources use.

namespace rmsp::capi {

/// A handle of either type of values; its index is the rmsp_value_type.
template <template <class> class Handle>
using OfEither = std::variant<Handle<float>, Handle<double>>;

template <class T>
inline constexpr rmsp_value_type value_type = std::is_same_v<T, float> ? RMSP_FLOAT : RMSP_DOUBLE;

inline const char* name_of(rmsp_value_type type) { return type == RMSP_FLOAT ? "float" : "double"; }

/// What `either` holds, for a call with values of type T.
/// \throws Error(usage) naming the handle if its values are of the other type
template <class T, class Either>
auto& of_type(Either& either, const char* name)
{
    constexpr auto wanted = static_cast<std::size_t>(value_type<T>);
    if (either.index() != wanted) {
        fail(std::string(name) + " has values of type " + name_of(static_cast<rmsp_value_type>(either.index())) +
             ", where " + name_of(value_type<T>) + " is needed");
    }
    return std::get<wanted>(either);
}

/// Gives a report or a plan in the asked format.
template <class Document>
void give(char** text, rmsp_text_format format, const Document& document)
{
    require_enumerator("format", format, 2);
    put(text, "text", [&] { return copied(format == RMSP_TEXT ? document.to_text() : document.to_json()); });
}

/// Sets what the caller gave a place for.
template <class Place, class Value>
void set(Place* place, const Value& value)
{
    if (place != nullptr) {
        *place = static_cast<Place>(value);
    }
}

}  // namespace rmsp::capi

struct rmsp_options {
    rmsp::Config config;
    rmsp_solve_callback callback = nullptr;
    void* context = nullptr;
    std::optional<rmsp::StreamRef> after{};
};

struct rmsp_runtime {
    rmsp::Runtime runtime;
};

struct rmsp_host_matrix {
    rmsp::capi::AnyHostMatrix matrix;
};

struct rmsp_matrix {
    rmsp::capi::OfEither<rmsp::DistributedMatrix> matrix;
    /// What a streamed matrix uses where it is, unless it is the caller's.
    std::shared_ptr<const void> arrays{};
    std::string name{};  ///< for reports
};

struct rmsp_vector {
    rmsp::capi::OfEither<rmsp::DistributedVector> vector;
};

namespace rmsp::capi {

/// The configuration of options, which may be null.
const Config& config_of(const rmsp_options* options);
/// What a matrix takes of them.
DistributeOptions distribute_options_of(const rmsp_options* options);

}  // namespace rmsp::capi
