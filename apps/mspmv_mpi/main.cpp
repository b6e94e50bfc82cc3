// mpirun -n N mspmv-mpi run|solve CONFIG: what mspmv does on one node, over the processes of MPI. The first process
// reads and reports. mpirun -n N mspmv-mpi doctor: messages between the processes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include <mpi.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <rmsp/cluster.hpp>
#include <rmsp/config.hpp>
#include <rmsp/version.hpp>

#include "apps/mspmv_mpi/doctor.hpp"

namespace rmsp {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

/// What keys ask for and this program does not do.
void check(const Config& config, bool solves)
{
    const auto refuse = [](const char* key, const std::string& value, const char* why) {
        throw Error(ErrorCode::usage, fmt::format("{} is \"{}\", but mspmv-mpi {}", key, value, why));
    };
    if (config.matrix.format != "csr" && config.matrix.format != "auto") {
        refuse("matrix.format", config.matrix.format, "multiplies csr");
    }
    if (config.run.mode != "resident") {
        refuse("run.mode", config.run.mode, "keeps matrices on the devices");
    }
    for (const auto& [key, file] : {std::pair{"run.x", &config.run.x},
                                    {"run.y_in", &config.run.y_in},
                                    {"run.y", &config.run.y},
                                    {"solver.guess", &config.solver.guess},
                                    {"solver.output", &config.solver.output}}) {
        if (!file->empty()) {
            refuse(key, *file, "reads and writes no vectors yet");
        }
    }
    if (solves && config.solver.rhs != "ones" && config.solver.rhs != "A*x") {
        refuse("solver.rhs", config.solver.rhs, "has \"ones\" and \"A*x\"");
    }
    if (solves && config.solver.inner != "none") {
        refuse("solver.inner", config.solver.inner, "has no inner solver");
    }
}

/// One process's line of the report, as all have it.
Json gather(const Json& own, MPI_Comm communicator)
{
    const std::string text = own.dump();
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &size);
    const int length = static_cast<int>(text.size());
    std::vector<int> lengths(static_cast<std::size_t>(size));
    MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, communicator);
    std::vector<int> offsets(lengths.size());
    int total = 0;
    for (std::size_t p = 0; p < lengths.size(); ++p) {
        offsets[p] = total;
        total += lengths[p];
    }
    std::string all(static_cast<std::size_t>(total), ' ');
    MPI_Gatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(), offsets.data(), MPI_CHAR, 0, communicator);
    Json array = Json::array();
    for (std::size_t p = 0; rank == 0 && p < lengths.size(); ++p) {
        array.push_back(
            Json::parse(all.substr(static_cast<std::size_t>(offsets[p]), static_cast<std::size_t>(lengths[p]))));
    }
    return array;
}

template <class T>
Json describe_process(const Cluster& cluster, const ClusterMatrix<T>& a, const CsrMatrix<T>& rows)
{
    char name[MPI_MAX_PROCESSOR_NAME] = {};
    int length = 0;
    MPI_Get_processor_name(name, &length);
    Json devices = Json::array();
    for (const DeviceInfo& device : cluster.runtime().devices()) {
        devices.push_back(device.name);
    }
    const HaloReport halo = a.halo();
    return {{"process", cluster.rank()},
            {"node", name},
            {"devices", devices},
            {"rows", rows.rows},
            {"nonzeros", rows.nnz()},
            {"ghosts", halo.ghosts},
            {"sent", halo.sent},
            {"receives_from", halo.receives_from},
            {"sends_to", halo.sends_to},
            {"find_seconds", halo.find_seconds},
            {"distribute_seconds", halo.distribute_seconds}};
}

