#include "matrix/aggregation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/value_types.hpp"
#include "matrix/row_sums.hpp"

namespace rmsp::matrix {

NearNullspace constants(std::int64_t rows, int unknowns)
{
    NearNullspace out;
    out.count = unknowns;
    out.values.resize(static_cast<std::size_t>(rows * unknowns));
    for_each_row(rows, [&](std::int64_t row) {
        for (int c = 0; c < unknowns; ++c) {
            out.values[static_cast<std::size_t>(row * unknowns + c)] = row % unknowns == c ? 1.0 : 0.0;
        }
    });
    return out;
}

Tentative tentative(Coarsening nodes, int unknowns, const NearNullspace& near_nullspace)
{
    const auto node_count = static_cast<std::int64_t>(nodes.number.size());
    const int count = near_nullspace.count;
    if (count < 1 || static_cast<std::int64_t>(near_nullspace.values.size()) != node_count * unknowns * count) {
        throw Error(ErrorCode::usage, fmt::format("a near-nullspace of {} numbers, {} vectors: the matrix has {} rows",
                                                  near_nullspace.values.size(), count, node_count * unknowns));
    }
    Tentative t;
    t.count = count;
    t.unknowns = unknowns;
    t.values = near_nullspace.values;
    // Nodes by aggregate.
    HostVector<std::int64_t> first(static_cast<std::size_t>(nodes.count) + 1);
    std::fill(first.begin(), first.end(), 0);
    for (const std::int32_t aggregate : nodes.number) {
        if (aggregate >= 0) {
            ++first[static_cast<std::size_t>(aggregate) + 1];
        }
    }
    for (std::size_t i = 1; i < first.size(); ++i) {
        first[i] += first[i - 1];
    }
    HostVector<std::int64_t> members(static_cast<std::size_t>(first.back()));
    HostVector<std::int64_t> place(first.begin(), first.end() - 1);
    for (std::int64_t node = 0; node < node_count; ++node) {
        const std::int32_t aggregate = nodes.number[static_cast<std::size_t>(node)];
        if (aggregate >= 0) {
            members[static_cast<std::size_t>(place[static_cast<std::size_t>(aggregate)]++)] = node;
        }
    }
    t.coarse.count = count;
    t.coarse.values.resize(static_cast<std::size_t>(nodes.count * count * count));
    std::fill(t.coarse.values.begin(), t.coarse.values.end(), 0.0);
    for_each_row(nodes.count, [&](std::int64_t aggregate) {
        const std::int64_t begin = first[static_cast<std::size_t>(aggregate)];
        const std::int64_t end = first[static_cast<std::size_t>(aggregate) + 1];
        const auto for_rows = [&](const auto& f) {
            for (std::int64_t m = begin; m < end; ++m) {
                for (int u = 0; u < unknowns; ++u) {
                    const std::int64_t row = members[static_cast<std::size_t>(m)] * unknowns + u;
                    f(&t.values[static_cast<std::size_t>(row * count)]);
                }
            }
        };
        const auto product = [&](int a, int b) {
            double sum = 0;
            for_rows([&](const double* row) { sum += row[a] * row[b]; });
            return sum;
        };
        double* const r = &t.coarse.values[static_cast<std::size_t>(aggregate * count * count)];
        for (int c = 0; c < count; ++c) {
            const double before = std::sqrt(product(c, c));
            for (int pass = 0; pass < 2; ++pass) {
                for (int b = 0; b < c; ++b) {
                    const double along = product(b, c);
                    r[b * count + c] += along;
                    for_rows([&](double* row) { row[c] -= along * row[b]; });
                }
            }
            const double norm = std::sqrt(product(c, c));
            constexpr double dependent = 1e-10;
            const bool good = norm > dependent * before;
            r[c * count + c] = good ? norm : 0.0;
            for_rows([&](double* row) { row[c] = good ? row[c] / norm : 0.0; });
        }
    });
    for_each_row(node_count, [&](std::int64_t node) {
        if (nodes.number[static_cast<std::size_t>(node)] < 0) {
            std::fill_n(&t.values[static_cast<std::size_t>(node * unknowns * count)], unknowns * count, 0.0);
        }
    });
    t.nodes = std::move(nodes);
    return t;
}

namespace {

/// A_F of smoothed_prolongator(), without a copy.
template <class T>
class Filtered {
public:
    Filtered(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Tentative& t)
        : a_(a), strong_(strong), keeps_all_(t.count > 1), diagonal(static_cast<std::size_t>(a.rows))
    {
        // The near-null vector; 1 where there is none.
        const auto near = [&](std::int64_t row) {
            const std::int32_t aggregate = t.nodes.number[static_cast<std::size_t>(row)];
            const double value = aggregate < 0 ? 0.0
                                               : t.values[static_cast<std::size_t>(row)] *
                                                     t.coarse.values[static_cast<std::size_t>(aggregate)];
            return value != 0 ? value : 1.0;
        };
        for_each_row(a.rows, [&](std::int64_t row) {
            double own = 0;
            double weak = 0;
            double strong_sizes = 0;
            for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
                const std::int64_t column = a.col_idx[k];
                if (column == row) {
                    own += a.values[k];
                } else if (!keeps(k)) {
                    weak += a.values[k] * near(column) / near(row);
                } else {
                    strong_sizes += std::fabs(a.values[k]);
                }
            }
            // Weak entries of a row without strong ones may cancel its diagonal.
            const double sum = own + weak;
            const double all = std::fabs(sum) > 1e-12 * std::fabs(own) ? sum : own;
            const bool smooth = keeps_all_ || strong_sizes <= most_of_diagonal * std::fabs(all);
            diagonal[static_cast<std::size_t>(row)] = smooth ? all : 0.0;
        });
    }
    /// f(column, value) for the strong entries of a row.
    template <class F>
    void for_strong(std::int64_t row, const F& f) const
    {
        for (std::int64_t k = a_.row_ptr[row]; k < a_.row_ptr[row + 1]; ++k) {
            if (keeps(k) && a_.col_idx[k] != row) {
                f(a_.col_idx[k], double{a_.values[k]});
            }
        }
    }
    double inverse(std::int64_t row) const
    {
        const double own = diagonal[static_cast<std::size_t>(row)];
        return own != 0 && std::isfinite(own) ? 1 / own : 0.0;
    }

private:
    bool keeps(std::int64_t k) const { return keeps_all_ || strong_[static_cast<std::size_t>(k)] != 0; }

