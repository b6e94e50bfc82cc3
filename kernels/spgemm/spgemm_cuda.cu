#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <ranges>
#include <string_view>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_read.cuh>
#include <kernels/cuda_timer.cuh>
#include <kernels/spgemm/accumulators.hpp>
#include <kernels/spgemm/arrays.hpp>
#include <kernels/spgemm/device.cuh>
#include <kernels/spgemm/launch_policy.hpp>
#include <kernels/spgemm/repeated_values.cuh>
#include <kernels/spgemm/row_sample.cuh>
#include <kernels/spgemm/scatter_vectors.hpp>
#include <kernels/spgemm/short_rows.cuh>
#include <kernels/spgemm/small_rows.cuh>
#include <kernels/spgemm/spgemm.hpp>
#include <kernels/spgemm/spread.cuh>

namespace rmsp::kernels {
namespace {

using namespace spgemm;

template <class T>
class Spgemm final : public SpgemmOperator<T> {
public:
    Spgemm(const CsrShard<T>& a, const CsrShard<T>& b, const SpgemmOptions& options, const Context& context)
        : a_{a.rows, a.cols, RowPtr(a.row_ptr), a.col_idx},
          b_{b.rows, b.cols, RowPtr(b.row_ptr), b.col_idx},
          a_nnz_(a.nnz),
          b_nnz_(b.nnz)
    {
        const NamedAccumulator& accumulator = accumulator_of(options.accumulator);
        accumulator_ = accumulator.accumulator;
        virtual_warp_ = accumulator.virtual_warp;
        workspace_limit_ = options.workspace_limit;
        const auto stream = static_cast<cudaStream_t>(context.stream);
        Layout layout;
        const std::size_t counters = layout.add<Counters>(1);
        const std::size_t tile_groups = layout.add<long long>(scan_groups(a.rows));
        const std::size_t row_ptr = layout.add<std::int64_t>(a.rows + 1);
        const std::size_t words = layout.add<Word>(b.nnz);
        const bool all = options.touched.end < 0;
        const RowRange touched = all ? RowRange{0, b.rows} : options.touched;
        const std::size_t b_words = layout.add<Extent>(touched.end - touched.first);
        const std::size_t b_entries = layout.add<Extent>(touched.end - touched.first);
        const std::size_t b_rows = layout.add<RowOfB>(touched.end - touched.first);
        const std::size_t b_twins = layout.add<std::uint8_t>(touched.end - touched.first);
        const bool within = options.a_in_b >= 0;
        const std::size_t a_twins = within ? 0 : layout.add<std::uint8_t>(a.rows);
        const std::size_t groups = layout.add<std::uint8_t>(a.rows);
        const std::size_t bounds = layout.add<RowBounds>(a.rows);
        const std::size_t row_nnz = layout.add<std::int32_t>(a.rows);
        const std::size_t stored = layout.add<Extent>(a.rows);
        const std::size_t tiles = layout.add<long long>(scan_tiles(a.rows));
        const std::size_t structure_list = layout.add<std::int32_t>(a.rows);
        const std::size_t numeric_list = layout.add<std::int32_t>(a.rows);
        if (options.workspace_limit > 0 && layout.bytes() > static_cast<std::size_t>(options.workspace_limit)) {
            over_limit(static_cast<std::int64_t>(layout.bytes()), options.workspace_limit);
        }
        workspace_ = DeviceArray<std::byte>(*context.memory, layout.bytes());
        row_ptr_ = array<std::int64_t>(row_ptr);
        words_ = array<Word>(words);
        // Entry 0 of these would be before the first.
        b_words_ = array<Extent>(b_words) - touched.first;
        b_entries_ = array<Extent>(b_entries) - touched.first;
        b_rows_ = array<RowOfB>(b_rows) - touched.first;
        b_twins_ = array<std::uint8_t>(b_twins) - touched.first;
        groups_ = array<std::uint8_t>(groups);
        bounds_ = array<RowBounds>(bounds);
        stored_ = array<Extent>(stored);
        structure_list_ = array<std::int32_t>(structure_list);
        numeric_list_ = array<std::int32_t>(numeric_list);
        device_counters_ = array<Counters>(counters);
        auto* const nnz_of_rows = array<std::int32_t>(row_nnz);
        RMSP_CUDA_CHECK(cudaMemsetAsync(device_counters_, 0, row_ptr + sizeof(std::int64_t), stream));
        if (a.rows == 0) {
            return;
        }
        const DeviceLimits device = device_limits();
        const int shared_limit = device.shared_bytes;
        overlaps_ = device.overlaps;
        const int few = few_products(accumulator_);
        const RowRange of_a = within ? RowRange{options.a_in_b, options.a_in_b + a.rows} : RowRange{};
        analyze_b(b_, touched, of_a, mean(b.nnz, all ? b.rows : options.touched_rows), words_, b_words_, b_entries_,
                  b_rows_, b_twins_, device_counters_, stream);
        std::uint8_t* const twins_of_a = within ? b_twins_ + options.a_in_b : array<std::uint8_t>(a_twins);
        if (!within) {
            find_twins(a_, mean(a.nnz, a.rows), twins_of_a, device_counters_, stream);
        }
        analyze_a(a_, mean(a.nnz, a.rows), b_rows_, twins_of_a, shared_limit, few, bounds_, groups_, nnz_of_rows,
                  device_counters_, context.compute_units, stream);
        list_structure(bounds_, groups_, a.rows, shared_limit, few, device_counters_, structure_list_, stream);
        read(device_counters_, stream);
        units_ = context.compute_units;
        if (!by_virtual_warps(accumulator_)) {
            make_pool(a, b, options.a_in_b >= 0, nnz_of_rows, context);  // virtual warps want columns, not words
        }
        find_spread_rows(a.rows, context);
        StructureJob job = structure_job();
        job.row_nnz = nnz_of_rows;
        job.counters = device_counters_;
        run_structures(job, stream);
        NumericLimits limits = numeric_limits(counters_.products / a.rows, a.nnz / a.rows);
        limits.virtual_warps = accumulator.virtual_warps;
        scan_rows({a.rows, a_.row_ptr, nnz_of_rows, bounds_, stored_, groups_, sizeof(T), most_in_group(), shared_limit,
                   accumulator.accumulator, few, limits, array<long long>(tiles), array<long long>(tile_groups),
                   row_ptr_, numeric_list_, device_counters_},
                  stream);
        read(device_counters_, stream);
        all_stored_ = counters_.unstored == 0;
        std::int64_t in_maps = 0;
        for (auto c = static_cast<int>(NumericClass::scatter); c < static_cast<int>(NumericClass::count); ++c) {
            in_maps += counters_.numeric[c];
        }
        if (in_maps > 0) {
            scatter_ = ScatterVectors(in_maps, b_.cols, by_virtual_warps(accumulator_), workspace_limit_,
                                      workspace_bytes(), context);
        }
    }

