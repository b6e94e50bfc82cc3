// In the middle of a solve the last process dies ("killed"), or is stopped ("stopped"; of both: "DEATH DEVICES"), or
// the link between two hosts is cut ("cut COMMAND RESULT": by the first process, with that command): the others throw
// an error that names it, or the time, within that time, and their devices still work. Where the link only pauses
// ("pause COMMAND RESULT") or becomes slow ("slow COMMAND RESULT"), nobody hears of it, and the solution is right. Ends
// all by itself.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/cluster/matrices.hpp"

namespace rmsp::test {
namespace {

double timeout_seconds = 2;

/// What a solve that does not converge has thrown, and the seconds since the last iteration that this process heard of.
struct Solve {
    std::string said;
    double silent = 0;
};

/// \param each  called on each process in each iteration from the 10th on; the first one's ends the solve by false
Solve solve(ClusterMatrix<double>& a, const std::function<bool()>& each)
{
    SolverOptions options;
    options.tolerance = 0;
    options.max_iterations = 1'000'000;
    auto since = std::chrono::steady_clock::now();
    options.callback = [&](const SolverProgress& progress) {
        const bool goes_on = progress.iteration < 10 || each();
        since = std::chrono::steady_clock::now();
        return goes_on;
    };
    ClusterSolver<double> solver(a, options);
    auto x = a.make_x();
    auto b = a.make_y();
    b.fill(1);
    x.fill(0);
    Solve result;
    try {
        solver.solve(b, x);
    } catch (const Error& error) {
        result.said = error.what();
    }
    result.silent = std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
    std::printf("%.2f s: %s\n", result.silent, result.said.c_str());
    return result;
}

/// Whether this process hears in time that it has lost another.
bool others_know(Cluster& cluster, bool killed, const std::function<bool()>& lose)
{
    const int last = cluster.size() - 1;
    const auto whole = grid<double>(20, 20);
    const auto part = part_of(whole, uneven(400, cluster.size()), cluster.rank());
    auto a = cluster.distribute(part.view, part.first);
    const auto [said, took] = solve(a, lose);
    const bool named =
        said.find(killed ? "process " + std::to_string(last) + " of"
                         : "waited " + std::to_string(static_cast<int>(timeout_seconds)) + " s") != std::string::npos;
    // Only the cluster is lost.
    std::string again;
    try {
        (void)cluster.dot(a.make_x(), a.make_x());
    } catch (const Error& error) {
        again = error.what();
    }
    auto own = cluster.runtime().distribute(part.view);
    auto z = own.make_y();
    z.fill(3);
    std::vector<double> entries(static_cast<std::size_t>(part.end - part.first));
    z.download(entries.data());
    return named && took < timeout_seconds + 3 && !cluster.usable() &&
           again.find("cannot be used any more") != std::string::npos && (entries.empty() || entries.back() == 3);
}

void lose_process(bool killed, const char* devices)
{
    Cluster cluster = make_cluster(devices, timeout_seconds);
    std::printf("transport %s: %s\n", cluster.transport().name.c_str(), cluster.transport().reason.c_str());
    const int last = cluster.size() - 1;
    // The id by which the first process ends a stopped one.
    int id = static_cast<int>(getpid());
    MPI_Bcast(&id, 1, MPI_INT, last, MPI_COMM_WORLD);
    const auto die = [&] {
        if (cluster.rank() == last) {
            raise(killed ? SIGKILL : SIGSTOP);
        }
        return true;
    };
    int good = others_know(cluster, killed, die) ? 1 : 0;
    if (cluster.rank() == 0) {
        for (int other = 1; other < last; ++other) {
            int theirs = 0;
            MPI_Recv(&theirs, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            good += theirs;
        }
        std::printf("%d of %d others know in time\n", good, last);
        std::fflush(stdout);
        kill(id, SIGKILL);
        for (int other = 1; other < last; ++other) {
            MPI_Send(&good, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
        }
    } else {
        // Nobody ends before all know, or that would be named too.
        MPI_Send(&good, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Recv(&good, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/// Whether a solve whose link becomes slow in the 10th iteration converges to the solution, with the bits and in the
/// iterations that it had over a fast one.
bool solves_over_slow_link(Cluster& cluster, const std::function<bool()>& slow_down)
{
    const auto whole = grid<double>(20, 20);
    const auto part = part_of(whole, uneven(400, cluster.size()), cluster.rank());
    auto a = cluster.distribute(part.view, part.first);
    auto x = a.make_x();
    auto b = a.make_y();
    x.fill(1);
    a.apply(1, x, 0, b);
    SolverOptions options;
    options.tolerance = 1e-10;
    std::vector<std::vector<double>> solutions;
    std::vector<SolveResult> results;
    std::vector<double> seconds;
    for (int turn = 0; turn < 2; ++turn) {
        if (turn == 1) {
            options.callback = [&](const SolverProgress& progress) { return progress.iteration < 10 || slow_down(); };
        }
        ClusterSolver<double> solver(a, options);
        x.fill(0);
        const auto began = std::chrono::steady_clock::now();
        results.push_back(solver.solve(b, x));
        seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
        x.download(solutions.emplace_back(static_cast<std::size_t>(part.end - part.first)).data());
    }
    std::printf("%.3f s and slowed down %.3f s\n", seconds[0], seconds[1]);
    return results[0].converged() && results[1].converged() && results[0].iterations == results[1].iterations &&
           solutions[0] == solutions[1] && cluster.usable();
}

/// \param fate  "pause": the link comes back, before the time is over; "slow": it stays, slowly; "cut"
void lose_link(const char* command, const std::string& result, std::string_view fate)
{
    Cluster cluster = make_cluster("host:1", timeout_seconds);
    bool cut = false;
    const auto began = std::chrono::steady_clock::now();
    const auto lose = [&] {
        if (cluster.rank() == 0 && !std::exchange(cut, true) && std::system(command) != 0) {
            std::fprintf(stderr, "%s failed\n", command);
        }
        return fate != "pause" || std::chrono::steady_clock::now() - began < std::chrono::milliseconds(1500);
    };
    bool good = false;
    if (fate == "slow") {
        good = solves_over_slow_link(cluster, lose);
    } else if (fate == "pause") {
        const auto whole = grid<double>(20, 20);
        const auto part = part_of(whole, uneven(400, cluster.size()), cluster.rank());
        auto a = cluster.distribute(part.view, part.first);
        good = solve(a, lose).said.empty() && cluster.usable();
    } else {
        good = others_know(cluster, false, lose);
    }
    std::ofstream(result + std::to_string(cluster.rank()))
        << "process " << cluster.rank() << (good ? " is right\n" : " is wrong\n");
}

}  // namespace
}  // namespace rmsp::test

int main(int argc, char** argv)
{
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
    const std::string_view death = argc > 1 ? argv[1] : "killed";
    if ((death == "cut" || death == "pause" || death == "slow") && argc == 4) {
        rmsp::test::lose_link(argv[2], argv[3], death);
    } else {
        if (argc > 2) {
            rmsp::test::timeout_seconds = 20;  // connecting GPUs takes a second or two
        }
        rmsp::test::lose_process(death == "killed", argc > 2 ? argv[2] : "host:1");
    }
    std::fflush(stdout);
    _exit(0);  // MPI_Finalize() would wait for the one that is lost
}
