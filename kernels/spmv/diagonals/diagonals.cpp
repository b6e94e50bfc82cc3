#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include <kernels/spmv/common/csr_row.hpp>
#include <kernels/spmv/spmv.hpp>

#include "core/team.hpp"
#include "core/wide_vectors.hpp"

namespace rmsp::kernels {
namespace {

/// Rows that are added together: enough independent sums for the latency of additions.
constexpr int strip_rows = 16;
/// Fewer neighbouring rows along diagonals, or of the same columns, are not worth leaving CSR for.
constexpr std::int64_t fewest_along = 4;
constexpr std::int64_t fewest_same = 2;

enum class Columns : std::uint8_t {
    any,    ///< the rows stay in CSR
    along,  ///< those of a row are the ones of the row before, plus one
    same,   ///< of all rows
};

/// Neighbouring rows that are multiplied alike.
struct Run {
    std::int64_t row = 0;
    std::int64_t rows = 0;
    std::int64_t nonzero = 0;  ///< where its entries begin
    std::int64_t width = 0;    ///< entries of each row, unless they stay in CSR
    std::int64_t column = 0;   ///< where the columns of its first row are kept, unless they stay in CSR
    Columns columns = Columns::any;
};

/// Runs of rows that are equally long and whose entries k lie in neighbouring columns, along a diagonal, for each k, or
/// all in one column: most of a stencil or a band in natural order, and of several unknowns a point. Their values are
/// kept in strips of 16 rows, entry by entry, and the columns of the first row only, so that a strip is added without
/// gathering x. The other rows stay in CSR. Values lie where CSR has them, but for the order within a strip. V: float
/// if T is double and all values are floats; otherwise T.
template <class T, class V>
class Diagonals final : public SpmvOperator<T> {
public:
    Diagonals(const CsrShard<T>& shard, const Context& context)
        : shard_(shard),
          ranges_(std::max(context.threads, 1)),
          wakes_team_(context.wakes_team),
          ahead_(csr::fetches_ahead(shard.nnz * static_cast<std::int64_t>(sizeof(V)) / ranges_)),
          wide_(core::has_wide_vectors()),
          parts_(static_cast<std::size_t>(ranges_))
    {
        values_ = DeviceArray<V>(*context.memory, static_cast<std::size_t>(shard.nnz));
        shard_.row_ptr.visit([&](const auto* row_ptr) {
            find_cuts(row_ptr);
            for_each_part(
                [&](Part& part, std::int64_t first, std::int64_t end) { find_runs(row_ptr, part, first, end); });
        });
        for (const Part& part : parts_) {
            for (const Run& run : part.runs) {
                turned_entries_ += run.rows * run.width;
                turned_rows_ += run.columns == Columns::any ? 0 : run.rows;
            }
            runs_ += static_cast<std::int64_t>(part.runs.size());
            columns_ += static_cast<std::int64_t>(part.columns.size());
        }
        update_values(context);
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& /*context*/) override
    {
        shard_.row_ptr.visit([&](const auto* row_ptr) {
            using Index = std::remove_cvref_t<decltype(*row_ptr)>;
            const csr::Product<T, V, Index> product{row_ptr, shard_.col_idx, values_.data(), alpha, x, beta, y};
            for_each_part([&](const Part& part, std::int64_t, std::int64_t) {
                if (wide_) {
                    (ahead_ ? multiply_wide<true, Index> : multiply_wide<false, Index>)(product, part);
                } else {
                    (ahead_ ? multiply<true, Index> : multiply<false, Index>)(product, part);
                }
            });
        });
    }

    void update_values(const Context& /*context*/) override
    {
        for_each_part([&](const Part& part, std::int64_t, std::int64_t) {
            for (const Run& run : part.runs) {
                const T* from = shard_.values + run.nonzero;
                V* to = values_.data() + run.nonzero;
                if (run.columns == Columns::any) {
                    std::transform(from, from + entries(run), to, [](T value) { return static_cast<V>(value); });
                    continue;
                }
                for_each_strip(run.rows, [&](std::int64_t lanes) {
                    for (std::int64_t lane = 0; lane < lanes; ++lane) {
                        for (std::int64_t k = 0; k < run.width; ++k) {
                            to[k * lanes + lane] = static_cast<V>(from[lane * run.width + k]);
                        }
                    }
                    from += lanes * run.width;
                    to += lanes * run.width;
                });
            }
        });
    }

    /// False where CSR is as good: less than half of the entries lie in such runs.
    bool worthwhile() const override { return 2 * turned_entries_ >= shard_.nnz; }

