// mpirun -n N mspmv-mpi run|solve|eigen|spgemm CONFIG: what mspmv does on one node, over the processes of MPI. The
// first process reads and reports. mpirun -n N mspmv-mpi doctor: messages between the processes.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <rmsp/cluster.hpp>
#include <rmsp/config.hpp>
#include <rmsp/io.hpp>
#include <rmsp/version.hpp>

#include "apps/mspmv/precision.hpp"
#include "apps/mspmv/random_vector.hpp"
#include "apps/mspmv_mpi/arguments.hpp"
#include "apps/mspmv_mpi/doctor.hpp"
#include "apps/mspmv_mpi/load.hpp"
#include "apps/mspmv_mpi/prediction.hpp"
#include "apps/mspmv_mpi/report.hpp"
#include "apps/mspmv_mpi/spgemm.hpp"
#include "apps/mspmv_mpi/vectors.hpp"

namespace rmsp {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr const char* report_schema = "rmsp-cluster-1";

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
    const auto endings = written_vector_endings();
    for (const auto& [key, file] : {std::pair{"run.y", &config.run.y},
                                    {"solver.output", &config.solver.output},
                                    {"eigen.output", &config.eigen.output}}) {
        if (!file->empty() && std::none_of(endings.begin(), endings.end(),
                                           [&](std::string_view ending) { return file->ends_with(ending); })) {
            refuse(key, *file, fmt::format("writes {}", fmt::join(endings, ", ")).c_str());
        }
    }
    if (config.partition.balance == "time" && config.kernel.determinism == "run") {
        refuse("partition.balance", config.partition.balance,
               "cuts by measured bandwidths, and bits may differ between runs: not with kernel.determinism \"run\"");
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
            {"messages_between_nodes", halo.messages_between_nodes},
            {"entries_between_nodes", halo.entries_between_nodes},
            {"find_seconds", halo.find_seconds},
            {"distribute_seconds", halo.distribute_seconds}};
}

/// Times products of ones, compares the last one with a reference. Returns what the report says of them.
template <class T>
Json run_products(const Config& config, Cluster& cluster, ClusterMatrix<T>& a, const ClusterRows<T>& part,
                  std::span<const std::int64_t> row_at)
{
    const CsrMatrix<T>& rows = part.rows;
    const auto alpha = static_cast<T>(config.run.alpha);
    const auto beta = static_cast<T>(config.run.beta);
    const mpi::Shares of_x{MPI_COMM_WORLD, a.column_offsets()};
    const mpi::Shares of_y{MPI_COMM_WORLD, a.row_offsets()};
    const HostVector<T> own =
        config.run.x.empty()
            ? mspmv::random_vector<T>(of_x.own(), config.matrix.seed, 1, of_x.first())
            : mpi::read_shares<T>(of_x, "run.x", config.run.x, read_options(config), "columns", row_at);
    HostVector<T> y_in(static_cast<std::size_t>(of_y.own()), T{0});
    if (beta != T{0}) {
        y_in = config.run.y_in.empty()
                   ? mspmv::random_vector<T>(of_y.own(), config.matrix.seed, 2, of_y.first())
                   : mpi::read_shares<T>(of_y, "run.y_in", config.run.y_in, read_options(config), "rows", row_at);
    }
    auto x = a.make_x();
    auto y = a.make_y();
    x.upload(own.data());
    y.upload(y_in.data());
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
    HostVector<T> found(y_in.size());
    if (config.run.verify || !config.run.y.empty()) {
        y.upload(y_in.data());
        a.apply(alpha, x, beta, y);
        y.download(found.data());
    }
    if (config.run.verify) {
        const HostVector<T> all = mpi::everywhere(of_x, own);
        const Verification verification = verify_spmv(rows.view(), alpha, all.data(), beta, y_in.data(), found.data());
        double wrong = verification.passed ? 0 : 1;
        cluster.sum({&wrong, 1});
        report["verified"] = wrong == 0;
        if (wrong != 0) {
            throw Error(ErrorCode::verification,
                        fmt::format("y differs from the reference on {} of {} processes (this one's rows begin at {})",
                                    wrong, cluster.size(), part.first_row));
        }
    }
    if (!config.run.y.empty()) {
        mpi::write_shares(of_y, config.run.y, found, row_at);
    }
    return report;
}

/// Of which rows a preconditioner is.
std::string preconditioned_over(const std::string& name, int processes)
{
    if (name == "none") {
        return "";
    }
    return name == "amg" || name == "sa-amg"
               ? fmt::format("the rows of all {} processes (one hierarchy)", processes)
               : fmt::format("the rows of each of {} processes (additive Schwarz)", processes);
}

