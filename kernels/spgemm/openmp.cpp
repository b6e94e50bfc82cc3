#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <core/team.hpp>
#include <kernels/spgemm/host_columns.hpp>
#include <kernels/spgemm/host_find.hpp>
#include <kernels/spgemm/host_rows.hpp>
#include <kernels/spgemm/host_shifted.hpp>
#include <kernels/spgemm/spgemm.hpp>
#include <rmsp/error.hpp>
#include <rmsp/host_vector.hpp>

namespace rmsp::kernels {
namespace {

using spgemm::ColumnFinder;
using spgemm::ColumnTable;
using spgemm::FoundColumns;
using spgemm::HostAccumulator;
using spgemm::row_weight;
using spgemm::RowsOfProduct;

/// Ranges of rows a thread: enough for them to end together. Less work has fewer, each with rows that are alike.
constexpr std::int64_t blocks_per_thread = 64;
constexpr std::int64_t least_of_block = 8192;
/// Nonzeros, or products, and rows (row_weight each) below which a team of threads takes longer to wake than it saves.
constexpr std::int64_t least_examined = 400'000;
constexpr std::int64_t least_multiplied = 65'536;

/// The columns of C are found once, in prepare(), and kept until fill() has written them; the values are added up where
/// their columns are known.
template <class T>
class OpenMp final : public SpgemmOperator<T> {
public:
    OpenMp(const CsrShard<T>& a, const CsrShard<T>& b, HostAccumulator accumulator, std::int64_t workspace_limit,
           const Context& context)
        : a_(a),
          b_(b),
          keep_(workspace_limit == 0),
          most_blocks_(blocks_worth_cutting(a, b, std::max(context.threads, 1))),
          threads_(most_blocks_ == 1 ? 1 : std::max(context.threads, 1)),
          row_ptr_(*context.memory, static_cast<std::size_t>(a.rows) + 1),
          rows_(a, accumulator, is_small(a, b) ? 1 : threads_, most_blocks_, *context.memory)
    {
        rows_.examine(b, *context.memory);
        cut(*context.memory);
        make_scratch(workspace_limit);
        find_structure();
    }

    std::int64_t nnz() const override { return row_ptr_.data()[a_.rows]; }
    std::int64_t products() const override { return rows_.products(); }
    const std::int64_t* row_ptr() const override { return row_ptr_.data(); }
    std::int64_t workspace_bytes() const override
    {
        std::int64_t bytes = static_cast<std::int64_t>(row_ptr_.size() * sizeof(std::int64_t)) + rows_.bytes();
        for (const Scratch& scratch : scratch_) {
            bytes += scratch.bytes();
        }
        return bytes + static_cast<std::int64_t>(columns_.size() * sizeof(std::int32_t));
    }

    void fill(T alpha, const T* a_values, const T* b_values, std::int32_t* col_idx, T* values,
              const Context& /*context*/) override
    {
        for_each_block([&](const Block& block, Scratch& scratch, const auto* a_ptr, const auto* b_ptr) {
            if (keep_) {
                std::copy_n(columns_.data() + block.columns, row_ptr_.data()[block.end] - row_ptr_.data()[block.first],
                            col_idx + row_ptr_.data()[block.first]);
            } else {
                for (std::int64_t row = block.first; row < block.end;) {
                    std::int32_t* const out = col_idx + row_ptr_.data()[row];
                    const std::int64_t count = row_ptr_.data()[row + 1] - row_ptr_.data()[row];
                    const std::int64_t alike = rows_.shifted_from(row, block.end);
                    if (row > block.first && rows_.same(row)) {
                        std::copy_n(out - count, count, out);
                    } else {
                        finder_.find(row, scratch.columns, a_ptr, b_ptr, out);
                    }
                    spgemm::repeat_columns(out, count, alike);
                    row += alike;
                }
            }
            add_up_block(block, scratch, alpha, a_ptr, b_ptr, a_values, b_values, col_idx, values);
        });
        columns_.reset();
        keep_ = false;
    }

