#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <kernels/spmv/common/csr_row.hpp>
#include <kernels/spmv/row_slices/policy.hpp>
#include <kernels/spmv/spmv.hpp>

#include "core/team.hpp"
#include "core/wide_vectors.hpp"

namespace rmsp::kernels {
namespace {

/// Rows that are multiplied together, a lane each.
constexpr int slice_rows = 8;
/// Rows that are sorted by length among themselves: many of each length, and few enough that their x stays near.
constexpr std::int64_t sorted_rows = 1024;

/// slice_rows rows: entries [0, common) of each, entry by entry, then what some of them have more, row by row.
struct Slice {
    std::int32_t common = 0;
    std::int32_t tails = -1;  ///< where the ends of the rows are kept, if some have more
};

/// Neighbouring rows sorted by length, eight a slice, hence without a branch on their lengths and without padding (Liu
/// and Vinter, "CSR5", ICS '15, and Kreutzer et al., "SELL-C-sigma", SIAM J. Sci. Comput. 2014, compare such formats).
/// Long rows, and those that fill no slice, are multiplied as CSR. A row is added up from its first entry to its last,
/// or as CSR if it is longer than every slice's: as it lies in its slice in the first case makes no difference. V:
/// float if T is double and all values are floats; otherwise T.
template <class T, class V>
class RowSlices final : public SpmvOperator<T> {
public:
    RowSlices(const CsrShard<T>& shard, const Context& context)
        : shard_(shard),
          ranges_(std::max(context.threads, 1)),
          wakes_team_(context.wakes_team),
          ahead_(csr::fetches_ahead(shard.nnz * static_cast<std::int64_t>(sizeof(V) + sizeof(std::int32_t)) / ranges_)),
          wide_(core::has_wide_vectors()),
          parts_(static_cast<std::size_t>(ranges_))
    {
        values_ = DeviceArray<V>(*context.memory, static_cast<std::size_t>(shard.nnz));
        columns_ = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(shard.nnz));
        rows_ = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(shard.rows));
        shard_.row_ptr.visit([&](const auto* row_ptr) {
            find_cuts(row_ptr);
            for_each_part([&](Part& part) {
                sort_rows(row_ptr, part);
                copy_entries(row_ptr, part, shard_.col_idx, columns_.data());
                copy_entries(row_ptr, part, shard_.values, values_.data());
            });
        });
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& /*context*/) override
    {
        for_each_part([&](const Part& part) {
            if (wide_) {
                (ahead_ ? multiply_wide<true> : multiply_wide<false>)(*this, part, alpha, x, beta, y);
            } else {
                (ahead_ ? multiply<true> : multiply<false>)(*this, part, alpha, x, beta, y);
            }
        });
    }

    void update_values(const Context& /*context*/) override
    {
        shard_.row_ptr.visit([&](const auto* row_ptr) {
            for_each_part([&](const Part& part) { copy_entries(row_ptr, part, shard_.values, values_.data()); });
        });
    }

    std::int64_t format_bytes() const override
    {
        return shard_.nnz * static_cast<std::int64_t>(sizeof(V) + sizeof(std::int32_t)) + index_bytes();
    }

    std::int64_t workspace_bytes() const override { return format_bytes(); }

private:
    /// What one thread multiplies: rows_[first, end), of which slices come first and the others behind them.
    struct Part {
        std::int64_t first = 0;
        std::int64_t end = 0;
        std::int64_t nonzero = 0;  ///< where its entries begin
        std::vector<Slice> slices;
        std::vector<std::int32_t> tails;   ///< ends of the rows of slices where some have more than their slice
        std::vector<std::int32_t> others;  ///< lengths of the rows in no slice
    };

    std::int64_t index_bytes() const
    {
        std::size_t bytes = rows_.size() * sizeof(std::int32_t);
        for (const Part& part : parts_) {
            bytes +=
                part.slices.size() * sizeof(Slice) + (part.tails.size() + part.others.size()) * sizeof(std::int32_t);
        }
        return static_cast<std::int64_t>(bytes);
    }

