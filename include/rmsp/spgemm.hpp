#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rmsp/export.hpp>
#include <rmsp/matrix.hpp>
#include <rmsp/report.hpp>
#include <rmsp/runtime.hpp>

/// Products of sparse matrices on every device of a runtime: C = alpha A B. Rows of C are computed where the rows of A
/// went, which are cut so that every device has the same number of multiplications. Columns of A and B may be in any
/// order within a row and may repeat (repeated entries add up); those of C rise, each once. An entry of C is stored
/// wherever a product exists, also where the sum is zero; NaN and infinity propagate. 64-bit counts; at most 2^31 - 1
/// rows of B and columns of C.
namespace rmsp {

/// How a product is computed.
struct SpgemmOptions {
    std::string kernel = "auto";  ///< a name of list_kernels() of family "spgemm", or "auto"
    /// How a row is added up: "scatter", "scatter-1" to "scatter-8", "virtual", "virtual-1" to "virtual-8", "hybrid",
    /// "hash", "window", "chunks", as far as the kernel has it.
    std::string accumulator = "auto";
    Determinism determinism = Determinism::none;
    /// How devices get from each other the rows of B that several of them need: "peer", "nccl", "host", or "auto", the
    /// runtime's; "none": each gets all of its rows from the host.
    std::string transport = "auto";
    /// Memory of each device that the product may hold at any time, A, B and C included: up to 1, that share of what is
    /// free (devices whose memory is not known: no limit); above, bytes.
    double memory_limit = 0.9;
    /// Entries of C below this magnitude are left out of what the host gets; NaN never is. 0: none; below 0, or NaN:
    /// Error(usage).
    double prune_below = 0;
    /// Values in the memory of a GPU: they are read after what is on this stream. None: what writes them has ended.
    std::optional<StreamRef> after{};
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
    std::int64_t a_bytes = 0;     ///< of a square whose rows came with B, row pointers alone; 0: used where it is
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
    double product_imbalance = 0;      ///< largest part over its fair share, minus one
    std::vector<MachineLink> links{};  ///< what joins the devices and their nodes, as far as known

    /// Whether a device computes its rows in several runs, because all of them do not fit.
    RMSP_API bool chunked() const;
    RMSP_API std::string to_text() const;
};

namespace detail {
template <class T>
struct ProductState;
struct ProductAccess;
}  // namespace detail

template <class T>
class SparseProduct;
template <class T>
class TripleProduct;

/// A factor of a product. What is on the devices of the same runtime stays there, and must not be measured (a product)
/// as long as products of it are there: its values are read or gathered where they are, and only its structure, without
/// the columns of B, passes through the host, once. Each compute() takes the values that it has then.
template <class T>
class SpgemmOperand {
    static_assert(is_value_type<T>, "librmsp multiplies float and double");

public:
    /// In the caller's arrays. Values in the memory of a GPU make a distributed matrix of it, by rows, which the
    /// product keeps, and update_values() takes such values; indices that count from 1 are copied to be renumbered.
    SpgemmOperand(const CsrView<T>& view) : view_(view) {}  // NOLINT(google-explicit-constructor)
    /// Resident, of CSR with columns below 2^31 and exact values. Where devices have columns that were numbered anew
    /// (see Exchange), or parts of rows (see RowAlignment), they keep copies of what they need as long as there are
    /// products of it.
    RMSP_API SpgemmOperand(const DistributedMatrix<T>& matrix);  // NOLINT(google-explicit-constructor)
    /// A product that has been computed. Its options.prune_below does not count.
    RMSP_API SpgemmOperand(const SparseProduct<T>& product);  // NOLINT(google-explicit-constructor)