    void numeric(T alpha, const T* a_values, const T* b_values, const std::int32_t* col_idx, T* values,
                 const Context& /*context*/) override
    {
        for_each_block([&](const Block& block, Scratch& scratch, const auto* a_ptr, const auto* b_ptr) {
            add_up_block(block, scratch, alpha, a_ptr, b_ptr, a_values, b_values, col_idx, values);
        });
    }

private:
    /// What one thread works with.
    struct Scratch {
        FoundColumns columns;
        HostVector<std::int32_t> found;  ///< columns of one row
        HostVector<T> sums;              ///< of each column of a window, or of each slot of the table

        std::int64_t bytes() const
        {
            return columns.bytes() +
                   static_cast<std::int64_t>(found.size() * sizeof(std::int32_t) + sums.size() * sizeof(T));
        }
    };

    /// Rows [first, end), and where their columns of C are kept until fill() takes them.
    struct Block {
        std::int64_t first = 0;
        std::int64_t end = 0;
        std::int64_t columns = 0;
        std::int64_t entries = 0;  ///< of C
    };

    /// Whether one thread examines the factors as fast as more that wake first.
    static bool is_small(const CsrShard<T>& a, const CsrShard<T>& b)
    {
        return a.nnz + b.nnz + row_weight * (a.rows + b.rows) < least_examined;
    }
    /// Ranges of rows that threads share, at most; one for a thread alone. Products of small factors are counted for
    /// that: others are work enough.
    static std::int64_t blocks_worth_cutting(const CsrShard<T>& a, const CsrShard<T>& b, int threads)
    {
        if (threads == 1) {
            return 1;
        }
        if (!is_small(a, b)) {
            return threads * blocks_per_thread;
        }
        std::int64_t weight = row_weight * a.rows;
        b.row_ptr.visit([&](const auto* b_ptr) {
            for (std::int64_t i = 0; i < a.nnz; ++i) {
                weight += std::int64_t{b_ptr[a.col_idx[i] + 1]} - b_ptr[a.col_idx[i]];
            }
        });
        return weight < least_multiplied ? 1 : std::min(weight / least_of_block, threads * blocks_per_thread);
    }

    /// Ranges of rows with equal products.
    void cut(Memory& memory)
    {
        const std::int64_t total = rows_.products() + row_weight * a_.rows;
        Block block;
        std::int64_t sum = 0;
        std::int64_t columns = 0;
        rows_.for_each_chunk([&](std::int64_t end, const typename RowsOfProduct<T>::Chunk& chunk) {
            sum += chunk.weight;
            columns += chunk.columns;
            block.end = end;
            if (sum >= total / most_blocks_ + 1 || end == a_.rows) {
                blocks_.push_back(block);
                block = {end, end, columns, 0};
                sum = 0;
            }
        });
        if (keep_) {
            try {
                // Pages that nothing is written to take no memory.
                columns_ = DeviceArray<std::int32_t>(memory, static_cast<std::size_t>(columns));
            } catch (const Error&) {
                keep_ = false;
            }
        }
    }

    void make_scratch(std::int64_t workspace_limit)
    {
        const auto& largest = rows_.largest();
        const int table = std::max(largest.table, largest.table_of_sums);
        const std::int64_t sums =
            std::max(largest.window, largest.table_of_sums < 0 ? 0 : std::int64_t{1} << largest.table_of_sums);
        const std::int64_t bytes =
            workspace_bytes() + threads_ * (FoundColumns::bytes_of(largest, table) + largest.entries * 4 +
                                            sums * static_cast<std::int64_t>(sizeof(T)));
        if (workspace_limit > 0 && bytes > workspace_limit) {
            throw Error(
                ErrorCode::out_of_memory,
                fmt::format("SpGEMM of {} x {} by {} x {} needs {} bytes of work space on {} threads; the limit is {}",
                            a_.rows, a_.cols, b_.rows, b_.cols, bytes, threads_, workspace_limit));
        }
        scratch_.resize(static_cast<std::size_t>(threads_));
        for (Scratch& scratch : scratch_) {
            scratch.columns.reserve(largest, table);
            scratch.found.resize(static_cast<std::size_t>(largest.entries));
            scratch.sums.resize(static_cast<std::size_t>(sums));
        }
    }

