#include <algorithm>
#include <bit>
#include <limits>
#include <new>
#include <vector>

#include <fmt/format.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#include <kernels/spgemm/host_columns.hpp>
#include <kernels/spgemm/spgemm.hpp>
#include <rmsp/error.hpp>
#include <rmsp/host_vector.hpp>

namespace rmsp::kernels {
namespace {

using spgemm::ColumnBits;
using spgemm::ColumnTable;

int thread_of_team()
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

/// In what the columns of a row are found, and in what its products are added up.
struct WindowRows {
    std::int64_t bits = std::int64_t{1} << 21;  ///< widest row whose columns are found in bits: they stay in the cache
    std::int64_t sums = 131072;                 ///< widest row whose sums stand in a dense window
    std::int64_t columns_per_product = 256;     ///< wider ones do where so few columns come to a product
};
constexpr WindowRows window_rows{};
/// Ranges of rows a thread: enough for them to end together.
constexpr std::int64_t blocks_per_thread = 64;
/// What a row costs besides its products, in products.
constexpr std::int64_t row_weight = 8;
/// Products and rows (row_weight each) below which a team of threads takes longer to start than it saves.
constexpr std::int64_t least_shared = 8192;

/// First and last column of a row; first > last if it is empty.
struct Span {
    static constexpr std::int32_t no_first = std::numeric_limits<std::int32_t>::max();
    static constexpr std::int32_t no_last = -1;

    std::int32_t first;
    std::int32_t last;
    std::int64_t columns() const { return first > last ? 0 : std::int64_t{last} - first + 1; }
};

enum class Accumulator { automatic, window, hash };

/// The columns of C are found once, in prepare(), and kept until fill() has written them; the values are added up where
/// their columns are known.
template <class T>
class OpenMp final : public SpgemmOperator<T> {
public:
    OpenMp(const CsrShard<T>& a, const CsrShard<T>& b, Accumulator accumulator, std::int64_t workspace_limit,
           const Context& context)
        : a_(a),
          b_(b),
          accumulator_(accumulator),
          keep_(workspace_limit == 0),
          threads_(a.nnz + row_weight * a.rows + b.nnz < least_shared ? 1 : std::max(context.threads, 1)),
          row_ptr_(*context.memory, static_cast<std::size_t>(a.rows) + 1),
          products_of_(static_cast<std::size_t>(a.rows)),
          span_of_(static_cast<std::size_t>(a.rows))
    {
        examine_rows();
        cut();
        make_scratch(workspace_limit);
        find_structure();
    }

    std::int64_t nnz() const override { return row_ptr_.data()[a_.rows]; }
    std::int64_t products() const override { return products_; }
    const std::int64_t* row_ptr() const override { return row_ptr_.data(); }
    std::int64_t workspace_bytes() const override
    {
        std::int64_t bytes =
            static_cast<std::int64_t>(row_ptr_.size() * sizeof(std::int64_t) +
                                      products_of_.size() * sizeof(std::int64_t) + span_of_.size() * sizeof(Span));
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
                for (std::int64_t row = block.first; row < block.end; ++row) {
                    find_columns(row, scratch, a_ptr, b_ptr, col_idx + row_ptr_.data()[row]);
                }
            }
            add_up_block(block, scratch, alpha, a_ptr, b_ptr, a_values, b_values, col_idx, values);
        });
        columns_ = {};
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
        HostVector<std::int32_t> found;  ///< columns of one row
        HostVector<T> sums;              ///< of each column of a window, or of each slot of the table

