#pragma once

#include <cstdint>

/// A row of P of classical algebraic multigrid, for the host and for GPUs, whose code calls it as it is constexpr. Sums
/// are in one order and have no product to join, so that both find the same bits.
namespace rmsp::matrix {

/// A and what was found of it, in the memory of the host or of a device. Pointers and Columns are indexed with a row or
/// an entry.
template <class T, class Pointers, class Columns>
struct InterpolationSource {
    Pointers row_ptr;
    Columns col_idx;
    const T* values = nullptr;
    const std::uint8_t* strong = nullptr;  ///< marks of the entries (strong_entries())
    const std::int32_t* number = nullptr;  ///< of each row's coarse point; -1: it is none (Coarsening)
    const double* diagonal = nullptr;      ///< of A; 0 where it has no entry

    constexpr double value(std::int64_t k) const { return static_cast<double>(values[k]); }
};

// A list of entries has size(), column(i), entry(i), set(i, column, value) and resize(), which makes it shorter. A sum
// has add(column, value), has(column), value(column) and clear() as well, and its entries are in the order in which
// their columns came first.

constexpr double magnitude(double value) { return value < 0 ? -value : value; }
constexpr bool is_number(double value) { return value - value == 0; }  // neither infinite nor NaN

template <class List>
constexpr double total(const List& list)
{
    double sum = 0;
    for (std::int64_t i = 0; i < list.size(); ++i) {
        sum += list.entry(i);
    }
    return sum;
}

/// What takes a sum to the one that is wanted; 1 where nothing does.
constexpr double rescaling(double has, double wanted)
{
    const double factor = wanted / has;
    return has != 0 && is_number(factor) ? factor : 1.0;
}

template <class List>
constexpr void swap_entries(List& list, std::int64_t i, std::int64_t j)
{
    const std::int32_t column = list.column(i);
    const double value = list.entry(i);
    list.set(i, list.column(j), list.entry(j));
    list.set(j, column, value);
}

/// Brings the `count` entries that come first to the front, in their order, by a heap. \param before  (i, j): whether
/// entry i comes before entry j; never so both ways
template <class List, class Before>
constexpr void bring_to_front(List& list, std::int64_t count, const Before& before)
{
    const std::int64_t n = list.size();
    const auto sift = [&](std::int64_t i, std::int64_t end) {
        for (std::int64_t child = 2 * i + 1; child < end; child = 2 * i + 1) {
            child += child + 1 < end && before(child + 1, child) ? 1 : 0;
            if (!before(child, i)) {
                return;
            }
            swap_entries(list, i, child);
            i = child;
        }
    };
    for (std::int64_t i = n / 2; i-- > 0;) {
        sift(i, n);
    }
    for (std::int64_t end = n; end > n - count;) {
        swap_entries(list, 0, --end);
        sift(0, end);
    }
    for (std::int64_t i = 0; i < n / 2; ++i) {
        swap_entries(list, i, n - 1 - i);
    }
}

template <class List>
constexpr void sort_by_column(List& list)
{
    bring_to_front(list, list.size(), [&](std::int64_t i, std::int64_t j) { return list.column(i) < list.column(j); });
}

/// Leaves out entries that are 0, or below `truncation` times the largest, or not among the `most` largest (0: all may
/// stay). Where some go, the others are sorted by column, and scaled to the sum that the row had.
template <class List>
constexpr void truncate(List& list, double truncation, std::int64_t most)
{
    const std::int64_t before = list.size();
    const double wanted = total(list);
    double largest = 0;
    for (std::int64_t i = 0; i < before; ++i) {
        largest = magnitude(list.entry(i)) > largest ? magnitude(list.entry(i)) : largest;
    }
    std::int64_t left = 0;
    for (std::int64_t i = 0; i < before; ++i) {
        if (list.entry(i) != 0 && !(magnitude(list.entry(i)) < truncation * largest)) {
            list.set(left++, list.column(i), list.entry(i));
        }
    }
    list.resize(left);
    if (most > 0 && left > most) {
        bring_to_front(list, most, [&](std::int64_t i, std::int64_t j) {
            const double of_i = magnitude(list.entry(i));
            const double of_j = magnitude(list.entry(j));
            return of_i != of_j ? of_i > of_j : list.column(i) < list.column(j);
        });
        list.resize(most);
    }
    if (list.size() < before) {
        sort_by_column(list);
        const double factor = rescaling(total(list), wanted);
        for (std::int64_t i = 0; i < list.size(); ++i) {
            list.set(i, list.column(i), list.entry(i) * factor);
        }
    }
}

/// write(k, value) for the entries [begin, end) of a row of P: what a row that was computed anew has in their columns,
/// scaled to its sum where it has others too.
template <class Columns, class Sum, class Write>
constexpr void take_columns(const Columns& columns, std::int64_t begin, std::int64_t end, const Sum& sum,
                            const Write& write)
{
    double factor = 1;
    if (end - begin < sum.size()) {
        double has = 0;
        for (std::int64_t k = begin; k < end; ++k) {
            has += sum.value(static_cast<std::int32_t>(columns[k]));
        }
        factor = rescaling(has, total(sum));
    }
    for (std::int64_t k = begin; k < end; ++k) {
        write(k, sum.value(static_cast<std::int32_t>(columns[k])) * factor);
    }
}

/// Interpolation::direct of a row that is no coarse point.
template <class Source, class Sum>
constexpr void interpolate_directly(const Source& a, std::int64_t row, Sum& sum)
{
    // Of entries whose sign is not the diagonal's, and of the others: all, and those of coarse points.
    double all[2] = {0, 0};
    double taken[2] = {0, 0};
    const double own = a.diagonal[row];
    const std::int64_t begin = a.row_ptr[row];
    const std::int64_t end = a.row_ptr[row + 1];
    const auto kind = [&](double entry) { return (entry < 0) == (own < 0) ? 1 : 0; };
    const auto takes = [&](std::int64_t k) { return a.strong[k] != 0 && a.number[a.col_idx[k]] >= 0; };
    for (std::int64_t k = begin; k < end; ++k) {
        if (a.col_idx[k] != row) {
            all[kind(a.value(k))] += a.value(k);
            taken[kind(a.value(k))] += takes(k) ? a.value(k) : 0.0;
        }
    }
    const double divisor = taken[1] == 0 ? own + all[1] : own;
    if (divisor == 0) {
        return;
    }
    for (std::int64_t k = begin; k < end; ++k) {
        const int of = kind(a.value(k));
        if (takes(k) && taken[of] != 0) {
            sum.add(a.number[a.col_idx[k]], -all[of] / taken[of] * a.value(k) / divisor);
        }
    }
}

/// Replaces the entry of a row in column `other`, which is no coarse point, by that row's entries in the coarse points
/// of the sum and in `row`.
template <class Source, class Sum>
constexpr void share_out(const Source& a, std::int64_t row, std::int64_t other, double entry, Sum& sum, double& divisor)
{
    const double own = a.diagonal[other];
    const std::int64_t begin = a.row_ptr[other];
    const std::int64_t end = a.row_ptr[other + 1];
    const auto opposite = [&](std::int64_t m) { return (a.value(m) < 0) != (own < 0); };
    const auto counts = [&](std::int64_t m) {
        const std::int64_t column = a.col_idx[m];
        return opposite(m) && column != other && a.number[column] >= 0 && sum.has(a.number[column]);
    };
    double all = 0;
    double comes_back = 0;
    for (std::int64_t m = begin; m < end; ++m) {
        all += counts(m) ? a.value(m) : 0.0;
        comes_back += a.col_idx[m] == row && opposite(m) ? a.value(m) : 0.0;
    }
    all += comes_back;
    if (all == 0) {
        divisor += entry;
        return;
    }
    for (std::int64_t m = begin; m < end; ++m) {
        if (counts(m)) {
            sum.add(a.number[a.col_idx[m]], entry * a.value(m) / all);
        }
    }
    if (comes_back != 0) {
        divisor += entry * comes_back / all;
    }
}

/// Interpolation::extended of a row that is no coarse point.
template <class Source, class Sum>
constexpr void interpolate_extended(const Source& a, std::int64_t row, Sum& sum)
{
    const std::int64_t begin = a.row_ptr[row];
    const std::int64_t end = a.row_ptr[row + 1];
    // The coarse points to take from.
    for (std::int64_t k = begin; k < end; ++k) {
        if (a.strong[k] == 0) {
            continue;
        }
        const std::int64_t other = a.col_idx[k];
        if (a.number[other] >= 0) {
            sum.add(a.number[other], 0.0);
            continue;
        }
        for (std::int64_t m = a.row_ptr[other]; m < a.row_ptr[other + 1]; ++m) {
            if (a.strong[m] != 0 && a.number[a.col_idx[m]] >= 0) {
                sum.add(a.number[a.col_idx[m]], 0.0);
            }
        }
    }
    if (sum.size() == 0) {
        return;
    }
    double divisor = a.diagonal[row];
    for (std::int64_t k = begin; k < end; ++k) {
        const std::int64_t other = a.col_idx[k];
        if (other == row) {
            continue;
        }
        const std::int32_t point = a.number[other];
        if (point >= 0 && sum.has(point)) {
            sum.add(point, a.value(k));
        } else if (point < 0 && a.strong[k] != 0) {
            share_out(a, row, other, a.value(k), sum, divisor);
        } else {
            divisor += a.value(k);
        }
    }
    if (divisor == 0) {
        sum.clear();
        return;
    }
    for (std::int64_t i = 0; i < sum.size(); ++i) {
        sum.set(i, sum.column(i), -sum.entry(i) / divisor);
    }
}

/// A row of P before truncation, into an empty sum; none where it has numbers that are not finite.
template <class Source, class Sum>
constexpr void interpolate_row(const Source& a, bool direct, std::int64_t row, Sum& sum)
{
    if (a.number[row] >= 0) {
        sum.add(a.number[row], 1.0);
    } else if (direct) {
        interpolate_directly(a, row, sum);
    } else {
        interpolate_extended(a, row, sum);
    }
    for (std::int64_t i = 0; i < sum.size(); ++i) {
        if (!is_number(sum.entry(i))) {
            sum.clear();
        }
    }
}

/// The most entries that interpolate_row() may leave.
template <class Source>
constexpr std::int64_t most_entries(const Source& a, bool direct, std::int64_t row)
{
    if (a.number[row] >= 0) {
        return 1;
    }
    std::int64_t most = 0;
    for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
        if (a.strong[k] == 0) {
            continue;
        }
        const std::int64_t other = a.col_idx[k];
        if (a.number[other] >= 0) {
            ++most;
        } else if (!direct) {
            for (std::int64_t m = a.row_ptr[other]; m < a.row_ptr[other + 1]; ++m) {
                most += a.strong[m] != 0 && a.number[a.col_idx[m]] >= 0 ? 1 : 0;
            }
        }
    }
    return most;
}

}  // namespace rmsp::matrix
