#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/host_vector.hpp>

#include "core/parallel.hpp"
#include "core/read_limit.hpp"
#include "io/npy.hpp"
#include "io/zip.hpp"

namespace rmsp::io {

inline constexpr std::int64_t entries_each = std::int64_t{1} << 20;

/// The arrays of one file.
class NpzReader {
public:
    NpzReader(const InputFile& file, int threads) : archive_(file), threads_(threads) {}

    core::ReadLimit& limit() const noexcept { return archive_.file().limit(); }

    NpyArray open(const std::string& name) const
    {
        const ZipMember* member = archive_.find(name + ".npy");
        if (member == nullptr) {
            std::string found;
            for (const ZipMember& m : archive_.members()) {
                found += (found.empty() ? "" : ", ") + m.name;
            }
            throw Error(ErrorCode::io,
                        fmt::format("{}: not a sparse matrix of SciPy: member '{}.npy' is missing (it has: {})",
                                    archive_.file().path(), name, found.empty() ? "none" : found));
        }
        return {archive_.file(), *member};
    }
    template <class I>
    HostVector<I> read(const NpyArray& array) const
    {
        limit().take(static_cast<core::uint128>(array.size()) * sizeof(I), "its arrays");
        HostVector<I> out(static_cast<std::size_t>(array.size()));
        if constexpr (std::is_same_v<I, std::int32_t>) {
            if (array.element_bytes() > sizeof(I)) {
                narrow(read<std::int64_t>(array), out, array);
                limit().give_back(static_cast<std::uint64_t>(array.size()) * sizeof(std::int64_t));
                return out;
            }
        }
        array.read(out.data(), threads_);
        return out;
    }
    /// "csr", "csc" or "coo". \throws Error(io)
    std::string read_format() const
    {
        const std::string format = open("format").read_text();
        if (format != "csr" && format != "csc" && format != "coo") {
            throw Error(ErrorCode::io, fmt::format("{}: sparse format '{}' is not supported (csr, csc and coo are)",
                                                   archive_.file().path(), format));
        }
        return format;
    }
    /// False if there is no such array.
    bool is_compressed(const std::string& name) const
    {
        const ZipMember* member = archive_.find(name + ".npy");
        return member != nullptr && member->method != 0;
    }
    /// Reads indices and checks that they are in [0, limit).
    template <class I>
    HostVector<I> read_indices(const NpyArray& array, std::int64_t limit) const
    {
        HostVector<I> out = read<I>(array);
        check_indices(array, out, 0, limit);
        return out;
    }
    /// Checks elements from number `first` on of an array. \throws Error(io) unless they are in [0, limit)
    template <class I>
    void check_indices(const NpyArray& array, const HostVector<I>& out, std::int64_t first, std::int64_t limit) const
    {
        const auto n = static_cast<std::int64_t>(out.size());
        core::parallel_for(threads_, (n + entries_each - 1) / entries_each, [&](std::int64_t b) {
            for (std::int64_t k = b * entries_each; k < std::min(n, (b + 1) * entries_each); ++k) {
                const I index = out[static_cast<std::size_t>(k)];
                if (index < 0 || static_cast<std::int64_t>(index) >= limit) {
                    throw Error(ErrorCode::io, fmt::format("{}: entry {} is {}, outside of [0, {})", array.describe(),
                                                           first + k, index, limit));
                }
            }
        });
    }
    /// Reads the pointers of `count` rows or columns into arrays of `stored` entries.
    HostVector<std::int64_t> read_pointers(std::int64_t count, std::int64_t stored) const
    {
        const NpyArray array = open("indptr");
        check_pointers_size(array, count);
        HostVector<std::int64_t> out = read<std::int64_t>(array);
        check_pointers(array, out, 0, 0, stored);
        return out;
    }
    /// \throws Error(io) unless there are count + 1
    void check_pointers_size(const NpyArray& array, std::int64_t count) const
    {
        if (array.size() - 1 != count) {
            throw Error(ErrorCode::io, fmt::format("{} has {} entries, but shape asks for {} + 1", array.describe(),
                                                   array.size(), count));
        }
    }
    /// Checks pointers from number `first` on, of which there is one at least; `last_before` is the one before them.
    /// \throws Error(io)
    void check_pointers(const NpyArray& array, const HostVector<std::int64_t>& out, std::int64_t first,
                        std::int64_t last_before, std::int64_t stored) const
    {
        for (std::size_t k = 0; k < out.size(); ++k) {
            const std::int64_t i = first + static_cast<std::int64_t>(k);
            const std::int64_t before = k > 0 ? out[k - 1] : last_before;
            if (i == 0 ? out[k] != 0 : out[k] < before) {
                throw Error(ErrorCode::io,
                            fmt::format("{}: entry {} is {}, after {}; pointers begin at 0 and do not decrease",
                                        array.describe(), i, out[k], before));
            }
        }
        if (first + static_cast<std::int64_t>(out.size()) == array.size() && out.back() > stored) {
            throw Error(ErrorCode::io,
                        fmt::format("{} ends at {}, but {} entries are stored", array.describe(), out.back(), stored));
        }
    }
    /// \throws Error(io) if two arrays of entries differ in length
    void check_lengths(const NpyArray& a, const NpyArray& b) const
    {
        if (a.size() != b.size()) {
            throw Error(ErrorCode::io, fmt::format("{} has {} entries, but {} has {}", a.describe(), a.size(),
                                                   b.describe(), b.size()));
        }
    }

private:
    void narrow(const HostVector<std::int64_t>& from, HostVector<std::int32_t>& to, const NpyArray& array) const
    {
        const auto n = static_cast<std::int64_t>(from.size());
        core::parallel_for(threads_, (n + entries_each - 1) / entries_each, [&](std::int64_t b) {
            for (std::int64_t k = b * entries_each; k < std::min(n, (b + 1) * entries_each); ++k) {
                const std::int64_t value = from[static_cast<std::size_t>(k)];
                if (value < INT32_MIN || value > INT32_MAX) {
                    throw Error(ErrorCode::io,
                                fmt::format("{}: entry {} is {}, outside of the matrix", array.describe(), k, value));
                }
                to[static_cast<std::size_t>(k)] = static_cast<std::int32_t>(value);
            }
        });
    }

    ZipArchive archive_;
    int threads_;
};

struct Shape {
    std::int64_t rows;
    std::int64_t cols;
};

inline Shape read_shape(const NpzReader& reader)
{
    const NpyArray array = reader.open("shape");
    if (array.size() != 2) {
        throw Error(ErrorCode::io, fmt::format("{} has {} entries; a matrix has 2", array.describe(), array.size()));
    }
    const HostVector<std::int64_t> shape = reader.read<std::int64_t>(array);
    if (shape[0] < 0 || shape[1] < 0 || shape[0] == INT64_MAX) {
        throw Error(ErrorCode::io,
                    fmt::format("{}: {} x {} is not the shape of a matrix", array.describe(), shape[0], shape[1]));
    }
    return {shape[0], shape[1]};
}

}  // namespace rmsp::io