    std::int64_t nnz() const override { return counters_.nnz; }
    std::int64_t products() const override { return counters_.products; }
    const std::int64_t* row_ptr() const override { return row_ptr_; }
    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(workspace_.size() + pool_.size() * sizeof(Word) +
                                         kept_row_ptr_.size() * sizeof(std::int64_t) + repeated_.bytes() +
                                         spread_.bytes() + scatter_.bytes());
    }

    void fill(T alpha, const T* a_values, const T* b_values, std::int32_t* col_idx, T* values,
              const Context& context) override
    {
        if (counters_.nnz == 0) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        if (!all_stored_) {
            StructureJob job = structure_job();
            job.col_idx = col_idx;
            run_structures(job, stream);
        }
        NumericJob<T> job = numeric_job(alpha, a_values, b_values, col_idx, values);
        job.fills = true;
        run_numerics(job, Work::sum, stream);
        // Repeated values of twins look columns up in the words again; others go without, and another call computes the
        // columns again.
        if (most_in_group() == 1) {
            pool_.reset();
            order_words_ = 0;
            all_stored_ = false;
        }
    }

    void numeric(T alpha, const T* a_values, const T* b_values, const std::int32_t* col_idx, T* values,
                 const Context& context) override
    {
        const auto stream = static_cast<cudaStream_t>(context.stream);
        if (counters_.nnz == 0) {
            return;
        }
        const NumericJob<T> job = numeric_job(alpha, a_values, b_values, const_cast<std::int32_t*>(col_idx), values);
        const bool automatic = accumulator_ == Accumulator::automatic;
        const ListedBy by{.tiles = automatic,
                          .places = automatic,
                          .entries = worth_listing(counters_.products, counters_.nnz, counters_.most_products,
                                                   most_in_group(), accumulator_),
                          .plain = entries_are_short(counters_.products, counters_.most_products)};
        repeated_.sum(
            job, {a_, b_, row_ptr_, col_idx, a_nnz_, b_nnz_, counters_.nnz, counters_.products}, by, workspace_left(),
            units_, [&](const NumericJob<T>& one, Work work) { run_numerics(one, work, stream); }, context);
    }

