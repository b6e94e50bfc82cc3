#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <core/team.hpp>
#include <kernels/spgemm/host_columns.hpp>
#include <kernels/spgemm/host_rows.hpp>
#include <kernels/spgemm/host_shifted.hpp>
#include <kernels/spgemm/spgemm.hpp>
#include <rmsp/error.hpp>
#include <rmsp/host_vector.hpp>

namespace rmsp::kernels {
namespace {

using spgemm::ColumnBits;
using spgemm::ColumnTable;
using spgemm::HostAccumulator;
using spgemm::row_weight;
using spgemm::RowsOfProduct;

/// Ranges of rows a thread: enough for them to end together.
constexpr std::int64_t blocks_per_thread = 64;
/// Nonzeros, or products, and rows (row_weight each) below which a team of threads takes longer to wake than it saves.
constexpr std::int64_t least_examined = 400'000;
constexpr std::int64_t least_multiplied = 262'144;
/// Rows of at most so many entries are sorted by comparing all with all, unless so many entries, or more, come to a
/// word of their bits: then their bits are looked through.
constexpr std::int64_t most_compared = 128;
constexpr std::int64_t fewest_in_word = 2;
/// So many products a word, and those of a row of B are collected before they are added to it.
constexpr std::int64_t fewest_collected = 4;

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
          threads_(std::max(context.threads, 1)),
          row_ptr_(*context.memory, static_cast<std::size_t>(a.rows) + 1),
          rows_(a, accumulator, a.nnz + b.nnz + row_weight * (a.rows + b.rows) < least_examined ? 1 : threads_,
                *context.memory)
    {
        rows_.examine(b, *context.memory);
        if (rows_.products() + row_weight * a.rows < least_multiplied) {
            threads_ = 1;
        }
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
                        find_columns(row, scratch, a_ptr, b_ptr, out);
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
        ColumnBits bits;
        ColumnTable table;
        HostVector<std::int32_t> found;     ///< columns of one row
        HostVector<std::int32_t> unsorted;  ///< columns of one row, before they are sorted
        HostVector<T> sums;                 ///< of each column of a window, or of each slot of the table

        std::int64_t bytes() const
        {
            return bits.bytes() + table.bytes() +
                   static_cast<std::int64_t>((found.size() + unsorted.size()) * sizeof(std::int32_t) +
                                             sums.size() * sizeof(T));
        }
    };

    /// Rows [first, end), and where their columns of C are kept until fill() takes them.
    struct Block {
        std::int64_t first = 0;
        std::int64_t end = 0;
        std::int64_t columns = 0;
        std::int64_t entries = 0;  ///< of C
    };

