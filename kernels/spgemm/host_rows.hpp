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
    std::int64_t marks = 131072;                ///< widest row whose columns are found by marks of a byte,
    std::int64_t listed = 4096;                 ///< and the most products of one, which are listed for that
    std::int64_t bits = std::int64_t{1} << 21;  ///< widest row whose columns are found in bits: they stay in the cache
    std::int64_t sums = 131072;                 ///< widest row whose sums stand in a dense window
    std::int64_t columns_per_product = 256;     ///< wider ones do where so few columns come to a product
};
inline constexpr WindowRows window_rows{};
/// What a row costs besides its products, in products.
inline constexpr std::int64_t row_weight = 4;

/// First and last column of a row; first > last if it is empty.
struct Span {
    static constexpr std::int32_t no_first = std::numeric_limits<std::int32_t>::max();
    static constexpr std::int32_t no_last = -1;

    std::int32_t first;
    std::int32_t last;
    std::int64_t columns() const { return first > last ? 0 : std::int64_t{last} - first + 1; }
};

enum class HostAccumulator { automatic, window, hash };

/// The first row behind `row`, or end, that does not have as many entries as the row before, each a column further, or
/// has one for which holds(column) does not hold.
template <class Index, class Holds>
std::int64_t end_of_shifted(const Index* ptr, const std::int32_t* columns, std::int64_t row, std::int64_t end,
                            const Holds& holds)
{
    const std::int64_t n = ptr[row + 1] - ptr[row];
    const std::int32_t* before = columns + ptr[row];
    for (++row; row < end && ptr[row + 1] - ptr[row] == n; ++row) {
        const std::int32_t* const these = before + n;
        bool shifted = true;
        for (std::int64_t i = 0; i < n && shifted; ++i) {
            shifted = these[i] == before[i] + 1 && holds(these[i]);
        }
        if (!shifted) {
            break;
        }
        before = these;
    }
    return row;
}

/// Whether a row has the columns of the one before.
template <class Index>
bool is_same(const Index* ptr, const std::int32_t* columns, std::int64_t row)
{
    const std::int64_t n = ptr[row + 1] - ptr[row];
    const std::int32_t* const these = columns + ptr[row];
    return row > 0 && n == ptr[row] - ptr[row - 1] && std::equal(these, these + n, these - n);
}

/// What is needed to find the columns of any row of C, and to add it up.
struct LargestRows {
    std::int64_t entries = 0;  ///< of a row of C, at most
    std::int64_t in_bits = 0;  ///< columns of one whose columns are found in bits
    std::int64_t marked = 0;   ///< columns of one whose columns are found by marks
    std::int64_t listed = 0;   ///< products of one of those
    std::int64_t window = 0;   ///< of one whose sums stand in a window
    int table = -1;            ///< bits of the tables of the others; -1: there are none
    int table_of_sums = -1;

    void take(const LargestRows& other)
    {
        entries = std::max(entries, other.entries);
        in_bits = std::max(in_bits, other.in_bits);
        marked = std::max(marked, other.marked);
        listed = std::max(listed, other.listed);
        window = std::max(window, other.window);
        table = std::max(table, other.table);
        table_of_sums = std::max(table_of_sums, other.table_of_sums);
    }
};

/// What is known of the rows of C = A B before their columns are: products, first and last column, and which are
/// *shifted*: their rows of A and B are those of the row of C before, a column further, hence so are their columns;
/// which are the *same* as the row before, as their rows of A are; and of which all rows of B are *runs* of columns.
template <class T>
class RowsOfProduct {
public:
    /// Neighbouring rows that are examined together.
    struct Chunk {
        std::int64_t weight = 0;   ///< products and rows (row_weight each)
        std::int64_t columns = 0;  ///< most entries of C
    };

    /// threads: that examine the rows; blocks: that they will be cut into, at whole chunks.
    RowsOfProduct(const CsrShard<T>& a, HostAccumulator accumulator, int threads, std::int64_t blocks, Memory& memory)
        : a_(a),
          accumulator_(accumulator),
          threads_(threads),
          chunk_rows_(blocks == 1 ? most_chunk_rows
                                  : std::clamp<std::int64_t>(a.rows / (4 * blocks), 1, most_chunk_rows)),
          products_of_(memory, static_cast<std::size_t>(a.rows)),
          span_of_(memory, static_cast<std::size_t>(a.rows)),
          kinds_(memory, static_cast<std::size_t>(a.rows)),
          chunks_(static_cast<std::size_t>((a.rows + chunk_rows_ - 1) / chunk_rows_))
    {
    }

