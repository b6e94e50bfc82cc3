#include "capi/call.hpp"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include <fmt/format.h>

#include <rmsp/version.hpp>

namespace rmsp::capi {
namespace {

thread_local std::string last_error;
/// Shown in the place of last_error: the message for which there was no memory.
thread_local const char* last_resort = nullptr;

void keep(const char* function, const char* message) noexcept
{
    try {
        last_error.assign(function).append(": ").append(message);
        last_resort = nullptr;
    } catch (...) {
        last_resort = "out of memory, also for the message";
    }
}

}  // namespace

rmsp_status failed(const char* function) noexcept
{
    try {
        throw;
    } catch (const Error& e) {
        keep(function, e.what());
        return static_cast<rmsp_status>(e.code());
    } catch (const std::bad_alloc&) {
        keep(function, "out of host memory");
        return RMSP_ERROR_OUT_OF_MEMORY;
    } catch (const std::exception& e) {
        keep(function, e.what());
        return RMSP_ERROR_INTERNAL;
    } catch (...) {
        keep(function, "an exception of unknown type");
        return RMSP_ERROR_INTERNAL;
    }
}

void fail(const std::string& message) { throw Error(ErrorCode::usage, message); }

char* copied(const std::string& text)
{
    auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
    if (copy == nullptr) {
        throw std::bad_alloc();
    }
    std::memcpy(copy, text.c_str(), text.size() + 1);
    return copy;
}

void require_enumerator(const char* name, int value, int count)
{
    if (value < 0 || value >= count) {
        fail(fmt::format("{} is {}, which is not one of 0 to {}", name, value, count - 1));
    }
}

void require_size(const char* name, std::int64_t size)
{
    if (size < 0 || size == INT64_MAX) {
        fail(fmt::format("{} is {}, which is not a size", name, size));
    }
}

void require_entries(const char* name, const void* array, std::int64_t count)
{
    if (array == nullptr && count > 0) {
        fail(fmt::format("{} is null; it has to have {} entries", name, count));
    }
}

}  // namespace rmsp::capi

const char* rmsp_last_error()
{
    return rmsp::capi::last_resort != nullptr ? rmsp::capi::last_resort : rmsp::capi::last_error.c_str();
}

const char* rmsp_status_name(rmsp_status status)
{
    return status == RMSP_SUCCESS                              ? "success"
           : status < RMSP_SUCCESS || status > RMSP_ERROR_BUSY ? "unknown"
                                                               : to_string(static_cast<rmsp::ErrorCode>(status));
}

const char* rmsp_version() { return rmsp::version(); }

const char* rmsp_commit() { return rmsp::commit(); }

const char* rmsp_build_features() { return rmsp::build_features(); }

void rmsp_free(void* memory) { std::free(memory); }
