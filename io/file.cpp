#include "io/file.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <rmsp/error.hpp>

namespace rmsp::io {
namespace {

// Linux transfers at most 0x7ffff000 bytes in one call.
constexpr std::size_t largest_transfer = std::size_t{1} << 30;

[[noreturn]] void fail_input(const std::string& path, const char* action, int error)
{
    throw Error(ErrorCode::io, fmt::format("{}: cannot {}: {}", path, action, std::strerror(error)));
}

}  // namespace

InputFile::InputFile(core::ReadLimit& limit, bool (*may_be)(std::string_view)) : limit_(limit)
{
    const std::string& path = limit.file();
    struct Close {
        int& fd;
        bool armed = true;
        ~Close()
        {
            if (armed && fd >= 0) {
                ::close(fd);
            }
        }
    } guard{fd_};

    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) {
        fail_input(path, "open", errno);
    }
    struct stat status {};
    if (::fstat(fd_, &status) != 0) {
        fail_input(path, "read", errno);
    }
    if (S_ISDIR(status.st_mode)) {
        fail_input(path, "read", EISDIR);
    }
    if (S_ISREG(status.st_mode)) {
        const auto size = static_cast<std::size_t>(status.st_size);
        if (size > 0) {
            void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd_, 0);
            if (data == MAP_FAILED) {
                const auto code = errno == ENOMEM ? ErrorCode::out_of_memory : ErrorCode::io;
                throw Error(code, fmt::format("{}: cannot map {} bytes: {}", path, size, std::strerror(errno)));
            }
            mapped_ = true;
            bytes_ = {static_cast<const char*>(data), size};
        }
    } else {
        constexpr std::size_t block = std::size_t{1} << 20;
        constexpr std::size_t enough_to_tell = 8;
        for (;;) {
            char* to = piped_.reserve(block);
            const ssize_t got = ::read(fd_, to, piped_.free_bytes());
            if (got < 0 && errno == EINTR) {
                continue;
            }
            if (got < 0) {
                fail_input(path, "read", errno);
            }
            if (got == 0) {
                break;
            }
            limit_.take(static_cast<core::uint128>(got), "what comes through it");
            piped_.use(static_cast<std::size_t>(got));
            if (may_be != nullptr && piped_.view().size() >= enough_to_tell && !may_be(piped_.view())) {
                break;
            }
        }
        bytes_ = piped_.view();
    }
    guard.armed = false;
}

InputFile::~InputFile()
{
    if (mapped_) {
        ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
    }
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

void InputFile::read_at(std::uint64_t offset, void* to, std::size_t n) const
{
    if (offset > size() || n > size() - offset) {
        throw Error(ErrorCode::io, fmt::format("{}: file ends at byte {}, but {} bytes are expected from byte {}",
                                               path(), size(), n, offset));
    }
    char* out = static_cast<char*>(to);
    if (!mapped_) {
        std::copy_n(bytes_.data() + offset, n, out);
        return;
    }
    while (n > 0) {
        const ssize_t got = ::pread(fd_, out, std::min(n, largest_transfer), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            fail_input(path(), "read", errno);
        }
        if (got == 0) {
            throw Error(ErrorCode::io,
                        fmt::format("{}: file was truncated to {} bytes while it was read", path(), offset));
        }
        out += got;
        offset += static_cast<std::uint64_t>(got);
        n -= static_cast<std::size_t>(got);
    }
}

OutputFile::OutputFile(const std::string& path) : path_(path), target_(path)
{
    std::error_code ignored;
    if (const auto resolved = std::filesystem::canonical(path, ignored); !resolved.empty()) {
        target_ = resolved.string();
    }
    struct stat status {};
    const bool exists = ::stat(target_.c_str(), &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) {
        fail("write", EISDIR);
    }
    if (exists && !S_ISREG(status.st_mode)) {
        fd_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    } else {
        // Not mkstemp(): its files are private to the user, this one gets the permissions that the umask allows.
        static std::atomic<unsigned> counter{0};
        do {
            temporary_ = fmt::format("{}.part-{}-{}", target_, ::getpid(), counter.fetch_add(1));
            fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        } while (fd_ < 0 && errno == EEXIST);
    }
    if (fd_ < 0) {
        fail("create", errno);
    }
}

OutputFile::~OutputFile()
{
    if (fd_ >= 0) {
        ::close(fd_);
    }
    if (!temporary_.empty()) {
        ::unlink(temporary_.c_str());
    }
}

void OutputFile::fail(const char* action, int error) const
{
    throw Error(ErrorCode::io,
                fmt::format("{}: cannot {} after {} bytes: {}", path_, action, written_, std::strerror(error)));
}

void OutputFile::write(const void* data, std::size_t n)
{
    const char* from = static_cast<const char*>(data);
    while (n > 0) {
        const ssize_t put = ::write(fd_, from, std::min(n, largest_transfer));
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            fail("write", errno);
        }
        from += put;
        written_ += static_cast<std::uint64_t>(put);
        n -= static_cast<std::size_t>(put);
    }
}

void OutputFile::commit()
{
    // Network file systems and delayed allocation report a full disk only here.
    if (!temporary_.empty() && ::fsync(fd_) != 0) {
        fail("write", errno);
    }
    const int closed = ::close(fd_);
    fd_ = -1;
    if (closed != 0) {
        fail("close", errno);
    }
    if (!temporary_.empty()) {
        if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
            fail("rename the finished file", errno);
        }
        temporary_.clear();
    }
}

}  // namespace rmsp::io