    /// Rows of equal weight for each thread.
    template <class Index>
    void find_cuts(const Index* row_ptr)
    {
        const auto weight = [&](std::int64_t row) { return std::int64_t{row_ptr[row]} + csr::row_weight * row; };
        const std::int64_t total = weight(shard_.rows);
        for (int k = 0; k < ranges_; ++k) {
            Part& part = parts_[static_cast<std::size_t>(k)];
            part.first = k == 0 ? 0 : parts_[static_cast<std::size_t>(k) - 1].end;
            const std::int64_t target = total / ranges_ * (k + 1) + total % ranges_ * (k + 1) / ranges_;
            std::int64_t first = part.first;
            for (std::int64_t n = shard_.rows - first; n > 0;) {
                const std::int64_t half = n / 2;
                if (weight(first + half) < target) {
                    first += half + 1;
                    n -= half + 1;
                } else {
                    n = half;
                }
            }
            part.end = k + 1 == ranges_ ? shard_.rows : first;
            part.nonzero = row_ptr[part.first];
        }
    }

    template <class F>
    void for_each_part(const F& f)
    {
        core::share(ranges_, wakes_team_, [&](int k) { f(parts_[static_cast<std::size_t>(k)]); });
    }

    /// The part's rows in the order of its slices, longer ones behind all of them.
    template <class Index>
    void sort_rows(const Index* row_ptr, Part& part)
    {
        const auto length = [&](std::int64_t row) {
            return static_cast<std::int32_t>(row_ptr[row + 1] - row_ptr[row]);
        };
        std::int32_t* out = rows_.data() + part.first;
        std::vector<std::int32_t> left;  // in no slice
        std::array<std::int32_t, longest_sliced_row + 2> starts{};
        std::array<std::int32_t, sorted_rows> sorted{};
        for (std::int64_t begin = part.first; begin < part.end; begin += sorted_rows) {
            const std::int64_t end = std::min(begin + sorted_rows, part.end);
            starts.fill(0);
            std::int64_t sliced = 0;
            for (std::int64_t row = begin; row < end; ++row) {
                if (length(row) <= longest_sliced_row) {
                    ++starts[static_cast<std::size_t>(length(row)) + 1];
                    ++sliced;
                } else {
                    left.push_back(static_cast<std::int32_t>(row));
                }
            }
            for (std::size_t i = 1; i < starts.size(); ++i) {
                starts[i] += starts[i - 1];
            }
            for (std::int64_t row = begin; row < end; ++row) {
                if (length(row) <= longest_sliced_row) {
                    sorted[static_cast<std::size_t>(starts[static_cast<std::size_t>(length(row))]++)] =
                        static_cast<std::int32_t>(row);
                }
            }
            const std::int64_t whole = sliced / slice_rows * slice_rows;
            for (std::int64_t first = 0; first < whole; first += slice_rows) {
                const std::int32_t* const rows = sorted.data() + first;
                Slice slice{length(rows[0]), -1};
                if (length(rows[slice_rows - 1]) > slice.common) {
                    slice.tails = static_cast<std::int32_t>(part.tails.size());
                    for (int lane = 0; lane < slice_rows; ++lane) {
                        part.tails.push_back(length(rows[lane]));
                    }
                }
                part.slices.push_back(slice);
            }
            out = std::copy_n(sorted.data(), whole, out);
            left.insert(left.end(), sorted.data() + whole, sorted.data() + sliced);
        }
        for (const std::int32_t row : left) {
            *out++ = row;
            part.others.push_back(length(row));
        }
    }

