#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <kernels/cuda_read.cuh>
#include <kernels/cuda_timer.cuh>
#include <kernels/spgemm/arrays.hpp>
#include <kernels/spgemm/product_tiles.cuh>
#include <kernels/spgemm/products.cuh>

/// Values of C for a structure that is known, computed again and again.
namespace rmsp::kernels::spgemm {

/// Which lists of products are worth a try.
struct ListedBy {
    bool tiles = false;
    bool entries = false;
};

/// Three ways to the same values: the numeric phase, tiles of products, products listed by entries of C. Which is
/// fastest depends on how well the rows of B that neighbours touch are cached, which structure does not tell: the first
/// call times them, and keeps what the fastest one needs.
template <class T>
class RepeatedValues {
public:
    std::size_t bytes() const { return tiles_.bytes() + listed_.bytes(); }

    /// The values to job.values. `run(job, work)` queues the numeric phase. `left`: bytes that may be kept. The first
    /// call waits.
    template <class Run>
    void sum(const NumericJob<T>& job, const TilesJob& structure, ListedBy by, std::int64_t left, int units,
             const Run& run, const Context& context)
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        const auto by_tiles = [&] { sum_tiles(tiles_, job.alpha, job.a_values, job.b_values, job.values, stream); };
        const auto by_entries = [&] {
            sum_products(listed_.packed(), structure.c_entries, units, job.alpha, job.a_values, job.b_values,
                         job.values, stream);
        };
        const auto anew = [&] { run(job, Work::sum); };
        // What is kept for later calls is worth it from the first repetition on.
        if (!tried_) {
            tried_ = true;
            if (by.tiles) {
                tiles_ = make_faster_tiles(structure, left, job.alpha, job.a_values, job.b_values, job.values, context,
                                           anew);
            }
            if (by.entries) {
                list(job, structure, left, run, context);
            }
            if (listed_.words.size() > 0) {
                cuda::StreamTimer timer;
                by_entries();  // the first call of a kernel takes longer
                const float time = timer.least_milliseconds(stream, by_entries);
                if (!tiles_.empty() ? time > timer.least_milliseconds(stream, by_tiles)
                                    : time > timer.least_milliseconds(stream, anew)) {
                    listed_ = {};
                } else {
                    tiles_ = {};
                }
            }
        }
        if (!tiles_.empty()) {
            by_tiles();
        } else if (listed_.words.size() > 0) {
            by_entries();
        } else {
            anew();
        }
    }

private:
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
        const std::size_t work_bytes = std::max(begin_bytes(entries), plan_bytes(entries));
        const std::int64_t windows = product_windows(entries);
        const std::int64_t bundles = product_bundles(entries);
        // Packed, a product takes 4 bytes, at times 8.
        const std::int64_t bytes =
            structure.products * static_cast<std::int64_t>(2 * sizeof(ProductRef)) +
            bundles * static_cast<std::int64_t>(sizeof(ProductBundle) + sizeof(std::uint32_t)) +
            windows * static_cast<std::int64_t>(sizeof(ProductWindow) + products_window * sizeof(std::uint16_t)) +
            entries * static_cast<std::int64_t>(sizeof(std::uint32_t)) + ones * static_cast<std::int64_t>(sizeof(T)) +
            static_cast<std::int64_t>(work_bytes);
        if (bytes > left) {
            return;
        }
        auto products = try_array<ProductRef>(context, structure.products);
        auto offsets = try_array<std::uint32_t>(context, entries + 1);
        const auto one = try_array<T>(context, ones);
        const auto work = try_array<std::byte>(context, static_cast<std::int64_t>(work_bytes));
        ProductList found{.words = {},
                          .windows = try_array<ProductWindow>(context, windows),
                          .bundles = try_array<ProductBundle>(context, bundles),
                          .order = try_array<std::uint16_t>(context, windows * products_window)};
        const auto begins = try_array<std::uint32_t>(context, bundles + 1);
        if (products.size() == 0 || offsets.size() == 0 || one.size() == 0 || work.size() != work_bytes ||
            found.windows.size() == 0 || found.bundles.size() == 0 || found.order.size() == 0 || begins.size() == 0) {
            return;
        }
        // The product of matrices of ones counts the products of each entry.
        fill_ones(one.data(), ones, stream);
        job.alpha = T{1};
        job.a_values = one.data();
        job.b_values = one.data();
        run(job, Work::sum);
        begin_products(job.values, entries, offsets.data(), work.data(), work_bytes, stream);
        job.offsets = offsets.data();
        job.products = products.data();
        run(job, Work::list);
        plan_bundles(offsets.data(), products.data(), entries, found.packed(), begins.data(), work.data(), work_bytes,
                     stream);
        const std::uint32_t rows = cuda::read(begins.data() + bundles, stream);
        found.words = try_array<std::uint32_t>(context, std::int64_t{rows} * 32);
        if (found.words.size() > 0) {
            pack_products(offsets.data(), products.data(), entries, begins.data(), found.packed(), stream);
            listed_ = std::move(found);
        }
    }

    ProductTiles tiles_;
    ProductList listed_;
    bool tried_ = false;
};

}  // namespace rmsp::kernels::spgemm
