#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/matrix_part.hpp>

namespace rmsp::test {

template <class T>
std::vector<MatrixPart<T>> open_parts(const std::string& path, int parts, const ReadOptions& options)
{
    std::vector<MatrixPart<T>> readers;
    for (int p = 0; p < parts; ++p) {
        readers.emplace_back(path, p, parts, options);
    }
    return readers;
}

/// What readers of so many parts make of a file together. `most`: the entries of the longest part.
template <class T>
CsrMatrix<T> read_in_parts(const std::string& path, int parts, const ReadOptions& options = {},
                           std::size_t* most = nullptr)
{
    auto readers = open_parts<T>(path, parts, options);
    std::vector<std::int64_t> numbers;
    for (MatrixPart<T>& reader : readers) {
        EXPECT_TRUE(reader.file().in_parts) << reader.file().reason;
        const auto own = reader.read();
        EXPECT_EQ(own.size(), 4u);
        numbers.insert(numbers.end(), own.begin(), own.end());
    }
    std::vector<HostVector<MatrixEntry<T>>> all;
    for (MatrixPart<T>& reader : readers) {
        std::size_t of_part = 0;
        for (auto& run : reader.finish(numbers)) {
            of_part += run.size();
            all.push_back(std::move(run));
        }
        if (most != nullptr) {
            *most = std::max(*most, of_part);
        }
    }
    const MatrixFile& file = readers.front().file();
    return rows_of_entries(all, 0, file.rows, file.cols, options);
}

}  // namespace rmsp::test
