#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

#include <rmsp/export.hpp>

namespace rmsp {

/// What went wrong. The numeric value is the exit code of `mspmv`.
enum class ErrorCode : int {
    internal = 1,       ///< a broken invariant of librmsp itself
    usage = 2,          ///< arguments, configuration keys, or dimensions that do not fit
    io = 3,             ///< a file that cannot be read, parsed or written
    out_of_memory = 4,  ///< host or device memory; the message holds the bytes asked for and what was free
    device = 5,         ///< CUDA, NCCL or a peer link failed
    not_converged = 6,  ///< of `mspmv solve` only: for the library that is an Outcome, never an exception
    verification = 7,   ///< a result differs from the reference by more than its error bound
    cancelled = 8,      ///< JobOptions::stop ended the job
    deadline = 9,       ///< JobOptions::deadline passed before the job was done
    busy = 10,          ///< the queue of jobs is full
};

/// Name of a code, as printed by `mspmv` ("usage", "io", ...).
RMSP_API const char* to_string(ErrorCode code) noexcept;

/// The one exception type that librmsp throws. what() holds every dimension, key, file and line that matters.
class RMSP_API Error : public std::runtime_error {
public:
    Error(ErrorCode code, const std::string& message, std::source_location where = std::source_location::current())
        : std::runtime_error(message), code_(code), where_(where)
    {
    }

    ErrorCode code() const noexcept { return code_; }
    /// Where in librmsp the error was raised.
    const std::source_location& where() const noexcept { return where_; }

private:
    ErrorCode code_;
    std::source_location where_;
};

/// Thrown by the stand-in of a backend that this build lacks (a build without CUDA, for example).
class RMSP_API NotCompiled : public Error {
public:
    explicit NotCompiled(const std::string& what, std::source_location where = std::source_location::current())
        : Error(ErrorCode::usage, what + " was not compiled into this librmsp", where)
    {
    }
};

}  // namespace rmsp
