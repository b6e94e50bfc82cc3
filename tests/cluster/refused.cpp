// Clusters that are refused when they are made, which every process has to hear. "version": processes of two commits of
// librmsp, of which the second one's commit() is this program's, in the place of the library's. "threads": an MPI that
// was initialised for programs of one thread.
#include <mpi.h>

#include <cstdio>
#include <string>
#include <string_view>

#include <rmsp/cluster.hpp>
#include <rmsp/error.hpp>
#include <rmsp/version.hpp>

namespace {
int other = -1;  // the process of another commit
int rank = 0;
}  // namespace

namespace rmsp {
const char* commit() noexcept { return rank == other ? "1234567" : "7654321"; }
}  // namespace rmsp

int main(int argc, char** argv)
{
    const bool version = argc > 1 && std::string_view(argv[1]) == "version";
    int provided = 0;
    MPI_Init_thread(&argc, &argv, version ? MPI_THREAD_SERIALIZED : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = version ? 1 : -1;
    int told = 0;
    try {
        const rmsp::Cluster cluster(MPI_COMM_WORLD, {.devices = "host:1x1"});
        // There are MPIs that give more than they are asked for.
        told = !version && provided > MPI_THREAD_SINGLE ? 1 : 0;
    } catch (const rmsp::Error& error) {
        const std::string text = error.what();
        const auto says = [&](const char* part) { return text.find(part) != std::string::npos; };
        told =
            (version ? says("process 1") && says("another commit") : says("with MPI_THREAD_FUNNELED or more")) ? 1 : 0;
        std::printf("%s\n", text.c_str());
    }
    int all = 0;
    MPI_Allreduce(&told, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        std::printf("%d processes know\n", all);
    }
    MPI_Finalize();
    return 0;
}
