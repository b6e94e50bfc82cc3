#include "runtime/config/config_keys.hpp"

#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <kernels/spgemm/spgemm.hpp>
#include <rmsp/io.hpp>

#include "runtime/transport/table.hpp"

namespace rmsp::config {

namespace {

/// Times are kept of each.
constexpr double most_rounds = 1e9;

std::vector<std::string> accumulators()
{
    std::vector<std::string> names{"auto"};
    const auto all = kernels::spgemm_accumulators();
    names.insert(names.end(), all.begin(), all.end());
    return names;
}

/// The names of a table of the library.
template <class Info>
std::vector<std::string> names_of(std::span<const Info> table)
{
    std::vector<std::string> names;
    for (const Info& row : table) {
        names.emplace_back(row.name);
    }
    return names;
}

std::vector<std::string> inner_names()
{
    std::vector<std::string> names = names_of(list_solvers());
    names.insert(names.begin(), "none");
    return names;
}

}  // namespace

std::vector<Key> key_table(Config& c)
{
    return {
        {"matrix.file", &c.matrix.file,
         "matrix to read: Matrix Market (plain, .gz, .xz, .zst) or SciPy .npz; this or matrix.generate"},
        {"matrix.generate", &c.matrix.generate,
         fmt::format("matrix to generate instead: {}", fmt::join(list_generators(), ", "))},
        {"matrix.format",
         &c.matrix.format,
         "format that the matrix is multiplied in, converted after reading: csr (split by rows), csc (by columns), coo "
         "(by "
         "rows, with coordinates); auto: csr",
         {"csr", "csc", "coo", "auto"}},
        {"matrix.order",
         &c.matrix.order,
         "order of the entries of coo: by row, by column, or none (shuffled by matrix.seed)",
         {"row", "column", "none"}},
        {"matrix.precision", &c.matrix.precision, "floating-point type of the values and vectors", {"double", "float"}},
        {"matrix.values",
         &c.matrix.values,
         "auto (those of the file; random where the matrix is generated), or in their place: random (uniform in [-1, "
         "1)), "
         "ones, laplace (of the graph, singular; generated matrices: stencils only), poisson (its diagonal that of a "
         "point inside the grid: symmetric positive definite; generated matrices: stencils only)",
         {"auto", "random", "ones", "laplace", "poisson"}},
        {"matrix.plus_identity", &c.matrix.plus_identity, "multiply A + I instead of A"},
        {"matrix.kron",
         &c.matrix.kron,
         "multiply the Kronecker product of the matrix with a block of so many rows and columns instead: unknowns at "
         "each "
         "node of a mesh",
         {},
         1},
        {"matrix.renumber", &c.matrix.renumber,
         "multiply P A P^T instead: rows and columns in the order of Cuthill and McKee, for badly numbered meshes"},
        {"matrix.permutation", &c.matrix.permutation,
         "multiply P A P^T instead: rows and columns in the order of this .npy of integers, the old row at each place"},
        {"matrix.seed", &c.matrix.seed, "seed of the generated matrix and of the random x and y", {}, 0},

        {"io.max_bytes",
         &c.matrix.max_bytes,
         "most bytes of host memory that reading one file may hold at a time: what a pipe brings, what is unpacked, "
         "and "
         "the arrays that are made of it; 0: as many as the machine has; RMSP_IO_MAX_BYTES",
         {},
         0},

        {"runtime.devices", &c.runtime.devices,
         "\"auto\" (every GPU, else host devices), CUDA ordinals \"0,1,3\", \"shared:0,0,1\" (GPUs that stand for "
         "several devices, "
         "for tests), host devices \"host:4\" or, of two threads each, \"host:4x2\"; RMSP_DEVICES"},
        {"runtime.bind",
         &c.runtime.bind,
         "thread binding: auto (where the machine allows), none, strict (an error where it fails); RMSP_BIND",
         {"auto", "none", "strict"}},
        {"runtime.threads",
         &c.runtime.threads,
         "what drives the devices: a thread for each device, or one for all of them, one device after the other (the "
         "baseline)",
         {"device", "one"}},
        {"runtime.weights",
         &c.runtime.weights,
         "relative speed of each device, each above 0; empty: all equal",
         {},
         0,
         true},
        {"runtime.transports", &c.runtime.transports,
         "transports in the order in which they are tried; empty: the default order; RMSP_TRANSPORT",
         transport::transport_names()},
        {"runtime.limit_gbs",
         &c.runtime.limit_gbs,
         "bandwidth limit of one device in GB/s for the report; 0: measured",
         {},
         0},
        {"runtime.memory_limit",
         &c.runtime.memory_limit,
         "bytes of each device's memory that may be taken; 0: as many as are free",
         {},
         0},
        {"runtime.stall_seconds",
         &c.runtime.stall_seconds,
         "a job that makes no progress for so long ends with an error; 0: however long it takes",
         {},
         0},
        {"runtime.topology", &c.runtime.topology,
         "plan for the machine that this file describes (hwloc XML or TOML); only with --dry-run"},
        {"runtime.machine", &c.runtime.machine,
         "what a dry run plans for instead of this machine, by its name in `mspmv machines`, or several of it (16 x "
         "dgx-h200); a run takes no notice"},
        {"runtime.cache", &c.runtime.cache,
         "folder of what later runs need not find out again; auto: $XDG_CACHE_HOME/rmsp or ~/.cache/rmsp; off: none; "
         "RMSP_CACHE_DIR"},

        {"partition.strategy",
         &c.partition.strategy,
         "what the parts share equally: nonzeros (MSREP) or rows (the baseline)",
         {"nonzeros", "rows"}},
        {"partition.alignment",
         &c.partition.alignment,
         "whether a cut may fall inside a row: auto (at a row's end where that costs at most 0.5 % of a part), exact "
         "(at the exact nonzero), row (never inside)",
         {"auto", "exact", "row"}},
        {"partition.devices",
         &c.partition.devices,
         "devices that get a part of a resident matrix, the first of runtime.devices; 0: if that is auto, as many as "
         "make an apply fastest by a model, else all",
         {},
         0},
        {"partition.balance",
         &c.partition.balance,
         "what the parts of a resident matrix share equally: nonzeros; time (of their kernels, measured: the cuts are "
         "then moved); auto: time on GPUs where so many applies repay it",
         {"auto", "nonzeros", "time"}},
        {"partition.exchange",
         &c.partition.exchange,
         "how an x by rows is exchanged: ranges of columns, single entries, or auto: entries where they are less than "
         "half of the ranges",
         {"auto", "ranges", "entries"}},
        {"partition.pointers",
         &c.partition.pointers,
         "where the local row pointers of the parts are computed: device, or host (the baseline)",
         {"device", "host"}},
        {"partition.unsorted",
         &c.partition.unsorted,
         "what happens to coo in no order: refuse (an error), sort (a copy by row, once), split (as it is; each device "
         "may have some of every row)",
         {"refuse", "sort", "split"}},

        {"kernel.spmv", &c.kernel.spmv, "kernel by its name in `mspmv kernels`, or auto"},
        {"kernel.values",
         &c.kernel.values,
         "how devices keep the values of a matrix of doubles: exact, or float: rounded once, multiplied in double",
         {"exact", "float"}},
        {"kernel.determinism",
         &c.kernel.determinism,
         "what the bits of a result may depend on: none (anything), run (same call, same bits), device_count (same "
         "bits "
         "on any number of devices)",
         {"none", "run", "device_count"}},
        {"kernel.expected_applies",
         &c.kernel.expected_applies,
         "how often the matrix will be multiplied: what auto makes formats for, and from 100 on races kernels for; 0: "
         "run.warmup + run.iterations",
         {},
         0},

        {"run.mode",
         &c.run.mode,
         "resident: the matrix stays on the devices; streamed: it stays in host memory, and each apply copies it to "
         "the "
         "GPUs in pieces",
         {"resident", "streamed"}},
        {"run.chunk_mib",
         &c.run.chunk_mib,
         "MiB of one such piece, of which a GPU holds six; 0: 64, and less towards the end of each part",
         {},
         0},
        {"run.merge", &c.run.merge,
         "what adds the partial results of devices that have some of the same rows (csc): a transport, or auto, the "
         "fastest of the connected ones by bytes and latency",
         transport::transport_names({"auto"})},
        {"run.vectors",
         &c.run.vectors,
         "where x and y live in the timed loop: host (both), replicated (x on every device), rows (x sliced, gathered "
         "at "
         "each apply)",
         {"host", "replicated", "rows"}},
        {"run.iterations", &c.run.iterations, "timed applies", {}, 1, false, most_rounds},
        {"run.warmup",
         &c.run.warmup,
         "applies before the timed ones, and more while kernels are raced",
         {},
         0,
         false,
         most_rounds},
        {"run.cache",
         &c.run.cache,
         "what a timed apply finds in the devices' caches: warm (what the one before left) or cold (nothing: they are "
         "flushed first, outside the time)",
         {"warm", "cold"}},
        {"run.alpha", &c.run.alpha, "alpha of y = alpha A x + beta y"},
        {"run.beta", &c.run.beta, "beta of y = alpha A x + beta y; 0: y is not read"},
        {"run.x", &c.run.x, "x: a file, .npy or Matrix Market of one column; empty: random, by matrix.seed"},
        {"run.y_in", &c.run.y_in, "the y that beta multiplies: a file as for run.x; empty: random, by matrix.seed"},
        {"run.y", &c.run.y,
         "where y goes: a name that ends in .npy, .mtx, .mtx.gz, .mtx.xz or .mtx.zst; empty: nowhere"},
        {"run.verify", &c.run.verify, "compare the last y with the serial reference"},
        {"run.compare_vendor", &c.run.compare_vendor,
         "also time the vendor's kernels (GPUs: cuSPARSE) in the same run"},

        {"stream.encoding",
         &c.stream.encoding,
         "how a streamed matrix crosses the links: none (as it is in memory), auto (columns and values encoded without "
         "loss where that saves bytes)",
         {"none", "auto"}},
        {"stream.coordinates",
         &c.stream.coordinates,
         "what of the rows of streamed coordinates crosses the links where they are sorted: pointers (made once from "
         "the row indices) or indices (one with each entry, as pCOO)",
         {"pointers", "indices"}},
        {"stream.numa",
         &c.stream.numa,
         "pages of a streamed matrix, where there are several NUMA nodes: move (to the node of the device that reads "
         "them), copy (the same, of a copy), keep; runtime.bind none keeps them",
         {"move", "copy", "keep"}},
        {"stream.device_mib",
         &c.stream.device_mib,
         "MiB of each device's memory that a streamed matrix and its copies of x and y may take; 0: all there is",
         {},
         0},

        {"spgemm.product",
         &c.spgemm.product,
         "what mspmv spgemm computes: aa (A A), aat (A A^T), ata (A^T A), ab (A B)",
         {"aa", "aat", "ata", "ab"}},
        {"spgemm.file", &c.spgemm.file, "B of A B: a file as for matrix.file; this or spgemm.generate"},
        {"spgemm.generate", &c.spgemm.generate, "B of A B, generated as by matrix.generate"},
        {"spgemm.kernel", &c.spgemm.kernel, "kernel by its name in `mspmv kernels`, or auto"},
        {"spgemm.accumulator", &c.spgemm.accumulator, "how a row of C is added up: auto, or one that the kernel has",
         accumulators()},
        {"spgemm.transport", &c.spgemm.transport,
         "how GPUs get from each other what several of them need of B: a transport; none: each gets all of its "
         "rows from the host",
         transport::transport_names({"auto"}, {"none"})},
        {"spgemm.memory_limit",
         &c.spgemm.memory_limit,
         "memory of each device that a product may hold: up to 1 a share of what is free, above it bytes; where C does "
         "not fit, it is computed in runs of rows that go to the host",
         {},
         0,
         true},
        {"spgemm.prune_below",
         &c.spgemm.prune_below,
         "count the entries of C that are not below this in magnitude, and write these alone",
         {},
         0},
        {"spgemm.iterations", &c.spgemm.iterations, "timed products on the devices", {}, 1, false, most_rounds},
        {"spgemm.warmup", &c.spgemm.warmup, "products before the timed ones", {}, 0},
        {"spgemm.sampled_rows",
         &c.spgemm.sampled_rows,
         "rows of C that are compared entry by entry, besides C v with A (B v)",
         {},
         0},
        {"spgemm.output", &c.spgemm.output,
         "where C goes: a name that ends in .npz, .mtx, .mtx.gz, .mtx.xz or .mtx.zst; empty: nowhere"},

        {"solver.method", &c.solver.method, "method by its name in `mspmv solvers`", names_of(list_solvers())},
        {"solver.preconditioner", &c.solver.preconditioner, "preconditioner by its name in `mspmv solvers`",
         names_of(list_preconditioners())},
        {"solver.rhs", &c.solver.rhs,
         "right-hand side: ones, random (uniform in [-1, 1), by matrix.seed), A*x (of a random x, which the solution "
         "is "
         "then compared with), or a file: .npy, or Matrix Market of one column"},
        {"solver.guess", &c.solver.guess, "where the method begins: a file as for solver.rhs; empty: zeros"},
        {"solver.output", &c.solver.output,
         "where the solution goes: a name that ends in .npy, .mtx, .mtx.gz, .mtx.xz or .mtx.zst; empty: nowhere"},
        {"solver.tolerance",
         &c.solver.tolerance,
         "the solve ends where |b - A x| is at most this times |b|, in the Euclidean norm",
         {},
         0},
        {"solver.absolute_tolerance", &c.solver.absolute_tolerance, "or where |b - A x| is at most this", {}, 0},
        {"solver.max_iterations", &c.solver.max_iterations, "most iterations", {}, 0},
        {"solver.max_seconds", &c.solver.max_seconds, "most seconds of the solve; 0: no limit", {}, 0},
        {"solver.project_constants", &c.solver.project_constants,
         "the symmetric matrix maps constants to zero, as of a Neumann problem: b is solved for without its mean, x is "
         "given without"},
        {"solver.divergence",
         &c.solver.divergence,
         "the solve ends as diverged where the residual exceeds this times the first one",
         {},
         1,
         true},
        {"solver.stagnation",
         &c.solver.stagnation,
         "the solve ends as stagnation after so many iterations without a smaller residual; 0: never",
         {},
         0},
        {"solver.restart", &c.solver.restart, "gmres: iterations after which it begins again", {}, 1},
        {"solver.shadow", &c.solver.shadow, "idr: dimension of the shadow space", {}, 1},
        {"solver.normal_tolerance",
         &c.solver.normal_tolerance,
         "lsqr: it also ends where |A^T r| is at most this times |A| |r|, with r = b - A x",
         {},
         0},
        {"solver.smallest_eigenvalue",
         &c.solver.smallest_eigenvalue,
         "chebyshev: all eigenvalues of M A are at least this; 0: estimated",
         {},
         0},
        {"solver.largest_eigenvalue",
         &c.solver.largest_eigenvalue,
         "chebyshev: all eigenvalues of M A are at most this; 0: estimated",
         {},
         0},
        {"solver.relaxation", &c.solver.relaxation, "ir: x += relaxation M (b - A x)"},
        {"solver.inner", &c.solver.inner,
         "ir, fcg: preconditions with this method of `mspmv solvers`, in float, which solver.preconditioner then "
         "preconditions; none: no inner solver",
         inner_names()},
        {"solver.inner_iterations",
         &c.solver.inner_iterations,
         "inner solver: most iterations each time",
         {},
         1,
         false,
         1000},
        {"solver.inner_tolerance",
         &c.solver.inner_tolerance,
         "inner solver: it ends where its residual is at most this times its right-hand side",
         {},
         0},
        {"solver.block_size", &c.solver.block_size, "block-jacobi: rows of a block, at most 32", {}, 1},
        {"solver.pattern_power",
         &c.solver.pattern_power,
         "sparse approximate inverses: they have the pattern of this power of A, at most 8",
         {},
         0},
        {"solver.most_entries", &c.solver.most_entries, "sparse approximate inverses: most entries of a row", {}, 1},
        {"solver.degree", &c.solver.degree, "polynomial: products with A, at most 64", {}, 0},
        {"solver.eigenvalue_ratio",
         &c.solver.eigenvalue_ratio,
         "polynomial: the largest eigenvalue over the smallest one that it is made for",
         {},
         1,
         true},
        {"solver.fill_level",
         &c.solver.fill_level,
         "schwarz-iluk: levels of fill of its factors, at most 16",
         {},
         0,
         false,
         16},
        {"solver.amg_threshold", &c.solver.amg_threshold,
         "multigrid: the share from which on an entry is strong, at most 1; below 0: 0.25, of sa-amg 0.08 and half of "
         "that on each further level"},
        {"solver.amg_interpolation",
         &c.solver.amg_interpolation,
         "how coarse vectors become fine ones: auto (the first), amg: extended or direct; sa-amg: smoothed or "
         "tentative "
         "(plain aggregation)",
         {"auto", "extended", "direct", "smoothed", "tentative"}},
        {"solver.amg_truncation",
         &c.solver.amg_truncation,
         "amg: entries of an interpolation's row below this times its largest one are left out",
         {},
         0},
        {"solver.amg_interpolation_entries",
         &c.solver.amg_interpolation_entries,
         "amg: most entries of an interpolation's row; 0: all",
         {},
         0},
        {"solver.amg_cycle",
         &c.solver.amg_cycle,
         "multigrid: which levels are visited again; f is not symmetric; k iterates on each, for fcg and ir",
         {"v", "w", "f", "k"}},
        {"solver.amg_aggressive_levels",
         &c.solver.amg_aggressive_levels,
         "amg: so many first levels are coarsened twice at once, for less memory",
         {},
         0},
        {"solver.amg_smoother", &c.solver.amg_smoother,
         "multigrid: what smooths, a preconditioner other than none, amg and sa-amg, with its own keys",
         names_of(list_preconditioners())},
        {"solver.amg_sweeps",
         &c.solver.amg_sweeps,
         "multigrid: sweeps of the smoother before the coarser levels, and after them",
         {},
         1},
        {"solver.amg_coarse_rows",
         &c.solver.amg_coarse_rows,
         "multigrid: a matrix of at most so many rows is inverted, at most 4096",
         {},
         1},
        {"solver.amg_levels", &c.solver.amg_levels, "multigrid: most levels, at most 100", {}, 1},
        {"solver.amg_keep_interpolation", &c.solver.amg_keep_interpolation,
         "multigrid: new values of the matrix leave the interpolation as it is"},
        {"solver.amg_rebuild_factor", &c.solver.amg_rebuild_factor,
         "multigrid: new values make all levels anew where the last solve took more than this times the iterations of "
         "the first one after they were made; 0: never, else at least 1"},
        {"solver.amg_unknowns",
         &c.solver.amg_unknowns,
         "sa-amg: unknowns of a node, whose rows follow each other, at most 16",
         {},
         1},
        {"solver.amg_coordinates", &c.solver.amg_coordinates,
         "sa-amg: a file of the nodes' coordinates, amg_unknowns (2 or 3) of each, whose rigid motions are the "
         "near-nullspace of elasticity"},

        {"eigen.method",
         &c.eigen.method,
         "how `mspmv eigen` finds eigenpairs: lobpcg, or lanczos (which takes no preconditioner)",
         {"lobpcg", "lanczos"}},
        {"eigen.which",
         &c.eigen.which,
         "which eigenvalues: the algebraically smallest, or largest",
         {"smallest", "largest"}},
        {"eigen.count", &c.eigen.count, "how many eigenpairs", {}, 1, false, 16},
        {"eigen.preconditioner", &c.eigen.preconditioner,
         "lobpcg: preconditioner by its name in `mspmv solvers`, with the options of solver",
         names_of(list_preconditioners())},
        {"eigen.tolerance",
         &c.eigen.tolerance,
         "the solve ends where |A v - lambda v| is at most this times |A| for each pair, |v| being 1",
         {},
         0},
        {"eigen.max_iterations",
         &c.eigen.max_iterations,
         "most iterations: of lobpcg, products with a block of vectors, of lanczos, with one",
         {},
         1},
        {"eigen.max_seconds", &c.eigen.max_seconds, "most seconds of the solve; 0: no limit", {}, 0},
        {"eigen.basis",
         &c.eigen.basis,
         "lanczos: vectors that are kept, more than eigen.count; 0: chosen",
         {},
         0,
         false,
         120},
        {"eigen.output", &c.eigen.output,
         "where the vectors go, a column each: a name as for solver.output; empty: nowhere"},

        {"output.json", &c.output.json, "JSON report: a file name, \"-\" for standard output, empty for none"},
        {"output.log_level",
         &c.output.log_level,
         "least severe message that is logged to standard error",
         {"trace", "debug", "info", "warn", "error", "off"}},
    };
}

}  // namespace rmsp::config