    void find_structure()
    {
        std::int64_t* const row_ptr = row_ptr_.data();
        for_each_block([&](Block& block, Scratch& scratch, const auto* a_ptr, const auto* b_ptr) {
            std::int32_t* out = keep_ ? columns_.data() + block.columns : scratch.found.data();
            std::int64_t entries = 0;
            std::int64_t count = 0;
            for (std::int64_t row = block.first; row < block.end;) {
                const std::int64_t alike = rows_.shifted_from(row, block.end);
                if (row == block.first || !rows_.same(row)) {
                    count = finder_.find(row, scratch.columns, a_ptr, b_ptr, out);
                } else if (keep_) {
                    std::copy_n(out - count, count, out);
                }
                if (keep_) {
                    spgemm::repeat_columns(out, count, alike);
                    out += count * alike;
                }
                for (const std::int64_t end = row + alike; row < end; ++row) {
                    entries += count;
                    row_ptr[row + 1] = entries;
                }
            }
            block.entries = entries;
        });
        row_ptr[0] = 0;
        std::int64_t before = 0;
        for (Block& block : blocks_) {
            const std::int64_t entries = block.entries;
            block.entries = before;
            before += entries;
        }
        for_each_block([&](const Block& block, const Scratch&, const auto*, const auto*) {
            if (block.entries > 0) {
                for (std::int64_t row = block.first; row < block.end; ++row) {
                    row_ptr[row + 1] += block.entries;
                }
            }
        });
    }

    template <class AIndex, class BIndex>
    void add_up_block(const Block& block, Scratch& scratch, T alpha, const AIndex* a_ptr, const BIndex* b_ptr,
                      const T* a_values, const T* b_values, const std::int32_t* col_idx, T* values) const
    {
        T* const sums = scratch.sums.data();
        for (std::int64_t row = block.first; row < block.end; ++row) {
            const std::int64_t begin = row_ptr_.data()[row];
            const std::int64_t end = row_ptr_.data()[row + 1];
            if (begin == end) {
                continue;
            }
            const bool long_runs =
                rows_.in_runs(row) && rows_.products(row) >= spgemm::long_run * (a_ptr[row + 1] - a_ptr[row]);
            if (const std::int64_t alike = rows_.shifted_from(row, block.end);
                alike > spgemm::fewest_shifted && !long_runs) {
                spgemm::add_up_shifted(
                    spgemm::ShiftedRows<T, AIndex, BIndex>{a_ptr, b_ptr, a_.col_idx, b_.col_idx, a_values, b_values},
                    row, alike, alpha, col_idx + begin, end - begin, values + begin);
                row += alike - 1;
                continue;
            }
            if (rows_.adds_in_window(row)) {
                const std::int32_t first = rows_.span(row).first;
                for (std::int64_t i = begin; i < end; ++i) {
                    sums[col_idx[i] - first] = T{0};
                }
                if (rows_.in_runs(row)) {
                    add_runs(row, a_ptr, b_ptr, a_values, b_values, sums, first);
                } else {
                    add_products(row, a_ptr, b_ptr, a_values, b_values,
                                 [&](std::int32_t column) -> T& { return sums[column - first]; });
                }
                for (std::int64_t i = begin; i < end; ++i) {
                    values[i] = alpha * sums[col_idx[i] - first];
                }
                continue;
            }
            ColumnTable& table = scratch.columns.table;
            table.open(rows_.table_bits(row));
            for (std::int64_t i = begin; i < end; ++i) {
                std::uint64_t place = 0;
                table.add(col_idx[i], place);
                sums[place] = T{0};
            }
            add_products(row, a_ptr, b_ptr, a_values, b_values,
                         [&](std::int32_t column) -> T& { return sums[table.find(column)]; });
            for (std::int64_t i = begin; i < end; ++i) {
                values[i] = alpha * sums[table.find(col_idx[i])];
            }
            table.clear();
        }
    }

