#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <rmsp/matrix_part.hpp>

#include "core/read_limit.hpp"
#include "io/codec.hpp"
#include "io/file.hpp"

namespace rmsp::io {

/// Which of how many parts of a file.
struct PartNumber {
    int part = 0;
    int parts = 1;
};

}  // namespace rmsp::io

namespace rmsp::detail {

/// What is behind a MatrixPart: a reader of one format.
template <class T>
class PartReader {
public:
    virtual ~PartReader() = default;
    virtual std::vector<std::int64_t> read() = 0;
    virtual std::vector<HostVector<MatrixEntry<T>>> finish(std::span<const std::int64_t> of_all) = 0;

    MatrixFile file;
};

}  // namespace rmsp::detail

namespace rmsp::io {

/// How many numbers MatrixPart::read() returns.
inline constexpr std::size_t part_numbers = 4;

/// The file, which begins as the format does, stays open while the reader lives. \throws Error(io)
template <class T>
std::unique_ptr<rmsp::detail::PartReader<T>> matrix_market_part(const InputFile& file, PartNumber number,
                                                                const ReadOptions& options);
/// Of a file that decompresses to one in Matrix Market format.
template <class T>
std::unique_ptr<rmsp::detail::PartReader<T>> compressed_part(const InputFile& file, Codec codec, PartNumber number,
                                                             const ReadOptions& options);
template <class T>
std::unique_ptr<rmsp::detail::PartReader<T>> npz_part(const InputFile& file, PartNumber number,
                                                      const ReadOptions& options);

}  // namespace rmsp::io
