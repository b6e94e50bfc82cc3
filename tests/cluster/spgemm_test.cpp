#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/cluster/matrices.hpp"

namespace rmsp::test {
namespace {

/// Row `row` of alpha A B, one multiplication after the other.
template <class T>
std::map<std::int64_t, double> product_row(const Whole<T>& a, const Whole<T>& b, std::int64_t row, double alpha)
{
    std::map<std::int64_t, double> sums;
    for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
        const std::int64_t k = a.col_idx[i];
        for (std::int64_t j = b.row_ptr[k]; j < b.row_ptr[k + 1]; ++j) {
            sums[b.col_idx[j]] += alpha * static_cast<double>(a.values[i]) * static_cast<double>(b.values[j]);
        }
    }
    return sums;
}

template <class T>
void expect_rows(const ClusterRows<T>& found, const Whole<T>& a, const Whole<T>& b, std::int64_t first, double alpha)
{
    ASSERT_EQ(found.first_row, first);
    ASSERT_EQ(found.rows.cols, b.cols);
    for (std::int64_t row = 0; row < found.rows.rows; ++row) {
        const auto wanted = product_row(a, b, first + row, alpha);
        std::int64_t at = found.rows.row_ptr[row];
        ASSERT_EQ(found.rows.row_ptr[row + 1] - at, static_cast<std::int64_t>(wanted.size())) << row;
        for (const auto& [column, value] : wanted) {
            ASSERT_EQ(found.rows.col_idx[at], column);
            ASSERT_NEAR(found.rows.values[at++], value, sizeof(T) == 4 ? 1e-4 : 1e-12);
        }
    }
}

template <class T>
void check_product(Cluster& cluster, Whole<T> a, Whole<T> b)
{
    const auto of_a = part_of(a, uneven(a.rows, cluster.size()), cluster.rank());
    const auto of_b = part_of(b, uneven(b.rows, cluster.size()), cluster.rank());
    ClusterProduct<T> product(cluster, of_a.view, of_a.first, of_b.view, of_b.first);
    product.compute(T{2});
    expect_rows(product.download(), a, b, of_a.first, 2);

    // Each row that others have came once.
    std::set<std::int64_t> needed;
    for (std::int64_t i = 0; i < of_a.view.nnz; ++i) {
        if (of_a.view.col_idx[i] < of_b.first || of_a.view.col_idx[i] >= of_b.end) {
            needed.insert(of_a.view.col_idx[i]);
        }
    }
    EXPECT_EQ(product.fetched_rows(), static_cast<std::int64_t>(needed.size()));
    std::int64_t nonzeros = 0;
    for (const std::int64_t row : needed) {
        nonzeros += b.row_ptr[row + 1] - b.row_ptr[row];
    }
    EXPECT_EQ(product.fetched_nonzeros(), nonzeros);

    for (T& value : b.values) {
        value = value * T{0.5} + T{0.25};
    }
    product.update_values(nullptr, of_b.view.values);
    product.compute();
    expect_rows(product.download(), a, b, of_a.first, 1);
    for (T& value : a.values) {
        value = T{1} - value;
    }
    product.update_values(of_a.view.values, nullptr);
    product.compute();
    expect_rows(product.download(), a, b, of_a.first, 1);
}

TEST(ClusterSpgemm, IsThatOfOneProcess)
{
    for (const char* devices : {"host:1", "host:2"}) {
        Cluster cluster = make_cluster(devices);
        check_product(cluster, grid<double>(7, 9), grid<double>(7, 9));
        check_product(cluster, random<float>(50, 30, 4), random<float>(30, 70, 3));
        check_product(cluster, random<double>(20, 90, 5), random<double>(90, 4, 2));
        check_product(cluster, rotation<double>(24, 11), random<double>(24, 24, 3));
        check_product(cluster, random<double>(0, 0, 1), random<double>(0, 0, 1));
    }
}

TEST(ClusterSpgemm, OfAProductIsMultipliedWithVectors)
{
    Cluster cluster = make_cluster("host:1");
    const auto a = grid<double>(8, 8);
    const auto part = part_of(a, uneven(64, cluster.size()), cluster.rank());
    ClusterProduct<double> square(cluster, part.view, part.first, part.view, part.first);
    square.compute();
    const ClusterRows<double> rows = square.download();
    auto once = cluster.distribute(part.view, part.first);
    auto twice = cluster.distribute(rows.rows.view(), rows.first_row);
    auto x = once.make_x();
    auto y = once.make_y();
    auto z = once.make_y();
    x.upload(slice(entries<double>(64, 1), part.first, part.end).data());
    once.apply(1, x, 0, y);
    once.apply(1, y, 0, z);
    const double norm = cluster.norm2(z);
    twice.apply(-1, x, 1, z);
    EXPECT_LT(cluster.norm2(z), 1e-13 * norm);
}

TEST(ClusterSpgemm, NamesWhatDoesNotFit)
{
    Cluster cluster = make_cluster("host:1");
    const auto a = random<double>(20, 30, 3);
    const auto part = part_of(a, uneven(20, cluster.size()), cluster.rank());
    const auto refused = [&](const auto& f, const char* part_of_text) {
        try {
            f();
            ADD_FAILURE() << "not refused: " << part_of_text;
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(part_of_text), std::string::npos) << error.what();
        }
    };
    refused([&] { ClusterProduct<double>(cluster, part.view, part.first, part.view, part.first); }, "B has 20 rows");
    refused([&] { ClusterProduct<double>(cluster, part.view, part.first + 1, part.view, part.first); },
            "rows of A from");
    const auto b = grid<double>(6, 5);
    const auto of_b = part_of(b, uneven(30, cluster.size()), cluster.rank());
    ClusterProduct<double> product(cluster, part.view, part.first, of_b.view, of_b.first);
    if (cluster.size() > 1) {
        const bool last = cluster.rank() == cluster.size() - 1;
        refused([&] { product.update_values(nullptr, last ? of_b.view.values : nullptr); }, "but not on all");
    }
    product.compute();
    expect_rows(product.download(), a, b, part.first, 1);
}

}  // namespace
}  // namespace rmsp::test