    /// Entries of CSR in the order of the slices.
    template <class Index, class From, class To>
    void copy_entries(const Index* row_ptr, const Part& part, const From* from, To* to) const
    {
        const std::int32_t* rows = rows_.data() + part.first;
        to += part.nonzero;
        for (const Slice& slice : part.slices) {
            for (int lane = 0; lane < slice_rows; ++lane) {
                const From* const entries = from + row_ptr[rows[lane]];
                for (std::int32_t k = 0; k < slice.common; ++k) {
                    to[k * slice_rows + lane] = static_cast<To>(entries[k]);
                }
            }
            to += slice.common * slice_rows;
            if (slice.tails >= 0) {
                for (int lane = 0; lane < slice_rows; ++lane) {
                    const From* const entries = from + row_ptr[rows[lane]];
                    const std::int32_t end = part.tails[static_cast<std::size_t>(slice.tails + lane)];
                    to = std::transform(entries + slice.common, entries + end, to,
                                        [](From entry) { return static_cast<To>(entry); });
                }
            }
            rows += slice_rows;
        }
        for (const std::int32_t n : part.others) {
            const From* const entries = from + row_ptr[*rows++];
            to = std::transform(entries, entries + n, to, [](From entry) { return static_cast<To>(entry); });
        }
    }

    template <bool ahead>
    static void multiply(const RowSlices& of, const Part& part, T alpha, const T* x, T beta, T* y)
    {
        using Four = csr::Lanes<T, 4>;
        const V* values = of.values_.data() + part.nonzero;
        const std::int32_t* columns = of.columns_.data() + part.nonzero;
        const std::int32_t* rows = of.rows_.data() + part.first;
        for (const Slice& slice : part.slices) {
            Four low{};
            Four high{};
            for (std::int32_t k = 0; k < slice.common; ++k) {
                if constexpr (ahead) {
                    csr::prefetch_lines(values, slice_rows);
                    csr::prefetch_lines(columns, slice_rows);
                }
                csr::add_four<V, T>(low, values, columns, x);
                csr::add_four<V, T>(high, values + 4, columns + 4, x);
                values += slice_rows;
                columns += slice_rows;
            }
            T sums[slice_rows];
            std::memcpy(sums, &low, sizeof low);
            std::memcpy(sums + 4, &high, sizeof high);
            if (slice.tails >= 0) {
                const std::int32_t* const ends = part.tails.data() + slice.tails;
                for (int lane = 0; lane < slice_rows; ++lane) {
                    for (std::int32_t k = slice.common; k < ends[lane]; ++k) {
                        sums[lane] += static_cast<T>(*values++) * x[*columns++];
                    }
                }
            }
            for (int lane = 0; lane < slice_rows; ++lane) {
                csr::write_row(alpha, sums[lane], beta, y[rows[lane]]);
            }
            rows += slice_rows;
        }
        for (const std::int32_t n : part.others) {
            T sum{};
            if (n <= longest_sliced_row) {
                for (std::int32_t k = 0; k < n; ++k) {
                    sum += static_cast<T>(values[k]) * x[columns[k]];
                }
            } else {
                sum = csr::dot_row(values, columns, n, x);
            }
            csr::write_row(alpha, sum, beta, y[*rows++]);
            values += n;
            columns += n;
        }
    }
    template <bool ahead>
    RMSP_WIDE_BODY static void multiply_wide(const RowSlices& of, const Part& part, T alpha, const T* x, T beta, T* y)
    {
        multiply<ahead>(of, part, alpha, x, beta, y);
    }

    CsrShard<T> shard_;
    int ranges_;
    bool wakes_team_;
    bool ahead_;  ///< asks for its arrays ahead
    bool wide_;   ///< runs what is compiled for wider vectors
    std::vector<Part> parts_;
    DeviceArray<V> values_;
    DeviceArray<std::int32_t> columns_;
    DeviceArray<std::int32_t> rows_;  ///< the row of each place, part by part
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_row_slices(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                    const Context& context)
{
    return csr::of_kept_values<RowSlices>(shard, context);
}

RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_row_slices)

}  // namespace rmsp::kernels