    std::int64_t format_bytes() const override
    {
        constexpr auto column = static_cast<std::int64_t>(sizeof(std::int32_t));
        const std::int64_t pointer = shard_.row_ptr.type() == IndexType::i32 ? 4 : 8;
        return shard_.nnz * static_cast<std::int64_t>(sizeof(V)) + columns_ * column +
               (shard_.nnz - turned_entries_) * column + (shard_.rows - turned_rows_) * pointer +
               runs_ * static_cast<std::int64_t>(sizeof(Run));
    }

    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(values_.size() * sizeof(V) + cuts_.size() * sizeof(std::int64_t)) +
               columns_ * static_cast<std::int64_t>(sizeof(std::int32_t)) +
               runs_ * static_cast<std::int64_t>(sizeof(Run));
    }

private:
    /// What one thread multiplies.
    struct Part {
        std::vector<Run> runs;
        std::vector<std::int32_t> columns;
    };

    std::int64_t entries(const Run& run) const { return shard_.row_ptr[run.row + run.rows] - shard_.row_ptr[run.row]; }

    /// Rows of equal weight for each thread.
    template <class Index>
    void find_cuts(const Index* row_ptr)
    {
        cuts_.resize(static_cast<std::size_t>(ranges_) + 1);
        const auto weight = [&](std::int64_t row) { return row_ptr[row] + csr::row_weight * row; };
        const std::int64_t total = weight(shard_.rows);
        for (int k = 1; k < ranges_; ++k) {
            const std::int64_t target = total / ranges_ * k + total % ranges_ * k / ranges_;
            std::int64_t first = 0;
            for (std::int64_t n = shard_.rows; n > 0;) {
                const std::int64_t half = n / 2;
                if (weight(first + half) < target) {
                    first += half + 1;
                    n -= half + 1;
                } else {
                    n = half;
                }
            }
            cuts_[static_cast<std::size_t>(k)] = first;
        }
        cuts_.back() = shard_.rows;
    }

    /// Calls f(part, first row, end) on the thread of each part.
    template <class F>
    void for_each_part(const F& f)
    {
        core::share(ranges_, wakes_team_, [&](int k) {
            const auto part = static_cast<std::size_t>(k);
            f(parts_[part], cuts_[part], cuts_[part + 1]);
        });
    }

    /// Calls f(lanes) for strips of 16 rows, then of 8, then of what is left.
    template <class F>
    static void for_each_strip(std::int64_t rows, const F& f)
    {
        for (; rows >= strip_rows; rows -= strip_rows) {
            f(std::int64_t{strip_rows});
        }
        if (rows >= strip_rows / 2) {
            f(std::int64_t{strip_rows / 2});
            rows -= strip_rows / 2;
        }
        if (rows > 0) {
            f(rows);
        }
    }

    /// How the columns of a row are those of the one before, if both have as many and some.
    template <class Index>
    Columns step(const Index* row_ptr, std::int64_t row) const
    {
        const std::int32_t* const before = shard_.col_idx + row_ptr[row - 1];
        const std::int32_t* const these = shard_.col_idx + row_ptr[row];
        const std::int64_t width = row_ptr[row] - row_ptr[row - 1];
        if (width == 0 || row_ptr[row + 1] - row_ptr[row] != width || these[0] < before[0] ||
            these[0] > before[0] + 1) {
            return Columns::any;
        }
        const std::int32_t by = these[0] - before[0];
        for (std::int64_t k = 1; k < width; ++k) {
            if (these[k] != before[k] + by) {
                return Columns::any;
            }
        }
        return by == 0 ? Columns::same : Columns::along;
    }

    template <class Index>
    void find_runs(const Index* row_ptr, Part& part, std::int64_t first, std::int64_t end) const
    {
        for (std::int64_t row = first; row < end;) {
            std::int64_t last = row + 1;
            const Columns columns = last < end ? step(row_ptr, last) : Columns::any;
            if (columns != Columns::any) {
                do {
                    ++last;
                } while (last < end && step(row_ptr, last) == columns);
            }
            const std::int64_t rows = last - row;
            const std::int64_t width = row_ptr[row + 1] - row_ptr[row];
            if ((columns == Columns::along && rows >= fewest_along) ||
                (columns == Columns::same && rows >= fewest_same)) {
                part.runs.push_back(
                    {row, rows, row_ptr[row], width, static_cast<std::int64_t>(part.columns.size()), columns});
                part.columns.insert(part.columns.end(), shard_.col_idx + row_ptr[row],
                                    shard_.col_idx + row_ptr[row + 1]);
                row = last;
                continue;
            }
            // The last row may begin a run with the next one.
            const std::int64_t left = std::max<std::int64_t>(rows - 1, 1);
            if (part.runs.empty() || part.runs.back().columns != Columns::any) {
                part.runs.push_back({row, 0, row_ptr[row], 0, 0, Columns::any});
            }
            part.runs.back().rows += left;
            row += left;
        }
    }

