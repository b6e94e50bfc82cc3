#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include <kernels/steps/step.hpp>

/// The columns of a shard that lie outside its device's own slice of x, its *ghosts*, each once: found, numbered and
/// gathered on the device.
namespace rmsp::kernels {

/// A set of columns as the device holds it: a bit each, and how many bits are set before each word.
struct ColumnSet {
    ColumnSet() = default;
    /// The empty set of columns below `cols`; waits for the device.
    ColumnSet(std::int64_t cols, const Context& context);

    DeviceArray<std::uint32_t> bits;
    DeviceArray<std::int32_t> before;  ///< of each word, and of all of them behind it
};

/// How often columns are used.
struct ColumnUses {
    /// Of columns below `cols`, not at all so far; waits for the device.
    ColumnUses(std::int64_t cols, const Context& context);

    DeviceArray<std::uint32_t> uses;
};

/// Columns that are used about as often share one of so many buckets: up to 31 uses one each, then 16 for each power of
/// two.
inline constexpr int use_buckets = 464;
constexpr int use_bucket(std::uint32_t uses)
{
    const int shift = std::bit_width(uses) > 5 ? std::bit_width(uses) - 5 : 0;
    return 16 * shift + static_cast<int>(uses >> shift);
}
/// The columns, and their uses, of one bucket.
struct UseBucket {
    std::uint64_t columns = 0;
    std::uint64_t uses = 0;
};

/// Moves the columns that are used most, at most `most`, from one set to another, which is empty and as large: none if
/// a tenth of all uses is not theirs. Both have to be counted (again). Waits for the device.
void take_popular(ColumnSet& from, ColumnSet& to, const ColumnUses& uses, std::int64_t most, const Context& context);

struct Ghosts {
    /// words[i] = 0
    void (*clear_words)(std::uint32_t* words, std::size_t n, const Context& context) = nullptr;
    /// Adds those of `columns` that are outside [own_first, own_end).
    void (*add_outside)(ColumnSet& set, const std::int32_t* columns, std::int64_t n, std::int64_t own_first,
                        std::int64_t own_end, const Context& context) = nullptr;
    /// Makes `before`, when all columns have been added, and returns how many they are; waits for the device.
    std::int64_t (*count_columns)(ColumnSet& set, const Context& context) = nullptr;
    /// Counts those of `columns` that are outside [own_first, own_end).
    void (*add_uses)(ColumnUses& uses, const std::int32_t* columns, std::int64_t n, std::int64_t own_first,
                     std::int64_t own_end, const Context& context) = nullptr;
    /// Adds the columns that are used to use_buckets buckets; waits for the device.
    void (*count_buckets)(const ColumnUses& uses, std::span<UseBucket> buckets, const Context& context) = nullptr;
    /// Moves the columns of that bucket and of those after it to a set that is empty and as large.
    void (*take_columns)(ColumnSet& from, ColumnSet& to, const ColumnUses& uses, int first_bucket,
                         const Context& context) = nullptr;
    /// columns[i] becomes columns[i] - own_first inside [own_first, own_end); outside, own_end - own_first and the
    /// number of columns that come before it: those of `first` in ascending order, then those of `others`. Either may
    /// be without any.
    void (*renumber_columns)(const ColumnSet& first, const ColumnSet& others, std::int32_t* columns, std::int64_t n,
                             std::int64_t own_first, std::int64_t own_end, const Context& context) = nullptr;
    /// out[i]: the column that renumber_columns() made columns[i] of, where `own` own ones from own_first on come
    /// before the listed ones of the set, to which `base` is added.
    void (*restore_columns)(const std::int32_t* columns, std::int64_t n, std::int64_t own_first, std::int64_t own,
                            const std::int32_t* ghosts, std::int64_t base, std::int32_t* out,
                            const Context& context) = nullptr;
    /// Writes the columns of the set in ascending order.
    void (*list_columns)(const ColumnSet& set, std::int32_t* out, const Context& context) = nullptr;

    static const Ghosts& host();
    static const Ghosts& cuda();
};
inline constexpr Step clear_words{&Ghosts::clear_words, "clear_words"};
inline constexpr Step add_outside{&Ghosts::add_outside, "add_outside"};
inline constexpr Step count_columns{&Ghosts::count_columns, "count_columns"};
inline constexpr Step add_uses{&Ghosts::add_uses, "add_uses"};
inline constexpr Step count_buckets{&Ghosts::count_buckets, "count_buckets"};
inline constexpr Step take_columns{&Ghosts::take_columns, "take_columns"};
inline constexpr Step renumber_columns{&Ghosts::renumber_columns, "renumber_columns"};
inline constexpr Step restore_columns{&Ghosts::restore_columns, "restore_columns"};
inline constexpr Step list_columns{&Ghosts::list_columns, "list_columns"};

/// Into how many sums add_at_with() adds, whatever the device, so that they have the same bits everywhere.
inline constexpr int add_at_sums = 128;

template <class T>
struct GhostValues {
    /// out[i] = x[list[i]]
    void (*pack)(const T* x, const std::int32_t* list, std::int64_t n, T* out, const Context& context) = nullptr;
    /// x[list[i]] += in[i]; no entry is listed twice
    void (*add_at)(const T* in, const std::int32_t* list, std::int64_t n, T* x, const Context& context) = nullptr;
    /// add_at(), and sums[k], k < add_at_sums: all together the sum of w[list[i]] times what is added to x[list[i]].
    void (*add_at_with)(const T* in, const std::int32_t* list, std::int64_t n, T* x, const T* w, double* sums,
                        const Context& context) = nullptr;

    static const GhostValues& host();
    static const GhostValues& cuda();
};
RMSP_VALUE_STEP(GhostValues, pack);
RMSP_VALUE_STEP(GhostValues, add_at);
RMSP_VALUE_STEP(GhostValues, add_at_with);

}  // namespace rmsp::kernels