    const CsrView<T>& a_;
    std::span<const std::uint8_t> strong_;
    bool keeps_all_;

public:
    HostVector<double> diagonal;
};

/// Of D^-1 A_F, from below, by the power method, whose outcome does not depend on threads.
/// \param v  the last vector of an earlier estimate, from which few steps go on; empty: none. Becomes the last vector
template <class T>
double largest_eigenvalue(const Filtered<T>& a, std::int64_t rows, HostVector<double>& v)
{
    const bool again = !v.empty();
    const int steps = again ? power_steps_again : power_steps;
    HostVector<double> w(static_cast<std::size_t>(rows));
    if (!again) {
        v.resize(static_cast<std::size_t>(rows));
        for_each_row(rows, [&](std::int64_t row) {
            // Rough: signs that change, lengths that differ.
            const std::uint64_t bits = (static_cast<std::uint64_t>(row) + 1) * 0x9e3779b97f4a7c15U;
            v[static_cast<std::size_t>(row)] = static_cast<double>(bits >> 11U) * 0x1p-52 - 1;
        });
    }
    for (int step = 0; step < steps; ++step) {
        const PowerStep how = power_step(step, steps);
        for_each_row(rows, [&](std::int64_t row) {
            const auto at = static_cast<std::size_t>(row);
            double sum = a.inverse(row) != 0 ? v[at] : 0.0;
            a.for_strong(row, [&](std::int64_t column, double value) {
                sum += a.inverse(row) * value * v[static_cast<std::size_t>(column)];
            });
            w[at] = how.next(sum, v[at], w[at]);
        });
        std::swap(v, w);
    }
    const auto plus_square = [](double sum, double x) { return sum + x * x; };
    const double squares_before = std::accumulate(w.begin(), w.end(), 0.0, plus_square);
    const double squares = std::accumulate(v.begin(), v.end(), 0.0, plus_square);
    if (!(squares > 0) || !(squares_before > 0) || !std::isfinite(squares)) {
        v.clear();  // it was of no use
        return again ? largest_eigenvalue(a, rows, v) : 0.0;
    }
    const double scale = 1 / std::sqrt(squares);
    for_each_row(rows, [&](std::int64_t row) { v[static_cast<std::size_t>(row)] *= scale; });
    return std::sqrt(squares / squares_before);
}

}  // namespace

