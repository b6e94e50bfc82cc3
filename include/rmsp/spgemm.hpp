#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <rmsp/matrix.hpp>
#include <rmsp/report.hpp>
#include <rmsp/runtime.hpp>

/// Products of sparse matrices on every device of a runtime: C = alpha A B. Rows of C are computed where the rows of A went, which
/// are cut so that every device has the same number of multiplications. Columns of A and B may be in any order within a row
/// and may repeat (repeated entries add up); those of C rise, each once. An entry of C is stored wherever a product exists, also
/// where the sum is zero; NaN and infinity propagate. 64-bit counts; at most 2^31 - 1 rows of B and columns of C.
namespace rmsp {

/// How a product is computed.
struct SpgemmOptions {
    std::string kernel = "auto";  ///< a name of list_kernels() of family "spgemm", or "auto"
    std::string accumulator =
        "auto";  ///< how a row is added up: "scatter", "hash", "window", "chunks", as far as the kernel has it
    Determinism determinism = Determinism::none;
    /// How devices get from each other the rows of B that several of them need: "peer", "nccl", "host", or "auto", the runtime's;
    /// "none": each gets all of its rows from the host.
    std::string transport = "auto";
    /// Memory of each device that the product may hold at any time, A, B and C included: up to 1, that share of what is free
    /// (devices whose memory is not known: no limit); above, bytes.
    double memory_limit = 0.9;
    /// Entries of C smaller than this in magnitude are left out of what the host gets; NaN never is. 0: all are kept.
    double prune_below = 0;
};

/// What one device is given to do. Bytes are of its memory.
struct SpgemmShardPlan {
    int device = 0;           ///< position among the devices in use
    std::string device_name;  ///< as ShardPlan::device_name
    Placement placement;
    std::string kernel;
    std::int64_t first_row = 0;  ///< of A and C
    std::int64_t end_row = 0;
    std::int64_t a_nnz = 0;
    std::int64_t products = 0;
    std::int64_t b_rows = 0;  ///< rows of B that these rows of A touch: what the device is sent of B
    std::int64_t b_nnz = 0;
    std::int64_t c_nnz = 0;       ///< estimated from sampled rows; exact once prepared
    std::int64_t c_nnz_most = 0;  ///< a bound: no row has more entries than products or columns
    std::int64_t a_bytes = 0;     ///< of a square whose rows came with B, row pointers alone
    std::int64_t b_bytes = 0;
    std::int64_t c_bytes = 0;      ///< for c_nnz
    std::int64_t limit_bytes = 0;  ///< 0: none
    std::int64_t chunks = 1;       ///< runs of rows one after the other; more than one: C goes to the host
    std::int64_t peak_bytes = 0;   ///< most that was held at once, once prepared
};

/// The whole decision: what `mspmv spgemm --dry-run` prints.
struct SpgemmPlan {
    std::int64_t rows = 0;   ///< of A and C
    std::int64_t inner = 0;  ///< columns of A, rows of B
    std::int64_t cols = 0;   ///< of B and C
    std::int64_t a_nnz = 0;
    std::int64_t b_nnz = 0;
    std::int64_t products = 0;
    std::int64_t c_nnz = 0;  ///< as SpgemmShardPlan::c_nnz
    bool exact = false;      ///< c_nnz was counted, not estimated
    std::string precision;
    /// How devices get rows of B that others have too: "none" (from the host), "shared", or a transport.
    std::string exchange = "none";
    std::vector<SpgemmShardPlan> shards;
    double product_imbalance = 0;  ///< largest part over its fair share, minus one

    /// Whether a device computes its rows in several runs, because all of them do not fit.
    bool chunked() const;
    std::string to_text() const;
};

namespace detail {
template <class T>
struct ProductState;
}  // namespace detail

/// C = alpha A B, split by rows over the devices of a runtime. Its structure is found once; its values as often as A and B get new
/// ones. Where A, B and C fit together, all three stay on the devices; where they do not, C is computed in runs of rows that go
/// to host memory one after the other. Movable handle; all functions block, and may be called from any thread, one at a time.
template <class T>
class SparseProduct {
public:
    SparseProduct() = default;
    /// Plans, sends each device its rows of A and the rows of B that they touch, and counts the entries of C. Where
    /// the plan is chunked, the arrays of A and B must outlive this; otherwise they are read during the call only.
    /// \throws Error(usage) for bad matrices, dimensions or options, Error(out_of_memory) naming the bytes if not even one
    ///         row fits; the runtime stays usable
    SparseProduct(Runtime& runtime, const CsrView<T>& a, const CsrView<T>& b, const SpgemmOptions& options = {});
    /// The same where B is a product that has been computed on the same runtime: its rows go from device to device, and
    /// compute() takes the values that it has then. Its entries pass through host memory only where one of both is chunked. C's entries are
    /// bounded, not estimated, and options.prune_below of B does not count. B stays what it is as long as this is there, but cannot
    /// be measured.
    /// \throws Error(usage) if B has not been computed, or belongs to another runtime; else as above
    SparseProduct(Runtime& runtime, const CsrView<T>& a, const SparseProduct<T>& b, const SpgemmOptions& options = {});

