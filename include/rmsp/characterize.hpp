#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <rmsp/export.hpp>
#include <rmsp/host_vector.hpp>
#include <rmsp/io.hpp>
#include <rmsp/matrix.hpp>
#include <rmsp/partition.hpp>
#include <rmsp/plan.hpp>

/// How many bytes a product with a sparse matrix has to move between a slow memory and a fast one, how many suffice,
/// and how many its usual order moves: y = A x (SpMV) and C = A B (SpGEMM). The method is that of Kurt et al.,
/// "Characterization of data movement requirements for sparse matrix computations on GPUs", 2017; section and algorithm
/// numbers are that paper's (docs/characterize.md). Everything is counted on the host from the structure alone.
///
/// A nonzero is two words: a column index of 4 bytes and a value of sizeof(T). An entry of a vector is one. Row
/// pointers are not counted, as in the paper.
namespace rmsp {

/// Vertices that share data, which nets stand for.
struct Hypergraph {
    std::vector<std::int64_t> net_ptr;        ///< nets + 1 entries
    std::vector<std::int32_t> pins;           ///< vertices of each net
    std::vector<std::int64_t> net_weight;     ///< of each net; empty: 1
    std::vector<std::int64_t> vertex_weight;  ///< of each vertex

    std::int64_t vertices() const { return static_cast<std::int64_t>(vertex_weight.size()); }
    std::int64_t nets() const { return static_cast<std::int64_t>(net_ptr.size()) - 1; }
};

/// Gives each vertex a part, 0 to parts - 1, so that parts weigh about the same and few nets touch several.
struct HypergraphPartitioner {
    std::string name;
    std::function<std::vector<std::int32_t>(const Hypergraph&, std::int32_t parts)> partition;
};

/// librmsp's own: parts grow one after the other, each from the first vertex that is left, by the vertex that most nets
/// tie to it. One thread, linear in the pins; cuts more nets than multilevel partitioners do.
RMSP_API HypergraphPartitioner greedy_partitioner();

struct CharacterizeOptions {
    std::int64_t fast_bytes = 1536 * 1024;      ///< capacity of the fast memory; the paper's is an L2 of 1.5 MB
    std::int64_t line_bytes = 32;               ///< of the simulated cache: a power of two, at least 8
    std::int64_t fine_limit = 500'000;          ///< most multiplies for a hypergraph with a vertex for each
    std::int64_t simulate_limit = 100'000'000;  ///< most multiplies for the simulated cache
    bool reorder = true;                        ///< also in other orders: one square matrix, A x or A A
    HypergraphPartitioner partitioner = greedy_partitioner();
    Progress progress{};
};

/// Data moved, both ways together.
struct Traffic {
    std::int64_t words = 0;
    std::int64_t bytes = 0;
};

/// Of Algorithm 3, or of a cut of the usual order.
struct UpperBound {
    /// "one part": everything fits; "multiplies": a vertex for each; "rows": a vertex for each row, since there are
    /// more multiplies than CharacterizeOptions::fine_limit; "row order": the rows in their order, cut where the fast
    /// memory is full, which moves less than what the partitioner found
    std::string method;
    std::string partitioner;      ///< "" where none was asked
    std::int64_t parts = 1;       ///< that each fit the fast memory
    std::int64_t partitions = 0;  ///< how often the partitioner ran, with twice as many parts each time
    Traffic moved;
};

/// What the usual order by rows (Gustavson's for C = A B) moves with a fully associative cache that replaces what was
/// used longest ago. Whole lines are moved; what is computed is written back when it leaves, and read only to be
/// changed again.
struct SimulatedCache {
    bool done = false;  ///< false: more multiplies than CharacterizeOptions::simulate_limit
    std::int64_t read_bytes = 0;
    std::int64_t written_bytes = 0;
    std::int64_t compulsory_bytes = 0;  ///< each line once: what an unlimited cache moves
    std::int64_t uncached_bytes = 0;    ///< a line for each load and each store: what no cache moves
    std::int64_t bytes() const { return read_bytes + written_bytes; }
};

/// The matrix with rows and columns in another order.
struct OrderTraffic {
    std::string name;                 ///< "none", "mesh" (Cuthill and McKee), "degree", "partition" (Algorithm 4)
    HostVector<std::int64_t> row_at;  ///< as in renumber.hpp; empty for "none"
    SimulatedCache cache;
    Traffic cut;         ///< rows in this order, cut where the fast memory is full
    double seconds = 0;  ///< of a product, if the caller measured it
};

/// What there is to say of one operation. Words and bytes as CharacterizeOptions has the fast memory.
struct Characterization {
    bool product = false;  ///< C = A B; false: y = A x
    std::string precision;
    std::int64_t value_bytes = 8;
    std::int64_t rows = 0;
    std::int64_t inner = 0;  ///< columns of A
    std::int64_t cols = 0;   ///< of B and C; 1: a vector
    std::int64_t a_nnz = 0;
    std::int64_t b_nnz = 0;  ///< SpMV: entries of x
    std::int64_t c_nnz = 0;  ///< SpMV: entries of y
    std::int64_t multiplies = 0;
    RowStatistics row_lengths;  ///< of A
    std::int64_t shortest_row = 0;
    std::vector<std::int64_t> row_histogram;  ///< rows of A of length 0, 1, 2 to 3, 4 to 7, ...
    std::int64_t fast_bytes = 0;
    std::int64_t line_bytes = 0;
    /// Section IV.A: each word of the operands that some multiply uses, and of the result, once.
    Traffic footprint;
    /// Section IV.A: 1.72 N / sqrt(C) values for N multiplies and a fast memory of C values. Of C = A B alone.
    double multiply_bound_words = 0;
    UpperBound upper;
    SimulatedCache cache;
    std::vector<OrderTraffic> orders;  ///< empty where not asked for, or not square
    std::vector<std::int64_t> spy;     ///< nonzeros in each cell of a square grid over A, by rows
    std::int64_t spy_side = 0;

