#include <rmsp/matrix_part.hpp>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/parallel.hpp"
#include "core/read_limit.hpp"
#include "core/reading.hpp"
#include "core/value_types.hpp"
#include "io/codec.hpp"
#include "io/file.hpp"
#include "io/matrix_market_body.hpp"
#include "io/part_reader.hpp"
#include "io/zip.hpp"
#include "matrix/csr_build.hpp"

namespace rmsp {
namespace io {
namespace {

/// Of a file that one reader has to read.
template <class T>
class WholeFile final : public rmsp::detail::PartReader<T> {
public:
    explicit WholeFile(std::string path, std::string reason) : path_(std::move(path))
    {
        this->file.reason = std::move(reason);
    }
    std::vector<std::int64_t> read() override { throw refusal(); }
    std::vector<HostVector<MatrixEntry<T>>> finish(std::span<const std::int64_t>) override { throw refusal(); }

private:
    Error refusal() const
    {
        return {ErrorCode::usage, fmt::format("{}: cannot be read in parts: {}", path_, this->file.reason)};
    }

    std::string path_;
};

/// Keeps the file open for the reader of its format.
template <class T>
class OpenFile final : public rmsp::detail::PartReader<T> {
public:
    OpenFile(const std::string& path, PartNumber number, const ReadOptions& options)
        : limit_(path, options.max_bytes), input_(limit_)
    {
        const std::string_view bytes = input_.bytes();
        if (const Codec codec = detect_codec(bytes); codec != Codec::none) {
            reader_ = compressed_part<T>(input_, codec, number, options);
        } else if (path.ends_with(".npz") && !begins_as_zip(bytes)) {
            reader_ = std::make_unique<WholeFile<T>>(path, "it is no .npz file");
        } else if (begins_as_zip(bytes)) {
            reader_ = npz_part<T>(input_, number, options);
        } else {
            reader_ = matrix_market_part<T>(input_, number, options);
        }
        this->file = reader_->file;
        this->file.bytes = static_cast<std::int64_t>(bytes.size());
    }
    std::vector<std::int64_t> read() override
    {
        return core::reading(limit_.file(), [&] { return reader_->read(); });
    }
    std::vector<HostVector<MatrixEntry<T>>> finish(std::span<const std::int64_t> of_all) override
    {
        return core::reading(limit_.file(), [&] { return reader_->finish(of_all); });
    }

private:
    core::ReadLimit limit_;
    InputFile input_;
    std::unique_ptr<rmsp::detail::PartReader<T>> reader_;
};

template <class T>
class MatrixMarketPart final : public rmsp::detail::PartReader<T> {
public:
    MatrixMarketPart(const InputFile& input, PartNumber number, const ReadOptions& options)
        : number_(number),
          source_{input.bytes(), input.path()},
          header_(parse_matrix_market_header(source_)),
          body_(source_, header_, number, options, input.limit(), 0, core::thread_count(options.threads))
    {
        input.limit().require((static_cast<core::uint128>(header_.rows) / static_cast<unsigned>(number.parts) + 1) * 8,
                              fmt::format("the row pointers of {} rows, in {} parts", header_.rows, number.parts));
        this->file = {true, {}, 0, header_.rows, header_.cols, header_.entries};
    }
    std::vector<std::int64_t> read() override
    {
        std::vector<std::int64_t> numbers(part_numbers);
        numbers[0] = body_.read();
        return numbers;
    }
    std::vector<HostVector<MatrixEntry<T>>> finish(std::span<const std::int64_t> of_all) override
    {
        std::int64_t before = 0;
        for (int p = 0; p < number_.part; ++p) {
            before += of_all[part_numbers * static_cast<std::size_t>(p)];
        }
        return body_.finish(before);
    }

private:
    const PartNumber number_;
    const Source source_;
    const MatrixMarketHeader header_;
    BodyPart<std::int64_t, T> body_;
};

}  // namespace

template <class T>
std::unique_ptr<rmsp::detail::PartReader<T>> matrix_market_part(const InputFile& file, PartNumber number,
                                                                const ReadOptions& options)
{
    return std::make_unique<MatrixMarketPart<T>>(file, number, options);
}

}  // namespace io

template <class T>
MatrixPart<T>::MatrixPart(const std::string& path, int part, int parts, const ReadOptions& options)
{
    if (part < 0 || part >= parts) {
        throw Error(ErrorCode::usage, fmt::format("{}: part {} of {} cannot be read", path, part, parts));
    }
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) {
        // A pipe can be read once only.
        reader_ = std::make_unique<io::WholeFile<T>>(path, "it is not a regular file that every reader can open");
        return;
    }
    core::reading(path, [&] {
        reader_ = std::make_unique<io::OpenFile<T>>(path, io::PartNumber{part, parts}, options);
    });
}

template <class T>
MatrixPart<T>::~MatrixPart() = default;
template <class T>
MatrixPart<T>::MatrixPart(MatrixPart&&) noexcept = default;
template <class T>
MatrixPart<T>& MatrixPart<T>::operator=(MatrixPart&&) noexcept = default;

template <class T>
const MatrixFile& MatrixPart<T>::file() const noexcept
{
    return reader_->file;
}

template <class T>
std::vector<std::int64_t> MatrixPart<T>::read()
{
    return reader_->read();
}

template <class T>
std::vector<HostVector<MatrixEntry<T>>> MatrixPart<T>::finish(std::span<const std::int64_t> of_all)
{
    return reader_->finish(of_all);
}

template <class T>
CsrMatrix<T> rows_of_entries(std::vector<HostVector<MatrixEntry<T>>>& runs, std::int64_t first_row, std::int64_t rows,
                             std::int64_t cols, const ReadOptions& options)
{
    core::ReadLimit limit("rows of a matrix", options.max_bytes);
    const int threads = core::thread_count(options.threads);
    core::parallel_for(threads, static_cast<std::int64_t>(runs.size()), [&](std::int64_t r) {
        HostVector<MatrixEntry<T>>& run = runs[static_cast<std::size_t>(r)];
        limit.take(static_cast<core::uint128>(run.capacity()) * sizeof run[0], "their entries");
        for (MatrixEntry<T>& entry : run) {
            entry.row -= first_row;
            if (entry.row < 0 || entry.row >= rows || entry.col < 0 || entry.col >= cols) {
                throw Error(ErrorCode::usage,
                            fmt::format("entry ({}, {}) is not in rows [{}, {}) of {} columns", entry.row + first_row,
                                        entry.col, first_row, first_row + rows, cols));
            }
        }
    });
    return matrix::build_csr<std::int64_t, T>(runs, rows, cols, options.sum_duplicates, threads, options.progress,
                                              limit);
}

#define RMSP_INSTANTIATE(T)                                                                                            \
    template class MatrixPart<T>;                                                                                      \
    template CsrMatrix<T> rows_of_entries(std::vector<HostVector<MatrixEntry<T>>>&, std::int64_t, std::int64_t,        \
                                          std::int64_t, const ReadOptions&);                                           \
    template std::unique_ptr<rmsp::detail::PartReader<T>> io::matrix_market_part(const io::InputFile&, io::PartNumber, \
                                                                                 const ReadOptions&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