    void examine(const CsrShard<T>& b, Memory& memory)
    {
        const DeviceArray<Span> of_b(memory, static_cast<std::size_t>(b.rows));
        const DeviceArray<std::uint8_t> kinds_b(memory, static_cast<std::size_t>(b.rows));
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
                                  kinds_b.data());
                    }
                    LargestRows largest;
#pragma omp for schedule(dynamic, 1) nowait
                    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
                        const std::int64_t first = chunk * chunk_rows_;
                        all += examine_a(a_ptr, b_ptr, first, std::min(first + chunk_rows_, a_.rows), of_b.data(),
                                         kinds_b.data(), chunks_[static_cast<std::size_t>(chunk)], largest);
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
    const LargestRows& largest() const { return largest_; }
    std::int64_t bytes() const
    {
        return static_cast<std::int64_t>(products_of_.size() *
                                         (sizeof(std::int32_t) + sizeof(Span) + sizeof(std::uint8_t)));
    }

    /// The row, and how many behind it, before end, are shifted.
    std::int64_t shifted_from(std::int64_t row, std::int64_t end) const
    {
        const std::uint8_t* const kinds = kinds_.data();
        std::int64_t behind = row + 1;
        while (behind < end && (kinds[behind] & of_shifted) != 0) {
            ++behind;
        }
        return behind - row;
    }

    /// Whether the row has the columns of the row before.
    bool same(std::int64_t row) const { return (kinds_.data()[row] & of_same) != 0; }
    /// Whether the row's products come in runs of neighbouring columns, one an entry of A.
    bool in_runs(std::int64_t row) const { return (kinds_.data()[row] & of_runs) != 0; }

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
    /// Whether a row whose columns are found in bits has its products listed, and those columns marked that are new,
    /// unless they are collected.
    bool finds_by_marks(std::int64_t row) const
    {
        return finds_in_bits(row) && span(row).columns() <= window_rows.marks && products(row) <= window_rows.listed;
    }
    bool adds_in_window(std::int64_t row) const { return takes_window(row, window_rows.sums); }
    /// Most entries that the row can have.
    std::int64_t bound(std::int64_t row) const { return std::min(products(row), span(row).columns()); }
    int table_bits(std::int64_t row) const
    {
        return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(2 * bound(row))));
    }

