#pragma once

#include <cstdint>

#include <kernels/context.hpp>

/// Steps of conversions between formats in the memory of a GPU. Lines are rows or columns; Offset, 32-bit or 64-bit, holds the number
/// of entries. Everything is queued on the context's stream, and temporary memory is the context's.
namespace rmsp::kernels {

/// Entries in the order of a stable sort by line.
template <class Offset>
struct LineOrder {
    DeviceArray<Offset> from;      ///< where entry i of that order was
    DeviceArray<Offset> pointers;  ///< lines + 1 entries: where each line begins in that order
};
/// \param line_of  of each of `nnz` entries, in [first_line, first_line + lines)
template <class Offset>
LineOrder<Offset> sort_by_line(std::int64_t nnz, const std::int32_t* line_of, std::int64_t first_line,
                               std::int64_t lines, const Context& context);

/// pointers[k] = the first of `nnz` sorted entries whose line is not below first_line + k, for k in [0, lines].
template <class Offset>
void point_at_lines(std::int64_t nnz, const std::int32_t* line_of, std::int64_t first_line, std::int64_t lines,
                    Offset* pointers, const Context& context);

/// out[i] = in[from[i]] for i in [0, n).
template <class Item, class Offset>
void take_from(std::int64_t n, const Offset* from, const Item* in, Item* out, const Context& context);

/// out[i] = the line that entry from[i] lies in, or, if `from` is null, entry i; `pointers` has lines + 1 entries, from 0 to nnz.
template <class Offset>
void find_lines(std::int64_t nnz, const Offset* from, std::int64_t lines, IndexView pointers, std::int32_t* out,
                const Context& context);

}  // namespace rmsp::kernels