    RMSP_API std::int64_t rows() const;
    RMSP_API std::int64_t cols() const;
    bool on_devices() const { return matrix_ || product_; }

private:
    friend class SparseProduct<T>;
    CsrView<T> view_;
    std::shared_ptr<detail::MatrixState<T>> matrix_;
    std::shared_ptr<detail::ProductState<T>> product_;
};

/// C = alpha A B, split by rows over the devices of a runtime. Its structure is found once; its values as often as A
/// and B get new ones. Where A, B and C fit together, all three stay on the devices; where they do not, C is computed
/// in runs of rows that go to host memory one after the other. Movable handle; all functions block, and may be called
/// from any thread, one at a time.
template <class T>
class SparseProduct {
    static_assert(is_value_type<T>, "librmsp multiplies float and double");

public:
    SparseProduct() = default;
    /// Plans, sends each device its rows of A and the rows of B that they touch, and counts the entries of C. Where the
    /// plan is chunked, the caller's arrays of A and B must outlive this; otherwise they are read during the call only.
    /// An A that is on the devices is multiplied where its rows are, however many products that gives each device. Of a
    /// B that is, rows go from device to device, and C's entries are bounded, not estimated; where one of both, or C,
    /// is computed in runs, values pass through host memory.
    /// \throws Error(usage) for bad matrices, dimensions or options, for an operand that SpgemmOperand excludes, that
    ///         has not been computed or belongs to another runtime, Error(out_of_memory) naming the bytes if not even
    ///         one row fits; the runtime stays usable
    RMSP_API SparseProduct(Runtime& runtime, const SpgemmOperand<T>& a, const SpgemmOperand<T>& b,
                           const SpgemmOptions& options = {});

    /// What the constructor would decide; touches no device. Works on described machines.
    RMSP_API static SpgemmPlan plan(const Runtime& runtime, const CsrView<T>& a, const CsrView<T>& b,
                                    const SpgemmOptions& options = {});

    RMSP_API const SpgemmPlan& plan() const;
    RMSP_API std::int64_t rows() const;
    RMSP_API std::int64_t cols() const;
    RMSP_API std::int64_t nnz() const;  ///< before pruning; chunked: known after compute()

    /// Computes C from the values that A and B have now.
    RMSP_API void compute(T alpha = T{1});
    /// New values for the same structure, in the order of the arrays given to the constructor; null: as before, and
    /// always for an operand that is on the devices. Chunked: the arrays must stay until the next update.
    RMSP_API void update_values(const T* a_values, const T* b_values);
    /// update_values() with values in the memory of a GPU, after what is on a stream of it.
    RMSP_API void update_values(const T* a_values, const T* b_values, StreamRef after);
    /// C, once computed.
    /// \throws Error(usage) before compute()
    RMSP_API CsrMatrix<T> download() const;
    /// C, once computed, into arrays of the caller's: rows() + 1 row pointers from 0, and nnz() columns and values;
    /// null for what is not wanted. Each is in host memory or in the memory of a GPU of the process, where columns and
    /// values go from device to device; row pointers pass through the host. What uses the arrays has to have ended
    /// before the call, and the call has ended with them when it returns. options.prune_below does not count. \throws
    /// Error(usage) before compute(), and for memory of a GPU where the runtime's devices are the host's
    RMSP_API void download(std::int64_t* row_ptr, std::int32_t* col_idx, T* values) const;

    /// Seconds of what has been done so far, the last time: "plan", "gather" (of B, where devices exchange it),
    /// "upload", "symbolic" (allocation of C included), then "numeric" of the last compute(), and "download".
    RMSP_API std::vector<PhaseTimes> phases() const;

    /// Times on the devices, with A and B there: the whole product (structure, memory for C, values: "whole") and the
    /// values alone ("numeric"), after `warmup` rounds of each.
    /// \throws Error(usage) for iterations < 1, a chunked plan, or while C is the B of another product
    RMSP_API std::vector<Measurement> measure(std::int64_t warmup, std::int64_t iterations, T alpha = T{1});

