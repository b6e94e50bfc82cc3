#pragma once

#include <cstdint>

#include <kernels/steps/step.hpp>

/// Steps of conversions between formats in the memory of a GPU. Lines are rows or columns; Offset, 32-bit or 64-bit,
/// holds the number of entries. Everything is queued on the context's stream, and temporary memory is the context's.
namespace rmsp::kernels {

/// Entries in the order of a stable sort by line.
template <class Offset>
struct LineOrder {
    DeviceArray<Offset> from;      ///< where entry i of that order was
    DeviceArray<Offset> pointers;  ///< lines + 1 entries: where each line begins in that order
};

/// Only on GPUs: host memory is converted before it is distributed.
template <class Offset>
struct Conversion {
    /// \param line_of  of each of `nnz` entries, in [first_line, first_line + lines)
    LineOrder<Offset> (*sort_by_line)(std::int64_t nnz, const std::int32_t* line_of, std::int64_t first_line,
                                      std::int64_t lines, const Context& context) = nullptr;
    /// pointers[k] = the first of `nnz` sorted entries whose line is not below first_line + k, for k in [0, lines].
    void (*point_at_lines)(std::int64_t nnz, const std::int32_t* line_of, std::int64_t first_line, std::int64_t lines,
                           Offset* pointers, const Context& context) = nullptr;
    /// out[i] = the line that entry from[i] lies in, or, if `from` is null, entry i; `pointers` has lines + 1 entries,
    /// from 0 to nnz. The first line's number is first_line.
    void (*find_lines)(std::int64_t nnz, const Offset* from, std::int64_t first_line, std::int64_t lines,
                       IndexView pointers, std::int32_t* out, const Context& context) = nullptr;

    /// out[i] = the sum of pointers[p][i] - pointers[p][0] over the `count` arrays p, for i in [0, rows].
    /// \param pointers  on the device \param out  of `type`
    void (*add_pointers)(std::int64_t rows, const Offset* const* pointers, int count, IndexType type, void* out,
                         const Context& context) = nullptr;

    static const Conversion& cuda();
};
template <class Offset>
inline constexpr Step sort_by_line{&Conversion<Offset>::sort_by_line, "sort_by_line"};
RMSP_INDEX_STEP(Conversion, point_at_lines);
RMSP_INDEX_STEP(Conversion, find_lines);
RMSP_INDEX_STEP(Conversion, add_pointers);

/// Some of the entries of each of some rows.
template <class Item, class Offset>
struct RowPieces {
    const Offset* pointers = nullptr;  ///< rows + 1 of them, from any number on
    const Item* items = nullptr;       ///< of the first row and all that follow
};

/// Of values, or of 32-bit indices.
template <class Item, class Offset>
struct Taking {
    /// out[i] = in[from[i]] for i in [0, n).
    void (*take_from)(std::int64_t n, const Offset* from, const Item* in, Item* out, const Context& context) = nullptr;
    /// Rows of which each has all its pieces, in the order of `pieces`. \param pieces  `count` of them, on the device
    void (*join_rows)(std::int64_t rows, const RowPieces<Item, Offset>* pieces, int count, Item* out,
                      const Context& context) = nullptr;

    static const Taking& cuda();
};
template <class Item>
using TakingNarrow = Taking<Item, std::int32_t>;
template <class Item>
using TakingWide = Taking<Item, std::int64_t>;
#define RMSP_TAKING_STEP(step)                                     \
    inline constexpr OverloadedStep step                           \
    {                                                              \
        RMSP_STEP_OF(std::int32_t, TakingNarrow, step)             \
        RMSP_STEP_OF(std::int32_t, TakingWide, step)               \
        RMSP_FOR_EACH_VALUE_TYPE(RMSP_STEP_OF, TakingNarrow, step) \
        RMSP_FOR_EACH_VALUE_TYPE(RMSP_STEP_OF, TakingWide, step)   \
    }
RMSP_TAKING_STEP(take_from);
RMSP_TAKING_STEP(join_rows);
#undef RMSP_TAKING_STEP

}  // namespace rmsp::kernels
