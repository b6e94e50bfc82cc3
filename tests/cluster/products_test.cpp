#include <gtest/gtest.h>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <rmsp/kernel_info.hpp>
#include <rmsp/vector_operations.hpp>

#include "tests/cluster/matrices.hpp"

namespace rmsp::test {
namespace {

template <class T>
void expect_near(const std::vector<T>& found, const std::vector<T>& wanted, std::int64_t first, const char* what)
{
    const double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-13;
    for (std::size_t i = 0; i < found.size(); ++i) {
        ASSERT_NEAR(found[i], wanted[static_cast<std::size_t>(first) + i], tolerance * 40) << what << ", entry " << i;
    }
}

/// Hardware threads that this process may use.
std::vector<int> own_threads()
{
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(getpid(), sizeof(set), &set);
    std::vector<int> threads;
    for (int thread = 0; thread < CPU_SETSIZE; ++thread) {
        if (CPU_ISSET(static_cast<std::size_t>(thread), &set)) {
            threads.push_back(thread);
        }
    }
    return threads;
}

/// Products with A and A^T of host vectors and of vectors on the devices, and of new values, against a serial loop.
template <class T>
void check_products(Cluster& cluster, Whole<T> whole, const DistributeOptions& options = {})
{
    const auto part = part_of(whole, uneven(whole.rows, cluster.size()), cluster.rank());
    ClusterMatrix<T> a = cluster.distribute(part.view, part.first, options);
    ASSERT_EQ(a.rows(), whole.rows);
    ASSERT_EQ(a.cols(), whole.cols);
    ASSERT_EQ(a.nnz(), static_cast<std::int64_t>(whole.values.size()));
    const std::int64_t x_first = a.column_offsets()[cluster.rank()];
    const std::int64_t x_end = a.column_offsets()[cluster.rank() + 1];
    const auto x = entries<T>(whole.cols, 1);
    const auto z = entries<T>(whole.rows, 2);
    for (const T beta : {T{0}, T{-0.5}}) {
        auto y = slice(z, part.first, part.end);
        a.apply(T{2}, slice(x, x_first, x_end).data(), beta, y.data());
        expect_near(y, whole.product(2, x, beta, z, false), part.first, "A x");
        auto t = slice(x, x_first, x_end);
        a.apply_transposed(T{2}, slice(z, part.first, part.end).data(), beta, t.data());
        expect_near(t, whole.product(2, z, beta, x, true), x_first, "A^T x");
    }
    for (T& value : whole.values) {
        value = value * T{0.5} + T{0.25};
    }
    a.update_values(whole.values.data() + whole.row_ptr[static_cast<std::size_t>(part.first)]);
    DistributedVector<T> dx = a.make_x();
    DistributedVector<T> dy = a.make_y();
    dx.upload(slice(x, x_first, x_end).data());
    a.apply(T{1}, dx, T{0}, dy);
    std::vector<T> y(static_cast<std::size_t>(part.end - part.first));
    dy.download(y.data());
    expect_near(y, whole.product(1, x, 0, z, false), part.first, "A x of new values");
}

TEST(ClusterProducts, AreThoseOfOneProcess)
{
    for (const char* devices : {"host:1", "host:3"}) {
        Cluster cluster = make_cluster(devices);
        check_products(cluster, grid<double>(9, 11));
        check_products(cluster, grid<float>(9, 11));
        check_products(cluster, random<double>(57, 57, 5));
        check_products(cluster, random<double>(40, 90, 6));
        check_products(cluster, random<float>(90, 23, 4));
        check_products(cluster, random<double>(3, 3, 2));
        check_products(cluster, random<double>(1, 200, 150));
        check_products(cluster, random<double>(0, 0, 1));
        check_products(cluster, rotation<double>(24, 7));
        check_products(cluster, rotation<double>(24, 12));
    }
}

TEST(ClusterProducts, OfEveryKernelOfHostDevices)
{
    Cluster cluster = make_cluster();
    for (const KernelInfo& kernel : list_kernels()) {
        if (kernel.family == "spmv" && kernel.device == DeviceKind::host && kernel.format == Format::csr) {
            SCOPED_TRACE(kernel.name);
            DistributeOptions options;
            options.kernel = kernel.name;
            check_products(cluster, grid<double>(8, 12, 0.3), options);
        }
    }
}

TEST(ClusterProducts, ExchangeExactlyTheHalo)
{
    Cluster cluster = make_cluster();
    const auto whole = random<double>(60, 60, 4);
    const auto part = part_of(whole, uneven(whole.rows, cluster.size()), cluster.rank());
    ClusterMatrix<double> a = cluster.distribute(part.view, part.first);
    std::set<std::int64_t> needed;
    for (std::int64_t i = 0; i < part.view.nnz; ++i) {
        const std::int64_t column = part.view.col_idx[i];
        if (column < part.first || column >= part.end) {
            needed.insert(column);
        }
    }
    EXPECT_EQ(a.halo().ghosts, static_cast<std::int64_t>(needed.size()));
    double numbers[2] = {static_cast<double>(needed.size()), static_cast<double>(a.halo().sent)};
    cluster.sum(numbers);
    EXPECT_EQ(numbers[0], numbers[1]);
    auto x = a.make_x();
    auto y = a.make_y();
    x.fill(1);
    EXPECT_EQ(a.halo().bytes_sent, 0);
    for (int i = 1; i <= 3; ++i) {
        a.apply(1, x, 0, y);
        EXPECT_EQ(a.halo().bytes_sent, 8 * i * a.halo().sent);
    }
}

TEST(ClusterProducts, OfAMatrixThatTheFirstProcessHas)
{
    Cluster cluster = make_cluster("host:1");
    for (const std::int64_t rows : {0, 1, 3, 70}) {
        const auto all = random<double>(rows, rows + 2, 3);
        CsrMatrix<double> whole;
        if (cluster.rank() == 0) {
            whole = {all.rows, all.cols, HostVector<std::int64_t>(all.row_ptr.begin(), all.row_ptr.end()),
                     HostVector<std::int64_t>(all.col_idx.begin(), all.col_idx.end()),
                     HostVector<double>(all.values.begin(), all.values.end())};
        }
        const ClusterRows<double> own = cluster.scatter(whole);
        ClusterMatrix<double> a = cluster.distribute(own.rows.view(), own.first_row);
        ASSERT_EQ(a.rows(), rows);
        ASSERT_EQ(a.nnz(), static_cast<std::int64_t>(all.values.size()));
        // Each has its share of the nonzeros, but for a row.
        EXPECT_LE(own.rows.nnz(), a.nnz() / cluster.size() + 2 * 3);
        const auto x = entries<double>(all.cols, 4);
        std::vector<double> y(static_cast<std::size_t>(own.rows.rows));
        a.apply(1, slice(x, a.column_offsets()[cluster.rank()], a.column_offsets()[cluster.rank() + 1]).data(), 0,
                y.data());
        expect_near(y, all.product(1, x, 0, std::vector<double>(static_cast<std::size_t>(rows)), false), own.first_row,
                    "A x");
    }
}

TEST(ClusterRuntimes, OfProcessesOnOneNodeHaveCoresOfTheirOwn)
{
    const std::vector<int> before = own_threads();
    Cluster cluster(MPI_COMM_WORLD, {.devices = "host:1x1"});
    EXPECT_EQ(own_threads(), before);
    const Placement placement = cluster.runtime().devices().front().placement;
    ASSERT_EQ(placement.threads.size(), 1u);
    // How many processes are on each hardware thread; as long as there is one for each, nobody shares.
    std::vector<double> on(static_cast<std::size_t>(before.back()) + 1);
    on[static_cast<std::size_t>(placement.threads.front())] = 1;
    cluster.sum(on);
    std::size_t cores = 0;
    for (const NumaNode& node : Topology::detect().nodes) {
        cores += node.cores.size();
    }
    const auto most = (static_cast<std::size_t>(cluster.size()) + cores - 1) / cores;
    EXPECT_LE(*std::max_element(on.begin(), on.end()), static_cast<double>(most));
}

TEST(ClusterVectors, DotsAndNormsAreOfAllProcesses)
{
    Cluster cluster = make_cluster();
    const auto whole = grid<double>(10, 10);
    const auto part = part_of(whole, uneven(100, cluster.size()), cluster.rank());
    const auto a = cluster.distribute(part.view, part.first);
    auto x = a.make_x();
    auto y = a.make_y();
    x.fill(2);
    y.fill(3);
    EXPECT_EQ(cluster.dot(x, y), 600);
    axpy(1.0, x, y);
    EXPECT_EQ(cluster.norm2(y), 50);
}

}  // namespace
}  // namespace rmsp::test
