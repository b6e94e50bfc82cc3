#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include <rmsp/runtime.hpp>
#include <rmsp/topology.hpp>

#include "tests/cluster/bits.hpp"
#include "tests/cluster/matrices.hpp"

// Processes with GPUs of their own, between which entries travel by NCCL, or by a GPU-aware MPI where the tests are
// linked with one. Skipped where a node has fewer GPUs than processes, and for one process.
namespace rmsp::test {
namespace {

Cluster make_gpu_cluster(const std::string& transport = "auto", const std::string& devices = "auto")
{
    RuntimeOptions options;
    options.devices = devices;
    options.cache = "off";
    return Cluster(MPI_COMM_WORLD, options, {.timeout_seconds = 60, .transport = transport});
}

/// What a Cluster of GPUs says: nothing if it has no NCCL to say it of.
std::string without_nccl(const Cluster& cluster)
{
    const ClusterTransport transport = cluster.transport();
    return transport.reason.find("not compiled") != std::string::npos ||
                   transport.reason.find("libnccl") != std::string::npos
               ? transport.reason
               : "";
}

class ClusterGpus : public testing::Test {
protected:
    void SetUp() override
    {
        MPI_Comm node = MPI_COMM_NULL;
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
        int on_node = 1;
        MPI_Comm_size(node, &on_node);
        MPI_Comm_free(&node);
        int size = 1;
        MPI_Comm_size(MPI_COMM_WORLD, &size);
        int enough = size > 1 && static_cast<int>(Topology::detect().gpus.size()) >= on_node ? 1 : 0;
        int all = 0;
        MPI_Allreduce(&enough, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (all == 0) {
            GTEST_SKIP() << "needs two processes or more, and a GPU for each";
        }
    }
};

struct Products {
    std::vector<double> y;
    std::vector<double> t;
};

/// 2 A x - y / 2 and 2 A^T y - x / 2, compared with a serial loop.
Products check_products(Cluster& cluster, const Whole<double>& whole, const DistributeOptions& options = {})
{
    const auto part = part_of(whole, uneven(whole.rows, cluster.size()), cluster.rank());
    ClusterMatrix<double> a = cluster.distribute(part.view, part.first, options);
    const std::int64_t x_first = a.column_offsets()[cluster.rank()];
    const std::int64_t x_end = a.column_offsets()[cluster.rank() + 1];
    const auto x = entries<double>(whole.cols, 1);
    const auto y = entries<double>(whole.rows, 2);
    Products found{slice(y, part.first, part.end), slice(x, x_first, x_end)};
    a.apply(2, slice(x, x_first, x_end).data(), -0.5, found.y.data());
    a.apply_transposed(2, slice(y, part.first, part.end).data(), -0.5, found.t.data());
    const auto expect_near = [](const std::vector<double>& some, const std::vector<double>& all, std::int64_t first) {
        for (std::size_t i = 0; i < some.size(); ++i) {
            ASSERT_NEAR(some[i], all[static_cast<std::size_t>(first) + i], 1e-11) << "entry " << i;
        }
    };
    expect_near(found.y, whole.product(2, x, -0.5, y, false), part.first);
    expect_near(found.t, whole.product(2, y, -0.5, x, true), x_first);
    return found;
}

/// A cluster whose entries travel from GPU to GPU that way; one of messages where the machine has none.
Cluster make_linked(const std::string& transport)
{
    Cluster cluster = make_gpu_cluster(transport);
    if (transport == "nccl" && without_nccl(cluster).empty()) {
        EXPECT_EQ(cluster.transport().name, "nccl") << cluster.transport().reason;
    }
    return cluster;
}

void expect_products_of_messages(const std::string& transport)
{
    Cluster linked = make_linked(transport);
    if (linked.transport().name != transport) {
        GTEST_SKIP() << linked.transport().reason;
    }
    Cluster mpi = make_gpu_cluster("mpi");
    EXPECT_EQ(mpi.transport().name, "mpi");
    DistributeOptions options;
    options.determinism = Determinism::run;
    for (const auto& whole : {grid<double>(40, 60, 0.3), random<double>(300, 300, 5), random<double>(200, 90, 6),
                              random<double>(3, 3, 2), rotation<double>(240, 77), grid<double>(300, 300)}) {
        const Products found = check_products(linked, whole, options);
        const Products by_messages = check_products(mpi, whole, options);
        EXPECT_EQ(found.y, by_messages.y);
        // With several GPUs a process each has its ghosts elsewhere, and kernels group the sums of A^T by where they
        // are.
        if (linked.runtime().devices().size() == 1) {
            EXPECT_EQ(found.t, by_messages.t);
        }
        check_products(linked, whole);
    }
}

TEST_F(ClusterGpus, ProductsByNcclHaveTheBitsOfMessages) { expect_products_of_messages("nccl"); }
TEST_F(ClusterGpus, ProductsByGpuAwareMpiHaveTheBitsOfMessages) { expect_products_of_messages("gpu-aware-mpi"); }

TEST_F(ClusterGpus, Solves)
{
    Cluster cluster = make_gpu_cluster();
    const auto whole = grid<double>(60, 60);
    const auto part = part_of(whole, uneven(whole.rows, cluster.size()), cluster.rank());
    auto a = cluster.distribute(part.view, part.first);
    for (const char* method : {"cg", "cg_single", "cg_pipelined", "bicgstab"}) {
        for (const char* preconditioner : {"none", "jacobi", "amg"}) {
            SCOPED_TRACE(std::string(method) + " " + preconditioner);
            SolverOptions options;
            options.method = method;
            options.preconditioner = preconditioner;
            options.max_iterations = 2000;
            options.preconditioner_options.multigrid.coarse_rows = 40;
            ClusterSolver<double> solver(a, options);
            auto x = a.make_x();
            auto b = a.make_y();
            auto ones = a.make_x();
            ones.fill(1);
            a.apply(1, ones, 0, b);
            x.fill(0);
            const SolveResult result = solver.solve(b, x);
            EXPECT_TRUE(result.converged()) << result.reason;
            std::vector<double> found(static_cast<std::size_t>(part.end - part.first));
            x.download(found.data());
            for (const double entry : found) {
                ASSERT_NEAR(entry, 1, 1e-4);
            }
        }
    }
}

/// Sums stay on the GPUs where workers speak MPI ("serialized") and each process has one GPU.
void expect_solves_of_messages(const std::string& transport)
{
    Cluster clusters[] = {make_linked(transport), make_gpu_cluster("mpi")};
    if (clusters[0].transport().name != transport) {
        GTEST_SKIP() << clusters[0].transport().reason;
    }
    const auto whole = grid<double>(100, 90);
    const auto part = part_of(whole, uneven(whole.rows, clusters[0].size()), clusters[0].rank());
    DistributeOptions distributed;
    distributed.determinism = Determinism::run;
    for (const char* method : {"cg", "cg_single", "cg_pipelined", "bicgstab"}) {
        SCOPED_TRACE(method);
        std::vector<double> found[2];
        std::int64_t iterations[2] = {};
        for (std::size_t i = 0; i < 2; ++i) {
            auto a = clusters[i].distribute(part.view, part.first, distributed);
            SolverOptions options;
            options.method = method;
            ClusterSolver<double> solver(a, options);
            auto x = a.make_x();
            auto b = a.make_y();
            b.fill(1);
            x.fill(0);
            const SolveResult result = solver.solve(b, x);
            EXPECT_TRUE(result.converged()) << result.reason;
            iterations[i] = result.iterations;
            found[i].resize(static_cast<std::size_t>(part.end - part.first));
            x.download(found[i].data());
        }
        EXPECT_EQ(iterations[0], iterations[1]);
        EXPECT_EQ(found[0], found[1]);
    }
}

TEST_F(ClusterGpus, SolvesByNcclHaveTheBitsOfMessages) { expect_solves_of_messages("nccl"); }
TEST_F(ClusterGpus, SolvesByGpuAwareMpiHaveTheBitsOfMessages) { expect_solves_of_messages("gpu-aware-mpi"); }

/// What the first process has, on all.
std::vector<double> of_first_process(std::vector<double> numbers)
{
    auto count = static_cast<int>(numbers.size());
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    numbers.resize(static_cast<std::size_t>(count));
    MPI_Bcast(numbers.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return numbers;
}

/// Processes with their share of the GPUs against the first process with all of them, by NCCL and by messages.
TEST_F(ClusterGpus, DeviceCountGivesTheBitsOfOneProcess)
{
    struct Case {
        Whole<double> whole;
        bool solves;
    };
    for (const Case& c : {Case{uneven_values(), true}, Case{grid<double>(300, 200), true},
                          Case{random<double>(5000, 5000, 7), false}, Case{grid<double>(90, 70, 0.3), false}}) {
        SCOPED_TRACE(c.whole.rows);
        std::vector<SolverOptions> solvers;
        for (const char* method : {"cg", "cg_single", "cg_pipelined"}) {
            for (const char* preconditioner : {"none", "jacobi"}) {
                solvers.emplace_back();
                solvers.back().method = method;
                solvers.back().preconditioner = preconditioner;
                solvers.back().max_iterations = 60;
            }
        }
        solvers.resize(c.solves ? solvers.size() : 0);
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        std::vector<double> product;
        std::vector<Bits> solved(solvers.size());
        if (rank == 0) {
            RuntimeOptions runtime;
            runtime.cache = "off";
            Cluster one(MPI_COMM_SELF, runtime);
            product = multiply_on(one, c.whole);
            for (std::size_t i = 0; i < solvers.size(); ++i) {
                solved[i] = solve_on(one, c.whole, solvers[i]);
            }
        }
        product = of_first_process(product);
        for (Bits& bits : solved) {
            bits.x = of_first_process(bits.x);
            bits.result.history = of_first_process(bits.result.history);
            bits.result.iterations =
                static_cast<std::int64_t>(of_first_process({static_cast<double>(bits.result.iterations)}).front());
        }
        for (const char* const transport : {"auto", "gpu-aware-mpi", "mpi"}) {
            Cluster cluster = make_gpu_cluster(transport);
            SCOPED_TRACE(cluster.transport().name);
            const std::int64_t first = uneven(c.whole.rows, cluster.size())[static_cast<std::size_t>(cluster.rank())];
            expect_same_entries(multiply_on(cluster, c.whole), product, first);
            for (std::size_t i = 0; i < solvers.size(); ++i) {
                SCOPED_TRACE(solvers[i].method + ", " + solvers[i].preconditioner);
                expect_same_bits(solve_on(cluster, c.whole, solvers[i]), solved[i], first);
            }
        }
    }
}

void expect_messages_after_an_error(const std::string& transport)
{
    Cluster cluster = make_linked(transport);
    if (cluster.transport().name != transport) {
        GTEST_SKIP() << cluster.transport().reason;
    }
    const auto whole = grid<double>(40, 60);
    const auto part = part_of(whole, uneven(whole.rows, cluster.size()), cluster.rank());
    auto a = cluster.distribute(part.view, part.first);
    auto x = a.make_x();
    auto y = a.make_y();
    x.fill(1);
    a.apply(1, x, 0, y);
    const double right = cluster.dot(x, y);
    std::string said;
    try {
        if (cluster.rank() + 1 == cluster.size()) {
            a.apply(1, y, 0, y);  // x and y are the same: refused here, while the others wait on their GPUs
        } else {
            a.apply(1, x, 0, y);
            (void)cluster.dot(x, y);  // whoever is not its neighbour hears of it here
        }
    } catch (const Error& error) {
        said = error.what();
    }
    EXPECT_NE(said.find("x and y are the same vector"), std::string::npos) << said;
    EXPECT_TRUE(cluster.usable());
    EXPECT_EQ(cluster.transport().name, "mpi");
    y.fill(0);
    a.apply(1, x, 0, y);
    EXPECT_DOUBLE_EQ(cluster.dot(x, y), right);
}

TEST_F(ClusterGpus, GoOnByMessagesAfterAnErrorOfOneByNccl) { expect_messages_after_an_error("nccl"); }
TEST_F(ClusterGpus, GoOnByMessagesAfterAnErrorOfOneByGpuAwareMpi) { expect_messages_after_an_error("gpu-aware-mpi"); }

TEST_F(ClusterGpus, ThatAreOneAndTheSameSendMessages)
{
    Cluster cluster = make_gpu_cluster("nccl", "0");
    if (const std::string why = without_nccl(cluster); !why.empty()) {
        GTEST_SKIP() << why;
    }
    EXPECT_NE(cluster.transport().name, "nccl");
    EXPECT_NE(cluster.transport().reason.find("processes 0 and 1 are on the same GPU"), std::string::npos)
        << cluster.transport().reason;
    check_products(cluster, grid<double>(20, 20, 0.3));
}

}  // namespace
}  // namespace rmsp::test