    /// Adds a strip: `lanes` sums, of rows along diagonals (by == 1) or of the same columns (by == 0).
    template <int lanes, int by, bool ahead, class Index>
    static void add_strip(const csr::Product<T, V, Index>& p, const V* values, const std::int32_t* columns,
                          std::int64_t width, std::int64_t shift, std::int64_t row)
    {
        // What fits 32 bytes, or half of it; an odd number of lanes one by one.
        constexpr int most = 32 / static_cast<int>(sizeof(T));
        constexpr int wide = lanes % most == 0 ? most : lanes % 4 == 0 ? 4 : lanes % 2 == 0 ? 2 : 1;
        using Sums = csr::Lanes<T, wide>;
        const T* const x = p.x + shift;
        Sums sums[lanes / wide] = {};
        for (std::int64_t k = 0; k < width; ++k, values += lanes) {
            if constexpr (ahead) {
                csr::prefetch_lines(values, lanes);
            }
            const T* const along = x + columns[k];
            for (int i = 0; i < lanes / wide; ++i) {
                Sums entries;
                csr::load<T, wide>(entries, values + i * wide);
                if constexpr (by == 0) {
                    sums[i] += entries * along[0];
                } else {
                    Sums of_x;
                    csr::load<T, wide>(of_x, along + i * wide);
                    sums[i] += entries * of_x;
                }
            }
        }
        T* const y = p.y + row;
        for (int i = 0; i < lanes / wide; ++i) {
            sums[i] *= p.alpha;
            if (p.beta != T{0}) {
                Sums before;
                csr::load<T, wide>(before, y + i * wide);
                sums[i] += p.beta * before;
            }
            std::memcpy(y + i * wide, &sums[i], sizeof sums[i]);
        }
    }

    template <int by, bool ahead, class Index>
    static void multiply_run(const csr::Product<T, V, Index>& p, const Run& run, const std::int32_t* columns)
    {
        const V* values = p.values + run.nonzero;
        std::int64_t done = 0;
        for_each_strip(run.rows, [&](std::int64_t lanes) {
            const std::int64_t shift = by * done;
            const std::int64_t row = run.row + done;
            switch (lanes) {
                case 16:
                    add_strip<16, by, ahead>(p, values, columns, run.width, shift, row);
                    break;
                case 8:
                    add_strip<8, by, ahead>(p, values, columns, run.width, shift, row);
                    break;
                case 7:
                    add_strip<7, by, ahead>(p, values, columns, run.width, shift, row);
                    break;
                case 6:
                    add_strip<6, by, ahead>(p, values, columns, run.width, shift, row);
                    break;
                case 5:
                    add_strip<5, by, ahead>(p, values, columns, run.width, shift, row);
                    break;
                case 4:
                    add_strip<4, by, ahead>(p, values, columns, run.width, shift, row);
                    break;
                case 3:
                    add_strip<3, by, ahead>(p, values, columns, run.width, shift, row);
                    break;
                case 2:
                    add_strip<2, by, ahead>(p, values, columns, run.width, shift, row);
                    break;
                default:
                    add_strip<1, by, ahead>(p, values, columns, run.width, shift, row);
            }
            values += lanes * run.width;
            done += lanes;
        });
    }

    template <bool ahead, class Index>
    static void multiply(const csr::Product<T, V, Index>& p, const Part& part)
    {
        for (const Run& run : part.runs) {
            const std::int32_t* const columns = part.columns.data() + run.column;
            if (run.columns == Columns::along) {
                multiply_run<1, ahead>(p, run, columns);
            } else if (run.columns == Columns::same) {
                multiply_run<0, ahead>(p, run, columns);
            } else {
                csr::multiply_rows<ahead>(p, run.row, run.row + run.rows);
            }
        }
    }
    template <bool ahead, class Index>
    RMSP_WIDE_BODY static void multiply_wide(const csr::Product<T, V, Index>& p, const Part& part)
    {
        multiply<ahead>(p, part);
    }

    CsrShard<T> shard_;
    int ranges_;
    bool wakes_team_;
    bool ahead_;  ///< asks for its arrays ahead
    bool wide_;   ///< runs what is compiled for wider vectors
    std::int64_t turned_entries_ = 0;
    std::int64_t turned_rows_ = 0;
    std::int64_t runs_ = 0;
    std::int64_t columns_ = 0;        ///< that are kept
    std::vector<std::int64_t> cuts_;  ///< ranges_ + 1 rows
    std::vector<Part> parts_;         ///< ranges_
    DeviceArray<V> values_;
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_diagonals(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                   const Context& context)
{
    return csr::of_kept_values<Diagonals>(shard, context);
}

RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_diagonals)

}  // namespace rmsp::kernels
