#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/even_cut.hpp"
#include "core/memory.hpp"
#include "core/parallel.hpp"
#include "core/value_types.hpp"
#include "io/codec.hpp"
#include "io/matrix_market_body.hpp"
#include "io/part_reader.hpp"

namespace rmsp::io {
namespace {

/// What a file decompresses to up to the end of its size line, or all of it.
class Beginning final : public Unpacked {
public:
    explicit Beginning(core::ReadLimit& limit) : limit_(limit) {}

    std::span<char> room() override
    {
        constexpr std::size_t step = std::size_t{1} << 14;
        return {buffer_.reserve(step), step};
    }
    bool take(std::size_t bytes, std::size_t /*position*/) override
    {
        limit_.take(bytes, "what it unpacks");
        buffer_.use(bytes);
        require_matrix_market(buffer_.view(), limit_.file());
        return !has_size_line();
    }
    std::string_view text() const { return buffer_.view(); }

private:
    /// Looks at whole lines once each: the first one that is neither blank nor a comment is the size line.
    bool has_size_line()
    {
        const std::string_view text = buffer_.view();
        for (std::size_t end = text.find('\n', line_); end != std::string_view::npos; end = text.find('\n', line_)) {
            const std::string_view line = text.substr(line_, end - line_);
            line_ = end + 1;
            const std::size_t first = line.find_first_not_of(" \t\r");
            if (first != std::string_view::npos && line[first] != '%') {
                return true;
            }
        }
        return false;
    }

    core::ReadLimit& limit_;
    core::GrowingBuffer buffer_;
    std::size_t line_ = 0;  ///< where the first line begins that was not looked at
};

/// The lines that begin in one of several parts of what a file decompresses to. It comes in pieces that are the same
/// for all readers; a piece belongs to the part of the compressed bytes where its last one is.
class LinesOfPart final : public Unpacked {
public:
    /// \param body  where the lines begin, in what the file decompresses to
    LinesOfPart(core::ReadLimit& limit, PartNumber number, std::size_t compressed_bytes, std::size_t body)
        : limit_(limit), number_(number), compressed_bytes_(compressed_bytes), body_(body)
    {
        // Some pieces for each part, so that parts are about equal.
        constexpr std::size_t least = 1 << 10;
        constexpr std::size_t most = 1 << 20;
        const std::size_t pieces = static_cast<std::size_t>(number.parts) * 16;
        piece_.resize(std::clamp(compressed_bytes / pieces, least, most));
    }

    std::span<char> room() override { return {piece_.data(), piece_.size()}; }
    bool take(std::size_t bytes, std::size_t position) override
    {
        const std::string_view piece(piece_.data(), bytes);
        const std::size_t skipped = std::min(bytes, body_ - std::min(body_, at_));  // in front of the lines
        lines_before_ += std::count(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(skipped), '\n');
        const std::size_t piece_at = at_;
        at_ += bytes;
        const std::string_view lines = piece.substr(skipped);
        const std::size_t lines_at = piece_at + skipped;
        return lines.empty() || (is_behind(position) ? take_end(lines) : take_lines(lines, lines_at, position));
    }

    std::string_view text() const { return text_.view(); }
    /// Lines of the file in front of the text.
    std::int64_t lines_before() const { return lines_before_; }
    /// Where the text is in what the file decompresses to; -1 where there is none.
    std::int64_t begin() const { return begin_ ? static_cast<std::int64_t>(*begin_) : -1; }
    std::int64_t end() const { return begin_ ? static_cast<std::int64_t>(*begin_ + text_.size()) : -1; }
    /// Of all that was decompressed.
    std::size_t size() const { return at_; }

private:
    /// Where a part of the compressed bytes ends.
    std::size_t end_of(int part) const
    {
        return static_cast<std::size_t>(
            core::even_cut(static_cast<std::int64_t>(compressed_bytes_), number_.parts, part + 1));
    }
    bool is_behind(std::size_t position) const
    {
        return number_.part + 1 < number_.parts && position > end_of(number_.part);
    }
    void append(std::string_view bytes)
    {
        limit_.take(bytes.size(), "what it unpacks");
        std::copy(bytes.begin(), bytes.end(), text_.reserve(bytes.size()));
        text_.use(bytes.size());
    }

