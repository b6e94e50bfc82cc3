#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <rmsp/cluster.hpp>

#include "apps/mspmv_mpi/doctor.hpp"

/// The command line of mspmv-mpi.
namespace rmsp::mpi {

struct Arguments {
    std::string file;
    std::string json;  ///< empty: none; "-": standard output
    ClusterOptions cluster;
    std::vector<std::string> overrides;
    double mib = static_cast<double>(LinkOptions().bytes) / (1 << 20);
    double time_limit_seconds = LinkOptions().time_limit_seconds;
    bool manual = false;
};

/// Commands and options, which write to `arguments` when they are parsed.
void add_arguments(CLI::App& app, Arguments& arguments);

/// The page of the manual, made of the same texts.
std::string manual();

}  // namespace rmsp::mpi