    void finish(const Context& context) override
    {
        kept_row_ptr_ = DeviceArray<std::int64_t>(*context.memory, static_cast<std::size_t>(a_.rows) + 1);
        RMSP_CUDA_CHECK(cudaMemcpyAsync(kept_row_ptr_.data(), row_ptr_, kept_row_ptr_.size() * sizeof(std::int64_t),
                                        cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(context.stream)));
        row_ptr_ = kept_row_ptr_.data();
        workspace_.reset();
        pool_.reset();
        scatter_ = {};
        repeated_ = {};
        spread_ = {};
    }

private:
    template <class E>
    E* array(std::size_t at) const
    {
        return reinterpret_cast<E*>(workspace_.data() + at);
    }

    static double mean(std::int64_t entries, std::int64_t rows)
    {
        return static_cast<double>(entries) / static_cast<double>(std::max<std::int64_t>(rows, 1));
    }

    /// Waits for the stream.
    void read(const Counters* counters, cudaStream_t stream) { counters_ = cuda::read(counters, stream); }

    /// Bytes.
    std::int64_t workspace_left() const
    {
        return workspace_limit_ > 0 ? workspace_limit_ - workspace_bytes() : std::numeric_limits<std::int64_t>::max();
    }

    int most_in_group() const { return std::max(counters_.most_in_group, 1); }

    NumericJob<T> numeric_job(T alpha, const T* a_values, const T* b_values, std::int32_t* col_idx, T* values) const
    {
        return {.a = a_,
                .b = b_,
                .a_values = a_values,
                .b_values = b_values,
                .alpha = alpha,
                .atomic = counters_.unsorted != 0,
                .b_entries = b_entries_,
                .b_twins = b_twins_,
                .bounds = bounds_,
                .groups = groups_,
                .most_in_group = most_in_group(),
                .most_parts = counters_.most_parts,
                .virtual_warp = virtual_warp_,
                .row_ptr = row_ptr_,
                .col_idx = col_idx,
                .fills = false,
                .stored = stored_,
                .orders = orders(),
                .pool = pool(),
                .values = values,
                .map = scatter_.map.data(),
                .map_rows = scatter_.rows,
                .spread_above = spread_.above,
                .offsets = nullptr,
                .products = nullptr};
    }

    void run_numerics(const NumericJob<T>& job, Work work, cudaStream_t stream) const
    {
        Overlap overlap{overlaps_, true};
        // Large rows first: small ones fill what they leave.
        for (const auto& launch : plan_launches<NumericClass>(counters_.numeric) | std::views::reverse) {
            const std::int32_t* const list = numeric_list_ + launch.first;
            if (is_few(launch.as)) {
                run_numeric_few(job, launch.as, work, list, launch.rows, overlap, stream);
            } else if (is_virtual(launch.as)) {
                run_numeric_virtual(job, launch.as, list, launch.rows, stream);
            } else if (is_window(launch.as) || is_hash(launch.as)) {
                run_numeric_warp(job, launch.as, work, lanes_of_launch(launch), list, launch.rows, overlap, stream);
            } else {
                run_numeric_block(job, launch.as, work, list, launch.rows, overlap, stream);
            }
            overlap.first = false;
        }
        if (spread_.count > 0) {
            run_numeric_spread(job, work, spread_, stream);
        }
    }

    /// Classes up to the launch's that joined it count as well.
    int lanes_of_launch(const Launch<NumericClass>& launch) const
    {
        if (most_in_group() > 1) {
            return 32;
        }
        std::uint64_t products = 0;
        std::uint64_t a_entries = 0;
        std::int64_t rows = 0;
        for (auto c = static_cast<std::size_t>(launch.as); rows < launch.rows; --c) {
            rows += counters_.numeric[c];
            products += counters_.products_of[c];
            a_entries += counters_.a_entries_of[c];
        }
        return lanes_a_row(static_cast<std::int64_t>(products), static_cast<std::int64_t>(a_entries));
    }

    StructureJob structure_job() const
    {
        return {.a = a_,
                .words = words_,
                .b_words = b_words_,
                .b_columns = b_.col_idx,
                .b_entries = b_entries_,
                .bounds = bounds_,
                .groups = groups_,
                .row_nnz = nullptr,
                .stored = stored_,
                .orders = orders(),
                .pool = pool(),
                .pool_capacity = static_cast<long long>(pool_.size()) - order_words_,
                .rows_a_slab = 1,
                .counters = nullptr,
                .row_ptr = row_ptr_,
                .col_idx = nullptr,
                .units = units_,
                .widest = 0,
                .spread_above = spread_.above};
    }