    /// C as a matrix to multiply vectors with, once computed: split by its nonzeros, at row boundaries, in memory of
    /// its own. Its structure passes through the host, its values go from device to device. options.prune_below does
    /// not count.
    /// \throws Error(usage) before compute() and for options of matrices in the caller's memory (streamed, borrowed,
    ///         rounded values, exact cuts), Error(out_of_memory) for a chunked plan, else as Runtime::distribute()
    [[nodiscard]] RMSP_API DistributedMatrix<T> distribute(const DistributeOptions& options = {}) const;
    /// Gives a matrix that distribute() made the values that C has now.
    /// \throws Error(usage) before compute(), and for a matrix of other dimensions or split; Error(out_of_memory) for a
    ///         chunked plan
    RMSP_API void renew(DistributedMatrix<T>& matrix) const;

private:
    friend class SpgemmOperand<T>;
    friend class TripleProduct<T>;
    friend struct detail::ProductAccess;
    SparseProduct(const std::shared_ptr<detail::RuntimeState>& runtime, const SpgemmOperand<T>& a,
                  const SpgemmOperand<T>& b, const SpgemmOptions& options);
    std::shared_ptr<detail::ProductState<T>> state_;
};

/// C = alpha A B on the host, in one call.
/// \throws Error as SparseProduct
template <class T>
RMSP_API CsrMatrix<T> multiply(Runtime& runtime, const CsrView<T>& a, const CsrView<T>& b,
                               const SpgemmOptions& options = {}, T alpha = T{1});

/// alpha A B + beta D on the host; D has the dimensions of A B.
/// \throws Error as SparseProduct
template <class T>
RMSP_API CsrMatrix<T> multiply_add(Runtime& runtime, T alpha, const CsrView<T>& a, const CsrView<T>& b, T beta,
                                   const CsrView<T>& d, const SpgemmOptions& options = {});

/// R A P, as algebraic multigrid makes coarse operators: A P first, then R times that, which goes from device to
/// device. Both structures are kept, so that a new A of the same structure costs the values alone.
template <class T>
class TripleProduct {
    static_assert(is_value_type<T>, "librmsp multiplies float and double");

public:
    TripleProduct() = default;
    TripleProduct(TripleProduct&&) noexcept = default;
    TripleProduct& operator=(TripleProduct&&) noexcept = default;
    /// The arrays of R, A and P must outlive this where a plan is chunked. \throws Error as SparseProduct
    RMSP_API TripleProduct(Runtime& runtime, const SpgemmOperand<T>& r, const SpgemmOperand<T>& a,
                           const SpgemmOperand<T>& p, const SpgemmOptions& options = {});
    /// Matrices on the devices, on the runtime that has all three. \throws Error as SparseProduct
    RMSP_API TripleProduct(const DistributedMatrix<T>& r, const DistributedMatrix<T>& a, const DistributedMatrix<T>& p,
                           const SpgemmOptions& options = {});
    const SpgemmPlan& inner_plan() const { return ap_.plan(); }
    const SpgemmPlan& outer_plan() const { return rap_.plan(); }
    /// R A P with new values of A, in its structure; null: as before, or as they are on the devices.
    RMSP_API CsrMatrix<T> compute(const T* a_values = nullptr);
    /// compute() whose R A P stays on the devices: in product().
    RMSP_API void renew(const T* a_values = nullptr);
    const SparseProduct<T>& product() const { return rap_; }

private:
    friend struct detail::ProductAccess;
    /// `once`: R A P is computed once, and devices free A P where they have copied what they need of it.
    void open(const std::shared_ptr<detail::RuntimeState>& runtime, const SpgemmOperand<T>& r,
              const SpgemmOperand<T>& a, const SpgemmOperand<T>& p, const SpgemmOptions& options, bool once = false);

    SparseProduct<T> ap_;
    SparseProduct<T> rap_;
    bool outdated_ = false;  ///< A or P is on the devices, where its values may have been renewed
};

/// A^T as CSR, in parallel; columns rise within each row.
template <class T>
RMSP_API CsrMatrix<T> transposed(const CsrView<T>& a);

/// alpha X + beta Y, in parallel: columns rise, each once. Values are added even where they cancel.
/// \throws Error(usage) if the dimensions differ
template <class T>
RMSP_API CsrMatrix<T> add(T alpha, const CsrView<T>& x, T beta, const CsrView<T>& y);

/// The entries whose magnitude is not below the threshold; NaN stays.
template <class T>
RMSP_API CsrMatrix<T> pruned(const CsrView<T>& a, double threshold);

/// Compares C with alpha A B: C v with alpha A (B v) for a random v, row by row, and `sampled_rows` evenly spaced rows
/// entry by entry against sums in a wider type. A row of C whose products number n is held to (n + 4) eps relative to
/// the magnitudes.
template <class T>
RMSP_API Verification verify_spgemm(const CsrView<T>& a, const CsrView<T>& b, T alpha, const CsrView<T>& c,
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

    RMSP_API std::string to_text() const;
    /// Google Benchmark's shape: context and benchmarks (docs/report.md).
    RMSP_API std::string to_json() const;
};

}  // namespace rmsp
