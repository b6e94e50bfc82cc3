#pragma once

#include <cstdint>

#include <kernels/context.hpp>

/// What a product of a small matrix reads, asked for by all of its threads as it begins. Columns say which entries of
/// x, and row pointers, where there are any, which columns: waits for the memory, one behind the other, are most of
/// what such a product takes, and the caches have the rest of it by the end of the first one.
namespace rmsp::kernels {

inline constexpr std::int64_t line_bytes = 128;

/// Lines of an array each, and of the next one behind them.
struct ReadAhead {
    const char* values = nullptr;
    const char* columns = nullptr;
    const char* x = nullptr;
    unsigned value_lines = 0;
    unsigned column_lines = 0;
    unsigned lines = 0;  ///< with those of x; 0: nothing is asked for
};

/// `from` becomes the line that the array begins in. \return the lines that it has a part of
template <class E>
std::int64_t lines_of(const E* array, std::int64_t entries, const char*& from)
{
    const auto begin = reinterpret_cast<std::uintptr_t>(array);
    const std::uintptr_t end = begin + static_cast<std::uintptr_t>(entries) * sizeof(E);
    from = reinterpret_cast<const char*>(begin / line_bytes * line_bytes);
    if (entries == 0) {
        return 0;
    }
    return static_cast<std::int64_t>((end + line_bytes - 1) / line_bytes - begin / line_bytes);
}

/// Of `entries` values and columns, and of x; nothing, unless a thread has one line at most. Of x only where the shard
/// is a whole square matrix: others may have a part of it.
template <class T>
ReadAhead read_ahead(const CsrShard<T>& shard, std::int64_t entries, const T* x, std::int64_t threads)
{
    ReadAhead ahead;
    const std::int64_t of_values = lines_of(shard.values, entries, ahead.values);
    const std::int64_t of_columns = lines_of(shard.col_idx, entries, ahead.columns);
    const bool whole = shard.rows == shard.cols && shard.diagonal == 0;
    const std::int64_t lines = of_values + of_columns + (whole ? lines_of(x, shard.cols, ahead.x) : 0);
    if (lines > threads) {
        return {};
    }
    ahead.value_lines = static_cast<unsigned>(of_values);
    ahead.column_lines = static_cast<unsigned>(of_columns);
    ahead.lines = static_cast<unsigned>(lines);
    return ahead;
}

/// Neighbouring lines by neighbouring thread blocks, so that no multiprocessor has more of them than others.
__device__ __forceinline__ void ask_for(const ReadAhead& ahead)
{
    if (ahead.lines == 0) {
        return;
    }
    const unsigned line = threadIdx.x * gridDim.x + blockIdx.x;
    if (line >= ahead.lines) {
        return;
    }
    const char* from = ahead.values + std::int64_t{line} * line_bytes;
    if (line >= ahead.value_lines) {
        const unsigned behind = line - ahead.value_lines;
        from = behind < ahead.column_lines ? ahead.columns + std::int64_t{behind} * line_bytes
                                           : ahead.x + std::int64_t{behind - ahead.column_lines} * line_bytes;
    }
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}

}  // namespace rmsp::kernels