    /// The first part of the pool, if it has one.
    std::uint8_t* orders() const { return order_words_ > 0 ? reinterpret_cast<std::uint8_t*>(pool_.data()) : nullptr; }
    Word* pool() const { return pool_.data() + order_words_; }

    /// Room to keep the words that are counted, and the orders of rows with few products: as much as surely suffices,
    /// as C is guessed to take at least, or as a sample of the rows says. Rows that find none are counted again. A word
    /// has an entry of C at least, and takes no more than that.
    void make_pool(const CsrShard<T>& a, const CsrShard<T>& b, bool within, std::int32_t* nnz_of_rows,
                   const Context& context)
    {
        constexpr std::int64_t entry_bytes = sizeof(std::int32_t) + sizeof(T);
        constexpr std::int64_t word_bytes = sizeof(Word);
        const std::int64_t operands = b.nnz + (within ? 0 : a.nnz);
        // No more than A, B and C take at least, so that it is not these words that memory is short of.
        const std::int64_t least = (operands + counters_.least) * entry_bytes;
        std::int64_t of_few = 0;
        for (const auto& launch : plan_launches<StructureClass>(counters_.structure)) {
            of_few += is_few(launch.as) ? structure_capacity(launch.as) * launch.rows / word_bytes : 0;
        }
        if (!worth_keeping_orders(of_few * word_bytes, static_cast<std::int64_t>(workspace_.size()), least)) {
            of_few = 0;
        }
        const std::int64_t enough = pool_words(counters_.bound) + of_few;
        const std::int64_t sure = std::min({enough, least / word_bytes, workspace_left() / word_bytes});
        if (worth_sampling(counters_.bound, sure - of_few)) {
            const SampledWords sampled = sample_words(nnz_of_rows, context);
            // With what else is held, no more than A, B and C are guessed to take.
            const std::int64_t guessed =
                (operands + sampled.entries) * entry_bytes - static_cast<std::int64_t>(workspace_.size());
            const std::int64_t words =
                std::min({enough, sampled.words + of_few, guessed / word_bytes, workspace_left() / word_bytes});
            if (words > sure) {
                pool_ = try_array<Word>(context, words);
                if (try_array<std::byte>(context, sampled.entries * entry_bytes).size() == 0) {
                    pool_.reset();  // C would not fit beside it
                }
            }
        }
        if (pool_.size() == 0) {
            pool_ = try_array<Word>(context, sure);
        }
        order_words_ = static_cast<std::int64_t>(pool_.size()) >= of_few ? of_few : 0;
    }

