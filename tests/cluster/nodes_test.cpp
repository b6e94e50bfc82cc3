#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "tests/cluster/matrices.hpp"

namespace rmsp::test {
namespace {

/// Processes of this machine that pretend to be on several nodes.
struct Nodes {
    const char* name;
    int (*of)(int rank, int size);
};
constexpr Nodes arrangements[] = {{"halves", [](int rank, int size) { return rank < (size + 1) / 2 ? 7 : 3; }},
                                  {"in turn", [](int rank, int) { return rank % 2; }},
                                  {"one and the others", [](int rank, int) { return rank == 0 ? 0 : 1; }},
                                  {"one node", [](int, int) { return 5; }},
                                  {"each its own", [](int rank, int) { return rank; }}};

Cluster cluster_of_nodes(const Nodes& nodes, const char* messages)
{
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    RuntimeOptions options;
    options.devices = "host:2";
    options.bind = BindPolicy::none;
    return Cluster(MPI_COMM_WORLD, options,
                   {.timeout_seconds = 20, .node_messages = messages, .node = nodes.of(rank, size)});
}

std::vector<std::int64_t> even(std::int64_t rows, int processes)
{
    std::vector<std::int64_t> offsets;
    for (int p = 0; p <= processes; ++p) {
        offsets.push_back(rows * p / processes);
    }
    return offsets;
}

double total(const Cluster& cluster, double own)
{
    cluster.sum({&own, 1});
    return own;
}

struct Found {
    std::vector<double> y;
    std::vector<double> t;
    HaloReport halo;
};

Found multiply(const Nodes& nodes, const char* messages, const Whole<double>& whole)
{
    Cluster cluster = cluster_of_nodes(nodes, messages);
    const auto part = part_of(whole, uneven(whole.rows, cluster.size()), cluster.rank());
    auto a = cluster.distribute(part.view, part.first);
    const std::int64_t x_first = a.column_offsets()[static_cast<std::size_t>(cluster.rank())];
    const std::int64_t x_end = a.column_offsets()[static_cast<std::size_t>(cluster.rank()) + 1];
    Found found;
    for (int turn = 0; turn < 3; ++turn) {
        found.y = slice(entries<double>(whole.rows, 2), part.first, part.end);
        a.apply(2, slice(entries<double>(whole.cols, 1 + turn), x_first, x_end).data(), -0.5, found.y.data());
        found.t = slice(entries<double>(whole.cols, 3), x_first, x_end);
        a.apply_transposed(2, slice(entries<double>(whole.rows, 4 + turn), part.first, part.end).data(), -0.5,
                           found.t.data());
    }
    found.halo = a.halo();
    return found;
}

void expect_same_bits(const std::vector<double>& a, const std::vector<double>& b)
{
    ASSERT_EQ(a.size(), b.size());
    EXPECT_TRUE(a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

/// Messages and entries between nodes, as they have to be counted in the matrix that all have.
struct Between {
    std::size_t messages = 0;
    std::size_t entries = 0;
};
Between between(const Whole<double>& whole, const std::vector<std::int64_t>& rows,
                const std::vector<std::int64_t>& columns, const std::vector<int>& node_of, bool gathered)
{
    std::set<std::pair<int, int>> messages;
    std::set<std::tuple<int, int, std::int64_t>> found;
    for (int p = 0; p + 1 < static_cast<int>(rows.size()); ++p) {
        const auto to = static_cast<std::size_t>(p);
        for (std::int64_t k = whole.row_ptr[static_cast<std::size_t>(rows[to])];
             k < whole.row_ptr[static_cast<std::size_t>(rows[to + 1])]; ++k) {
            const std::int64_t column = whole.col_idx[static_cast<std::size_t>(k)];
            const auto from = static_cast<std::size_t>(std::upper_bound(columns.begin(), columns.end(), column) -
                                                       columns.begin() - 1);
            if (node_of[from] != node_of[to]) {
                const int who = gathered ? node_of[to] : p;
                messages.emplace(gathered ? node_of[from] : static_cast<int>(from), who);
                found.emplace(static_cast<int>(from), who, column);
            }
        }
    }
    return {messages.size(), found.size()};
}

TEST(ClusterNodes, GatheredMessagesBringTheSameBits)
{
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (const Nodes& nodes : arrangements) {
        SCOPED_TRACE(nodes.name);
        std::vector<int> node_of;
        for (int p = 0; p < size; ++p) {
            node_of.push_back(nodes.of(p, size));
        }
        const std::size_t count = std::set<int>(node_of.begin(), node_of.end()).size();
        const bool can_gather = count > 1 && count < node_of.size();
        for (const auto& whole : {grid<double>(9, 13, 0.2), random<double>(61, 61, 6), random<double>(40, 90, 5),
                                  rotation<double>(30, 11)}) {
            const Found direct = multiply(nodes, "direct", whole);
            const Found gathered = multiply(nodes, "gathered", whole);
            expect_same_bits(gathered.y, direct.y);
            expect_same_bits(gathered.t, direct.t);
            EXPECT_FALSE(direct.halo.gathered);
            EXPECT_EQ(gathered.halo.gathered, can_gather) << gathered.halo.node_reason;
            EXPECT_EQ(gathered.halo.ghosts, direct.halo.ghosts);

            const auto rows = uneven(whole.rows, size);
            auto columns = rows;
            if (whole.rows != whole.cols) {
                columns.clear();
                for (int p = 0; p <= size; ++p) {
                    columns.push_back(whole.cols / size * p + std::min<std::int64_t>(p, whole.cols % size));
                }
            }
            Cluster cluster = make_cluster("host:1");
            for (const auto* const found : {&direct, &gathered}) {
                const Between wanted = between(whole, rows, columns, node_of, found == &gathered && can_gather);
                EXPECT_EQ(total(cluster, found->halo.messages_between_nodes), static_cast<double>(wanted.messages));
                EXPECT_EQ(total(cluster, static_cast<double>(found->halo.entries_between_nodes)),
                          static_cast<double>(wanted.entries));
            }
        }
    }
}

TEST(ClusterNodes, SolversTakeTheSameIterations)
{
    const auto whole = grid<double>(20, 30);
    std::vector<SolveResult> results;
    std::vector<std::vector<double>> solutions;
    for (const char* const messages : {"direct", "gathered"}) {
        Cluster cluster = cluster_of_nodes(arrangements[0], messages);
        const auto part = part_of(whole, even(whole.rows, cluster.size()), cluster.rank());
        const auto a = cluster.distribute(part.view, part.first);
        for (const char* const method : {"cg", "cg_pipelined"}) {
            SolverOptions options;
            options.method = method;
            options.preconditioner = method == std::string("cg") ? "amg" : "jacobi";
            options.preconditioner_options.multigrid.coarse_rows = 40;
            const std::vector<double> b(static_cast<std::size_t>(part.end - part.first), 1);
            solutions.emplace_back(b.size());
            results.push_back(ClusterSolver<double>(a, options).solve(b.data(), solutions.back().data()));
        }
    }
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_TRUE(results[i].converged());
        EXPECT_EQ(results[i].iterations, results[i + 2].iterations);
        expect_same_bits(solutions[i], solutions[i + 2]);
    }
}

TEST(ClusterNodes, TheModelGathersWhatWouldBeManyMessages)
{
    Cluster cluster = cluster_of_nodes(arrangements[0], "auto");
    const auto reason_of = [&](const Whole<double>& whole) {
        const auto part = part_of(whole, even(whole.rows, cluster.size()), cluster.rank());
        return cluster.distribute(part.view, part.first).halo();
    };
    const HaloReport few = reason_of(grid<double>(8, 16));
    const HaloReport many = reason_of(random<double>(80, 80, 9));
    EXPECT_FALSE(few.gathered) << few.node_reason;
    if (cluster.size() == 4) {
        EXPECT_TRUE(many.gathered) << many.node_reason;
        EXPECT_TRUE(many.node_reason.starts_with("8 messages between nodes as 2")) << many.node_reason;
        EXPECT_TRUE(few.node_reason.starts_with("2 messages between nodes as 2")) << few.node_reason;
    } else if (cluster.size() < 3) {
        EXPECT_EQ(few.node_reason, cluster.size() == 1 ? "all processes are on one node" : "each process is a node");
    }
}

TEST(ClusterNodes, BadOptionsAreRefused)
{
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const bool last = rank + 1 == size;
    const auto message = [](const ClusterOptions& options) -> std::string {
        try {
            Cluster cluster(MPI_COMM_WORLD, {.devices = "host:1", .bind = BindPolicy::none}, options);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::usage);
            return error.what();
        }
        return {};
    };
    EXPECT_EQ(message({.node_messages = "few"}), "node_messages is \"few\", it must be auto, direct or gathered");
    EXPECT_NE(message({.node = -2}).find("the node of a process is -2"), std::string::npos);
    if (size > 1) {
        EXPECT_NE(message({.node_messages = last ? "direct" : "auto"}).find("node_messages differs"),
                  std::string::npos);
        EXPECT_NE(message({.node = last ? 0 : -1}).find("whether a node is given differs"), std::string::npos);
    }
}

}  // namespace
}  // namespace rmsp::test
