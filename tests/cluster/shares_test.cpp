#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <rmsp/io.hpp>

#include "tests/cluster/matrices.hpp"

/// How processes of different speed share rows.
namespace rmsp::test {
namespace {

int rank_of()
{
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

/// What each process has, as all know it.
std::vector<double> of_all(const Cluster& cluster, double own)
{
    std::vector<double> all(static_cast<std::size_t>(cluster.size()));
    all[static_cast<std::size_t>(cluster.rank())] = own;
    cluster.sum(all);
    return all;
}

/// Long rows first, then short ones: by entries and by bytes rows are cut at other places.
CsrMatrix<double> long_and_short_rows()
{
    CsrMatrix<double> a;
    a.rows = 2000;
    a.cols = 2000;
    HostVector<std::int64_t> columns;
    a.row_ptr.push_back(0);
    for (std::int64_t row = 0; row < a.rows; ++row) {
        for (std::int64_t k = 0; k < (row < 400 ? 20 : 2); ++k) {
            columns.push_back((row + 7 * k) % a.cols);
            a.values.push_back(1.0 + static_cast<double>(k));
        }
        std::sort(columns.end() - (row < 400 ? 20 : 2), columns.end());
        a.row_ptr.push_back(static_cast<std::int64_t>(a.values.size()));
    }
    a.col_idx = std::move(columns);
    return a;
}

TEST(ClusterShares, NonzerosByTheWeightsOfAllDevices)
{
    RuntimeOptions options;
    options.devices = "host:2x1";
    options.weights = {0.5, rank_of() + 0.5};  // together 1, 2, 3, 4
    Cluster cluster(MPI_COMM_WORLD, options);
    const CsrMatrix<double> a = long_and_short_rows();
    const double of_weights = cluster.size() * (cluster.size() + 1) / 2.0;
    const auto own = static_cast<double>(cluster.scatter(a).rows.nnz());
    const double fair = static_cast<double>(a.nnz()) * (cluster.rank() + 1) / of_weights;
    EXPECT_NEAR(own, fair, 20);  // a row
    EXPECT_EQ(static_cast<double>(cluster.scatter(a, Balance::nonzeros).rows.nnz()), own);
}

TEST(ClusterShares, MoreNonzerosToProcessesWithMoreDevices)
{
    Cluster cluster = make_cluster(rank_of() == 0 ? "host:2x1" : "host:1x1");
    const CsrMatrix<double> a = long_and_short_rows();
    const double fair = static_cast<double>(a.nnz()) * (cluster.rank() == 0 ? 2 : 1) / (cluster.size() + 1);
    EXPECT_NEAR(static_cast<double>(cluster.scatter(a).rows.nnz()), fair, 20);
}

TEST(ClusterShares, PredictedTime)
{
    RuntimeOptions options;
    options.devices = "host:2x1";
    options.limit_gbs = 10 * (rank_of() + 1);
    Cluster cluster(MPI_COMM_WORLD, options);
    const CsrMatrix<double> a = long_and_short_rows();
    const ClusterRows<double> own = cluster.scatter(a, Balance::time);
    const auto bytes = [](const CsrMatrix<double>& rows) {
        return 12 * static_cast<double>(rows.nnz()) + 20 * static_cast<double>(rows.rows);
    };
    const std::vector<double> seconds = of_all(cluster, bytes(own.rows) / options.limit_gbs);
    const double most_of_a_row = (12 * 20 + 20) / 10.0;
    for (const double each : seconds) {
        EXPECT_NEAR(each, seconds.front(), 2 * most_of_a_row);
    }
    // Where short rows are, which take more bytes an entry, there are fewer entries.
    double rows = static_cast<double>(own.rows.rows);
    cluster.sum({&rows, 1});
    EXPECT_EQ(rows, 2000);

    // A file is cut at the same rows, in parts and by one reader.
    for (const char* const name : {"shares.mtx", "shares.mtx.gz"}) {
        SCOPED_TRACE(name);
        const std::string path = fmt::format("cluster-{}-{}", cluster.size(), name);
        if (cluster.rank() == 0) {
            write_matrix(path, a.view());
        }
        MPI_Barrier(MPI_COMM_WORLD);
        const ClusterRows<double> read = cluster.read<double>(path, {}, nullptr, Balance::time);
        EXPECT_EQ(read.first_row, own.first_row);
        EXPECT_EQ(read.rows.rows, own.rows.rows);
        EXPECT_EQ(cluster.read<double>(path).first_row, cluster.scatter(a).first_row);
        MPI_Barrier(MPI_COMM_WORLD);
        if (cluster.rank() == 0) {
            std::remove(path.c_str());
        }
    }
}

TEST(ClusterShares, AskForTheSameBalance)
{
    Cluster cluster = make_cluster("host:1x1");
    if (cluster.size() == 1) {
        GTEST_SKIP() << "one process";
    }
    const CsrMatrix<double> a = long_and_short_rows();
    try {
        (void)cluster.scatter(a, cluster.rank() == 1 ? Balance::time : Balance::nonzeros);
        FAIL() << "scattered";
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("processes 0 and 1 share rows by another balance"), std::string::npos)
            << error.what();
    }
    EXPECT_TRUE(cluster.usable());
}

}  // namespace
}  // namespace rmsp::test
