#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include <fmt/format.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#include <kernels/spgemm/spgemm.hpp>
#include <rmsp/error.hpp>
#include <rmsp/host_vector.hpp>

namespace rmsp::kernels {
namespace {

int thread_of_team()
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

/// When the sums of a row stand in a dense window over its columns rather than in a hash table.
struct WindowRows {
    std::int64_t always = 16384;             ///< a window of so many columns stays in the core's cache
    std::int64_t columns_per_product = 256;  ///< beyond, too few of the window's cache lines are used again
};
constexpr WindowRows window_rows{};
/// Ranges of rows a thread: enough for them to end together.
constexpr std::int64_t blocks_per_thread = 64;
/// What a row costs besides its products, in products.
constexpr std::int64_t row_weight = 8;

/// First and last column of a row; first > last if it is empty.
struct Span {
    std::int32_t first = std::numeric_limits<std::int32_t>::max();
    std::int32_t last = -1;
    std::int64_t columns() const { return first > last ? 0 : std::int64_t{last} - first + 1; }
};

/// What one thread adds up a row in: columns found so far, in order of appearance, and a sum for each.
template <class T>
struct Scratch {
    HostVector<std::int32_t> found;
    HostVector<T> sums;              ///< window: of each of its columns; table: of each slot
    HostVector<std::uint64_t> bits;  ///< window: its columns that were found; all zero between rows
    HostVector<std::int32_t> keys;   ///< table: column of each slot, -1 if free; all -1 between rows

    std::int64_t bytes() const
    {
        return static_cast<std::int64_t>(found.size() * sizeof(std::int32_t) + sums.size() * sizeof(T) +
                                         bits.size() * sizeof(std::uint64_t) + keys.size() * sizeof(std::int32_t));
    }
};

/// Columns [first, first + n) of a row, each with a place of its own.
template <class T>
class Window {
public:
    Window(Scratch<T>& scratch, Span span) : scratch_(scratch), span_(span) {}

    std::int64_t slot(std::int32_t column)
    {
        const std::int64_t place = std::int64_t{column} - span_.first;
        std::uint64_t& word = scratch_.bits[static_cast<std::size_t>(place / 64)];
        const std::uint64_t bit = std::uint64_t{1} << (place % 64);
        if ((word & bit) == 0) {
            word |= bit;
            scratch_.sums[static_cast<std::size_t>(place)] = T{0};
            scratch_.found[static_cast<std::size_t>(count_++)] = column;
        }
        return place;
    }
    std::int64_t count() const { return count_; }

    /// Calls put(column, slot) for each column in rising order.
    template <class Put>
    void sorted(const Put& put)
    {
        const std::int64_t words = (span_.columns() + 63) / 64;
        if (words <= count_ * static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(count_)))) {
            for (std::int64_t w = 0; w < words; ++w) {
                for (std::uint64_t word = scratch_.bits[static_cast<std::size_t>(w)]; word != 0; word &= word - 1) {
                    const std::int64_t place = 64 * w + std::countr_zero(word);
                    put(static_cast<std::int32_t>(span_.first + place), place);
                }
            }
            return;
        }
        std::sort(scratch_.found.begin(), scratch_.found.begin() + count_);
        for (std::int64_t i = 0; i < count_; ++i) {
            const std::int32_t column = scratch_.found[static_cast<std::size_t>(i)];
            put(column, std::int64_t{column} - span_.first);
        }
    }

    void clear()
    {
        for (std::int64_t i = 0; i < count_; ++i) {
            const std::int64_t place = std::int64_t{scratch_.found[static_cast<std::size_t>(i)]} - span_.first;
            scratch_.bits[static_cast<std::size_t>(place / 64)] = 0;
        }
    }

private:
    Scratch<T>& scratch_;
    Span span_;
    std::int64_t count_ = 0;
};

/// Open addressing with linear probing in 2^bits slots, at most half of them used.
template <class T>
class Table {
public:
    Table(Scratch<T>& scratch, int bits) : scratch_(scratch), shift_(64 - bits), mask_((std::uint64_t{1} << bits) - 1)
    {
    }