    double flops() const { return 2.0 * static_cast<double>(multiplies); }
    /// Multiplies for each nonzero of C.
    double compression() const { return c_nnz > 0 ? static_cast<double>(multiplies) / static_cast<double>(c_nnz) : 0; }
    /// The largest lower bound.
    RMSP_API Traffic lower() const;
    /// Operations for each word, at most (Table I's OI_UB).
    double intensity_per_word() const
    {
        return footprint.words > 0 ? flops() / static_cast<double>(footprint.words) : 0;
    }
};

/// y = A x, with x and y once each.
/// \throws Error(usage) as validate(), for more than 2^31 - 1 rows or columns, and for options out of range, a fast
///         memory that does not hold the operands of one multiply for example
template <class T>
RMSP_API Characterization characterize(const CsrView<T>& a, const CharacterizeOptions& options = {});
/// C = A B. Reordered only if `b` is the same matrix: the same arrays.
/// \throws Error(usage) also if A has not as many columns as B has rows
template <class T>
RMSP_API Characterization characterize(const CsrView<T>& a, const CsrView<T>& b,
                                       const CharacterizeOptions& options = {});

/// What `mspmv characterize` says of an operation, with what the caller measured of it and what a plan predicts.
struct CharacterizeReport {
    std::string a;  ///< file name or description
    std::string b;  ///< "": y = A x
    std::string topology;
    Characterization found;
    double limit_gbs = 0;                    ///< bandwidth of the memory of the devices together; 0: unknown
    double peak_gflops = 0;                  ///< of the devices together; 0: unknown
    double seconds = 0;                      ///< of a product as the matrix is; 0: not measured
    std::string measured;                    ///< how: "spmv/csr/double/resident on host:0 (2 threads)"
    std::vector<KernelCandidate> kernels{};  ///< on one device, fastest first; SpMV
    /// Of a product on so many devices; SpMV.
    struct Devices {
        int devices = 1;
        double predicted_seconds = 0;
    };
    std::vector<Devices> devices{};
    std::vector<std::string> notes{};
    std::map<std::string, std::string> context{};

    /// Bytes that the simulated cache moves over the lower bound; 0: not simulated.
    RMSP_API double cache_ratio() const;
    /// The upper bound over the lower one.
    RMSP_API double upper_ratio() const;
    /// Sentences: what bounds the operation, how far from the bound it is, what would help and by how much.
    RMSP_API std::vector<std::string> advice() const;
    RMSP_API std::string to_text() const;
    RMSP_API std::string to_json() const;
};

}  // namespace rmsp
