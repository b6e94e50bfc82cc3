#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include <kernels/steps/ghosts/ghosts.hpp>

namespace rmsp::kernels {
namespace {

constexpr int word_bits = 32;

void clear(DeviceArray<std::uint32_t>& words, const Context& context)
{
    if (context.kind == DeviceKind::cuda) {
        cuda::clear_words(words.data(), words.size(), context);
    } else {
        std::fill_n(words.data(), words.size(), 0u);
    }
}

/// Columns of the set that are smaller, if the set has any words.
std::int32_t columns_before(const ColumnSet& set, std::int32_t column)
{
    const std::uint32_t below = set.bits.data()[column / word_bits] & ((1u << (column % word_bits)) - 1);
    return set.before.data()[column / word_bits] + std::popcount(below);
}

bool has_column(const ColumnSet& set, std::int32_t column)
{
    return set.bits.size() > 0 && (set.bits.data()[column / word_bits] >> (column % word_bits) & 1u) != 0;
}

/// The first bucket of popular columns.
int first_popular(std::span<const UseBucket> buckets, std::int64_t most)
{
    std::uint64_t all_uses = 0;
    for (const UseBucket& bucket : buckets) {
        all_uses += bucket.uses;
    }
    UseBucket popular;
    int first = use_buckets;
    for (; first > 1; --first) {
        const UseBucket& next = buckets[static_cast<std::size_t>(first) - 1];
        if (popular.columns + next.columns > static_cast<std::uint64_t>(most)) {
            break;
        }
        popular.columns += next.columns;
        popular.uses += next.uses;
    }
    return 10 * popular.uses < all_uses ? use_buckets : first;
}

}  // namespace

ColumnSet::ColumnSet(std::int64_t cols, const Context& context)
    : bits(*context.memory, static_cast<std::size_t>((cols + word_bits - 1) / word_bits)),
      before(*context.memory, bits.size() + 1)
{
    clear(bits, context);
}

ColumnUses::ColumnUses(std::int64_t cols, const Context& context)
    : uses(*context.memory, static_cast<std::size_t>(cols))
{
    clear(uses, context);
}

void add_outside(ColumnSet& set, const std::int32_t* columns, std::int64_t n, std::int64_t own_first,
                 std::int64_t own_end, const Context& context)
{
    if (context.kind == DeviceKind::cuda) {
        cuda::add_outside(set, columns, n, own_first, own_end, context);
        return;
    }
#pragma omp parallel for num_threads(std::max(context.threads, 1))
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int32_t column = columns[i];
        if (column < own_first || column >= own_end) {
            const std::uint32_t bit = 1u << (column % word_bits);
            const std::atomic_ref<std::uint32_t> word(set.bits.data()[column / word_bits]);
            if ((word.load(std::memory_order_relaxed) & bit) == 0) {
                word.fetch_or(bit, std::memory_order_relaxed);
            }
        }
    }
}

std::int64_t count_columns(ColumnSet& set, const Context& context)
{
    if (context.kind == DeviceKind::cuda) {
        return cuda::count_columns(set, context);
    }
    std::int32_t sum = 0;
    for (std::size_t word = 0; word < set.bits.size(); ++word) {
        set.before.data()[word] = sum;
        sum += std::popcount(set.bits.data()[word]);
    }
    set.before.data()[set.bits.size()] = sum;
    return sum;
}

void add_uses(ColumnUses& uses, const std::int32_t* columns, std::int64_t n, std::int64_t own_first,
              std::int64_t own_end, const Context& context)
{
    if (context.kind == DeviceKind::cuda) {
        cuda::add_uses(uses, columns, n, own_first, own_end, context);
        return;
    }
    for (std::int64_t i = 0; i < n; ++i) {
        if (columns[i] < own_first || columns[i] >= own_end) {
            ++uses.uses.data()[columns[i]];
        }
    }
}

void take_popular(ColumnSet& from, ColumnSet& to, const ColumnUses& uses, std::int64_t most, const Context& context)
{
    std::array<UseBucket, use_buckets> buckets{};
    if (context.kind == DeviceKind::cuda) {
        cuda::count_buckets(uses, buckets, context);
        cuda::take_columns(from, to, uses, first_popular(buckets, most), context);
        return;
    }
    const std::span all(uses.uses.data(), uses.uses.size());
    for (const std::uint32_t n : all) {
        UseBucket& bucket = buckets[static_cast<std::size_t>(use_bucket(n))];
        bucket.columns += 1;
        bucket.uses += n;
    }
    const int first = first_popular(buckets, most);
    for (std::size_t column = 0; column < all.size(); ++column) {
        const std::uint32_t bit = use_bucket(all[column]) >= first ? 1u << (column % word_bits) : 0;
        to.bits.data()[column / word_bits] |= bit;
        from.bits.data()[column / word_bits] &= ~bit;
    }
}

void renumber_columns(const ColumnSet& first, const ColumnSet& others, std::int32_t* columns, std::int64_t n,
                      std::int64_t own_first, std::int64_t own_end, const Context& context)
{
    if (context.kind == DeviceKind::cuda) {
        cuda::renumber_columns(first, others, columns, n, own_first, own_end, context);
        return;
    }
    const std::int32_t firsts = first.bits.size() > 0 ? first.before.data()[first.bits.size()] : 0;
#pragma omp parallel for num_threads(std::max(context.threads, 1))
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int32_t column = columns[i];
        if (column >= own_first && column < own_end) {
            columns[i] = static_cast<std::int32_t>(column - own_first);
        } else {
            const std::int32_t ghost =
                has_column(first, column) ? columns_before(first, column) : firsts + columns_before(others, column);
            columns[i] = static_cast<std::int32_t>(own_end - own_first + ghost);
        }
    }
}

void restore_columns(const std::int32_t* columns, std::int64_t n, std::int64_t own_first, std::int64_t own,
                     const std::int32_t* ghosts, std::int64_t base, std::int32_t* out, const Context& context)
{
    if (context.kind == DeviceKind::cuda) {
        cuda::restore_columns(columns, n, own_first, own, ghosts, base, out, context);
        return;
    }
#pragma omp parallel for num_threads(std::max(context.threads, 1))
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int32_t column = columns[i];
        out[i] = static_cast<std::int32_t>(column < own ? own_first + column : base + ghosts[column - own]);
    }
}

void list_columns(const ColumnSet& set, std::int32_t* out, const Context& context)
{
    if (context.kind == DeviceKind::cuda) {
        cuda::list_columns(set, out, context);
        return;
    }
    const auto words = static_cast<std::int64_t>(set.bits.size());
#pragma omp parallel for num_threads(std::max(context.threads, 1))
    for (std::int64_t word = 0; word < words; ++word) {
        std::int32_t* next = out + set.before.data()[word];
        for (std::uint32_t rest = set.bits.data()[word]; rest != 0; rest &= rest - 1) {
            *next++ = static_cast<std::int32_t>(word * word_bits + std::countr_zero(rest));
        }
    }
}

template <class T>
void pack(const T* x, const std::int32_t* list, std::int64_t n, T* out, const Context& context)
{
    if (context.kind == DeviceKind::cuda) {
        cuda::pack(x, list, n, out, context);
        return;
    }
#pragma omp parallel for num_threads(std::max(context.threads, 1))
    for (std::int64_t i = 0; i < n; ++i) {
        out[i] = x[list[i]];
    }
}

template void pack(const float*, const std::int32_t*, std::int64_t, float*, const Context&);
template void pack(const double*, const std::int32_t*, std::int64_t, double*, const Context&);

}  // namespace rmsp::kernels