    std::int64_t slot(std::int32_t column)
    {
        std::uint64_t place = home(column);
        while (scratch_.keys[place] != column) {
            if (scratch_.keys[place] < 0) {
                scratch_.keys[place] = column;
                scratch_.sums[place] = T{0};
                scratch_.found[static_cast<std::size_t>(count_++)] = column;
                break;
            }
            place = (place + 1) & mask_;
        }
        return static_cast<std::int64_t>(place);
    }
    std::int64_t count() const { return count_; }

    template <class Put>
    void sorted(const Put& put)
    {
        std::sort(scratch_.found.begin(), scratch_.found.begin() + count_);
        for (std::int64_t i = 0; i < count_; ++i) {
            const std::int32_t column = scratch_.found[static_cast<std::size_t>(i)];
            put(column, slot(column));
        }
    }

    void clear() { std::fill_n(scratch_.keys.begin(), mask_ + 1, -1); }

private:
    std::uint64_t home(std::int32_t column) const
    {
        // Fibonacci hashing: neighbouring columns go far apart.
        return (static_cast<std::uint64_t>(column) * 0x9E3779B97F4A7C15u) >> shift_;
    }

    Scratch<T>& scratch_;
    int shift_;
    std::uint64_t mask_;
    std::int64_t count_ = 0;
};

enum class Accumulator { automatic, window, hash };

template <class T>
class OpenMp final : public SpgemmOperator<T> {
public:
    OpenMp(const CsrShard<T>& a, const CsrShard<T>& b, Accumulator accumulator, std::int64_t workspace_limit,
           const Context& context)
        : a_(a),
          b_(b),
          accumulator_(accumulator),
          threads_(std::max(context.threads, 1)),
          row_ptr_(*context.memory, static_cast<std::size_t>(a.rows) + 1),
          products_of_(static_cast<std::size_t>(a.rows)),
          span_of_(static_cast<std::size_t>(a.rows))
    {
        count_products(a_, b_, products_of_.data(), context);
        find_spans();
        cut();
        make_scratch(workspace_limit);
        count_entries();
    }

    std::int64_t nnz() const override { return row_ptr_.data()[a_.rows]; }
    std::int64_t products() const override { return products_; }
    const std::int64_t* row_ptr() const override { return row_ptr_.data(); }
    std::int64_t workspace_bytes() const override
    {
        std::int64_t bytes =
            static_cast<std::int64_t>(row_ptr_.size() * sizeof(std::int64_t) +
                                      products_of_.size() * sizeof(std::int64_t) + span_of_.size() * sizeof(Span));
        for (const Scratch<T>& scratch : scratch_) {
            bytes += scratch.bytes();
        }
        return bytes;
    }

    void fill(T alpha, const T* a_values, const T* b_values, std::int32_t* col_idx, T* values,
              const Context& /*context*/) override
    {
        for_each_row([&](std::int64_t row, Scratch<T>& scratch, const auto* a_ptr, const auto* b_ptr) {
            with_accumulator(row, scratch, [&](auto accumulator) {
                add_products(row, scratch, accumulator, a_ptr, b_ptr, a_values, b_values);
                std::int64_t out = row_ptr_.data()[row];
                accumulator.sorted([&](std::int32_t column, std::int64_t slot) {
                    col_idx[out] = column;
                    values[out++] = alpha * scratch.sums[static_cast<std::size_t>(slot)];
                });
                accumulator.clear();
            });
        });
    }