    /// What all rows take, by those of a sample, which are counted for it; nothing of rows that are too few.
    struct SampledWords {
        std::int64_t words = 0;    ///< with a margin
        std::int64_t entries = 0;  ///< of C
    };
    SampledWords sample_words(std::int32_t* nnz_of_rows, const Context& context)
    {
        const std::int64_t stride = sample_stride(a_.rows);
        const std::int64_t most = 2 * counters_.bound / stride;
        const auto room = try_array<Word>(context, std::min<std::int64_t>(most, workspace_left() / sizeof(Word)));
        if (static_cast<std::int64_t>(room.size()) < most) {
            return {};
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        StructureJob job = structure_job();
        job.row_nnz = nnz_of_rows;
        job.counters = device_counters_;
        job.pool = room.data();
        job.pool_capacity = static_cast<long long>(room.size());
        job.spread_above = sample_policy.most_products;
        // The list of the numeric phase is still to be made.
        if (!count_sample(job, counters_, stride, structure_list_, numeric_list_, overlaps_, stream)) {
            return {};
        }
        read(device_counters_, stream);
        // As before, for when all rows are counted.
        static_assert(offsetof(Counters, unstored) == offsetof(Counters, pool_used) + sizeof(Counters::pool_used));
        RMSP_CUDA_CHECK(cudaMemsetAsync(&device_counters_->pool_used, 0,
                                        sizeof(Counters::pool_used) + sizeof(Counters::unstored), stream));
        const double all =
            static_cast<double>(counters_.bound) / static_cast<double>(std::max(counters_.sampled_bound, 1LL));
        return {static_cast<std::int64_t>(sample_policy.margin * all * static_cast<double>(counters_.pool_used)),
                static_cast<std::int64_t>(all * static_cast<double>(counters_.sampled_entries))};
    }

    /// Rows that many blocks take, if there are any and there is room for their bitmaps, within what A and B take.
    void find_spread_rows(std::int64_t rows, const Context& context)
    {
        if (accumulator_ != Accumulator::automatic || most_in_group() > 1) {
            return;
        }
        const auto stream = static_cast<cudaStream_t>(context.stream);
        std::int64_t room = (a_nnz_ + b_nnz_) * static_cast<std::int64_t>(sizeof(std::int32_t) + sizeof(T));
        room = std::min(room, workspace_left());
        for (const int parts : parts_of_a_share) {
            const std::int32_t above = spread_above(counters_.products, rows, units_, parts);
            if (counters_.most_products <= above) {
                continue;
            }
            SpreadRows found(try_array<std::int32_t>(context, most_spread(units_, parts)));
            find_spread(bounds_, rows, above, device_counters_, found.list, stream);
            read(device_counters_, stream);
            if (found.make_room(counters_, room, units_, context)) {
                found.above = above;
                spread_ = std::move(found);
                return;
            }
        }
    }

    void run_structures(StructureJob job, cudaStream_t stream) const
    {
        Overlap overlap{overlaps_, true};
        std::int64_t order = 0;
        for (const auto& launch : plan_launches<StructureClass>(counters_.structure) | std::views::reverse) {
            const std::int32_t* const list = structure_list_ + launch.first;
            job.widest = widest_of(counters_, launch.as);
            if (!is_few(launch.as)) {
                run_structure(job, launch.as, list, launch.rows, overlap, stream);
            } else if (job.col_idx == nullptr) {
                run_structure_few(job, launch.as, list, launch.rows, order, overlap, stream);
                order += structure_capacity(launch.as) * launch.rows;
            } else {
                continue;  // the numeric phase writes their columns
            }
            overlap.first = false;
        }
        if (spread_.count > 0 && job.col_idx == nullptr) {
            count_spread(job, spread_, stream);
        }
    }

    Pattern a_;
    Pattern b_;
    Counters* device_counters_ = nullptr;
    DeviceArray<std::byte> workspace_;
    DeviceArray<std::int64_t> kept_row_ptr_;  ///< once the workspace is gone
    std::int64_t* row_ptr_ = nullptr;
    Word* words_ = nullptr;
    Extent* b_words_ = nullptr;
    Extent* b_entries_ = nullptr;
    RowOfB* b_rows_ = nullptr;
    std::uint8_t* b_twins_ = nullptr;
    std::uint8_t* groups_ = nullptr;  ///< rows of A from each on that are worked on together
    RowBounds* bounds_ = nullptr;
    std::int32_t* structure_list_ = nullptr;  ///< rows of A by class
    std::int32_t* numeric_list_ = nullptr;
    Extent* stored_ = nullptr;
    DeviceArray<Word> pool_;        ///< columns of C, as they were counted
    std::int64_t order_words_ = 0;  ///< of it, for the orders of products of rows that have few
    RepeatedValues<T> repeated_;
    SpreadRows spread_;
    Accumulator accumulator_ = Accumulator::automatic;
    std::int64_t a_nnz_;
    std::int64_t b_nnz_;
    bool all_stored_ = false;
    std::int64_t workspace_limit_ = 0;
    int units_ = 1;
    bool overlaps_ = false;  ///< whether launches may
    ScatterVectors scatter_;
    int virtual_warp_ = 0;
    Counters counters_{};
};

}  // namespace

template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cuda(const CsrShard<T>& a, const CsrShard<T>& b,
                                                       const SpgemmOptions& options, const Context& context)
{
    // Few rows take as long as the launches: then it does not matter that a thread a row would do, and longer rows may
    // be among them.
    constexpr std::int64_t few_rows = 8192;
    const auto tries = a.rows > few_rows ? std::array{try_short_rows<T>, try_small_rows<T>}
                                         : std::array{try_small_rows<T>, try_short_rows<T>};
    for (const auto attempt : tries) {
        if (auto prepared = attempt(a, b, options, context)) {
            return prepared;
        }
    }
    return std::make_unique<Spgemm<T>>(a, b, options, context);
}

#define RMSP_INSTANTIATE(T)                                                                                 \
    template std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_cuda(const CsrShard<T>&, const CsrShard<T>&, \
                                                                    const SpgemmOptions&, const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
