#include <algorithm>
#include <cstdint>
#include <limits>

#include <rmsp/config.hpp>

namespace rmsp {
namespace {

Determinism determinism(const Config& config)
{
    return config.kernel.determinism == "run"            ? Determinism::run
           : config.kernel.determinism == "device_count" ? Determinism::device_count
                                                         : Determinism::none;
}

}  // namespace

RuntimeOptions runtime_options(const Config& config)
{
    RuntimeOptions options;
    options.devices = config.runtime.devices;
    options.bind = parse_bind_policy(config.runtime.bind);
    options.one_thread = config.runtime.threads == "one";
    options.weights = config.runtime.weights;
    options.transports = config.runtime.transports;
    options.limit_gbs = config.runtime.limit_gbs;
    options.memory_limit = config.runtime.memory_limit;
    options.stall_seconds = config.runtime.stall_seconds;
    options.topology_file = config.runtime.topology;
    options.cache = config.runtime.cache;
    return options;
}

DistributeOptions distribute_options(const Config& config)
{
    DistributeOptions options;
    options.strategy = config.partition.strategy == "rows" ? PartitionStrategy::rows : PartitionStrategy::nonzeros;
    options.alignment = config.partition.alignment == "exact" ? RowAlignment::exact
                        : config.partition.alignment == "row" ? RowAlignment::row
                                                              : RowAlignment::automatic;
    options.devices = static_cast<int>(std::min<std::int64_t>(config.partition.devices, INT32_MAX));
    options.balance = config.partition.balance == "nonzeros" ? Balance::nonzeros
                      : config.partition.balance == "time"   ? Balance::time
                                                             : Balance::automatic;
    options.exchange = config.partition.exchange == "ranges"    ? Exchange::ranges
                       : config.partition.exchange == "entries" ? Exchange::entries
                                                                : Exchange::automatic;
    options.x_layout = config.run.vectors == "replicated" ? Layout::replicated : Layout::rows;
    options.row_pointers = config.partition.pointers == "host" ? RowPointers::host : RowPointers::device;
    options.unsorted = config.partition.unsorted == "sort"    ? Unsorted::sort
                       : config.partition.unsorted == "split" ? Unsorted::split
                                                              : Unsorted::refuse;
    options.kernel = config.kernel.spmv;
    options.values = config.kernel.values == "float" ? StoredValues::floats : StoredValues::exact;
    options.merge = config.run.merge;
    options.expected_applies =
        config.kernel.expected_applies > 0 ? config.kernel.expected_applies : config.run.warmup + config.run.iterations;
    options.mode = config.run.mode == "streamed" ? Mode::streamed : Mode::resident;
    constexpr std::int64_t most_mib = std::numeric_limits<std::int64_t>::max() >> 20;
    options.chunk_bytes = std::min(config.run.chunk_mib, most_mib) << 20;
    options.encoding = config.stream.encoding == "auto" ? StreamEncoding::automatic : StreamEncoding::none;
    options.coordinates =
        config.stream.coordinates == "indices" ? StreamCoordinates::indices : StreamCoordinates::pointers;
    options.placement = config.stream.numa == "copy"   ? StreamPlacement::copy
                        : config.stream.numa == "keep" ? StreamPlacement::keep
                                                       : StreamPlacement::move;
    if (config.runtime.bind == "none") {
        options.placement = StreamPlacement::keep;  // neither threads nor memory
    }
    options.device_bytes = std::min(config.stream.device_mib, most_mib) << 20;
    options.determinism = determinism(config);
    return options;
}

ReadOptions read_options(const Config& config)
{
    ReadOptions options;
    options.max_bytes = config.matrix.max_bytes;
    return options;
}

SpgemmOptions spgemm_options(const Config& config)
{
    SpgemmOptions options;
    options.kernel = config.spgemm.kernel;
    options.accumulator = config.spgemm.accumulator;
    options.memory_limit = config.spgemm.memory_limit;
    options.transport = config.spgemm.transport;
    options.determinism = determinism(config);
    return options;
}

SolverOptions solver_options(const Config& config)
{
    const auto count = [](std::int64_t n) { return static_cast<int>(std::min<std::int64_t>(n, INT32_MAX)); };
    SolverOptions options;
    options.method = config.solver.method;
    options.tolerance = config.solver.tolerance;
    options.absolute_tolerance = config.solver.absolute_tolerance;
    options.max_iterations = config.solver.max_iterations;
    if (config.solver.max_seconds > 0) {
        options.max_seconds = config.solver.max_seconds;
    }
    options.divergence = config.solver.divergence;
    options.stagnation_window = config.solver.stagnation;
    options.restart = count(config.solver.restart);
    options.shadow = count(config.solver.shadow);
    options.normal_tolerance = config.solver.normal_tolerance;
    options.project_constants = config.solver.project_constants;
    options.smallest_eigenvalue = config.solver.smallest_eigenvalue;
    options.largest_eigenvalue = config.solver.largest_eigenvalue;
    options.relaxation = config.solver.relaxation;
    options.preconditioner = config.solver.preconditioner;
    options.preconditioner_options.block_size = count(config.solver.block_size);
    options.preconditioner_options.pattern_power = count(config.solver.pattern_power);
    options.preconditioner_options.most_entries = config.solver.most_entries;
    options.preconditioner_options.degree = count(config.solver.degree);
    options.preconditioner_options.eigenvalue_ratio = config.solver.eigenvalue_ratio;
    options.preconditioner_options.fill_level = count(config.solver.fill_level);
    MultigridOptions& multigrid = options.preconditioner_options.multigrid;
    multigrid.threshold = config.solver.amg_threshold;
    multigrid.interpolation = config.solver.amg_interpolation;
    multigrid.truncation = config.solver.amg_truncation;
    multigrid.interpolation_entries = config.solver.amg_interpolation_entries;
    multigrid.cycle = config.solver.amg_cycle;
    multigrid.smoother = config.solver.amg_smoother;
    multigrid.sweeps = count(config.solver.amg_sweeps);
    multigrid.coarse_rows = config.solver.amg_coarse_rows;
    multigrid.levels = count(config.solver.amg_levels);
    multigrid.keep_interpolation = config.solver.amg_keep_interpolation;
    multigrid.rebuild_factor = config.solver.amg_rebuild_factor;
    multigrid.unknowns = count(config.solver.amg_unknowns);
    multigrid.aggressive_levels = count(config.solver.amg_aggressive_levels);
    if (!config.solver.amg_coordinates.empty()) {
        const HostVector<double> coordinates = read_vector<double>(config.solver.amg_coordinates, read_options(config));
        multigrid.near_nullspace = rigid_body_modes(multigrid.unknowns, {coordinates.data(), coordinates.size()});
        multigrid.near_null_vectors = multigrid.unknowns == 3 ? 6 : 3;
    }
    return options;
}

EigenOptions eigen_options(const Config& config)
{
    EigenOptions options;
    options.method = config.eigen.method;
    options.which = config.eigen.which == "largest" ? Spectrum::largest : Spectrum::smallest;
    options.count = static_cast<int>(config.eigen.count);
    options.tolerance = config.eigen.tolerance;
    options.max_iterations = config.eigen.max_iterations;
    if (config.eigen.max_seconds > 0) {
        options.max_seconds = config.eigen.max_seconds;
    }
    options.basis = static_cast<int>(config.eigen.basis);
    return options;
}

}  // namespace rmsp