    /// Of a piece of this part, or of one before it.
    bool take_lines(std::string_view lines, std::size_t at, std::size_t position)
    {
        if (begin_) {
            append(lines);
            return true;
        }
        std::size_t first = 0;
        if (number_.part > 0 && position <= end_of(number_.part - 1)) {
            first = lines.size();
        } else if (last_byte_ != '\n') {
            first = std::min(lines.find('\n'), lines.size() - 1) + 1;  // a line of a part before this one
        }
        lines_before_ += std::count(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(first), '\n');
        last_byte_ = lines.back();
        if (first < lines.size()) {
            begin_ = at + first;
            append(lines.substr(first));
        }
        return true;
    }
    /// Of a piece of a part behind this one: the rest of the last line.
    bool take_end(std::string_view lines)
    {
        if (!begin_ || text_.view().back() == '\n') {
            return false;
        }
        const std::size_t end = lines.find('\n');
        append(lines.substr(0, end == std::string_view::npos ? end : end + 1));
        return end == std::string_view::npos;
    }

    core::ReadLimit& limit_;
    const PartNumber number_;
    const std::size_t compressed_bytes_;
    const std::size_t body_;
    std::string piece_;
    std::size_t at_ = 0;     ///< decompressed so far
    char last_byte_ = '\n';  ///< of the lines in front of the text
    std::int64_t lines_before_ = 0;
    std::optional<std::size_t> begin_;
    core::GrowingBuffer text_;
};

/// Each reader decompresses the file from its beginning to the end of its part, and keeps that alone.
template <class T>
class CompressedPart final : public rmsp::detail::PartReader<T> {
public:
    CompressedPart(const InputFile& input, Codec codec, PartNumber number, const ReadOptions& options)
        : input_(input), codec_(codec), number_(number), options_(options), beginning_(input.limit())
    {
        decompress(codec, input.bytes(), input.path(), {}, beginning_);
        head_ = {beginning_.text(), input.path()};
        header_ = parse_matrix_market_beginning(head_);
        input.limit().require((static_cast<core::uint128>(header_.rows) / static_cast<unsigned>(number.parts) + 1) * 8,
                              fmt::format("the row pointers of {} rows, in {} parts", header_.rows, number.parts));
        this->file = {true, {}, 0, header_.rows, header_.cols, header_.entries};
    }
    std::vector<std::int64_t> read() override
    {
        const auto body = static_cast<std::size_t>(header_.body - head_.begin());
        lines_.emplace(input_.limit(), number_, input_.size(), body);
        decompress(codec_, input_.bytes(), input_.path(), options_.progress, *lines_);
        if (number_.part + 1 == number_.parts) {
            require_room(head_, header_, static_cast<std::int64_t>(lines_->size() - body));
        }
        source_ = {lines_->text(), input_.path(), lines_->lines_before()};
        body_.emplace(source_, header_, source_.begin(), source_.end(), number_.part + 1 == number_.parts, options_,
                      input_.limit(), 0, core::thread_count(options_.threads));
        return {body_->read(), lines_->begin(), lines_->end(), 0};
    }
    std::vector<HostVector<MatrixEntry<T>>> finish(std::span<const std::int64_t> of_all) override
    {
        std::int64_t before = 0;
        std::int64_t at = header_.body - head_.begin();
        for (std::size_t p = 0; p < static_cast<std::size_t>(number_.parts); ++p) {
            const auto of = of_all.subspan(part_numbers * p, part_numbers);
            before += static_cast<int>(p) < number_.part ? of[0] : 0;
            // Readers that do not decompress alike would lose lines, or have them twice.
            if (of[1] >= 0 && std::exchange(at, of[2]) != of[1]) {
                throw Error(ErrorCode::io,
                            fmt::format("{}: part {} begins at byte {} of what the file decompresses to, but the part "
                                        "before it ends elsewhere: do all processes have the same libraries?",
                                        input_.path(), p, of[1]));
            }
        }
        auto entries = body_->finish(before);
        const std::size_t bytes = lines_->text().size();
        lines_.reset();
        input_.limit().give_back(bytes);
        return entries;
    }

private:
    const InputFile& input_;
    const Codec codec_;
    const PartNumber number_;
    const ReadOptions options_;
    Beginning beginning_;
    Source head_;
    MatrixMarketHeader header_;
    std::optional<LinesOfPart> lines_;
    Source source_;
    std::optional<BodyPart<std::int64_t, T>> body_;
};

}  // namespace

template <class T>
std::unique_ptr<rmsp::detail::PartReader<T>> compressed_part(const InputFile& file, Codec codec, PartNumber number,
                                                             const ReadOptions& options)
{
    return std::make_unique<CompressedPart<T>>(file, codec, number, options);
}

#define RMSP_INSTANTIATE(T)                                                                                    \
    template std::unique_ptr<rmsp::detail::PartReader<T>> compressed_part(const InputFile&, Codec, PartNumber, \
                                                                          const ReadOptions&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::io