    template <class AIndex, class BIndex, class SumOf>
    void add_products(std::int64_t row, const AIndex* a_ptr, const BIndex* b_ptr, const T* a_values, const T* b_values,
                      const SumOf& sum_of) const
    {
        for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
            const std::int64_t k = a_.col_idx[i];
            const T value = a_values[i];
            const std::int64_t end = b_ptr[k + 1];
            __builtin_prefetch(b_values + spgemm::fetch_columns(a_, b_, i, b_ptr));
            for (std::int64_t j = b_ptr[k]; j < end; ++j) {
                sum_of(b_.col_idx[j]) += value * b_values[j];
            }
        }
    }

    /// Adds a row where the rows of B are runs of columns.
    template <class AIndex, class BIndex>
    void add_runs(std::int64_t row, const AIndex* a_ptr, const BIndex* b_ptr, const T* a_values, const T* b_values,
                  T* sums, std::int32_t first) const
    {
        for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
            const std::int64_t k = a_.col_idx[i];
            const T value = a_values[i];
            const std::int64_t n = b_ptr[k + 1] - b_ptr[k];
            if (n > 0) {
                const T* const of_b = b_values + b_ptr[k];
                T* const to = sums + (b_.col_idx[b_ptr[k]] - first);
                for (std::int64_t j = 0; j < n; ++j) {
                    to[j] += value * of_b[j];
                }
            }
        }
    }

    /// Calls f(block, scratch of the thread, row pointers of A and of B) for each block. \throws the first that f
    /// throws
    template <class F>
    void for_each_block(const F& f)
    {
        a_.row_ptr.visit([&](const auto* a_ptr) {
            b_.row_ptr.visit([&](const auto* b_ptr) {
                const auto blocks = static_cast<std::int64_t>(blocks_.size());
                if (threads_ == 1) {
                    for (Block& block : blocks_) {
                        f(block, scratch_[0], a_ptr, b_ptr);
                    }
                    return;
                }
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 1)
                for (std::int64_t block = 0; block < blocks; ++block) {
                    f(blocks_[static_cast<std::size_t>(block)],
                      scratch_[static_cast<std::size_t>(core::thread_of_team())], a_ptr, b_ptr);
                }
            });
        });
    }

    CsrShard<T> a_;
    CsrShard<T> b_;
    bool keep_;  ///< the columns of C, between prepare() and fill()
    std::int64_t most_blocks_;
    int threads_;
    DeviceArray<std::int64_t> row_ptr_;
    RowsOfProduct<T> rows_;
    ColumnFinder<T> finder_{a_, b_, rows_};
    std::vector<Block> blocks_;
    DeviceArray<std::int32_t> columns_;  ///< of C, block by block, while keep_
    std::vector<Scratch> scratch_;       ///< one a thread
};

}  // namespace

template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_openmp(const CsrShard<T>& a, const CsrShard<T>& b,
                                                         const SpgemmOptions& options, const Context& context)
{
    HostAccumulator accumulator = HostAccumulator::automatic;
    if (options.accumulator == "window") {
        accumulator = HostAccumulator::window;
    } else if (options.accumulator == "hash") {
        accumulator = HostAccumulator::hash;
    } else if (options.accumulator != "auto") {
        throw Error(ErrorCode::usage,
                    fmt::format("SpGEMM kernel \"spgemm-openmp\" has no accumulator \"{}\", only auto, window, hash",
                                options.accumulator));
    }
    return std::make_unique<OpenMp<T>>(a, b, accumulator, options.workspace_limit, context);
}

#define RMSP_INSTANTIATE(T)                                                                                   \
    template std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_openmp(const CsrShard<T>&, const CsrShard<T>&, \
                                                                      const SpgemmOptions&, const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
