#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>

#include <kernels/cuda_timer.cuh>
#include <kernels/spgemm/arrays.hpp>
#include <kernels/spgemm/placed_rows.cuh>
#include <kernels/spgemm/product_tiles.cuh>
#include <kernels/spgemm/products.cuh>
#include <rmsp/error.hpp>

/// Values of C for a structure that is known, computed again and again.
namespace rmsp::kernels::spgemm {

/// Which lists of products are worth a try.
struct ListedBy {
    bool tiles = false;
    bool places = false;
    bool entries = false;  ///< of C
    bool plain = false;    ///< entries of the list may be added up unpacked: none is long enough to hold up the others
};

/// Five ways to the same values: the numeric phase, tiles of products, rows whose products know their places, products
/// listed by entries of C, and these packed. Which is fastest depends on how well the rows of B that neighbours touch
/// are cached, which structure does not tell: the first call times them, and keeps what the fastest one needs. Each way
/// has the same bits every time.
template <class T>
class RepeatedValues {
public:
    std::size_t bytes() const { return tiles_.bytes() + placed_.bytes() + listed_.bytes() + packed_.bytes(); }

    /// The values to job.values. `run(job, work)` queues the numeric phase. `left`: bytes that may be kept. The first
    /// call may wait.
    template <class Run>
    void sum(const NumericJob<T>& job, const ProductSource& structure, ListedBy by, std::int64_t left, int units,
             const Run& run, const Context& context)
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const auto by_tiles = [&] { sum_tiles(tiles_, job.alpha, job.a_values, job.b_values, job.values, stream); };
        const auto by_places = [&] {
            sum_placed(placed_, structure, job.alpha, job.a_values, job.b_values, job.values, stream);
        };
        const auto by_entries = [&] {
            sum_entries(listed_, structure.c_entries, lanes_of_entry(structure.products, structure.c_entries),
                        job.alpha, job.a_values, job.b_values, job.values, stream);
        };
        const auto by_packed = [&] {
            sum_products(packed_.packed(), structure.c_entries, units, job.alpha, job.a_values, job.b_values,
                         job.values, stream);
        };
        const auto kept = [&] {
            if (!tiles_.empty()) {
                by_tiles();
            } else if (!placed_.empty()) {
                by_places();
            } else if (packed_.words.size() > 0) {
                by_packed();
            } else if (listed_.products.size() > 0) {
                by_entries();
            } else {
                run(job, Work::sum);
            }
        };
        // What is kept for later calls is worth it from the first repetition on.
        if (!tried_) {
            tried_ = true;
            keep_fastest(job, structure, by, left, run, {kept, by_tiles, by_places, by_entries, by_packed}, context);
        }
        kept();
    }

private:
    using Way = std::function<void()>;
    struct Ways {
        Way kept;  ///< of those that are, or the numeric phase
        Way tiles;
        Way places;
        Way entries;
        Way packed;
    };

    /// Makes lists, and keeps what the fastest way needs.
    template <class Run>
    void keep_fastest(const NumericJob<T>& job, const ProductSource& structure, ListedBy by, std::int64_t left,
                      const Run& run, const Ways& ways, const Context& context)
    {
        if (by.entries && by.plain && is_launch_bound(structure.products)) {
            list(job, structure, left, run, context);
            if (listed_.products.size() > 0) {
                return;
            }
            by.entries = false;
        }
        if (!by.tiles && !by.places && !by.entries) {
            return;
        }
        Trial trial(static_cast<cudaStream_t>(context.stream), ways.kept);
        if (by.tiles) {
            tiles_ = made([&] { return make_tiles<T>(structure, worth_keeping(structure, 2, left), context); });
            if (!tiles_.empty() && !trial.is_faster(ways.tiles)) {
                tiles_ = {};
            }
        }
        if (by.places) {
            placed_ =
                made([&] { return place_rows<T>(structure, worth_keeping(structure, 3, left_of(left)), context); });
            if (!placed_.empty() && trial.is_faster(ways.places)) {
                tiles_ = {};
            } else {
                placed_ = {};
            }
        }
        if (by.entries) {
            list(job, structure, left_of(left), run, context);
        }
        if (listed_.products.size() > 0) {
            const bool plain = by.plain && trial.is_faster(ways.entries);
            packed_ = pack_products(listed_, structure.c_entries, left_of(left), context);
            const bool packed = packed_.words.size() > 0 && trial.is_faster(ways.packed);
            if (!packed) {
                packed_ = {};
            }
            if (packed || !plain) {
                listed_ = {};
            }
            if (packed || plain) {
                tiles_ = {};
                placed_ = {};
            }
        }
    }

    /// Ways are timed one after the other.
    class Trial {
    public:
        Trial(cudaStream_t stream, const Way& way) : stream_(stream), least_(time(way)) {}
        /// Whether it is the fastest so far.
        bool is_faster(const Way& way)
        {
            const float its = time(way);
            const bool faster = its < least_;
            least_ = faster ? its : least_;
            return faster;
        }

    private:
        float time(const Way& way)
        {
            way();  // the first call of a kernel takes longer
            return timer_.least_milliseconds(stream_, way);
        }
        cuda::StreamTimer timer_;
        cudaStream_t stream_;
        float least_;
    };

    std::int64_t left_of(std::int64_t left) const { return left - static_cast<std::int64_t>(bytes()); }

    /// Of `left` bytes those that a list may take: so many times what A, B and C do.
    static std::int64_t worth_keeping(const ProductSource& structure, int times, std::int64_t left)
    {
        constexpr std::int64_t entry_bytes = sizeof(std::int32_t) + sizeof(T);
        constexpr std::int64_t little = std::int64_t{64} << 20;
        const std::int64_t entries = structure.a_entries + structure.b_entries + structure.c_entries;
        return std::min(left, std::max(times * entries * entry_bytes, little));
    }

    /// Nothing where the device has no room.
    template <class Make>
    static auto made(const Make& make) -> decltype(make())
    {
        try {
            return make();
        } catch (const Error& e) {
            if (e.code() != ErrorCode::out_of_memory) {
                throw;
            }
            return {};
        }
    }

    /// Lists the products of each entry of C, if there is room.
    template <class Run>
    void list(NumericJob<T> job, const ProductSource& structure, std::int64_t left, const Run& run,
              const Context& context)
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
    PlacedRows placed_;
    ListedProducts listed_;
    PackedList packed_;
    bool tried_ = false;
};

}  // namespace rmsp::kernels::spgemm
