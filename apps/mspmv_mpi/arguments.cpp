#include "apps/mspmv_mpi/arguments.hpp"

#include "apps/mspmv/man_page.hpp"

namespace rmsp::mpi {

void add_arguments(CLI::App& app, Arguments& arguments)
{
    app.name("mspmv-mpi");
    app.description("Products and solves over the processes of MPI, each with the devices of its node");
    app.footer(
        "Exit codes: as of mspmv.\n"
        "Examples:\n"
        "  mpirun -n 2 mspmv-mpi run configs/quickstart.toml\n"
        "  mpirun -n 2 mspmv-mpi solve configs/solve.toml --set solver.preconditioner=amg --json report.json\n"
        "  mpirun -n 2 mspmv-mpi doctor");
    app.require_subcommand(1);
    std::vector<std::string> transports = list_cluster_transports();
    transports.insert(transports.begin(), "auto");
    app.add_flag("--man", arguments.manual, "print the man page instead, for troff; alone, and without mpirun");
    for (const char* command : {"run", "solve", "eigen", "spgemm"}) {
        CLI::App* const sub = app.add_subcommand(command, std::string("What mspmv ") + command + " does on one node");
        sub->add_option("CONFIG", arguments.file,
                        "configuration file, as mspmv takes it; a plain .mtx and an .npz that is not compressed are "
                        "read in parts by all processes")
            ->required();
        sub->add_option("--set", arguments.overrides, "section.key=value over the file's");
        sub->add_option("--json", arguments.json, "report as JSON in this file, or - for standard output");
        sub->add_option(
               "--node-messages", arguments.cluster.node_messages,
               "entries between nodes of several processes: direct, gathered (one message for each two nodes), "
               "or auto, as a model expects to be faster")
            ->check(CLI::IsMember({"auto", "direct", "gathered"}));
        sub->add_option(
               "--transport", arguments.cluster.transport,
               "entries between processes: mpi, in host memory; nccl, from GPU to GPU; or auto, the default, NCCL "
               "where it works")
            ->check(CLI::IsMember(transports));
    }
    CLI::App* const doctor = app.add_subcommand("doctor", "Measure messages between each two processes");
    doctor->add_option("--mib", arguments.mib, "size of the large messages in MiB");
    doctor->add_option("--time-limit", arguments.time_limit_seconds, "seconds that a pair may take");
    doctor->add_option("--json", arguments.json, "report as JSON in this file, or - for standard output");
}

std::string manual()
{
    CLI::App app;
    Arguments arguments;
    add_arguments(app, arguments);
    return mspmv::man_page(app, "sparse matrices over the processes of MPI");
}

}  // namespace rmsp::mpi