/// Times products of ones, compares the last one with a reference. Returns what the report says of them.
template <class T>
Json run_products(const Config& config, Cluster& cluster, ClusterMatrix<T>& a, const CsrMatrix<T>& rows,
                  std::int64_t first_row)
{
    const auto alpha = static_cast<T>(config.run.alpha);
    const auto beta = static_cast<T>(config.run.beta);
    // Of x every process knows all entries.
    const auto entry = [](std::int64_t i) {
        return static_cast<T>(static_cast<double>((i * 7919) % 2001) / 1000.0 - 1.0);
    };
    const auto me = static_cast<std::size_t>(cluster.rank());
    HostVector<T> own;
    for (std::int64_t i = a.column_offsets()[me]; i < a.column_offsets()[me + 1]; ++i) {
        own.push_back(entry(i));
    }
    auto x = a.make_x();
    auto y = a.make_y();
    x.upload(own.data());
    y.fill(T{0});
    std::vector<double> seconds;
    for (std::int64_t i = -config.run.warmup; i < config.run.iterations; ++i) {
        double wait = 0;
        cluster.sum({&wait, 1});  // all begin together
        const auto began = Clock::now();
        a.apply(alpha, x, beta, y);
        if (i >= 0) {
            seconds.push_back(seconds_since(began));
        }
    }
    std::sort(seconds.begin(), seconds.end());
    Json report{{"median_seconds", seconds[seconds.size() / 2]}, {"min_seconds", seconds.front()}};
    if (config.run.verify) {
        y.fill(T{0});
        a.apply(alpha, x, beta, y);
        HostVector<T> all(static_cast<std::size_t>(a.cols()));
        for (std::int64_t i = 0; i < a.cols(); ++i) {
            all[static_cast<std::size_t>(i)] = entry(i);
        }
        HostVector<T> found(static_cast<std::size_t>(rows.rows));
        HostVector<T> zeros(found.size(), T{0});
        y.download(found.data());
        const Verification verification = verify_spmv(rows.view(), alpha, all.data(), beta, zeros.data(), found.data());
        double wrong = verification.passed ? 0 : 1;
        cluster.sum({&wrong, 1});
        report["verified"] = wrong == 0;
        if (wrong != 0) {
            throw Error(ErrorCode::verification,
                        fmt::format("y differs from the reference on {} of {} processes (this one's rows begin at {})",
                                    wrong, cluster.size(), first_row));
        }
    }
    return report;
}

template <class T>
Json run_solve(const Config& config, Cluster& cluster, ClusterMatrix<T>& a)
{
    auto x = a.make_x();
    auto b = a.make_y();
    if (config.solver.rhs == "ones") {
        b.fill(T{1});
    } else {
        x.fill(T{1});
        a.apply(T{1}, x, T{0}, b);
    }
    x.fill(T{0});
    const auto began = Clock::now();
    ClusterSolver<T> solver(a, solver_options(config));
    const double setup = seconds_since(began);
    const SolveResult result = solver.solve(b, x);
    return {{"method", config.solver.method},
            {"preconditioner", config.solver.preconditioner},
            {"preconditioner_over", fmt::format("the rows of each of {} processes (additive Schwarz)", cluster.size())},
            {"outcome", to_string(result.outcome)},
            {"iterations", result.iterations},
            {"true_residual", result.true_residual},
            {"target", result.target},
            {"setup_seconds", setup},
            {"seconds", result.seconds},
            {"reason", result.reason}};
}

std::string text_of(const Json& report)
{
    std::string text = fmt::format("matrix     {}: {} x {}, {} nonzeros\n", report["matrix"].get<std::string>(),
                                   report["rows"].get<std::int64_t>(), report["cols"].get<std::int64_t>(),
                                   report["nonzeros"].get<std::int64_t>());
    for (const Json& p : report["processes"]) {
        text +=
            fmt::format("process {}  {}, {} devices ({}): {} rows, {} nonzeros; {} ghosts of {} processes, {} sent\n",
                        p["process"].get<int>(), p["node"].get<std::string>(), p["devices"].size(),
                        p["devices"].empty() ? "" : p["devices"][0].get<std::string>(), p["rows"].get<std::int64_t>(),
                        p["nonzeros"].get<std::int64_t>(), p["ghosts"].get<std::int64_t>(),
                        p["receives_from"].get<int>(), p["sent"].get<std::int64_t>());
    }
    for (const char* part : {"product", "solve"}) {
        if (report.contains(part)) {
            text += part;
            for (const auto& [key, value] : report[part].items()) {
                if (value != "") {
                    text += fmt::format("\n           {}: {}", key,
                                        value.is_string() ? value.get<std::string>() : value.dump());
                }
            }
            text += '\n';
        }
    }
    return text;
}

/// The text to standard output, JSON where it is asked for: "-" in place of the text.
void print(const std::string& text, const Json& report, const std::string& json)
{
    if (json != "-") {
        std::fputs(text.c_str(), stdout);
    }
    if (json == "-") {
        std::puts(report.dump(2).c_str());
    } else if (!json.empty()) {
        std::ofstream file(json);
        file << report.dump(2) << '\n';
        if (!file) {
            throw Error(ErrorCode::io, fmt::format("{} cannot be written", json));
        }
    }
}

