// Every process runs every test, with the others: a failure of one fails the program of all. With the argument
// "serialized" workers speak MPI themselves; else the thread that initialised it does for them.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <string_view>

#include "tests/cluster/matrices.hpp"

int main(int argc, char** argv)
{
    int provided = 0;
    const bool serialized = argc > 1 && std::string_view(argv[1]) == "serialized";
    MPI_Init_thread(&argc, &argv, serialized ? MPI_THREAD_SERIALIZED : MPI_THREAD_FUNNELED, &provided);
    testing::InitGoogleTest(&argc, argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank != 0) {
        // One process reports; the others say only what fails.
        auto& listeners = testing::UnitTest::GetInstance()->listeners();
        delete listeners.Release(listeners.default_result_printer());
        struct Failures : testing::EmptyTestEventListener {
            void OnTestPartResult(const testing::TestPartResult& result) override
            {
                if (result.failed()) {
                    std::fprintf(stderr, "%s:%d: %s\n", result.file_name() == nullptr ? "" : result.file_name(),
                                 result.line_number(), result.message());
                }
            }
        };
        listeners.Append(new Failures);
    }
    const int status = RUN_ALL_TESTS();
    MPI_Finalize();
    return status;
}
