#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rmsp/eigen.hpp>
#include <rmsp/export.hpp>
#include <rmsp/io.hpp>
#include <rmsp/runtime.hpp>
#include <rmsp/solver.hpp>
#include <rmsp/spgemm.hpp>

namespace rmsp {

/// A run as a configuration file describes it (docs/configuration.md documents every key).
struct Config {
    struct Matrix {
        std::string file;                  ///< matrix.file
        std::string generate;              ///< matrix.generate, see rmsp::generate(); exactly one of the two is given
        std::string format = "csr";        ///< matrix.format: csr, csc, coo, auto
        std::string order = "row";         ///< matrix.order: row, column, none
        std::string precision = "double";  ///< matrix.precision: double, float
        std::string values = "auto";       ///< matrix.values: auto, random, ones, laplace, poisson
        bool plus_identity = false;        ///< matrix.plus_identity
        std::int64_t kron = 1;             ///< matrix.kron, at least 1
        bool renumber = false;             ///< matrix.renumber
        std::string permutation;           ///< matrix.permutation: a file of read_order(); empty: none
        std::int64_t seed = 1;             ///< matrix.seed
        std::int64_t max_bytes = 0;        ///< io.max_bytes: ReadOptions::max_bytes of each file, also of vectors
    } matrix;
    struct RuntimeKeys {
        std::string devices = "auto";         ///< runtime.devices
        std::string bind = "auto";            ///< runtime.bind: auto, none, strict
        std::string threads = "device";       ///< runtime.threads: device, one
        std::vector<double> weights;          ///< runtime.weights
        std::vector<std::string> transports;  ///< runtime.transports
        double limit_gbs = 0;                 ///< runtime.limit_gbs
        std::int64_t memory_limit = 0;        ///< runtime.memory_limit
        double stall_seconds = 0;             ///< runtime.stall_seconds
        std::string topology;                 ///< runtime.topology: plan for a described machine (needs --dry-run)
        std::string machine;                  ///< runtime.machine: a described machine by a name of machine_names()
        std::string cache = "auto";           ///< runtime.cache: auto, off, or a folder
    } runtime;
    struct PartitionKeys {
        std::string strategy = "nonzeros";  ///< partition.strategy: nonzeros, rows
        std::string alignment = "auto";     ///< partition.alignment: auto, exact, row
        std::int64_t devices = 0;           ///< partition.devices, 0: chosen
        std::string balance = "auto";       ///< partition.balance: auto, nonzeros, time
        std::string exchange = "auto";      ///< partition.exchange: auto, ranges, entries
        std::string pointers = "device";    ///< partition.pointers: device, host
        std::string unsorted = "refuse";    ///< partition.unsorted: refuse, sort, split
    } partition;
    struct KernelKeys {
        std::string spmv = "auto";          ///< kernel.spmv
        std::string values = "exact";       ///< kernel.values: exact, float
        std::string determinism = "none";   ///< kernel.determinism: none, run, device_count
        std::int64_t expected_applies = 0;  ///< kernel.expected_applies; 0: those of the run
    } kernel;
    struct Run {
        std::string mode = "resident";       ///< run.mode: resident, streamed
        std::int64_t chunk_mib = 0;          ///< run.chunk_mib; 0: chosen
        std::string merge = "auto";          ///< run.merge: auto, peer, nccl, host
        std::string vectors = "replicated";  ///< run.vectors: host, replicated, rows
        std::int64_t iterations = 100;       ///< run.iterations, at least 1
        std::int64_t warmup = 10;            ///< run.warmup
        std::string cache = "warm";          ///< run.cache: warm, cold
        double alpha = 1.0;                  ///< run.alpha
        double beta = 0.0;                   ///< run.beta
        std::string x;                       ///< run.x: a file; empty: random
        std::string y_in;                    ///< run.y_in: the y that beta multiplies, a file; empty: random
        std::string y;                       ///< run.y: where y goes; empty: nowhere
        bool verify = true;                  ///< run.verify
        bool compare_vendor =
            false;  ///< run.compare_vendor: also time the vendor's kernel (GPUs: cuSPARSE) in this run
    } run;
    struct Stream {
        std::string encoding = "none";         ///< stream.encoding: none, auto
        std::string coordinates = "pointers";  ///< stream.coordinates: pointers, indices
        std::string numa = "move";             ///< stream.numa: move, copy, keep
        std::int64_t device_mib = 0;           ///< stream.device_mib; 0: all there is
    } stream;
    struct Spgemm {
        std::string product = "aa";        ///< spgemm.product: aa, aat, ata, ab
        std::string file;                  ///< spgemm.file: B
        std::string generate;              ///< spgemm.generate: B
        std::string kernel = "auto";       ///< spgemm.kernel
        std::string accumulator = "auto";  ///< spgemm.accumulator
        std::string transport = "auto";    ///< spgemm.transport
        double memory_limit = 0.9;         ///< spgemm.memory_limit, above 0
        double prune_below = 0;            ///< spgemm.prune_below
        std::int64_t iterations = 10;      ///< spgemm.iterations, at least 1
        std::int64_t warmup = 2;           ///< spgemm.warmup
        std::int64_t sampled_rows = 1000;  ///< spgemm.sampled_rows
        std::string output;                ///< spgemm.output: where C goes; empty: nowhere
    } spgemm;
    struct SolverKeys {
        std::string method = "cg";            ///< solver.method: a name of list_solvers()
        std::string preconditioner = "none";  ///< solver.preconditioner: a name of list_preconditioners()
        std::string rhs = "ones";             ///< solver.rhs: ones, random, A*x, or a file
        std::string guess;                    ///< solver.guess: a file; empty: zeros
        std::string output;                   ///< solver.output: where x goes; empty: nowhere
        double tolerance = 1e-8;              ///< solver.tolerance
        double absolute_tolerance = 0;        ///< solver.absolute_tolerance
        std::int64_t max_iterations = 10000;  ///< solver.max_iterations
        double max_seconds = 0;               ///< solver.max_seconds; 0: no limit
        double divergence = 1e8;              ///< solver.divergence, above 1
        std::int64_t stagnation = 2000;       ///< solver.stagnation; 0: never
        std::int64_t restart = 30;            ///< solver.restart, at least 1
        std::int64_t shadow = 4;              ///< solver.shadow, at least 1
        double normal_tolerance = 1e-8;       ///< solver.normal_tolerance
        bool project_constants = false;       ///< solver.project_constants
        double smallest_eigenvalue = 0;       ///< solver.smallest_eigenvalue; 0: estimated
        double largest_eigenvalue = 0;        ///< solver.largest_eigenvalue; 0: estimated
        double relaxation = 1;                ///< solver.relaxation
        std::string inner = "none";           ///< solver.inner: none, or a name of list_solvers()
        std::int64_t inner_iterations = 50;   ///< solver.inner_iterations, 1 to 1000
        double inner_tolerance = 1e-4;        ///< solver.inner_tolerance
        std::int64_t block_size = 8;          ///< solver.block_size, at least 1
        std::int64_t pattern_power = 1;       ///< solver.pattern_power
        std::int64_t most_entries = 128;      ///< solver.most_entries, at least 1
        std::int64_t degree = 4;              ///< solver.degree
        double eigenvalue_ratio = 30;         ///< solver.eigenvalue_ratio, above 1
        std::int64_t fill_level = 1;          ///< solver.fill_level, 0 to 16

