#include <algorithm>
#include <atomic>
#include <bit>

#include <kernels/support/ghosts.hpp>

namespace rmsp::kernels {
namespace {

constexpr int word_bits = 32;

}  // namespace

ColumnSet::ColumnSet(std::int64_t cols, const Context& context)
    : bits(*context.memory, static_cast<std::size_t>((cols + word_bits - 1) / word_bits)),
      before(*context.memory, bits.size() + 1)
{
    if (context.kind == DeviceKind::cuda) {
        cuda::clear_columns(*this, context);
    } else {
        std::fill_n(bits.data(), bits.size(), 0u);
    }
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

void renumber_columns(const ColumnSet& set, std::int32_t* columns, std::int64_t n, std::int64_t own_first,
                      std::int64_t own_end, const Context& context)
{
    if (context.kind == DeviceKind::cuda) {
        cuda::renumber_columns(set, columns, n, own_first, own_end, context);
        return;
    }
#pragma omp parallel for num_threads(std::max(context.threads, 1))
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int32_t column = columns[i];
        if (column >= own_first && column < own_end) {
            columns[i] = static_cast<std::int32_t>(column - own_first);
        } else {
            const std::uint32_t below = set.bits.data()[column / word_bits] & ((1u << (column % word_bits)) - 1);
            columns[i] = static_cast<std::int32_t>(own_end - own_first + set.before.data()[column / word_bits] +
                                                   std::popcount(below));
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