    void numeric(T alpha, const T* a_values, const T* b_values, const std::int32_t* col_idx, T* values,
                 const Context& /*context*/) override
    {
        for_each_row([&](std::int64_t row, Scratch<T>& scratch, const auto* a_ptr, const auto* b_ptr) {
            const std::int64_t begin = row_ptr_.data()[row];
            const std::int64_t end = row_ptr_.data()[row + 1];
            with_accumulator(row, scratch, [&](auto accumulator) {
                // All columns first, so that each sum is where the row has it and nothing has to be sorted.
                for (std::int64_t i = begin; i < end; ++i) {
                    accumulator.slot(col_idx[i]);
                }
                add_products(row, scratch, accumulator, a_ptr, b_ptr, a_values, b_values);
                for (std::int64_t i = begin; i < end; ++i) {
                    values[i] = alpha * scratch.sums[static_cast<std::size_t>(accumulator.slot(col_idx[i]))];
                }
                accumulator.clear();
            });
        });
    }

private:
    bool takes_window(std::int64_t row) const
    {
        const auto r = static_cast<std::size_t>(row);
        switch (accumulator_) {
            case Accumulator::window:
                return true;
            case Accumulator::hash:
                return false;
            case Accumulator::automatic:
                break;
        }
        const std::int64_t columns = span_of_[r].columns();
        return columns <= window_rows.always || columns / window_rows.columns_per_product <= products_of_[r];
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

    void find_spans()
    {
        std::vector<Span> of_b(static_cast<std::size_t>(b_.rows));
        b_.row_ptr.visit([&](const auto* b_ptr) {
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 512)
            for (std::int64_t row = 0; row < b_.rows; ++row) {
                Span span;
                for (std::int64_t i = b_ptr[row]; i < b_ptr[row + 1]; ++i) {
                    span.first = std::min(span.first, b_.col_idx[i]);
                    span.last = std::max(span.last, b_.col_idx[i]);
                }
                of_b[static_cast<std::size_t>(row)] = span;
            }
        });
        a_.row_ptr.visit([&](const auto* a_ptr) {
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 512)
            for (std::int64_t row = 0; row < a_.rows; ++row) {
                Span span;
                for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
                    const Span& other = of_b[static_cast<std::size_t>(a_.col_idx[i])];
                    span.first = std::min(span.first, other.first);
                    span.last = std::max(span.last, other.last);
                }
                span_of_[static_cast<std::size_t>(row)] = span;
            }
        });
    }

    /// Ranges of rows with equal products.
    void cut()
    {
        std::int64_t total = 0;
        for (const std::int64_t n : products_of_) {
            products_ += n;
            total += n + row_weight;
        }
        const std::int64_t blocks =
            std::clamp<std::int64_t>(threads_ * blocks_per_thread, 1, std::max<std::int64_t>(a_.rows, 1));
        blocks_.assign(1, 0);
        std::int64_t sum = 0;
        for (std::int64_t row = 0; row < a_.rows; ++row) {
            sum += products_of_[static_cast<std::size_t>(row)] + row_weight;
            if (sum >= total / blocks + 1) {
                blocks_.push_back(row + 1);
                sum = 0;
            }
        }
        if (blocks_.back() < a_.rows) {
            blocks_.push_back(a_.rows);
        }
    }

    void make_scratch(std::int64_t workspace_limit)
    {
        std::int64_t entries = 0;
        std::int64_t window = 0;
        int bits = -1;
        for (std::int64_t row = 0; row < a_.rows; ++row) {
            entries = std::max(entries, bound(row));
            if (takes_window(row)) {
                window = std::max(window, span_of_[static_cast<std::size_t>(row)].columns());
            } else {
                bits = std::max(bits, table_bits(row));
            }
        }
        const std::int64_t slots = bits < 0 ? 0 : std::int64_t{1} << bits;
        const std::int64_t words = (window + 63) / 64;
        const std::int64_t bytes =
            workspace_bytes() +
            threads_ *
                (entries * 4 + std::max(window, slots) * static_cast<std::int64_t>(sizeof(T)) + words * 8 + slots * 4);
        if (workspace_limit > 0 && bytes > workspace_limit) {
            throw Error(
                ErrorCode::out_of_memory,
                fmt::format("SpGEMM of {} x {} by {} x {} needs {} bytes of work space on {} threads; the limit is {}",
                            a_.rows, a_.cols, b_.rows, b_.cols, bytes, threads_, workspace_limit));
        }
        scratch_.resize(static_cast<std::size_t>(threads_));
        for (Scratch<T>& scratch : scratch_) {
            scratch.found.resize(static_cast<std::size_t>(entries));
            scratch.sums.resize(static_cast<std::size_t>(std::max(window, slots)));
            scratch.bits.resize(static_cast<std::size_t>(words));
            scratch.keys.resize(static_cast<std::size_t>(slots));
        }
#pragma omp parallel for num_threads(threads_) schedule(static, 1)
        for (int t = 0; t < threads_; ++t) {
            auto& scratch = scratch_[static_cast<std::size_t>(t)];
            std::fill(scratch.bits.begin(), scratch.bits.end(), 0);
            std::fill(scratch.keys.begin(), scratch.keys.end(), -1);
        }
    }

    void count_entries()
    {
        std::fill_n(row_ptr_.data(), row_ptr_.size(), 0);
        for_each_row([&](std::int64_t row, Scratch<T>& scratch, const auto* a_ptr, const auto* b_ptr) {
            with_accumulator(row, scratch, [&](auto accumulator) {
                for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
                    const std::int64_t k = a_.col_idx[i];
                    for (std::int64_t j = b_ptr[k]; j < b_ptr[k + 1]; ++j) {
                        accumulator.slot(b_.col_idx[j]);
                    }
                }
                row_ptr_.data()[row + 1] = accumulator.count();
                accumulator.clear();
            });
        });
        for (std::int64_t row = 0; row < a_.rows; ++row) {
            row_ptr_.data()[row + 1] += row_ptr_.data()[row];
        }
    }

    template <class Acc, class AIndex, class BIndex>
    void add_products(std::int64_t row, Scratch<T>& scratch, Acc& accumulator, const AIndex* a_ptr, const BIndex* b_ptr,
                      const T* a_values, const T* b_values) const
    {
        for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
            const std::int64_t k = a_.col_idx[i];
            const T value = a_values[i];
            for (std::int64_t j = b_ptr[k]; j < b_ptr[k + 1]; ++j) {
                scratch.sums[static_cast<std::size_t>(accumulator.slot(b_.col_idx[j]))] += value * b_values[j];
            }
        }
    }

    template <class F>
    void with_accumulator(std::int64_t row, Scratch<T>& scratch, const F& f) const
    {
        if (takes_window(row)) {
            f(Window<T>(scratch, span_of_[static_cast<std::size_t>(row)]));
        } else {
            f(Table<T>(scratch, table_bits(row)));
        }
    }

    /// Calls f(row, scratch of the thread, row pointers of A and of B) for each row that has products.
    template <class F>
    void for_each_row(const F& f)
    {
        a_.row_ptr.visit([&](const auto* a_ptr) {
            b_.row_ptr.visit([&](const auto* b_ptr) {
                const auto blocks = static_cast<std::int64_t>(blocks_.size()) - 1;
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 1)
                for (std::int64_t block = 0; block < blocks; ++block) {
                    Scratch<T>& scratch = scratch_[static_cast<std::size_t>(thread_of_team())];
                    for (std::int64_t row = blocks_[static_cast<std::size_t>(block)];
                         row < blocks_[static_cast<std::size_t>(block) + 1]; ++row) {
                        if (products_of_[static_cast<std::size_t>(row)] > 0) {
                            f(row, scratch, a_ptr, b_ptr);
                        }
                    }
                }
            });
        });
    }

    CsrShard<T> a_;
    CsrShard<T> b_;
    Accumulator accumulator_;
    int threads_;
    DeviceArray<std::int64_t> row_ptr_;
    std::vector<std::int64_t> products_of_;
    std::vector<Span> span_of_;
    std::int64_t products_ = 0;
    std::vector<std::int64_t> blocks_;  ///< first row of each, and rows
    std::vector<Scratch<T>> scratch_;   ///< one a thread
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
