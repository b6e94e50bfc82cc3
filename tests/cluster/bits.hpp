#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/cluster/matrices.hpp"

/// What Determinism::device_count promises, on host devices and on GPUs.
namespace rmsp::test {

/// What a solve leaves, bit for bit.
struct Bits {
    std::vector<double> x;
    SolveResult result;
};

inline DistributeOptions of_any_count()
{
    DistributeOptions options;
    options.determinism = Determinism::device_count;
    return options;
}

/// Small matrices too, which would be faster on one.
inline DistributeOptions on_all_devices(const Cluster& cluster)
{
    DistributeOptions options = of_any_count();
    options.devices = static_cast<int>(cluster.runtime().devices().size());
    return options;
}

/// Rows whose sums and inner products depend on their order.
inline Whole<double> uneven_values()
{
    auto whole = grid<double>(23, 31, 0);
    for (std::int64_t row = 0; row < whole.rows; ++row) {
        for (std::int64_t k = whole.row_ptr[static_cast<std::size_t>(row)];
             k < whole.row_ptr[static_cast<std::size_t>(row) + 1]; ++k) {
            const std::int64_t column = whole.col_idx[static_cast<std::size_t>(k)];
            whole.values[static_cast<std::size_t>(k)] *=
                column == row ? 1.7 + 0.01 * static_cast<double>(row % 13)
                              : 0.6 + 0.1 * std::sin(0.7 * static_cast<double>(row * column + row + column));
        }
    }
    return whole;
}

inline Bits solve_on(Cluster& cluster, const Whole<double>& whole, const SolverOptions& options)
{
    const auto part = part_of(whole, uneven(whole.rows, cluster.size()), cluster.rank());
    const auto b = entries<double>(whole.rows, 3);
    const auto a = cluster.distribute(part.view, part.first, on_all_devices(cluster));
    Bits bits;
    bits.x.resize(static_cast<std::size_t>(part.end - part.first));
    bits.result = ClusterSolver<double>(a, options).solve(slice(b, part.first, part.end).data(), bits.x.data());
    return bits;
}

/// A x of this process's rows; there is no product with A^T of that determinism.
inline std::vector<double> multiply_on(Cluster& cluster, const Whole<double>& whole)
{
    const auto part = part_of(whole, uneven(whole.rows, cluster.size()), cluster.rank());
    auto a = cluster.distribute(part.view, part.first, on_all_devices(cluster));
    const auto x = entries<double>(whole.cols, 1);
    std::vector<double> y(static_cast<std::size_t>(part.end - part.first));
    a.apply(1, slice(x, part.first, part.end).data(), 0, y.data());
    double nothing = 0;
    cluster.sum({&nothing, 1});  // who still waits for entries would hear of what others fail in next
    std::string refused;
    try {
        std::vector<double> t(y.size());
        a.apply_transposed(1, y.data(), 0, t.data());
        cluster.sum({&nothing, 1});  // who has nothing to exchange hears of it here
    } catch (const Error& error) {
        refused = error.code() == ErrorCode::usage ? error.what() : "";
    }
    EXPECT_NE(refused, "");
    return y;
}

inline void expect_same_entries(const std::vector<double>& found, const std::vector<double>& alone, std::int64_t first)
{
    for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i], alone[static_cast<std::size_t>(first) + i]) << "entry " << i;
    }
}

inline void expect_same_bits(const Bits& found, const Bits& alone, std::int64_t first)
{
    EXPECT_EQ(found.result.iterations, alone.result.iterations);
    EXPECT_EQ(found.result.history, alone.result.history);
    expect_same_entries(found.x, alone.x, first);
}

}  // namespace rmsp::test
