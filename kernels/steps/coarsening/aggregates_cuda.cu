#include <kernels/cuda_read.cuh>
#include <kernels/steps/coarsening/roots.cuh>

namespace rmsp::kernels {
namespace cuda::coarsening {
namespace {

void meet(const AggregateParts& parts)
{
    if (parts.count > 1) {
        parts.meet();
    }
}

std::int64_t total(const AggregateParts& parts, std::int64_t own) { return parts.count > 1 ? parts.total(own) : own; }

template <int Most>
bool symmetrise_parts(const Parts<Most>& all, const AggregateParts& parts, const Context& context)
{
    const AggregatePart& own = parts.part[parts.own];
    const DeviceArray<std::uint64_t> differences(*context.memory, static_cast<std::size_t>(own.rows));
    // Each edge counts with its bits, its reverse against them: they cancel where all have one. That anything else sums
    // to zero is as likely as that 64 random bits are all zero.
    for_each_row(own.rows, own.nnz, context,
                 [all, differences = differences.data()] __device__(std::int64_t i, int lane, int lanes) {
                     const auto& here = all.own;
                     const std::int64_t row = here.first_row + i;
                     std::uint64_t sum = 0;
                     for (std::int64_t k = here.begin(row) + lane; k < here.end(row); k += lanes) {
                         const bool is_edge = here.strong[k] == matrix::mark::strong;
                         here.alike[k] = is_edge ? matrix::mark::strong : matrix::mark::weak;
                         if (is_edge) {
                             const std::int64_t other = here.edges.columns[k];
                             sum += hashed(row << 32U | other) - hashed(other << 32U | row);
                         }
                     }
                     sum = over_lanes(sum, lanes, [](std::uint64_t x, std::uint64_t y) { return x + y; });
                     if (lane == 0) {
                         differences[i] = sum;
                     }
                 });
    const std::uint64_t difference = own.rows == 0 ? 0 : sum_of(differences.data(), own.rows, context);
    if (total(parts, static_cast<std::int64_t>(difference)) == 0) {
        return true;
    }
    const DeviceArray<int> bad = zeros<int>(1, context);
    for_each_row(own.rows, own.nnz, context, [all, bad = bad.data()] __device__(std::int64_t i, int lane, int lanes) {
        const auto& here = all.own;
        const std::int64_t row = here.first_row + i;
        for (std::int64_t k = here.begin(row) + lane; k < here.end(row); k += lanes) {
            if (here.strong[k] != matrix::mark::strong) {
                continue;
            }
            const std::int32_t other = here.edges.columns[k];
            const auto& there = all.of(other);
            const std::int64_t at = there.edges.place(there.from_first(other), row);
            if (at >= there.end(other) || there.edges.columns[at] != row) {
                *bad = 1;
            } else if (there.strong[at] != matrix::mark::strong) {
                there.alike[at] = matrix::mark::strong;
            }
        }
    });
    return total(parts, fetch(bad.data(), context)) == 0;
}

/// What is known of a row before roots are chosen: its neighbours, in their slots, the first of them, and how many it
/// waits for. Each of its threads loads AtOnce entries before it looks at the first.
template <int AtOnce, int Most>
struct BeginRow {
    Parts<Most> all;

