#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <kernels/context.hpp>

namespace rmsp::kernels::spgemm {

/// In what the columns of a row are found, and in what its products are added up.
struct WindowRows {
    std::int64_t bits = std::int64_t{1} << 21;  ///< widest row whose columns are found in bits: they stay in the cache
    std::int64_t sums = 131072;                 ///< widest row whose sums stand in a dense window
    std::int64_t columns_per_product = 256;     ///< wider ones do where so few columns come to a product
};
inline constexpr WindowRows window_rows{};
/// What a row costs besides its products, in products.
inline constexpr std::int64_t row_weight = 8;

/// First and last column of a row; first > last if it is empty.
struct Span {
    static constexpr std::int32_t no_first = std::numeric_limits<std::int32_t>::max();
    static constexpr std::int32_t no_last = -1;

    std::int32_t first;
    std::int32_t last;
    std::int64_t columns() const { return first > last ? 0 : std::int64_t{last} - first + 1; }
    /// The same, a column further.
    Span next() const { return first > last ? *this : Span{first + 1, last + 1}; }
};

enum class HostAccumulator { automatic, window, hash };

/// Whether a row has as many entries as the one before, each a column further.
template <class Index>
bool is_shifted(const Index* ptr, const std::int32_t* columns, std::int64_t row)
{
    const std::int64_t n = ptr[row + 1] - ptr[row];
    if (row == 0 || n != ptr[row] - ptr[row - 1]) {
        return false;
    }
    const std::int32_t* const these = columns + ptr[row];
    for (std::int64_t i = 0; i < n; ++i) {
        if (these[i] != these[i - n] + 1) {
            return false;
        }
    }
    return true;
}

/// What is known of the rows of C = A B before their columns are: products, first and last column, and which are
/// *shifted*: their rows of A and B are those of the row of C before, a column further, hence so are their columns.
template <class T>
class RowsOfProduct {
public:
    /// Neighbouring rows that are examined together.
    struct Chunk {
        std::int64_t weight = 0;   ///< products and rows (row_weight each)
        std::int64_t columns = 0;  ///< most entries of C
    };
    /// What is needed to add up any of the rows.
    struct Largest {
        std::int64_t entries = 0;  ///< of a row of C, at most
        std::int64_t in_bits = 0;  ///< columns of one whose columns are found in bits
        std::int64_t window = 0;   ///< of one whose sums stand in a window
        int table = -1;            ///< bits of the tables of the others; -1: there are none
        int table_of_sums = -1;

        void take(const Largest& other)
        {
            entries = std::max(entries, other.entries);
            in_bits = std::max(in_bits, other.in_bits);
            window = std::max(window, other.window);
            table = std::max(table, other.table);
            table_of_sums = std::max(table_of_sums, other.table_of_sums);
        }
    };

    RowsOfProduct(const CsrShard<T>& a, HostAccumulator accumulator, int threads, Memory& memory)
        : a_(a),
          accumulator_(accumulator),
          threads_(threads),
          chunk_rows_(std::clamp<std::int64_t>(a.rows / 512, 1, most_chunk_rows)),
          products_of_(memory, static_cast<std::size_t>(a.rows)),
          span_of_(memory, static_cast<std::size_t>(a.rows)),
          shifted_(memory, static_cast<std::size_t>(a.rows)),
          chunks_(static_cast<std::size_t>((a.rows + chunk_rows_ - 1) / chunk_rows_))
    {
    }

    void examine(const CsrShard<T>& b, Memory& memory)
    {
        const DeviceArray<Span> of_b(memory, static_cast<std::size_t>(b.rows));
        const DeviceArray<std::uint8_t> shifted_b(memory, static_cast<std::size_t>(b.rows));
        const std::int64_t chunks_of_b = (b.rows + most_chunk_rows - 1) / most_chunk_rows;
        const auto chunks = static_cast<std::int64_t>(chunks_.size());
        a_.row_ptr.visit([&](const auto* a_ptr) {
            b.row_ptr.visit([&](const auto* b_ptr) {
                std::int64_t all = 0;
#pragma omp parallel num_threads(threads_) reduction(+ : all)
                {
#pragma omp for schedule(dynamic, 1)
                    for (std::int64_t chunk = 0; chunk < chunks_of_b; ++chunk) {
                        const std::int64_t first = chunk * most_chunk_rows;
                        examine_b(b_ptr, b.col_idx, first, std::min(first + most_chunk_rows, b.rows), of_b.data(),
                                  shifted_b.data());
                    }
                    Largest largest;
#pragma omp for schedule(dynamic, 1) nowait
                    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
                        const std::int64_t first = chunk * chunk_rows_;
                        all += examine_a(a_ptr, b_ptr, first, std::min(first + chunk_rows_, a_.rows), of_b.data(),
                                         shifted_b.data(), chunks_[static_cast<std::size_t>(chunk)], largest);
                    }
#pragma omp critical(rmsp_spgemm_largest)
                    largest_.take(largest);
                }
                products_ = all;
            });
        });
    }