        // Of amg and sa-amg (MultigridOptions).
        double amg_threshold = -1;                   ///< solver.amg_threshold, at least -1; below 0: by the method
        std::string amg_interpolation = "auto";      ///< solver.amg_interpolation
        double amg_truncation = 0;                   ///< solver.amg_truncation
        std::int64_t amg_interpolation_entries = 4;  ///< solver.amg_interpolation_entries; 0: all
        std::string amg_cycle = "v";                 ///< solver.amg_cycle: v, w, f, k
        std::int64_t amg_aggressive_levels = 0;      ///< solver.amg_aggressive_levels
        std::string amg_smoother = "l1-jacobi";      ///< solver.amg_smoother
        std::int64_t amg_sweeps = 1;                 ///< solver.amg_sweeps, at least 1
        std::int64_t amg_coarse_rows = 256;          ///< solver.amg_coarse_rows, at least 1
        std::int64_t amg_levels = 25;                ///< solver.amg_levels, at least 1
        bool amg_keep_interpolation = false;         ///< solver.amg_keep_interpolation
        double amg_rebuild_factor = 2;               ///< solver.amg_rebuild_factor; 0: never
        std::int64_t amg_unknowns = 1;               ///< solver.amg_unknowns, at least 1
        std::string amg_coordinates;                 ///< solver.amg_coordinates: a file; empty: none
    } solver;
    struct EigenKeys {
        std::string method = "lobpcg";        ///< eigen.method: lobpcg, lanczos
        std::string which = "smallest";       ///< eigen.which: smallest, largest
        std::int64_t count = 4;               ///< eigen.count, 1 to 16
        std::string preconditioner = "none";  ///< eigen.preconditioner: a name of list_preconditioners()
        double tolerance = 1e-8;              ///< eigen.tolerance
        std::int64_t max_iterations = 1000;   ///< eigen.max_iterations, at least 1
        double max_seconds = 0;               ///< eigen.max_seconds; 0: no limit
        std::int64_t basis = 0;               ///< eigen.basis; 0: chosen
        std::string output;                   ///< eigen.output: where the vectors go; empty: nowhere
    } eigen;
    struct Output {
        std::string json;                ///< output.json: file name, "-" for standard output, "" for none
        std::string log_level = "warn";  ///< output.log_level: trace, debug, info, warn, error, off
    } output;
};

/// Reads a TOML file, then applies "section.key=value" overrides in order (values as TOML, bare words as strings).
/// RMSP_* variables are applied in between: command line > environment > file > default.
/// \throws Error(usage) "FILE:LINE:COLUMN: ..." for syntax, wrong types, values out of range, and unknown keys (naming
///         the nearest known one); Error(io) if the file cannot be read
RMSP_API Config load_config(const std::string& path, const std::vector<std::string>& overrides = {});
/// A configuration from text; `name` stands for the file in messages.
RMSP_API Config parse_config(const std::string& text, const std::string& name,
                             const std::vector<std::string>& overrides = {});

/// Sets one key from text, as an override "section.key=value" of load_config() does.
/// \throws Error(usage) naming the key, or for an unknown one the nearest known key; `config` is then unchanged
RMSP_API void set_key(Config& config, const std::string& name, const std::string& value);
/// The value of a key as set_key() takes it. \throws Error(usage) naming the nearest known key
RMSP_API std::string key_text(const Config& config, const std::string& name);
/// Sets what RMSP_DEVICES, RMSP_BIND, RMSP_TRANSPORT, RMSP_CACHE_DIR and RMSP_IO_MAX_BYTES give; an empty one counts as
/// not set.
/// \throws Error(usage) naming the variable
RMSP_API void apply_environment(Config& config);

/// Every key with its type, default and meaning, as the documentation lists them ("mspmv run --help-config").
struct ConfigKey {
    std::string name;
    std::string type;
    std::string fallback;
    std::string meaning;
};
RMSP_API std::vector<ConfigKey> config_keys();

/// The matrix that a configuration names: read or generated, then A + I and the Kronecker product with ones where
/// asked, then its values, then its rows and columns in another order (matrix.renumber or matrix.permutation; vectors
/// are the caller's to renumber, see renumber.hpp). `row_at`, unless null, is set to the old row at each new place;
/// empty where there is no other order. \throws what read_matrix(), generate() and the steps after them throw
template <class T>
RMSP_API CsrMatrix<T> load_matrix(const Config::Matrix& config, const Progress& progress = {},
                                  HostVector<std::int64_t>* row_at = nullptr);
/// A configuration's matrix in words: what reports call it.
RMSP_API std::string describe(const Config::Matrix& config);

/// What readers, the runtime and a distribution take from a configuration. \throws Error(usage)
RMSP_API ReadOptions read_options(const Config& config);
RMSP_API RuntimeOptions runtime_options(const Config& config);
RMSP_API DistributeOptions distribute_options(const Config& config);
RMSP_API SpgemmOptions spgemm_options(const Config& config);
RMSP_API SolverOptions solver_options(const Config& config);
/// The options of eigen.preconditioner are those of solver_options().
RMSP_API EigenOptions eigen_options(const Config& config);

}  // namespace rmsp
