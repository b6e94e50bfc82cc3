#include <rmsp/error.hpp>
#include <rmsp/kernel_info.hpp>
#include <rmsp/matrix.hpp>

// What the values of public enumerations are called, in messages, reports and configuration.
namespace rmsp {

const char* to_string(ErrorCode code) noexcept
{
    switch (code) {
        case ErrorCode::internal:
            return "internal";
        case ErrorCode::usage:
            return "usage";
        case ErrorCode::io:
            return "io";
        case ErrorCode::out_of_memory:
            return "out_of_memory";
        case ErrorCode::device:
            return "device";
        case ErrorCode::not_converged:
            return "not_converged";
        case ErrorCode::verification:
            return "verification";
        case ErrorCode::cancelled:
            return "cancelled";
        case ErrorCode::deadline:
            return "deadline";
        case ErrorCode::busy:
            return "busy";
    }
    return "unknown";
}

const char* to_string(Format format) noexcept
{
    switch (format) {
        case Format::csr:
            return "csr";
        case Format::csc:
            return "csc";
        case Format::coo:
            return "coo";
    }
    return "unknown";
}

const char* to_string(CooOrder order) noexcept
{
    switch (order) {
        case CooOrder::by_row:
            return "by_row";
        case CooOrder::by_column:
            return "by_column";
        case CooOrder::unsorted:
            return "unsorted";
    }
    return "unknown";
}

const char* to_string(DeviceKind kind) noexcept { return kind == DeviceKind::host ? "host" : "cuda"; }

const char* to_string(Determinism level) noexcept
{
    switch (level) {
        case Determinism::none:
            return "none";
        case Determinism::run:
            return "run";
        case Determinism::device_count:
            return "device_count";
    }
    return "?";
}

}  // namespace rmsp