    HostAccumulator accumulator() const { return accumulator_; }
    std::int64_t products() const { return products_; }
    /// Of a row; at most the largest number of 32 bits.
    std::int64_t products(std::int64_t row) const { return products_of_.data()[row]; }
    const Span& span(std::int64_t row) const { return span_of_.data()[row]; }
    const Largest& largest() const { return largest_; }
    std::int64_t bytes() const
    {
        return static_cast<std::int64_t>(products_of_.size() *
                                         (sizeof(std::int32_t) + sizeof(Span) + sizeof(std::uint8_t)));
    }

    /// The row, and how many behind it, before end, are shifted.
    std::int64_t shifted_from(std::int64_t row, std::int64_t end) const
    {
        const std::uint8_t* const shifted = shifted_.data();
        std::int64_t behind = row + 1;
        while (behind < end && shifted[behind] != 0) {
            ++behind;
        }
        return behind - row;
    }

    /// Calls f(row behind it, chunk) for each chunk of rows.
    template <class F>
    void for_each_chunk(const F& f) const
    {
        std::int64_t end = 0;
        for (const Chunk& chunk : chunks_) {
            end = std::min(end + chunk_rows_, a_.rows);
            f(end, chunk);
        }
    }

    bool finds_in_bits(std::int64_t row) const { return takes_window(row, window_rows.bits); }
    bool adds_in_window(std::int64_t row) const { return takes_window(row, window_rows.sums); }
    /// Most entries that the row can have.
    std::int64_t bound(std::int64_t row) const { return std::min(products(row), span(row).columns()); }
    int table_bits(std::int64_t row) const
    {
        return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(2 * bound(row))));
    }

private:
    static constexpr std::int64_t most_chunk_rows = 512;

    bool takes_window(std::int64_t row, std::int64_t widest) const
    {
        if (accumulator_ != HostAccumulator::automatic) {
            return accumulator_ == HostAccumulator::window;
        }
        const std::int64_t columns = span(row).columns();
        return columns <= widest || columns / window_rows.columns_per_product <= products(row);
    }

    template <class Index>
    static void examine_b(const Index* ptr, const std::int32_t* columns, std::int64_t first_row, std::int64_t end,
                          Span* of_b, std::uint8_t* shifted)
    {
        for (std::int64_t row = first_row; row < end; ++row) {
            const bool is = is_shifted(ptr, columns, row);
            shifted[row] = is ? 1 : 0;
            if (is && row > first_row) {
                of_b[row] = of_b[row - 1].next();
                continue;
            }
            Span span{Span::no_first, Span::no_last};
            for (std::int64_t i = ptr[row]; i < ptr[row + 1]; ++i) {
                span.first = std::min(span.first, columns[i]);
                span.last = std::max(span.last, columns[i]);
            }
            of_b[row] = span;
        }
    }

    /// Rows [first_row, end) of A; their products.
    template <class AIndex, class BIndex>
    std::int64_t examine_a(const AIndex* a_ptr, const BIndex* b_ptr, std::int64_t first_row, std::int64_t end,
                           const Span* of_b, const std::uint8_t* shifted_b, Chunk& chunk, Largest& largest)
    {
        const std::int32_t* const columns = a_.col_idx;
        std::int64_t all = 0;
        std::int64_t products = 0;  // of the last row
        for (std::int64_t row = first_row; row < end; ++row) {
            std::uint8_t shifted = is_shifted(a_ptr, columns, row) ? 1 : 0;
            if (shifted != 0) {
                for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
                    shifted &= shifted_b[columns[i]];
                }
            }
            shifted_.data()[row] = shifted;
            if (shifted != 0 && row > first_row) {
                span_of_.data()[row] = span_of_.data()[row - 1].next();
                products_of_.data()[row] = products_of_.data()[row - 1];
            } else {
                Span span{Span::no_first, Span::no_last};
                products = 0;
                for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
                    const std::int64_t k = columns[i];
                    span.first = std::min(span.first, of_b[k].first);
                    span.last = std::max(span.last, of_b[k].last);
                    products += std::int64_t{b_ptr[k + 1]} - b_ptr[k];
                }
                span_of_.data()[row] = span;
                // A row has fewer entries than that, hence more of them are never asked for.
                products_of_.data()[row] = static_cast<std::int32_t>(
                    std::min<std::int64_t>(products, std::numeric_limits<std::int32_t>::max()));
                enlarge(row, largest);
            }
            all += products;
            chunk.columns += bound(row);
        }
        chunk.weight = all + row_weight * (end - first_row);
        return all;
    }

    void enlarge(std::int64_t row, Largest& largest) const
    {
        const std::int64_t columns = span(row).columns();
        largest.entries = std::max(largest.entries, bound(row));
        if (finds_in_bits(row)) {
            largest.in_bits = std::max(largest.in_bits, columns);
        } else {
            largest.table = std::max(largest.table, table_bits(row));
        }
        if (adds_in_window(row)) {
            largest.window = std::max(largest.window, columns);
        } else {
            largest.table_of_sums = std::max(largest.table_of_sums, table_bits(row));
        }
    }

    CsrShard<T> a_;
    HostAccumulator accumulator_;
    int threads_;
    std::int64_t chunk_rows_;
    std::int64_t products_ = 0;
    DeviceArray<std::int32_t> products_of_;
    DeviceArray<Span> span_of_;
    DeviceArray<std::uint8_t> shifted_;
    std::vector<Chunk> chunks_;
    Largest largest_;
};

}  // namespace rmsp::kernels::spgemm
