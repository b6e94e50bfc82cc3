#pragma once

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

/// A copy of a text that is freed with rmsp_free().
char* copied(const std::string& text);

/// \throws Error(usage) if an enumerator is none of [0, count)
void require_enumerator(const char* name, int value, int count);

}  // namespace rmsp::capi
