#include <algorithm>
#include <atomic>
#include <bit>
#include <span>

#include <kernels/steps/ghosts/ghosts.hpp>

namespace rmsp::kernels {
namespace host {
namespace {

constexpr int word_bits = 32;

void clear_words(std::uint32_t* words, std::size_t n, const Context&) { std::fill_n(words, n, 0u); }

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

void add_outside(ColumnSet& set, const std::int32_t* columns, std::int64_t n, std::int64_t own_first,
                 std::int64_t own_end, const Context& context)
{
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

std::int64_t count_columns(ColumnSet& set, const Context&)
{
    std::int32_t sum = 0;
    for (std::size_t word = 0; word < set.bits.size(); ++word) {
        set.before.data()[word] = sum;
        sum += std::popcount(set.bits.data()[word]);
    }
    set.before.data()[set.bits.size()] = sum;
    return sum;
}

void add_uses(ColumnUses& uses, const std::int32_t* columns, std::int64_t n, std::int64_t own_first,
              std::int64_t own_end, const Context&)
{
    for (std::int64_t i = 0; i < n; ++i) {
        if (columns[i] < own_first || columns[i] >= own_end) {
            ++uses.uses.data()[columns[i]];
        }
    }
}

void count_buckets(const ColumnUses& uses, std::span<UseBucket> buckets, const Context&)
{
    for (const std::uint32_t n : std::span(uses.uses.data(), uses.uses.size())) {
        if (n > 0) {
            UseBucket& bucket = buckets[static_cast<std::size_t>(use_bucket(n))];
            bucket.columns += 1;
            bucket.uses += n;
        }
    }
}

void take_columns(ColumnSet& from, ColumnSet& to, const ColumnUses& uses, int first_bucket, const Context&)
{
    const std::span all(uses.uses.data(), uses.uses.size());
    for (std::size_t column = 0; column < all.size(); ++column) {
        const std::uint32_t bit = use_bucket(all[column]) >= first_bucket ? 1u << (column % word_bits) : 0;
        to.bits.data()[column / word_bits] |= bit;
        from.bits.data()[column / word_bits] &= ~bit;
    }
}

void renumber_columns(const ColumnSet& first, const ColumnSet& others, std::int32_t* columns, std::int64_t n,
                      std::int64_t own_first, std::int64_t own_end, const Context& context)
{
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
#pragma omp parallel for num_threads(std::max(context.threads, 1))
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int32_t column = columns[i];
        out[i] = static_cast<std::int32_t>(column < own ? own_first + column : base + ghosts[column - own]);
    }
}

void list_columns(const ColumnSet& set, std::int32_t* out, const Context& context)
{
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
#pragma omp parallel for num_threads(std::max(context.threads, 1))
    for (std::int64_t i = 0; i < n; ++i) {
        out[i] = x[list[i]];
    }
}

template <class T>
void add_at(const T* in, const std::int32_t* list, std::int64_t n, T* x, const Context& context)
{
#pragma omp parallel for num_threads(std::max(context.threads, 1))
    for (std::int64_t i = 0; i < n; ++i) {
        x[list[i]] += in[i];
    }
}

template <class T>
void add_at_with(const T* in, const std::int32_t* list, std::int64_t n, T* x, const T* w, double* sums,
                 const Context& context)
{
#pragma omp parallel for num_threads(std::max(context.threads, 1))
    for (int k = 0; k < add_at_sums; ++k) {
        double sum = 0;
        for (std::int64_t i = k; i < n; i += add_at_sums) {
            const std::int32_t at = list[i];
            const T value = x[at] + in[i];
            sum += static_cast<double>(w[at]) * (static_cast<double>(value) - static_cast<double>(x[at]));
            x[at] = value;
        }
        sums[k] = sum;
    }
}

}  // namespace
}  // namespace host

RMSP_ROW(Ghosts, host, .clear_words = host::clear_words, .add_outside = host::add_outside,
         .count_columns = host::count_columns, .add_uses = host::add_uses, .count_buckets = host::count_buckets,
         .take_columns = host::take_columns, .renumber_columns = host::renumber_columns,
         .restore_columns = host::restore_columns, .list_columns = host::list_columns)

RMSP_VALUE_ROW(GhostValues, host, .pack = host::pack<T>, .add_at = host::add_at<T>, .add_at_with = host::add_at_with<T>)

}  // namespace rmsp::kernels
