#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rmsp/error.hpp>
#include <rmsp/io.hpp>

/// A file of any bytes gives a matrix, Error(io), or Error(out_of_memory) where it claims more than there is; anything
/// else is a crash. Zip files, gzip, xz, zstd and text are told apart by their first bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    // Headers may well ask for billions of rows, to whose memory a computer is not to be put.
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
    try {
        rmsp::ReadOptions options;
        options.threads = 1;
        const auto a = rmsp::read_matrix<double>("/proc/self/fd/" + std::to_string(file), options);
        if (a.row_ptr.back() != a.nnz()) {
            std::abort();
        }
    } catch (const rmsp::Error& error) {
        if (error.code() != rmsp::ErrorCode::io && error.code() != rmsp::ErrorCode::out_of_memory) {
            std::abort();
        }
    }
    ::close(file);
    return 0;
}
