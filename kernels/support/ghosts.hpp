#pragma once

#include <cstdint>

#include <kernels/context.hpp>

/// The columns of a shard that lie outside its device's own slice of x, its *ghosts*, each once: found, numbered and gathered on
/// the device, each step with a host and a CUDA body.
namespace rmsp::kernels {

/// A set of columns as the device holds it: a bit each, and how many bits are set before each word.
struct ColumnSet {
    ColumnSet() = default;
    /// The empty set of columns below `cols`; waits for the device.
    ColumnSet(std::int64_t cols, const Context& context);

    DeviceArray<std::uint32_t> bits;
    DeviceArray<std::int32_t> before;  ///< of each word, and of all of them behind it
};

/// Adds those of `columns` that are outside [own_first, own_end).
void add_outside(ColumnSet& set, const std::int32_t* columns, std::int64_t n, std::int64_t own_first,
                 std::int64_t own_end, const Context& context);
/// Makes `before`, when all columns have been added, and returns how many they are; waits for the device.
std::int64_t count_columns(ColumnSet& set, const Context& context);
/// columns[i] becomes columns[i] - own_first inside [own_first, own_end); outside, own_end - own_first and the number of columns
/// of the set that are smaller.
void renumber_columns(const ColumnSet& set, std::int32_t* columns, std::int64_t n, std::int64_t own_first,
                      std::int64_t own_end, const Context& context);
/// out[i]: the column that renumber_columns() made columns[i] of, where `own` own ones from own_first on come before the listed ones of
/// the set, to which `base` is added.
void restore_columns(const std::int32_t* columns, std::int64_t n, std::int64_t own_first, std::int64_t own,
                     const std::int32_t* ghosts, std::int64_t base, std::int32_t* out, const Context& context);
/// Writes the columns of the set in ascending order.
void list_columns(const ColumnSet& set, std::int32_t* out, const Context& context);

/// out[i] = x[list[i]]
template <class T>
void pack(const T* x, const std::int32_t* list, std::int64_t n, T* out, const Context& context);

/// The CUDA bodies; stand-ins that throw NotCompiled in a build without CUDA.
namespace cuda {

void clear_columns(ColumnSet& set, const Context& context);
void add_outside(ColumnSet& set, const std::int32_t* columns, std::int64_t n, std::int64_t own_first,
                 std::int64_t own_end, const Context& context);
std::int64_t count_columns(ColumnSet& set, const Context& context);
void renumber_columns(const ColumnSet& set, std::int32_t* columns, std::int64_t n, std::int64_t own_first,
                      std::int64_t own_end, const Context& context);
void restore_columns(const std::int32_t* columns, std::int64_t n, std::int64_t own_first, std::int64_t own,
                     const std::int32_t* ghosts, std::int64_t base, std::int32_t* out, const Context& context);
void list_columns(const ColumnSet& set, std::int32_t* out, const Context& context);
template <class T>
void pack(const T* x, const std::int32_t* list, std::int64_t n, T* out, const Context& context);

}  // namespace cuda
}  // namespace rmsp::kernels
