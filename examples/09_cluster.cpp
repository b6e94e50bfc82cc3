// A matrix over the processes of MPI, each with all its devices: mpirun -n 2 example_09_cluster
#include <cmath>
#include <cstdio>
#include <vector>

#include <mpi.h>

#include <rmsp/cluster.hpp>

namespace {

/// Rows [first, end) of the Laplacian of a line, as an application has them: all columns, 64-bit.
struct Rows {
    std::vector<std::int64_t> row_ptr{0};
    std::vector<std::int64_t> col_idx;
    std::vector<double> values;
};

Rows make_rows(std::int64_t first, std::int64_t end, std::int64_t n)
{
    Rows rows;
    for (std::int64_t row = first; row < end; ++row) {
        for (const std::int64_t column : {row - 1, row, row + 1}) {
            if (column >= 0 && column < n) {
                rows.col_idx.push_back(column);
                rows.values.push_back(column == row ? 2.001 : -1.0);
            }
        }
        rows.row_ptr.push_back(static_cast<std::int64_t>(rows.values.size()));
    }
    return rows;
}

int solve()
{
    rmsp::Cluster cluster(MPI_COMM_WORLD, rmsp::RuntimeOptions::from_environment({}));
    const std::int64_t n = 100'000;
    const std::int64_t first = n * cluster.rank() / cluster.size();
    const std::int64_t end = n * (cluster.rank() + 1) / cluster.size();
    const Rows rows = make_rows(first, end, n);
    const rmsp::CsrView<double> view{
        end - first,       n, static_cast<std::int64_t>(rows.values.size()), rows.row_ptr.data(), rows.col_idx.data(),
        rows.values.data()};

    // Columns are numbered anew and the halo is found, once.
    auto matrix = cluster.distribute(view, first);

    // Vectors are this process's entries, on its devices.
    auto x = matrix.make_x();
    auto b = matrix.make_y();
    x.fill(1.0);
    matrix.apply(1.0, x, 0.0, b);
    x.fill(0.0);

    rmsp::SolverOptions options;
    options.method = "cg";
    options.preconditioner = "schwarz-ic0";  // of each process's own rows
    rmsp::ClusterSolver<double> solver(matrix, options);
    const rmsp::SolveResult result = solver.solve(b, x);

    std::vector<double> mine(static_cast<std::size_t>(end - first));
    x.download(mine.data());
    double worst = 0;
    for (const double entry : mine) {
        worst = std::fmax(worst, std::fabs(entry - 1.0));
    }
    const rmsp::HaloReport halo = matrix.halo();
    std::printf("process %d of %d: %lld ghosts, %lld bytes sent, %s after %lld iterations, largest error %.2g\n",
                cluster.rank(), cluster.size(), static_cast<long long>(halo.ghosts),
                static_cast<long long>(halo.bytes_sent), rmsp::to_string(result.outcome),
                static_cast<long long>(result.iterations), worst);
    return result.converged() && worst < 1e-3 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv)
{
    int threads = 0;
    // MPI_THREAD_FUNNELED suffices; with this, threads of librmsp speak MPI without a detour.
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &threads);
    int status = 1;
    try {
        status = solve();
    } catch (const rmsp::Error& error) {
        // One process's error is thrown on all.
        std::fprintf(stderr, "%s\n", error.what());
    }
    MPI_Finalize();
    return status;
}
