#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>

#include <kernels/cuda_timer.cuh>
#include <kernels/spgemm/arrays.hpp>
#include <kernels/spgemm/product_tiles.cuh>
#include <kernels/spgemm/products.cuh>

/// Values of C for a structure that is known, computed again and again.
namespace rmsp::kernels::spgemm {

/// Which lists of products are worth a try.
struct ListedBy {
    bool tiles = false;
    bool entries = false;  ///< of C
    bool plain = false;    ///< entries of the list may be added up unpacked: none is long enough to hold up the others
};

/// Four ways to the same values: the numeric phase, tiles of products, products listed by entries of C, and these
/// packed. Which is fastest depends on how well the rows of B that neighbours touch are cached, which structure does
/// not tell: the first call times them, and keeps what the fastest one needs. Each way has the same bits every time.
template <class T>
class RepeatedValues {
public:
    std::size_t bytes() const { return tiles_.bytes() + listed_.bytes() + packed_.bytes(); }

    /// The values to job.values. `run(job, work)` queues the numeric phase. `left`: bytes that may be kept. The first
    /// call may wait.
    template <class Run>
    void sum(const NumericJob<T>& job, const TilesJob& structure, ListedBy by, std::int64_t left, int units,
             const Run& run, const Context& context)
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const auto by_tiles = [&] { sum_tiles(tiles_, job.alpha, job.a_values, job.b_values, job.values, stream); };
        const auto by_entries = [&] {
            sum_entries(listed_, structure.c_entries, lanes_of_entry(structure.products, structure.c_entries),
                        job.alpha, job.a_values, job.b_values, job.values, stream);
        };
        const auto by_packed = [&] {
            sum_products(packed_.packed(), structure.c_entries, units, job.alpha, job.a_values, job.b_values,
                         job.values, stream);
        };
        const auto anew = [&] { run(job, Work::sum); };
        // What is kept for later calls is worth it from the first repetition on.
        if (!tried_) {
            tried_ = true;
            const bool only_plain = by.entries && by.plain && is_launch_bound(structure.products);
            if (only_plain) {
                list(job, structure, left, run, context);
            }
            if (listed_.products.size() == 0) {
                if (by.tiles) {
                    tiles_ = make_faster_tiles(structure, left, job.alpha, job.a_values, job.b_values, job.values,
                                               context, anew);
                }
                if (by.entries && !only_plain) {
                    list(job, structure, left - static_cast<std::int64_t>(tiles_.bytes()), run, context);
                }
                if (listed_.products.size() > 0) {
                    choose(structure.c_entries, by.plain, left, tiles_.empty() ? ToTime(anew) : ToTime(by_tiles),
                           by_entries, by_packed, context);
                }
            }
        }
        if (!tiles_.empty()) {
            by_tiles();
        } else if (packed_.words.size() > 0) {
            by_packed();
        } else if (listed_.products.size() > 0) {
            by_entries();
        } else {
            anew();
        }
    }

private:
    using ToTime = std::function<void()>;

    /// Keeps what the fastest of these ways needs. `without`: the fastest that needs no list of entries.
    void choose(std::int64_t entries, bool may_be_plain, std::int64_t left, const ToTime& without,
                const ToTime& by_entries, const ToTime& by_packed, const Context& context)
    {
        cuda::StreamTimer timer;
        const auto time = [&](const ToTime& way) {
            way();  // the first call of a kernel takes longer
            return timer.least_milliseconds(static_cast<cudaStream_t>(context.stream), way);
        };
        float least = time(without);
        bool plain = false;
        if (may_be_plain) {
            const float its = time(by_entries);
            plain = its < least;
            least = plain ? its : least;
        }
        packed_ = pack_products(listed_, entries, left - static_cast<std::int64_t>(bytes()), context);
        if (packed_.words.size() == 0 || time(by_packed) >= least) {
            packed_ = {};
        }
        const bool packed = packed_.words.size() > 0;
        if (packed || !plain) {
            listed_ = {};
        }
        if (packed || plain) {
            tiles_ = {};
        }
    }

    /// Lists the products of each entry of C, if there is room.
    template <class Run>
    void list(NumericJob<T> job, const TilesJob& structure, std::int64_t left, const Run& run, const Context& context)
    {
        const std::int64_t ones = std::max(structure.a_entries, structure.b_entries);
        if (ones > std::numeric_limits<std::int32_t>::max()) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const std::int64_t entries = structure.c_entries;
        const std::size_t work_bytes = begin_bytes(entries);
        const std::int64_t bytes = structure.products * static_cast<std::int64_t>(sizeof(ProductRef)) +
                                   (entries + 1) * static_cast<std::int64_t>(sizeof(std::uint32_t)) +
                                   ones * static_cast<std::int64_t>(sizeof(T)) + static_cast<std::int64_t>(work_bytes);
        if (bytes > left) {
            return;
        }
        ListedProducts found{.offsets = try_array<std::uint32_t>(context, entries + 1),
                             .products = try_array<ProductRef>(context, structure.products)};
        const auto one = try_array<T>(context, ones);
        const auto work = try_array<std::byte>(context, static_cast<std::int64_t>(work_bytes));
        if (found.products.size() == 0 || found.offsets.size() == 0 || one.size() == 0 || work.size() != work_bytes) {
            return;
        }
        // The product of matrices of ones counts the products of each entry.
        fill_ones(one.data(), ones, stream);
        job.alpha = T{1};
        job.a_values = one.data();
        job.b_values = one.data();
        run(job, Work::sum);
        begin_products(job.values, entries, found.offsets.data(), work.data(), work_bytes, stream);
        job.offsets = found.offsets.data();
        job.products = found.products.data();
        run(job, Work::list);
        listed_ = std::move(found);
    }

    ProductTiles tiles_;
    ListedProducts listed_;
    PackedList packed_;
    bool tried_ = false;
};

}  // namespace rmsp::kernels::spgemm