template <class T>
Json run_solve(const Config& config, Cluster& cluster, ClusterMatrix<T>& a, std::span<const std::int64_t> row_at)
{
    const mpi::Shares of_x{MPI_COMM_WORLD, a.column_offsets()};
    const mpi::Shares of_b{MPI_COMM_WORLD, a.row_offsets()};
    const std::string& rhs = config.solver.rhs;
    auto x = a.make_x();
    auto b = a.make_y();
    HostVector<T> solution;
    if (rhs == "ones") {
        b.fill(T{1});
    } else if (rhs == "A*x") {
        solution = mspmv::random_vector<T>(of_x.own(), config.matrix.seed, 1, of_x.first());
        x.upload(solution.data());
        a.apply(T{1}, x, T{0}, b);
    } else if (rhs == "random") {
        b.upload(mspmv::random_vector<T>(of_b.own(), config.matrix.seed, 2, of_b.first()).data());
    } else {
        b.upload(mpi::read_shares<T>(of_b, "solver.rhs", rhs, read_options(config), "rows", row_at).data());
    }
    x.fill(T{0});
    if (!config.solver.guess.empty()) {
        x.upload(mpi::read_shares<T>(of_x, "solver.guess", config.solver.guess, read_options(config), "columns", row_at)
                     .data());
    }
    const auto began = Clock::now();
    ClusterSolver<T> solver(a, solver_options(config));
    const double setup = seconds_since(began);
    const SolveResult result = solver.solve(b, x);
    HostVector<T> found(static_cast<std::size_t>(of_x.own()));
    x.download(found.data());
    double squares[2] = {};  // of the error and of the solution
    for (std::size_t i = 0; i < solution.size(); ++i) {
        const double error = static_cast<double>(found[i]) - static_cast<double>(solution[i]);
        squares[0] += error * error;
        squares[1] += static_cast<double>(solution[i]) * static_cast<double>(solution[i]);
    }
    cluster.sum(squares);
    if (!config.solver.output.empty()) {
        mpi::write_shares(of_x, config.solver.output, found, row_at);
    }
    return {{"method", result.method},
            {"method_reason", solver.choice().reason},
            {"preconditioner", config.solver.preconditioner},
            {"preconditioner_over", preconditioned_over(config.solver.preconditioner, cluster.size())},
            {"outcome", to_string(result.outcome)},
            {"iterations", result.iterations},
            {"true_residual", result.true_residual},
            {"target", result.target},
            {"solution_error", squares[1] > 0 ? Json(std::sqrt(squares[0] / squares[1])) : Json()},
            {"setup_seconds", setup},
            {"seconds", result.seconds},
            {"reason", result.reason}};
}

template <class T>
Json run_eigen(const Config& config, const ClusterMatrix<T>& a, std::span<const std::int64_t> row_at)
{
    const auto began = Clock::now();
    const auto preconditioner =
        make_preconditioner<T>(a, config.eigen.preconditioner, solver_options(config).preconditioner_options);
    ClusterEigenSolver<T> solver(a, eigen_options(config), preconditioner);
    const double setup = seconds_since(began);
    const EigenResult<T> result = solver.solve();
    if (!config.eigen.output.empty()) {
        const mpi::Shares shares{MPI_COMM_WORLD, a.row_offsets()};
        HostVector<T> columns;
        for (const DistributedVector<T>& vector : result.vectors) {
            HostVector<T> own(static_cast<std::size_t>(shares.own()));
            vector.download(own.data());
            const HostVector<T> whole = mpi::in_old_order(mpi::collect(shares, own), row_at);
            columns.insert(columns.end(), whole.begin(), whole.end());
        }
        mpi::on_first(MPI_COMM_WORLD, [&] {
            write_columns<T>(config.eigen.output, columns, static_cast<std::int64_t>(result.vectors.size()));
        });
    }
    return {{"method", config.eigen.method},
            {"preconditioner", config.eigen.preconditioner},
            {"outcome", to_string(result.outcome)},
            {"iterations", result.iterations},
            {"values", result.values},
            {"residuals", result.residuals},
            {"target", result.target},
            {"setup_seconds", setup},
            {"seconds", result.seconds},
            {"reason", result.reason}};
}

