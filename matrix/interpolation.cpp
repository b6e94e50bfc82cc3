#include "matrix/interpolation.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "core/value_types.hpp"
#include "matrix/row_sums.hpp"

namespace rmsp::matrix {
namespace {

/// Computes rows of P before truncation.
template <class T>
class Rows {
public:
    Rows(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Coarsening& coarse, Interpolation kind)
        : a_(a), strong_(strong), coarse_(coarse), kind_(kind), diagonal_(static_cast<std::size_t>(a.rows))
    {
        for_each_row(a.rows, [&](std::int64_t row) {
            double& own = diagonal_[static_cast<std::size_t>(row)];
            own = 0;
            for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
                own = a.col_idx[k] == row ? double{a.values[k]} : own;
            }
        });
    }

    void operator()(std::int64_t row, RowSum& sum) const
    {
        const std::int32_t own = number(row);
        if (own >= 0) {
            sum.add(own, 1.0);
        } else if (kind_ == Interpolation::direct) {
            direct(row, sum);
        } else {
            extended(row, sum);
        }
        const bool good = std::all_of(sum.entries.begin(), sum.entries.end(),
                                      [](const auto& entry) { return std::isfinite(entry.second); });
        if (!good) {
            sum.clear();
        }
    }

private:
    std::int32_t number(std::int64_t row) const { return coarse_.number[static_cast<std::size_t>(row)]; }
    double diagonal(std::int64_t row) const { return diagonal_[static_cast<std::size_t>(row)]; }
    bool strong(std::int64_t k) const { return strong_[static_cast<std::size_t>(k)] != 0; }
    double value(std::int64_t k) const { return double{a_.values[k]}; }

    void direct(std::int64_t row, RowSum& sum) const
    {
        // Of entries whose sign is not the diagonal's, and of the others: all, and those of coarse points.
        double all[2] = {0, 0};
        double taken[2] = {0, 0};
        const double own = diagonal(row);
        const auto kind = [&](double entry) { return (entry < 0) == (own < 0) ? 1 : 0; };
        const auto takes = [&](std::int64_t k) { return strong(k) && number(a_.col_idx[k]) >= 0; };
        for (std::int64_t k = a_.row_ptr[row]; k < a_.row_ptr[row + 1]; ++k) {
            if (a_.col_idx[k] != row) {
                all[kind(value(k))] += value(k);
                taken[kind(value(k))] += takes(k) ? value(k) : 0.0;
            }
        }
        const double divisor = taken[1] == 0 ? own + all[1] : own;
        if (divisor == 0) {
            return;
        }
        for (std::int64_t k = a_.row_ptr[row]; k < a_.row_ptr[row + 1]; ++k) {
            const int of = kind(value(k));
            if (takes(k) && taken[of] != 0) {
                sum.add(number(a_.col_idx[k]), -all[of] / taken[of] * value(k) / divisor);
            }
        }
    }

    void extended(std::int64_t row, RowSum& sum) const
    {
        const std::int64_t begin = a_.row_ptr[row];
        const std::int64_t end = a_.row_ptr[row + 1];
        // The coarse points to take from.
        for (std::int64_t k = begin; k < end; ++k) {
            if (!strong(k)) {
                continue;
            }
            const std::int64_t other = a_.col_idx[k];
            if (number(other) >= 0) {
                sum.add(number(other), 0.0);
                continue;
            }
            for (std::int64_t m = a_.row_ptr[other]; m < a_.row_ptr[other + 1]; ++m) {
                if (strong(m) && number(a_.col_idx[m]) >= 0) {
                    sum.add(number(a_.col_idx[m]), 0.0);
                }
            }
        }
        if (sum.entries.empty()) {
            return;
        }
        double divisor = diagonal(row);
        for (std::int64_t k = begin; k < end; ++k) {
            const std::int64_t other = a_.col_idx[k];
            if (other == row) {
                continue;
            }
            const std::int32_t point = number(other);
            if (point >= 0 && sum.has(point)) {
                sum.add(point, value(k));
            } else if (point < 0 && strong(k)) {
                distribute(row, other, value(k), sum, divisor);
            } else {
                divisor += value(k);
            }
        }
        if (divisor == 0) {
            sum.clear();
            return;
        }
        for (auto& entry : sum.entries) {
            entry.second = -entry.second / divisor;
        }
    }