    /// Ranges of rows with equal products.
    void cut(Memory& memory)
    {
        const std::int64_t total = rows_.products() + row_weight * a_.rows;
        const std::int64_t blocks = threads_ == 1 ? 1 : threads_ * blocks_per_thread;
        Block block;
        std::int64_t sum = 0;
        std::int64_t columns = 0;
        rows_.for_each_chunk([&](std::int64_t end, const typename RowsOfProduct<T>::Chunk& chunk) {
            sum += chunk.weight;
            columns += chunk.columns;
            block.end = end;
            if (sum >= total / blocks + 1 || end == a_.rows) {
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
        const std::int64_t slots = table < 0 ? 0 : std::int64_t{1} << table;
        const std::int64_t sums =
            std::max(largest.window, largest.table_of_sums < 0 ? 0 : std::int64_t{1} << largest.table_of_sums);
        const std::int64_t bytes = workspace_bytes() + threads_ * ((2 * largest.entries + spgemm::sorted_lanes) * 4 +
                                                                   sums * static_cast<std::int64_t>(sizeof(T)) +
                                                                   (largest.in_bits / 62 + 3) * 8 + slots * 4);
        if (workspace_limit > 0 && bytes > workspace_limit) {
            throw Error(
                ErrorCode::out_of_memory,
                fmt::format("SpGEMM of {} x {} by {} x {} needs {} bytes of work space on {} threads; the limit is {}",
                            a_.rows, a_.cols, b_.rows, b_.cols, bytes, threads_, workspace_limit));
        }
        scratch_.resize(static_cast<std::size_t>(threads_));
        for (Scratch& scratch : scratch_) {
            scratch.found.resize(static_cast<std::size_t>(largest.entries));
            // A column that is there already is written as well, behind the others.
            scratch.unsorted.resize(static_cast<std::size_t>(largest.entries + spgemm::sorted_lanes));
            scratch.sums.resize(static_cast<std::size_t>(sums));
            scratch.bits.reserve(largest.in_bits);
            scratch.table.reserve(table);
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
                    count = find_columns(row, scratch, a_ptr, b_ptr, out);
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

    /// Writes the columns of a row of C to out, which has room for bound(row), in rising order; how many.
    template <class AIndex, class BIndex>
    std::int64_t find_columns(std::int64_t row, Scratch& scratch, const AIndex* a_ptr, const BIndex* b_ptr,
                              std::int32_t* out) const
    {
        const spgemm::Span span = rows_.span(row);
        const auto for_each_column = [&](const auto& f) {
            for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
                const std::int64_t k = a_.col_idx[i];
                const std::int64_t end = b_ptr[k + 1];
                for (std::int64_t j = b_ptr[k]; j < end; ++j) {
                    f(b_.col_idx[j]);
                }
            }
        };
        if (rows_.products(row) == 0) {
            return 0;
        }
        std::int64_t count = 0;
        if (rows_.accumulator() != HostAccumulator::hash && span.columns() <= ColumnBits::bits) {
            std::uint64_t word = 0;
            for_each_column([&](std::int32_t column) { word |= std::uint64_t{1} << (column - span.first); });
            for (; word != 0; word &= word - 1) {
                out[count++] = span.first + std::countr_zero(word);
            }
        } else if (rows_.finds_in_bits(row)) {
            count = find_in_bits(row, scratch, a_ptr, b_ptr, for_each_column, out);
        } else {
            scratch.table.open(rows_.table_bits(row));
            for_each_column([&](std::int32_t column) {
                std::uint64_t place = 0;
                if (scratch.table.add(column, place)) {
                    out[count++] = column;
                }
            });
            scratch.table.clear();
            std::sort(out, out + count);
        }
        return count;
    }

    /// find_columns() of a row whose columns are found in bits.
    template <class AIndex, class BIndex, class Columns>
    std::int64_t find_in_bits(std::int64_t row, Scratch& scratch, const AIndex* a_ptr, const BIndex* b_ptr,
                              const Columns& for_each_column, std::int32_t* out) const
    {
        ColumnBits& bits = scratch.bits;
        const spgemm::Span span = rows_.span(row);
        const bool collects = rows_.products(row) * ColumnBits::bits >= fewest_collected * span.columns();
        if (rows_.in_runs(row) || collects) {
            for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
                const std::int64_t k = a_.col_idx[i];
                const std::int64_t n = b_ptr[k + 1] - b_ptr[k];
                if (n > 0) {
                    const std::int32_t* const columns = b_.col_idx + b_ptr[k];
                    rows_.in_runs(row) ? bits.insert_run(std::int64_t{columns[0]} - span.first, n)
                                       : bits.insert_collected(columns, n, span.first);
                }
            }
            return bits.take_lowest(span.first, span.columns(), out) - out;
        }
        std::int32_t* const found = scratch.unsorted.data();
        std::int64_t count = 0;
        for_each_column([&](std::int32_t column) {
            found[count] = column;
            count += bits.insert(std::int64_t{column} - span.first);
        });
        if (count * ColumnBits::bits >= fewest_in_word * span.columns()) {
            bits.take_lowest(span.first, span.columns(), out);
        } else if (count <= most_compared) {
            bits.remove(found, count, span.first);
            (wide_ ? spgemm::sort_columns_wide : spgemm::sort_columns)(found, count, out);
        } else {
            bits.add_to_levels(found, count, span.first);
            bits.take(span.first, span.columns(), out);
        }
        return count;
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
            if (const std::int64_t alike = rows_.shifted_from(row, block.end); alike > spgemm::fewest_shifted) {
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
            ColumnTable& table = scratch.table;
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
    bool keep_;                             ///< the columns of C, between prepare() and fill()
    bool wide_ = core::has_wide_vectors();  ///< runs what is compiled for wider vectors
    int threads_;
    DeviceArray<std::int64_t> row_ptr_;
    RowsOfProduct<T> rows_;
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
