#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <rmsp/io.hpp>

#include "apps/mspmv/cluster_exchange.hpp"
#include "apps/mspmv/generated_size.hpp"
#include "tests/cluster/matrices.hpp"

/// What plans of clusters say of the exchange, against what clusters count.
namespace rmsp::test {
namespace {

struct Kind {
    const char* matrix;
    double most_error;  ///< of the model that makes no such matrix, relative
    const char* small = nullptr;
    const char* large = nullptr;  ///< the samples; null: by the offsets of the columns
};

class ClusterPlans : public testing::TestWithParam<Kind> {};

TEST_P(ClusterPlans, ForetellTheHalo)
{
    Cluster cluster = make_cluster("host:1");
    const Kind& kind = GetParam();
    const CsrMatrix<double> whole = generate<double>(kind.matrix);
    const ClusterRows<double> own = cluster.scatter(whole);
    const ClusterMatrix<double> a = cluster.distribute(own.rows.view(), own.first_row);

    // The cut, the ghosts of each process and the messages are counted as the cluster has them.
    const auto rank = static_cast<std::size_t>(cluster.rank());
    const mspmv::NodeCuts cuts = mspmv::cut_for_nodes(whole, cluster.size());
    EXPECT_TRUE(std::equal(cuts.rows.begin(), cuts.rows.end(), a.row_offsets().begin(), a.row_offsets().end()));
    EXPECT_TRUE(std::equal(cuts.cols.begin(), cuts.cols.end(), a.column_offsets().begin(), a.column_offsets().end()));
    const auto counted = mspmv::count_exchange(whole, cluster.size());
    EXPECT_EQ(counted[rank].ghosts, static_cast<double>(a.halo().ghosts));
    EXPECT_EQ(counted[rank].messages, a.halo().receives_from);
    EXPECT_EQ(mspmv::ghost_columns(whole, cuts, cluster.rank()).size(), static_cast<std::size_t>(a.halo().ghosts));

    Config::Matrix config;
    config.generate = kind.matrix;
    CsrMatrix<double> small;
    CsrMatrix<double> large;
    mspmv::ExchangeModel model;
    if (kind.small != nullptr) {
        small = generate<double>(kind.small);
        large = generate<double>(kind.large);
        model = mspmv::sampled_exchange(small, large);
    } else {
        model = mspmv::shifted_exchange(config).value();
    }
    const mspmv::NodeExchange foretold = model(cluster.size(), static_cast<double>(whole.rows));
    double most = 0;
    double messages = 0;
    double outside = 0;
    for (const mspmv::NodeExchange& node : counted) {
        most = std::max(most, node.ghosts);
        messages = std::max(messages, node.messages);
        outside = std::max(outside, node.outside);
    }
    const double error = most > 0 ? foretold.ghosts / most - 1 : foretold.ghosts;
    EXPECT_LE(std::abs(error), kind.most_error) << foretold.ghosts << " for " << most;
    EXPECT_EQ(foretold.messages, messages);
    EXPECT_NEAR(foretold.outside, outside, 0.15 * outside + 0.01);
    if (cluster.rank() == 0) {
        std::printf("%s on %d: %.0f ghosts, foretold %.0f (%+.1f %%)\n", kind.matrix, cluster.size(), most,
                    foretold.ghosts, 100 * error);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ClusterPlans,
    testing::Values(Kind{"stencil7 12 12 24", 0.01}, Kind{"stencil27 12 12 24", 0.1}, Kind{"stencil27 30 20 2", 0.2},
                    Kind{"banded 3000 7", 0}, Kind{"banded 3000 400", 0},
                    Kind{"random 6000 6000 5", 0.03, "random 1000 1000 5", "random 2000 2000 5"},
                    Kind{"rmat 12 8", 0.15, "rmat 9 8", "rmat 10 8"},
                    Kind{"powerlaw 6000 6 2.1", 0.15, "powerlaw 1000 6 2.1", "powerlaw 2000 6 2.1"}));

}  // namespace
}  // namespace rmsp::test
