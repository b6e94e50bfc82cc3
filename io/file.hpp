#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/memory.hpp"
#include "core/read_limit.hpp"

namespace rmsp::io {

/// A file open for reading. Regular files are mapped; of pipes and devices the whole content is read into memory.
class InputFile {
public:
    /// `may_be`, if not null, says of its first bytes whether it may be what is wanted: of a pipe or device of which it
    /// may not, which may have no end, only as much is read as comes at once.
    /// What comes through a pipe is counted by `limit`, whose file is opened. \throws Error(io) "FILE: cannot open:
    /// ...", and as ReadLimit::take()
    explicit InputFile(core::ReadLimit& limit, bool (*may_be)(std::string_view beginning) = nullptr);
    ~InputFile();
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    const std::string& path() const noexcept { return limit_.file(); }
    core::ReadLimit& limit() const noexcept { return limit_; }
    /// The whole content. A mapped file must not be truncated by others meanwhile.
    std::string_view bytes() const noexcept { return bytes_; }
    std::uint64_t size() const noexcept { return bytes_.size(); }
    /// Copies n bytes from `offset` by pread(), which reads a large file faster than page faults on its mapping. Any
    /// thread. \throws Error(io) if the file ends before
    void read_at(std::uint64_t offset, void* to, std::size_t n) const;

private:
    core::ReadLimit& limit_;
    int fd_ = -1;
    bool mapped_ = false;
    std::string_view bytes_;
    core::GrowingBuffer piped_;
};

/// A file that appears under its name only when it is whole: written under a temporary name in the same directory,
/// renamed by commit(). If the name is an existing device or pipe, it is written to directly.
class OutputFile {
public:
    /// \throws Error(io)
    explicit OutputFile(const std::string& path);
    /// Removes the temporary file unless it was committed.
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    /// \throws Error(io) naming the file, the bytes written so far, and the reason ("No space left on device")
    void write(const void* data, std::size_t n);
    void write(std::string_view text) { write(text.data(), text.size()); }
    std::uint64_t written() const noexcept { return written_; }
    /// Brings everything to the disk and renames. \throws Error(io)
    void commit();

private:
    [[noreturn]] void fail(const char* action, int error) const;

    std::string path_;
    std::string target_;     ///< path_ with symbolic links resolved, so that a link is not replaced by a file
    std::string temporary_;  ///< empty: written directly
    int fd_ = -1;
    std::uint64_t written_ = 0;
};

}  // namespace rmsp::io
