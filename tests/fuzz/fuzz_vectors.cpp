#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rmsp/error.hpp>
#include <rmsp/io.hpp>
#include <rmsp/renumber.hpp>

namespace {

/// Whether each of so many numbers is there once.
bool is_order(std::span<const std::int64_t> row_at)
{
    std::vector<std::int64_t> sorted(row_at.begin(), row_at.end());
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        if (sorted[i] != static_cast<std::int64_t>(i)) {
            return false;
        }
    }
    return true;
}

/// What a reader may throw: Error(io), or Error(out_of_memory) where a file claims more than there is.
template <class Read>
void attempt(const Read& read)
{
    try {
        read();
    } catch (const rmsp::Error& error) {
        if (error.code() != rmsp::ErrorCode::io && error.code() != rmsp::ErrorCode::out_of_memory) {
            std::abort();
        }
    }
}

/// P A P^T of a matrix whose order was read: with each row once it has all entries, otherwise it is Error(usage).
void number_anew(std::span<const std::int64_t> row_at)
{
    constexpr std::int64_t most_rows = 1000;
    const auto rows = std::min(static_cast<std::int64_t>(row_at.size()), most_rows);
    const rmsp::CsrMatrix<double> a = rmsp::banded<double>(rows, 1);
    bool done = false;
    try {
        done = rmsp::renumbered(a.view(), row_at).nnz() == a.nnz();
    } catch (const rmsp::Error& error) {
        if (error.code() != rmsp::ErrorCode::usage) {
            std::abort();
        }
    }
    if (done != (static_cast<std::int64_t>(row_at.size()) == rows && is_order(row_at))) {
        std::abort();
    }
}

}  // namespace

/// A file of any bytes gives a vector, and an order of rows, or an error of attempt(); anything else is a crash. Arrays
/// of NumPy, and Matrix Market text of one column, are told apart by their first bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    // Headers may well ask for billions of entries, to whose memory a computer is not to be put.
    static const bool limited = [] {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        return true;  // which map terabytes themselves
#endif
        constexpr rlim_t most_bytes = rlim_t{3} << 30;
        const rlimit limit{most_bytes, most_bytes};
        return ::setrlimit(RLIMIT_AS, &limit) == 0;
    }();
    const int file = ::memfd_create("fuzz", MFD_CLOEXEC);
    if (!limited || file < 0 || ::write(file, data, size) != static_cast<ssize_t>(size)) {
        std::abort();
    }
    const std::string path = "/proc/self/fd/" + std::to_string(file);
    rmsp::ReadOptions options;
    options.threads = 1;
    attempt([&] { rmsp::read_vector<double>(path, options); });
    attempt([&] { rmsp::read_vector<float>(path, options); });
    attempt([&] { number_anew(rmsp::read_order(path)); });
    ::close(file);
    return 0;
}