template <class T>
int run(Cluster& cluster, const Config& config, bool solves)
{
    CsrMatrix<T> whole;
    std::string failed;
    double wrong = 0;
    if (cluster.rank() == 0) {
        try {
            whole = load_matrix<T>(config.matrix);
        } catch (const std::exception& error) {
            failed = error.what();
            wrong = 1;
        }
    }
    cluster.sum({&wrong, 1});
    if (wrong != 0) {
        throw Error(ErrorCode::io, failed.empty() ? "the first process could not read the matrix" : failed);
    }
    const ClusterRows<T> own = cluster.scatter(whole);
    whole = {};
    DistributeOptions options = distribute_options(config);
    options.x_layout = Layout::rows;
    options.alignment = RowAlignment::row;
    ClusterMatrix<T> a = cluster.distribute(own.rows.view(), own.first_row, options);
    Json report{{"matrix", describe(config.matrix)},
                {"rows", a.rows()},
                {"cols", a.cols()},
                {"nonzeros", a.nnz()},
                {"librmsp", version()}};
    bool converged = true;
    if (solves) {
        report["solve"] = run_solve(config, cluster, a);
        converged = report["solve"]["outcome"] == "converged";
    } else {
        report["product"] = run_products(config, cluster, a, own.rows, own.first_row);
    }
    report["processes"] = gather(describe_process(cluster, a, own.rows), MPI_COMM_WORLD);
    if (cluster.rank() == 0) {
        print(text_of(report), report, config.output.json);
    }
    return converged ? 0 : static_cast<int>(ErrorCode::not_converged);
}

int run(const Config& config, bool solves)
{
    Cluster cluster(MPI_COMM_WORLD, runtime_options(config));
    try {
        return config.matrix.precision == "float" ? run<float>(cluster, config, solves)
                                                  : run<double>(cluster, config, solves);
    } catch (const Error& error) {
        if (!cluster.usable()) {
            // MPI_Finalize() would wait for what does not come. Each that is left says what it knows.
            std::fprintf(stderr, "mspmv-mpi: error: %s\n", error.what());
            MPI_Abort(MPI_COMM_WORLD, static_cast<int>(error.code()));
        }
        throw;
    }
}

int examine_links(const mpi::LinkOptions& options, const std::string& json, int rank)
{
    try {
        const Json report = mpi::measure_links(MPI_COMM_WORLD, options);
        if (rank == 0) {
            print(mpi::links_text(report), report, json);
        }
        return 0;
    } catch (const Error& error) {
        if (error.code() == ErrorCode::device) {
            // Others may wait for what does not come.
            std::fprintf(stderr, "mspmv-mpi: error: process %d: %s\n", rank, error.what());
            MPI_Abort(MPI_COMM_WORLD, static_cast<int>(error.code()));
        }
        throw;
    }
}

int start(int argc, char** argv, int rank)
{
    CLI::App app("Products and solves over the processes of MPI: mpirun -n N mspmv-mpi run|solve CONFIG, doctor",
                 "mspmv-mpi");
    std::string file;
    std::string json;
    std::vector<std::string> overrides;
    app.require_subcommand(1);
    for (const char* command : {"run", "solve"}) {
        CLI::App* const sub = app.add_subcommand(command, std::string("what mspmv ") + command + " does on one node");
        sub->add_option("CONFIG", file, "configuration file, as mspmv takes it")->required();
        sub->add_option("--set", overrides, "section.key=value over the file's");
        sub->add_option("--json", json, "report as JSON in this file, or - for standard output");
    }
    mpi::LinkOptions links;
    double mib = static_cast<double>(links.bytes) / (1 << 20);
    CLI::App* const doctor = app.add_subcommand("doctor", "measure messages between each two processes");
    doctor->add_option("--mib", mib, "size of the large messages in MiB");
    doctor->add_option("--time-limit", links.time_limit_seconds, "seconds that a pair may take");
    doctor->add_option("--json", json, "report as JSON in this file, or - for standard output");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return rank == 0 ? app.exit(error) : error.get_exit_code() == 0 ? 0 : static_cast<int>(ErrorCode::usage);
    }
    if (app.got_subcommand(doctor)) {
        links.bytes = static_cast<std::int64_t>(std::clamp(mib, 0.0, 1e6) * (1 << 20));
        return examine_links(links, json, rank);
    }
    Config config = load_config(file, overrides);
    apply_environment(config);
    if (!json.empty()) {
        config.output.json = json;
    }
    const bool solves = app.got_subcommand("solve");
    check(config, solves);
    return run(config, solves);
}

}  // namespace
}  // namespace rmsp

int main(int argc, char** argv)
{
    int threads = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &threads);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int status = 0;
    try {
        status = rmsp::start(argc, argv, rank);
    } catch (const rmsp::Error& error) {
        // All processes have the same to say.
        if (rank == 0) {
            std::fprintf(stderr, "mspmv-mpi: error: %s\n", error.what());
        }
        status = static_cast<int>(error.code());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "mspmv-mpi: internal error: process %d: %s\n", rank, error.what());
        status = static_cast<int>(rmsp::ErrorCode::internal);
    }
    MPI_Finalize();
    return status;
}
