#pragma once

#include <string>

namespace rmsp::mspmv {

/// From here on SIGINT and SIGTERM are taken by a thread of their own, which clears the progress bar, removes
/// unfinished output and ends the process with 128 plus the signal's number. Call it before any other thread starts.
void handle_termination();

/// From here on an exit() before return_of_main() is one of a library that found no memory or no thread, as OpenMP's
/// runtime calls it, and so is a std::bad_alloc that nobody catches: unfinished output is removed and the process ends
/// with the status of "out of memory".
/// \throws std::bad_alloc
void expect_return_of_main();
/// \return `status`
int return_of_main(int status) noexcept;

/// While it lives, the first SIGINT or SIGTERM does not end the process but sets requested().
class Cancellation {
public:
    Cancellation();
    ~Cancellation();
    Cancellation(const Cancellation&) = delete;
    Cancellation& operator=(const Cancellation&) = delete;

    static bool requested() noexcept;
};

/// While it lives, unfinished output beside `path` belongs to this process: files named PATH.part-PID or
/// PATH.part-PID-... are removed when the process is terminated. Who writes them removes them where writing fails.
class PendingOutput {
public:
    explicit PendingOutput(const std::string& path);
    ~PendingOutput();
    PendingOutput(const PendingOutput&) = delete;
    PendingOutput& operator=(const PendingOutput&) = delete;

    /// `path` with symbolic links resolved, so that a link is not replaced by a file.
    const std::string& final_name() const noexcept { return final_name_; }
    /// A name to write under before the rename to final_name().
    const std::string& temporary_name() const noexcept { return temporary_name_; }

private:
    std::string final_name_;
    std::string temporary_name_;
};

}  // namespace rmsp::mspmv
