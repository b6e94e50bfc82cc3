#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include <rmsp/error.hpp>

namespace rmsp::core {

/// That there is no memory to read a file, and none to make an Error of it: the message is in the exception itself.
class NoMemoryToRead final : public std::bad_alloc {
public:
    /// A name that is too long for the message is cut.
    explicit NoMemoryToRead(std::string_view file) noexcept
    {
        std::size_t end = 0;
        for (const std::string_view part :
             {std::string_view("out of host memory while "), file, std::string_view(" is read")}) {
            const std::size_t n = std::min(part.size(), sizeof text_ - 1 - end);
            std::copy_n(part.data(), n, text_ + end);
            end += n;
        }
    }
    const char* what() const noexcept override { return text_; }

private:
    char text_[512] = {};
};

/// Calls read(), which reads the file, and gives every lack of host memory its name: an Error(out_of_memory) whose
/// message begins with it and was made beforehand, since there may be no memory for one later; NoMemoryToRead where
/// there was none even for that.
template <class Read>
auto reading(const std::string& file, const Read& read)
{
    std::optional<Error> lack;
    try {
        lack.emplace(ErrorCode::out_of_memory, file + ": out of host memory while it is read");
        try {
            return read();
        } catch (const Error& e) {
            if (e.code() != ErrorCode::out_of_memory || std::string_view(e.what()).starts_with(file)) {
                throw;
            }
            throw Error(e.code(), file + ": " + e.what(), e.where());
        }
    } catch (const std::bad_alloc&) {
        if (lack) {
            throw *lack;
        }
        throw NoMemoryToRead(file);
    }
}

}  // namespace rmsp::core
