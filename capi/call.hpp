#pragma once

#include <cstdint>
#include <string>

#include <rmsp/rmsp.h>
#include <rmsp/error.hpp>

namespace rmsp::capi {

/// Keeps the message of the exception in flight for rmsp_last_error(), with the C function's name before it, and
/// returns its status.
rmsp_status failed(const char* function) noexcept;

/// Runs the body of the C function of that name, from which no exception may come.
template <class Body>
rmsp_status call(const char* function, Body&& body) noexcept
{
    try {
        body();
        return RMSP_SUCCESS;
    } catch (...) {
        return failed(function);
    }
}

[[noreturn]] void fail(const std::string& message);

/// \throws Error(usage) for a null pointer
template <class Object>
Object& required(Object* object, const char* name)
{
    if (object == nullptr) {
        fail(std::string(name) + " is null");
    }
    return *object;
}

/// Puts what make() makes into the place that the caller gave for it, after making sure that there is one.
template <class Place, class Make>
void put(Place* place, const char* name, const Make& make)
{
    Place& to = required(place, name);
    to = make();
}

/// A copy of a text that is freed with rmsp_free().
char* copied(const std::string& text);

/// \throws Error(usage) if an enumerator is none of [0, count)
void require_enumerator(const char* name, int value, int count);

/// \throws Error(usage) for a negative size, and one that leaves no room for another entry
void require_size(const char* name, std::int64_t size);
/// \throws Error(usage) if an array for so many entries is null
void require_entries(const char* name, const void* array, std::int64_t count);

}  // namespace rmsp::capi