    /// What the constructor would decide; touches no device. Works on described machines.
    static SpgemmPlan plan(const Runtime& runtime, const CsrView<T>& a, const CsrView<T>& b,
                           const SpgemmOptions& options = {});

    const SpgemmPlan& plan() const;
    std::int64_t rows() const;
    std::int64_t cols() const;
    std::int64_t nnz() const;  ///< before pruning; chunked: known after compute()

    /// Computes C from the values that A and B have now.
    void compute(T alpha = T{1});
    /// New values for the same structure, in the order of the arrays given to the constructor; null: as before, and where B is a
    /// product always. Chunked: the arrays must stay until the next update.
    void update_values(const T* a_values, const T* b_values);
    /// C, once computed.
    /// \throws Error(usage) before compute()
    CsrMatrix<T> download() const;

    /// Seconds of what has been done so far, the last time: "plan", "gather" (of B, where devices exchange it), "upload", "symbolic"
    /// (allocation of C included), then "numeric" of the last compute(), and "download".
    std::vector<PhaseTimes> phases() const;

    /// Times on the devices, with A and B there: the whole product (structure, memory for C, values: "whole") and the
    /// values alone ("numeric"), after `warmup` rounds of each.
    /// \throws Error(usage) for iterations < 1, a chunked plan, or while C is the B of another product
    std::vector<Measurement> measure(std::int64_t warmup, std::int64_t iterations, T alpha = T{1});

private:
    std::shared_ptr<detail::ProductState<T>> state_;
};

/// C = alpha A B on the host, in one call.
/// \throws Error as SparseProduct
template <class T>
CsrMatrix<T> multiply(Runtime& runtime, const CsrView<T>& a, const CsrView<T>& b, const SpgemmOptions& options = {},
                      T alpha = T{1});

/// alpha A B + beta D on the host; D has the dimensions of A B.
/// \throws Error as SparseProduct
template <class T>
CsrMatrix<T> multiply_add(Runtime& runtime, T alpha, const CsrView<T>& a, const CsrView<T>& b, T beta,
                          const CsrView<T>& d, const SpgemmOptions& options = {});

/// R A P, as algebraic multigrid makes coarse operators: A P first, then R times that, which goes from device to device. Both
/// structures are kept, so that a new A of the same structure costs the values alone.
template <class T>
class TripleProduct {
public:
    TripleProduct() = default;
    TripleProduct(TripleProduct&&) noexcept = default;
    TripleProduct& operator=(TripleProduct&&) noexcept = default;
    /// The arrays of R, A and P must outlive this where a plan is chunked. \throws Error as SparseProduct
    TripleProduct(Runtime& runtime, const CsrView<T>& r, const CsrView<T>& a, const CsrView<T>& p,
                  const SpgemmOptions& options = {});
    const SpgemmPlan& inner_plan() const { return ap_.plan(); }
    const SpgemmPlan& outer_plan() const { return rap_.plan(); }
    /// R A P with new values of A, in its structure; null: as before.
    CsrMatrix<T> compute(const T* a_values = nullptr);

private:
    SparseProduct<T> ap_;
    SparseProduct<T> rap_;
};

/// A^T as CSR, in parallel; columns rise within each row.
template <class T>
CsrMatrix<T> transposed(const CsrView<T>& a);

/// alpha X + beta Y, in parallel: columns rise, each once. Values are added even where they cancel.
/// \throws Error(usage) if the dimensions differ
template <class T>
CsrMatrix<T> add(T alpha, const CsrView<T>& x, T beta, const CsrView<T>& y);

/// The entries whose magnitude is not below the threshold; NaN stays.
template <class T>
CsrMatrix<T> pruned(const CsrView<T>& a, double threshold);

/// Compares C with alpha A B: C v with alpha A (B v) for a random v, row by row, and `sampled_rows` evenly spaced rows entry by entry
/// against sums in a wider type. A row of C whose products number n is held to (n + 4) eps relative to the magnitudes.
template <class T>
Verification verify_spgemm(const CsrView<T>& a, const CsrView<T>& b, T alpha, const CsrView<T>& c,
                           std::int64_t sampled_rows = 1000);

/// What `mspmv spgemm` prints.
struct SpgemmReport {
    std::string a;  ///< file name or description
    std::string b;
    std::string topology;
    SpgemmPlan plan;
    std::vector<PhaseTimes> phases;
    std::vector<Measurement> measurements;
    Verification verification;
    std::vector<std::string> notes;
    std::map<std::string, std::string> context;

    std::string to_text() const;
    /// Google Benchmark's shape: context and benchmarks (docs/report.md).
    std::string to_json() const;
};

}  // namespace rmsp
