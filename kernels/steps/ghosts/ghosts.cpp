#include <kernels/steps/ghosts/ghosts.hpp>

#include <array>

namespace rmsp::kernels {
namespace {

constexpr int word_bits = 32;

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
    clear_words(bits.data(), bits.size(), context);
}

ColumnUses::ColumnUses(std::int64_t cols, const Context& context)
    : uses(*context.memory, static_cast<std::size_t>(cols))
{
    clear_words(uses.data(), uses.size(), context);
}

void take_popular(ColumnSet& from, ColumnSet& to, const ColumnUses& uses, std::int64_t most, const Context& context)
{
    std::array<UseBucket, use_buckets> buckets{};
    count_buckets(uses, buckets, context);
    take_columns(from, to, uses, first_popular(buckets, most), context);
}

}  // namespace rmsp::kernels