    /// Replaces the entry of a row that is no coarse point by that row's entries in the coarse points and in `row`.
    void distribute(std::int64_t row, std::int64_t other, double entry, RowSum& sum, double& divisor) const
    {
        const double own = diagonal(other);
        const auto counts = [&](std::int64_t m) {
            const std::int64_t column = a_.col_idx[m];
            const bool opposite = (value(m) < 0) != (own < 0);
            return opposite && column != other && (column == row || (number(column) >= 0 && sum.has(number(column))));
        };
        double total = 0;
        for (std::int64_t m = a_.row_ptr[other]; m < a_.row_ptr[other + 1]; ++m) {
            total += counts(m) ? value(m) : 0.0;
        }
        if (total == 0) {
            divisor += entry;
            return;
        }
        for (std::int64_t m = a_.row_ptr[other]; m < a_.row_ptr[other + 1]; ++m) {
            if (!counts(m)) {
                continue;
            }
            const double share = entry * value(m) / total;
            if (a_.col_idx[m] == row) {
                divisor += share;
            } else {
                sum.add(number(a_.col_idx[m]), share);
            }
        }
    }

    const CsrView<T>& a_;
    std::span<const std::uint8_t> strong_;
    const Coarsening& coarse_;
    Interpolation kind_;
    HostVector<double> diagonal_;
};

using Entries = std::vector<std::pair<std::int32_t, double>>;

double total(const Entries& entries)
{
    double sum = 0;
    for (const auto& entry : entries) {
        sum += entry.second;
    }
    return sum;
}

/// Scales what stayed of a row to the sum that it had.
void rescale(Entries& entries, double wanted)
{
    const double has = total(entries);
    const double factor = wanted / has;
    if (has != 0 && std::isfinite(factor) && factor != 1) {
        for (auto& entry : entries) {
            entry.second *= factor;
        }
    }
}

void truncate(Entries& entries, const InterpolationOptions& options)
{
    double largest = 0;
    for (const auto& entry : entries) {
        largest = std::max(largest, std::fabs(entry.second));
    }
    const double wanted = total(entries);
    const auto before = entries.size();
    std::erase_if(entries, [&](const auto& entry) {
        return entry.second == 0 || std::fabs(entry.second) < options.truncation * largest;
    });
    const auto most = static_cast<std::size_t>(options.most_entries);
    if (most > 0 && entries.size() > most) {
        std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
            const double of_a = std::fabs(a.second);
            const double of_b = std::fabs(b.second);
            return of_a != of_b ? of_a > of_b : a.first < b.first;
        });
        entries.resize(most);
    }
    if (entries.size() < before) {
        std::sort(entries.begin(), entries.end());  // as a renewed row is added up
        rescale(entries, wanted);
    }
}

}  // namespace

template <class T>
CsrMatrix<T> interpolation(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Coarsening& coarse,
                           const InterpolationOptions& options)
{
    const Rows<T> rows(a, strong, coarse, options.kind);
    return collect_rows<T>(a.rows, coarse.count, [&](std::int64_t row, RowSum& sum) {
        rows(row, sum);
        Entries kept = sum.entries;
        truncate(kept, options);
        sum.clear();
        for (const auto& [column, value] : kept) {
            sum.add(column, value);
        }
    });
}

template <class T>
void renew_interpolation(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Coarsening& coarse,
                         Interpolation kind, CsrMatrix<T>& p)
{
    const Rows<T> rows(a, strong, coarse, kind);
    for_row_sums(a.rows, coarse.count, [&](std::int64_t row, RowSum& sum) {
        rows(row, sum);
        const std::int64_t begin = p.row_ptr[static_cast<std::size_t>(row)];
        const std::int64_t end = p.row_ptr[static_cast<std::size_t>(row) + 1];
        Entries kept;
        for (std::int64_t k = begin; k < end; ++k) {
            const auto column = static_cast<std::int32_t>(p.col_idx[k]);
            kept.emplace_back(column, sum.value(column));
        }
        if (kept.size() < sum.entries.size()) {
            rescale(kept, total(sum.entries));
        }
        for (std::int64_t k = begin; k < end; ++k) {
            p.values[static_cast<std::size_t>(k)] = static_cast<T>(kept[static_cast<std::size_t>(k - begin)].second);
        }
    });
}

#define RMSP_INSTANTIATE(T)                                                                                  \
    template CsrMatrix<T> interpolation(const CsrView<T>&, std::span<const std::uint8_t>, const Coarsening&, \
                                        const InterpolationOptions&);                                        \
    template void renew_interpolation(const CsrView<T>&, std::span<const std::uint8_t>, const Coarsening&,   \
                                      Interpolation, CsrMatrix<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::matrix