template <class T>
int run(Cluster& cluster, const Config& config, const std::string& command)
{
    HostVector<std::int64_t> row_at;
    Json how = Json::object();
    Json read_here = Json::object();
    DistributeOptions options = distribute_options(config);
    const ClusterRows<T> own = mpi::load_rows<T>(cluster, config.matrix, options.balance, &row_at, how, read_here);
    how["balance"] = options.balance == Balance::time ? "time" : "nonzeros";
    options.balance = Balance::nonzeros;  // the devices of a process share by their weights
    options.x_layout = Layout::rows;
    options.alignment = RowAlignment::row;
    ClusterMatrix<T> a = cluster.distribute(own.rows.view(), own.first_row, options);
    Json report{{"schema", report_schema}, {"matrix", describe(config.matrix)},
                {"rows", a.rows()},        {"cols", a.cols()},
                {"nonzeros", a.nnz()},     {"librmsp", version()}};
    report.update(how);
    const HaloReport halo = a.halo();
    report["between_nodes"] = {{"gathered", halo.gathered}, {"reason", halo.node_reason}};
    bool converged = true;
    if (command == "eigen") {
        report[command] = run_eigen(config, a, row_at);
        converged = report[command]["outcome"] == "converged";
    } else {
        const mpi::OwnPart part = mpi::plan_own_part(cluster, a, own.rows, options);
        if (command == "solve") {
            report[command] = run_solve(config, cluster, a, row_at);
            converged = report[command]["outcome"] == "converged";
            const auto iterations = report[command]["iterations"].get<double>();
            report[command]["predicted"] =
                mpi::foretell(config, part, report[command]["method"],
                              iterations > 0 ? report[command]["seconds"].get<double>() / iterations : 0);
        } else {
            report["product"] = run_products(config, cluster, a, own, row_at);
            report["product"]["predicted"] = mpi::foretell(config, part, "", report["product"]["median_seconds"]);
        }
    }
    Json process = describe_process(cluster, a, own.rows);
    process.update(read_here);
    report["processes"] = gather(process, MPI_COMM_WORLD);
    report["transport"] = {{"name", cluster.transport().name}, {"reason", cluster.transport().reason}};
    if (cluster.rank() == 0) {
        mpi::print(mpi::text_of(report), report, config.output.json);
    }
    return converged ? 0 : static_cast<int>(ErrorCode::not_converged);
}

template <class T>
int run_spgemm(Cluster& cluster, const Config& config)
{
    Json own{{"process", cluster.rank()}, {"devices", cluster.runtime().devices().size()}};
    Json report{{"schema", report_schema}, {"matrix", describe(config.matrix)}, {"librmsp", version()}};
    report["spgemm"] = mpi::run_spgemm<T>(config, cluster, report, own);
    report["processes"] = gather(own, MPI_COMM_WORLD);
    if (cluster.rank() == 0) {
        std::string text = "matrix     " + describe(config.matrix) + '\n' + mpi::read_text(report);
        for (const Json& p : report["processes"]) {
            text += fmt::format("process {}  {} devices: {} rows of A, {} of B and {} more fetched; {} nonzeros of C\n",
                                p["process"].get<int>(), p["devices"].get<int>(), p["rows"].get<std::int64_t>(),
                                p["rows_of_b"].get<std::int64_t>(), p["fetched_rows"].get<std::int64_t>(),
                                p["nonzeros_of_c"].get<std::int64_t>());
        }
        mpi::print(text + mpi::part_text(report, "spgemm"), report, config.output.json);
    }
    return 0;
}

/// What a command does on a cluster of all processes.
template <class F>
int on_cluster(const Config& config, const ClusterOptions& options, const F& f)
{
    Cluster cluster(MPI_COMM_WORLD, runtime_options(config), options);
    try {
        return f(cluster);
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
            mpi::print(mpi::links_text(report), report, json);
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
    CLI::App app;
    mpi::Arguments arguments;
    mpi::add_arguments(app, arguments);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return rank == 0 ? app.exit(error) : error.get_exit_code() == 0 ? 0 : static_cast<int>(ErrorCode::usage);
    }
    if (app.got_subcommand("doctor")) {
        mpi::LinkOptions links;
        links.time_limit_seconds = arguments.time_limit_seconds;
        links.bytes = static_cast<std::int64_t>(std::clamp(arguments.mib, 0.0, 1e6) * (1 << 20));
        return examine_links(links, arguments.json, rank);
    }
    Config config = load_config(arguments.file, arguments.overrides);
    apply_environment(config);
    if (!arguments.json.empty()) {
        config.output.json = arguments.json;
    }
    if (app.got_subcommand("spgemm")) {
        mpi::check_spgemm(config);
        return on_cluster(config, arguments.cluster, [&](Cluster& cluster) {
            return mspmv::with_precision(config.matrix.precision,
                                         [&]<class T>() { return run_spgemm<T>(cluster, config); });
        });
    }
    const std::string command = app.get_subcommands().front()->get_name();
    check(config, command == "solve");
    return on_cluster(config, arguments.cluster, [&](Cluster& cluster) {
        return mspmv::with_precision(config.matrix.precision,
                                     [&]<class T>() { return run<T>(cluster, config, command); });
    });
}

}  // namespace
}  // namespace rmsp

int main(int argc, char** argv)
{
    if (argc == 2 && std::string_view(argv[1]) == "--man") {  // where MPI may not start
        std::fputs(rmsp::mpi::manual().c_str(), stdout);
        return 0;
    }
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