    __device__ void operator()(std::int64_t i, int lane, int lanes) const
    {
        const auto& here = all.own;
        const unsigned first_bit = threadIdx.x % 32 - static_cast<unsigned>(lane);
        const unsigned mask = (lanes == 32 ? ~0U : (1U << static_cast<unsigned>(lanes)) - 1) << first_bit;
        const std::int64_t end = here.edges.row_ptr[i + 1];
        std::int32_t* const slots = here.slots + i * here.slots_each;
        std::int32_t neighbours = 0;
        std::int32_t least = 0;
        for (std::int64_t k = here.edges.row_ptr[i]; k < end; k += AtOnce * lanes) {
            std::int32_t column[AtOnce];
            bool is_edge[AtOnce];
#pragma unroll
            for (int u = 0; u < AtOnce; ++u) {
                const std::int64_t at = k + u * lanes + lane;
                column[u] = at < end ? here.edges.columns[at] : -1;
                is_edge[u] = at < end && here.is_strong(at);
            }
#pragma unroll
            for (int u = 0; u < AtOnce; ++u) {
                if (k + u * lanes >= end) {
                    break;
                }
                const unsigned edges = __ballot_sync(mask, is_edge[u] ? 1 : 0) >> first_bit;
                const int slot = neighbours + __popc(edges & ((1U << static_cast<unsigned>(lane)) - 1));
                if (is_edge[u] && slot < here.slots_each) {
                    slots[slot] = column[u];
                }
                if (neighbours == 0 && edges != 0) {
                    least = __shfl_sync(mask, column[u], __ffs(static_cast<int>(edges)) - 1, lanes);
                }
                neighbours += __popc(edges);
            }
        }
        for (std::int32_t slot = neighbours + lane; slot < here.slots_each; slot += lanes) {
            slots[slot] = -1;
        }
        __syncwarp(mask);
        if (lane == 0) {
            if (neighbours > here.slots_each && here.slots_each > 0) {
                slots[0] = Part<Most>::too_many;
            }
            here.state[i] = fine;
            // A row without neighbours never comes.
            here.missing[i] = neighbours == 0 ? -1 : neighbours + 1;
            const auto row = static_cast<std::int32_t>(here.first_row + i);
            here.first[i] = neighbours == 0 ? -1 : least < row ? least : row;
        }
    }
};

/// As many roots as there can be, three steps apart. Returns false where too many wait for each other, as along a line,
/// and where blocks cannot wait for each other: the host is faster.
template <int Most>
bool choose_roots(const Parts<Most>& all, const AggregateParts& parts, const Context& context)
{
    const AggregatePart& own = parts.part[parts.own];
    RMSP_CUDA_CHECK(cudaMemsetAsync(own.words, 0, sizeof(RootWords), stream_of(context)));
    if (own.nnz <= most_of_short_rows * own.rows) {
        for_each_row_by<8>(own.rows, context, BeginRow<1, Most>{all});
    } else if (own.nnz <= most_of_middling_rows * own.rows) {
        for_each_row_by<8>(own.rows, context, BeginRow<4, Most>{all});
    } else {
        for_each_row_by<32>(own.rows, context, BeginRow<2, Most>{all});
    }
    meet(parts);
    for_each(own.rows, context, [all] __device__(std::int64_t i) {
        const std::int32_t first = all.own.first[i];
        if (first >= 0) {
            Order<Most>{all, nullptr, 0}.allow(first, 0);
        }
    });
    if (!launch_roots(all, parts, context)) {
        return false;
    }
    meet(parts);
    const RootWords found = read(reinterpret_cast<const RootWords*>(own.words), stream_of(context));
    return total(parts, found.decided == found.roots ? 0 : 1) == 0;
}

template <int Most>
std::int64_t aggregate_parts(const Parts<Most>& all, const AggregateParts& parts, const Context& context)
{
    const AggregatePart& own = parts.part[parts.own];
    if (!choose_roots(all, parts, context)) {
        return -1;
    }
    const std::int64_t roots = give_numbers(own.rows, own.state, own.number, context);
    const std::int64_t before = parts.count > 1 ? parts.before(roots) : 0;
    if (before > 0) {
        for_each(own.rows, context, [number = own.number, before] __device__(std::int64_t i) {
            number[i] += number[i] >= 0 ? static_cast<std::int32_t>(before) : 0;
        });
    }
    const std::int64_t count = total(parts, roots);
    // Neighbours of a root have no other one: roots are three steps apart. Where there was the first open row is noted
    // now which aggregate a row has joined.
    for_each(own.rows, context, [all] __device__(std::int64_t i) {
        const auto& here = all.own;
        std::int32_t joined = here.number[i];
        if (joined < 0) {
            here.edges.from(i, [&](std::int32_t other) {
                const auto& there = all.of(other);
                joined = *there.at(there.state, other) == coarse ? *there.at(there.number, other) : joined;
                return joined < 0;
            });
        }
        here.first[i] = joined;
    });
    meet(parts);
    // The rest joins the aggregate that most of its neighbours are in, of several the first.
    for_each_row(own.rows, own.nnz, context, [all] __device__(std::int64_t i, int lane, int lanes) {
        const auto& here = all.own;
        if (here.first[i] >= 0) {
            here.number[i] = here.first[i];
            return;
        }
        const auto joined = [&](std::int32_t row) {
            const auto& there = all.of(row);
            return *there.at(there.first, row);
        };
        // Votes, and below them what is larger the sooner the candidate comes.
        std::uint64_t best = 0;
        for (std::int64_t k = here.edges.row_ptr[i] + lane; k < here.edges.row_ptr[i + 1]; k += lanes) {
            const std::int32_t candidate = here.is_strong(k) ? joined(here.edges.columns[k]) : -1;
            if (candidate >= 0) {
                std::uint64_t votes = 0;
                here.edges.from(i, [&](std::int32_t another) {
                    votes += joined(another) == candidate ? 1 : 0;
                    return true;
                });
                const std::uint64_t vote = votes << 32U | static_cast<std::uint32_t>(~candidate);
                best = vote > best ? vote : best;
            }
        }
        best = over_lanes(best, lanes, [](std::uint64_t x, std::uint64_t y) { return x > y ? x : y; });
        if (lane == 0) {
            here.number[i] = best == 0 ? -1 : static_cast<std::int32_t>(~static_cast<std::uint32_t>(best));
        }
    });
    meet(parts);
    return count;
}

bool symmetrise(const AggregateParts& parts, const Context& context)
{
    return with_parts(parts, [&](const auto& all) { return symmetrise_parts(all, parts, context); });
}

std::int64_t aggregates(const AggregateParts& parts, const Context& context)
{
    return with_parts(parts, [&](const auto& all) { return aggregate_parts(all, parts, context); });
}

}  // namespace
}  // namespace cuda::coarsening

RMSP_ROW(Aggregations, cuda, .symmetrise = cuda::coarsening::symmetrise, .aggregates = cuda::coarsening::aggregates)

}  // namespace rmsp::kernels