        std::int64_t bytes() const
        {
            return bits.bytes() + table.bytes() +
                   static_cast<std::int64_t>(found.size() * sizeof(std::int32_t) + sums.size() * sizeof(T));
        }
    };

    /// Rows [first, end), and where their columns of C are kept until fill() takes them.
    struct Block {
        std::int64_t first = 0;
        std::int64_t end = 0;
        std::int64_t columns = 0;
    };

    bool finds_in_bits(std::int64_t row) const { return takes_window(row, window_rows.bits); }
    bool adds_in_window(std::int64_t row) const { return takes_window(row, window_rows.sums); }
    bool takes_window(std::int64_t row, std::int64_t widest) const
    {
        if (accumulator_ != Accumulator::automatic) {
            return accumulator_ == Accumulator::window;
        }
        const auto r = static_cast<std::size_t>(row);
        const std::int64_t columns = span_of_[r].columns();
        return columns <= widest || columns / window_rows.columns_per_product <= products_of_[r];
    }

    /// Most entries that the row can have.
    std::int64_t bound(std::int64_t row) const
    {
        return std::min(products_of_[static_cast<std::size_t>(row)], span_of_[static_cast<std::size_t>(row)].columns());
    }
    int table_bits(std::int64_t row) const
    {
        return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(2 * bound(row))));
    }

    /// Products and first and last column of each row of C.
    void examine_rows()
    {
        HostVector<Span> of_b(static_cast<std::size_t>(b_.rows));
        b_.row_ptr.visit([&](const auto* b_ptr) {
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 512)
            for (std::int64_t row = 0; row < b_.rows; ++row) {
                std::int32_t first = Span::no_first;
                std::int32_t last = Span::no_last;
                for (std::int64_t i = b_ptr[row]; i < b_ptr[row + 1]; ++i) {
                    first = std::min(first, b_.col_idx[i]);
                    last = std::max(last, b_.col_idx[i]);
                }
                of_b[static_cast<std::size_t>(row)] = {first, last};
            }
            a_.row_ptr.visit([&](const auto* a_ptr) {
                std::int64_t all = 0;
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 512) reduction(+ : all)
                for (std::int64_t row = 0; row < a_.rows; ++row) {
                    Span span{Span::no_first, Span::no_last};
                    std::int64_t products = 0;
                    for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
                        const std::int64_t k = a_.col_idx[i];
                        const Span& other = of_b[static_cast<std::size_t>(k)];
                        span.first = std::min(span.first, other.first);
                        span.last = std::max(span.last, other.last);
                        products += std::int64_t{b_ptr[k + 1]} - b_ptr[k];
                    }
                    span_of_[static_cast<std::size_t>(row)] = span;
                    products_of_[static_cast<std::size_t>(row)] = products;
                    all += products;
                }
                products_ = all;
            });
        });
    }

    /// Ranges of rows with equal products.
    void cut()
    {
        const std::int64_t total = products_ + row_weight * a_.rows;
        const std::int64_t blocks =
            std::clamp<std::int64_t>(threads_ * blocks_per_thread, 1, std::max<std::int64_t>(a_.rows, 1));
        std::int64_t first = 0;
        std::int64_t sum = 0;
        std::int64_t columns = 0;
        std::int64_t columns_before = 0;
        const auto add_block = [&](std::int64_t end) {
            blocks_.push_back({first, end, columns_before});
            first = end;
            sum = 0;
            columns_before = columns;
        };
        for (std::int64_t row = 0; row < a_.rows; ++row) {
            sum += products_of_[static_cast<std::size_t>(row)] + row_weight;
            columns += bound(row);
            if (sum >= total / blocks + 1) {
                add_block(row + 1);
            }
        }
        if (first < a_.rows) {
            add_block(a_.rows);
        }
        if (keep_) {
            try {
                columns_.resize(static_cast<std::size_t>(columns));  // pages that nothing is written to take no memory
            } catch (const std::bad_alloc&) {
                keep_ = false;
            }
        }
    }

    void make_scratch(std::int64_t workspace_limit)
    {
        std::int64_t entries = 0;
        std::int64_t in_bits = 0;
        std::int64_t window = 0;
        int table = -1;
        int table_of_sums = -1;
        for (std::int64_t row = 0; row < a_.rows; ++row) {
            const std::int64_t columns = span_of_[static_cast<std::size_t>(row)].columns();
            entries = std::max(entries, bound(row));
            if (finds_in_bits(row)) {
                in_bits = std::max(in_bits, columns);
            } else {
                table = std::max(table, table_bits(row));
            }
            if (adds_in_window(row)) {
                window = std::max(window, columns);
            } else {
                table_of_sums = std::max(table_of_sums, table_bits(row));
            }
        }
        table = std::max(table, table_of_sums);
        const std::int64_t slots = table < 0 ? 0 : std::int64_t{1} << table;
        const std::int64_t sums = std::max(window, table_of_sums < 0 ? 0 : std::int64_t{1} << table_of_sums);
        const std::int64_t bytes =
            workspace_bytes() +
            threads_ * (entries * 4 + sums * static_cast<std::int64_t>(sizeof(T)) + (in_bits / 62 + 3) * 8 + slots * 4);
        if (workspace_limit > 0 && bytes > workspace_limit) {
            throw Error(
                ErrorCode::out_of_memory,
                fmt::format("SpGEMM of {} x {} by {} x {} needs {} bytes of work space on {} threads; the limit is {}",
                            a_.rows, a_.cols, b_.rows, b_.cols, bytes, threads_, workspace_limit));
        }
        scratch_.resize(static_cast<std::size_t>(threads_));
        for (Scratch& scratch : scratch_) {
            scratch.found.resize(static_cast<std::size_t>(entries));
            scratch.sums.resize(static_cast<std::size_t>(sums));
            scratch.bits.reserve(in_bits);
            scratch.table.reserve(table);
        }
    }

    void find_structure()
    {
        std::int64_t* const row_ptr = row_ptr_.data();
        for_each_block([&](const Block& block, Scratch& scratch, const auto* a_ptr, const auto* b_ptr) {
            std::int32_t* out = keep_ ? columns_.data() + block.columns : scratch.found.data();
            for (std::int64_t row = block.first; row < block.end; ++row) {
                const std::int64_t count = find_columns(row, scratch, a_ptr, b_ptr, out);
                row_ptr[row + 1] = count;
                out += keep_ ? count : 0;
            }
        });
        row_ptr[0] = 0;
        for (std::int64_t row = 0; row < a_.rows; ++row) {
            row_ptr[row + 1] += row_ptr[row];
        }
    }

    /// Writes the columns of a row of C to out, which has room for bound(row), in rising order; how many.
    template <class AIndex, class BIndex>
    std::int64_t find_columns(std::int64_t row, Scratch& scratch, const AIndex* a_ptr, const BIndex* b_ptr,
                              std::int32_t* out) const
    {
        const Span span = span_of_[static_cast<std::size_t>(row)];
        const auto for_each_column = [&](const auto& f) {
            for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
                const std::int64_t k = a_.col_idx[i];
                const std::int64_t end = b_ptr[k + 1];
                for (std::int64_t j = b_ptr[k]; j < end; ++j) {
                    f(b_.col_idx[j]);
                }
            }
        };
        if (products_of_[static_cast<std::size_t>(row)] == 0) {
            return 0;
        }
        std::int64_t count = 0;
        if (accumulator_ != Accumulator::hash && span.columns() <= ColumnBits::bits) {
            std::uint64_t word = 0;
            for_each_column([&](std::int32_t column) { word |= std::uint64_t{1} << (column - span.first); });
            for (; word != 0; word &= word - 1) {
                out[count++] = span.first + std::countr_zero(word);
            }
        } else if (finds_in_bits(row)) {
            for_each_column([&](std::int32_t column) { scratch.bits.add(std::int64_t{column} - span.first); });
            count = scratch.bits.take(span.first, span.columns(), out) - out;
        } else {
            scratch.table.open(table_bits(row));
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
            if (adds_in_window(row)) {
                const std::int32_t first = span_of_[static_cast<std::size_t>(row)].first;
                for (std::int64_t i = begin; i < end; ++i) {
                    sums[col_idx[i] - first] = T{0};
                }
                add_products(row, a_ptr, b_ptr, a_values, b_values,
                             [&](std::int32_t column) -> T& { return sums[column - first]; });
                for (std::int64_t i = begin; i < end; ++i) {
                    values[i] = alpha * sums[col_idx[i] - first];
                }
                continue;
            }
            ColumnTable& table = scratch.table;
            table.open(table_bits(row));
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

    /// Calls f(block, scratch of the thread, row pointers of A and of B) for each block. \throws the first that f
    /// throws
    template <class F>
    void for_each_block(const F& f)
    {
        a_.row_ptr.visit([&](const auto* a_ptr) {
            b_.row_ptr.visit([&](const auto* b_ptr) {
                const auto blocks = static_cast<std::int64_t>(blocks_.size());
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 1)
                for (std::int64_t block = 0; block < blocks; ++block) {
                    f(blocks_[static_cast<std::size_t>(block)], scratch_[static_cast<std::size_t>(thread_of_team())],
                      a_ptr, b_ptr);
                }
            });
        });
    }

    CsrShard<T> a_;
    CsrShard<T> b_;
    Accumulator accumulator_;
    bool keep_;  ///< the columns of C, between prepare() and fill()
    int threads_;
    DeviceArray<std::int64_t> row_ptr_;
    HostVector<std::int64_t> products_of_;
    HostVector<Span> span_of_;
    std::int64_t products_ = 0;
    std::vector<Block> blocks_;
    HostVector<std::int32_t> columns_;  ///< of C, block by block, while keep_
    std::vector<Scratch> scratch_;      ///< one a thread
};

}  // namespace

template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_openmp(const CsrShard<T>& a, const CsrShard<T>& b,
                                                         const SpgemmOptions& options, const Context& context)
{
    Accumulator accumulator = Accumulator::automatic;
    if (options.accumulator == "window") {
        accumulator = Accumulator::window;
    } else if (options.accumulator == "hash") {
        accumulator = Accumulator::hash;
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