private:
    static constexpr std::int64_t most_chunk_rows = 512;
    static constexpr std::uint8_t of_shifted = 1;
    static constexpr std::uint8_t of_same = 2;
    static constexpr std::uint8_t of_runs = 4;

    bool takes_window(std::int64_t row, std::int64_t widest) const
    {
        if (accumulator_ != HostAccumulator::automatic) {
            return accumulator_ == HostAccumulator::window;
        }
        const std::int64_t columns = span(row).columns();
        return columns <= widest || columns / window_rows.columns_per_product <= products(row);
    }

    /// The spans of rows (row, end), each shifted from the one before.
    static void shift_spans(Span* spans, std::int64_t row, std::int64_t end)
    {
        const Span span = spans[row];
        const std::int32_t by = span.first > span.last ? 0 : 1;
        for (std::int64_t i = 1; i < end - row; ++i) {
            spans[row + i] = {span.first + static_cast<std::int32_t>(i) * by,
                              span.last + static_cast<std::int32_t>(i) * by};
        }
    }

    template <class Index>
    static void examine_b(const Index* ptr, const std::int32_t* columns, std::int64_t first_row, std::int64_t end,
                          Span* of_b, std::uint8_t* kinds)
    {
        for (std::int64_t row = first_row; row < end;) {
            Span span{Span::no_first, Span::no_last};
            bool rising = true;
            for (std::int64_t i = ptr[row]; i < ptr[row + 1]; ++i) {
                rising = rising && columns[i] > span.last;
                span.first = std::min(span.first, columns[i]);
                span.last = std::max(span.last, columns[i]);
            }
            const bool runs = rising && span.columns() == std::int64_t{ptr[row + 1]} - ptr[row];
            const auto kind = static_cast<std::uint8_t>(runs ? of_runs : 0);
            const std::int64_t behind = end_of_shifted(ptr, columns, row, end, [](std::int32_t) { return true; });
            const bool first_shifted =
                row > 0 && row == first_row &&
                end_of_shifted(ptr, columns, row - 1, row + 1, [](std::int32_t) { return true; }) > row;
            of_b[row] = span;
            shift_spans(of_b, row, behind);
            kinds[row] = first_shifted ? kind | of_shifted : kind;
            std::fill(kinds + row + 1, kinds + behind, static_cast<std::uint8_t>(kind | of_shifted));
            row = behind;
        }
    }

    /// Rows [first_row, end) of A; their products.
    template <class AIndex, class BIndex>
    std::int64_t examine_a(const AIndex* a_ptr, const BIndex* b_ptr, std::int64_t first_row, std::int64_t end,
                           const Span* of_b, const std::uint8_t* kinds_b, Chunk& chunk, LargestRows& largest)
    {
        const std::int32_t* const columns = a_.col_idx;
        const auto b_shifted = [&](std::int32_t column) { return (kinds_b[column] & of_shifted) != 0; };
        std::int64_t all = 0;
        std::int64_t products_before = 0;  // of the last row
        for (std::int64_t row = first_row; row < end;) {
            Span span{Span::no_first, Span::no_last};
            std::uint8_t kind = of_runs;
            std::int64_t products = 0;
            if (row > first_row && is_same(a_ptr, columns, row)) {
                span = span_of_.data()[row - 1];
                products = products_before;
                kind = static_cast<std::uint8_t>((kinds_.data()[row - 1] & of_runs) | of_same);
            } else {
                for (std::int64_t i = a_ptr[row]; i < a_ptr[row + 1]; ++i) {
                    const std::int64_t k = columns[i];
                    span.first = std::min(span.first, of_b[k].first);
                    span.last = std::max(span.last, of_b[k].last);
                    products += std::int64_t{b_ptr[k + 1]} - b_ptr[k];
                    kind &= kinds_b[k];
                }
            }
            const std::int64_t behind = end_of_shifted(a_ptr, columns, row, end, b_shifted);
            // A row has fewer entries than that, hence more of them are never asked for.
            const auto stored =
                static_cast<std::int32_t>(std::min<std::int64_t>(products, std::numeric_limits<std::int32_t>::max()));
            span_of_.data()[row] = span;
            shift_spans(span_of_.data(), row, behind);
            std::fill(products_of_.data() + row, products_of_.data() + behind, stored);
            kinds_.data()[row] = kind;
            std::fill(kinds_.data() + row + 1, kinds_.data() + behind,
                      static_cast<std::uint8_t>((kind & of_runs) | of_shifted));
            if (row == first_row && row > 0) {  // what the row before is, another thread may be finding
                if (end_of_shifted(a_ptr, columns, row - 1, row + 1, b_shifted) > row) {
                    kinds_.data()[row] |= of_shifted;
                } else if (is_same(a_ptr, columns, row)) {
                    kinds_.data()[row] |= of_same;
                }
            }
            enlarge(row, largest);
            products_before = products;
            all += products * (behind - row);
            chunk.columns += bound(row) * (behind - row);
            row = behind;
        }
        chunk.weight = all + row_weight * (end - first_row);
        return all;
    }

    void enlarge(std::int64_t row, LargestRows& largest) const
    {
        const std::int64_t columns = span(row).columns();
        largest.entries = std::max(largest.entries, bound(row));
        if (finds_in_bits(row)) {
            largest.in_bits = std::max(largest.in_bits, columns);
        } else {
            largest.table = std::max(largest.table, table_bits(row));
        }
        if (finds_by_marks(row)) {
            largest.marked = std::max(largest.marked, columns);
            largest.listed = std::max(largest.listed, products(row));
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
    DeviceArray<std::uint8_t> kinds_;
    std::vector<Chunk> chunks_;
    LargestRows largest_;
};

}  // namespace rmsp::kernels::spgemm
