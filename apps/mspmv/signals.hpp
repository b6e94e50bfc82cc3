#pragma once

#include <string>

namespace rmsp::mspmv {

/// From here on SIGINT and SIGTERM are taken by a thread of their own, which clears the progress bar, removes
/// unfinished output and ends the process with 128 plus the signal's number. Call it before any other thread starts.
void handle_termination();

/// While it lives, the first SIGINT or SIGTERM does not end the process but sets requested().
class Cancellation {
public:
    Cancellation();
    ~Cancellation();
    Cancellation(const Cancellation&) = delete;
    Cancellation& operator=(const Cancellation&) = delete;

    static bool requested() noexcept;
};

/// While it lives, unfinished output beside `path` belongs to this process: files named PATH.part-PID... are removed
/// when the process is terminated, or when this object is destroyed by an exception.
class PendingOutput {
public:
    explicit PendingOutput(const std::string& path);
    ~PendingOutput();
    PendingOutput(const PendingOutput&) = delete;
    PendingOutput& operator=(const PendingOutput&) = delete;

    /// `path` with symbolic links resolved, so that a link is not replaced by a file.
    std::string final_name() const;
    /// A name to write under before the rename to final_name().
    std::string temporary_name() const;
};

}  // namespace rmsp::mspmv