template <class T>
CsrMatrix<T> smoothed_prolongator(const CsrView<T>& a, std::span<const std::uint8_t> strong, const Tentative& t,
                                  bool smooth, const std::function<double(double)>& agreed, HostVector<double>* vector)
{
    const Filtered<T> filtered(a, strong, t);
    HostVector<double> own;
    const double found = smooth ? largest_eigenvalue(filtered, a.rows, vector != nullptr ? *vector : own) : 0.0;
    const double largest = smooth && agreed ? agreed(found) : found;
    const double omega = largest > 0 ? 4.0 / 3.0 / largest : 0.0;
    const auto add_row = [&](std::int64_t row, double factor, RowSum& sum) {
        const std::int32_t aggregate = t.nodes.number[static_cast<std::size_t>(row / t.unknowns)];
        if (aggregate >= 0) {
            for (int c = 0; c < t.count; ++c) {
                sum.add(aggregate * t.count + c, factor * t.values[static_cast<std::size_t>(row * t.count + c)]);
            }
        }
    };
    return collect_rows<T>(a.rows, t.columns(), [&](std::int64_t row, RowSum& sum) {
        const double scale = omega * filtered.inverse(row);
        add_row(row, scale != 0 ? 1 - omega : 1.0, sum);
        if (smooth) {
            filtered.for_strong(row, [&](std::int64_t column, double value) { add_row(column, -scale * value, sum); });
        }
    });
}

NearNullspace rigid_body_modes(int dimensions, std::span<const double> coordinates)
{
    if ((dimensions != 2 && dimensions != 3) || coordinates.empty() ||
        coordinates.size() % static_cast<std::size_t>(dimensions) != 0) {
        throw Error(
            ErrorCode::usage,
            fmt::format("rigid body modes of {} coordinates in {} dimensions: they must be 2 or 3 for each node",
                        coordinates.size(), dimensions));
    }
    const auto nodes = static_cast<std::int64_t>(coordinates.size()) / dimensions;
    std::array<double, 3> middle{};
    double reach = 0;
    const auto at = [&](std::int64_t node, int axis) {
        return coordinates[static_cast<std::size_t>(node * dimensions + axis)];
    };
    for (int axis = 0; axis < dimensions; ++axis) {
        double sum = 0;
        for (std::int64_t node = 0; node < nodes; ++node) {
            sum += at(node, axis);
        }
        middle[static_cast<std::size_t>(axis)] = sum / static_cast<double>(nodes);
        for (std::int64_t node = 0; node < nodes; ++node) {
            reach = std::max(reach, std::fabs(at(node, axis) - middle[static_cast<std::size_t>(axis)]));
        }
    }
    const double scale = reach > 0 ? 1 / reach : 1.0;
    NearNullspace out;
    out.count = dimensions == 2 ? 3 : 6;
    out.values.resize(static_cast<std::size_t>(nodes * dimensions * out.count));
    std::fill(out.values.begin(), out.values.end(), 0.0);
    for_each_row(nodes, [&](std::int64_t node) {
        const auto entry = [&](int axis, int mode) -> double& {
            return out.values[static_cast<std::size_t>((node * dimensions + axis) * out.count + mode)];
        };
        const auto offset = [&](int axis) { return scale * (at(node, axis) - middle[static_cast<std::size_t>(axis)]); };
        for (int axis = 0; axis < dimensions; ++axis) {
            entry(axis, axis) = 1;
        }
        // A rotation in the plane of two axes.
        int mode = dimensions;
        for (int a = 0; a < dimensions; ++a) {
            for (int b = a + 1; b < dimensions; ++b) {
                entry(a, mode) = -offset(b);
                entry(b, mode) = offset(a);
                ++mode;
            }
        }
    });
    return out;
}

#define RMSP_INSTANTIATE(T)                                                                                        \
    template CsrMatrix<T> smoothed_prolongator(const CsrView<T>&, std::span<const std::uint8_t>, const Tentative&, \
                                               bool, const std::function<double(double)>&, HostVector<double>*);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::matrix
