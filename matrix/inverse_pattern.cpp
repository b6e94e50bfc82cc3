#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/value_types.hpp"
#include "matrix/csr_build.hpp"
#include "matrix/for_each_row.hpp"
#include "matrix/sparse_inverse.hpp"

namespace rmsp::matrix {
namespace {

/// Chooses the columns of one row of M at a time.
template <class T>
class RowChooser {
public:
    RowChooser(const CsrView<T>& a, SparseInverse kind, const InversePattern& pattern)
        : a_(a), kind_(kind), pattern_(pattern)
    {
    }

    /// In ascending order; valid until the next call.
    const std::vector<std::int64_t>& choose(std::int64_t row)
    {
        if (takes_all(row)) {
            chosen_.clear();
            for (std::int64_t k = a_.row_ptr[row]; k < a_.row_ptr[row + 1]; ++k) {
                chosen_.push_back(a_.col_idx[k]);
            }
            return chosen_;
        }
        row_ = row;
        gathered_ = length(row);
        chosen_.assign(1, row);
        seen_ = {row};
        std::size_t begin = 0;
        for (int step = 0; step < pattern_.power && !full(); ++step) {
            // The rows that the last step found, each with its columns.
            const std::size_t end = chosen_.size();
            for (; begin < end && !full(); ++begin) {
                add_columns(chosen_[begin]);
            }
        }
        std::sort(chosen_.begin(), chosen_.end());
        return chosen_;
    }

private:
    std::int64_t length(std::int64_t row) const { return a_.row_ptr[row + 1] - a_.row_ptr[row]; }
    bool full() const { return static_cast<std::int64_t>(chosen_.size()) >= pattern_.most_entries; }

    /// Whether the row of A is that of M as it is: nothing is to be found, left out, or sorted.
    bool takes_all(std::int64_t row) const
    {
        if (pattern_.power != 1 || kind_ == SparseInverse::fsai || length(row) > pattern_.most_entries) {
            return false;
        }
        std::int64_t gathered = 0;
        std::int64_t before = -1;
        bool diagonal = false;
        for (std::int64_t k = a_.row_ptr[row]; k < a_.row_ptr[row + 1]; ++k) {
            const std::int64_t column = a_.col_idx[k];
            gathered += length(column);
            if (column <= before || gathered > pattern_.most_gathered) {
                return false;
            }
            diagonal = diagonal || column == row;
            before = column;
        }
        return diagonal;
    }

    void add_columns(std::int64_t of)
    {
        columns_.clear();
        for (std::int64_t k = a_.row_ptr[of]; k < a_.row_ptr[of + 1]; ++k) {
            const std::int64_t column = a_.col_idx[k];
            if (kind_ != SparseInverse::fsai || column <= row_) {
                columns_.emplace_back(std::fabs(static_cast<double>(a_.values[k])), column);
            }
        }
        // The larger ones first; where equal, and where not a number, by column.
        const auto weight = [](double v) { return std::isnan(v) ? 0.0 : v; };
        std::sort(columns_.begin(), columns_.end(), [&](const auto& l, const auto& r) {
            return weight(l.first) != weight(r.first) ? weight(l.first) > weight(r.first) : l.second < r.second;
        });
        for (const auto& [size, column] : columns_) {
            if (full()) {
                return;
            }
            if (!seen_.contains(column) && gathered_ + length(column) <= pattern_.most_gathered) {
                seen_.insert(column);
                chosen_.push_back(column);
                gathered_ += length(column);
            }
        }
    }

    const CsrView<T>& a_;
    const SparseInverse kind_;
    const InversePattern& pattern_;
    std::int64_t row_ = 0;
    std::int64_t gathered_ = 0;
    std::vector<std::int64_t> chosen_;
    std::unordered_set<std::int64_t> seen_;
    std::vector<std::pair<double, std::int64_t>> columns_;
};

}  // namespace

template <class T>
CsrMatrix<T> inverse_pattern(const CsrView<T>& a, SparseInverse kind, const InversePattern& pattern)
{
    if (a.rows != a.cols) {
        throw Error(ErrorCode::usage,
                    fmt::format("a sparse inverse of a {} x {} matrix: it has to be square", a.rows, a.cols));
    }
    if (pattern.power < 0 || pattern.most_entries < 1 || pattern.most_gathered < 1) {
        throw Error(ErrorCode::usage,
                    fmt::format("a sparse inverse with the pattern of power {}, at most {} entries a row made of at "
                                "most {}: at least 0, 1 and 1",
                                pattern.power, pattern.most_entries, pattern.most_gathered));
    }
    validate(a);
    constexpr std::int64_t rows_each = 512;
    std::vector<std::vector<std::int64_t>> columns(static_cast<std::size_t>((a.rows + rows_each - 1) / rows_each));
    HostVector<std::int64_t> row_ptr(static_cast<std::size_t>(a.rows) + 1);
    row_ptr.front() = 0;
    for_row_ranges(a.rows, rows_each, [&](std::int64_t begin, std::int64_t end) {
        RowChooser<T> chooser(a, kind, pattern);
        auto& out = columns[static_cast<std::size_t>(begin / rows_each)];
        for (std::int64_t row = begin; row < end; ++row) {
            const auto& chosen = chooser.choose(row);
            out.insert(out.end(), chosen.begin(), chosen.end());
            row_ptr[static_cast<std::size_t>(row) + 1] = static_cast<std::int64_t>(chosen.size());
        }
    });
    std::partial_sum(row_ptr.begin(), row_ptr.end(), row_ptr.begin());
    CsrMatrix<T> m = allocate_csr<T>(a.rows, a.cols, row_ptr.back());
    m.row_ptr = std::move(row_ptr);
    m.col_idx.visit([&](auto& col) {
        using C = typename std::decay_t<decltype(col)>::value_type;
        for_row_ranges(a.rows, rows_each, [&](std::int64_t begin, std::int64_t) {
            const auto& from = columns[static_cast<std::size_t>(begin / rows_each)];
            std::transform(from.begin(), from.end(), col.begin() + m.row_ptr[static_cast<std::size_t>(begin)],
                           [](std::int64_t c) { return static_cast<C>(c); });
        });
    });
    return m;
}

#define RMSP_INSTANTIATE(T) \
    template CsrMatrix<T> inverse_pattern(const CsrView<T>&, SparseInverse, const InversePattern&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::matrix
