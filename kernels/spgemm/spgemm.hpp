#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <kernels/context.hpp>
#include <kernels/entry.hpp>
#include <kernels/steps/step.hpp>
#include <rmsp/kernel_info.hpp>

/// C = alpha A B of sparse matrices on one device. The columns of A and B may be in any order within a row and may
/// repeat (repeated entries add up); those of C rise, each once. An entry of C is stored wherever a product exists,
/// also where the sum is zero; NaN and infinity propagate.
namespace rmsp::kernels {

/// Rows [first, end) of a matrix.
struct RowRange {
    std::int64_t first = 0;
    std::int64_t end = 0;
};

/// What the caller knows of the products of A B; -1: nothing.
struct KnownProducts {
    std::int64_t all = -1;
    std::int64_t most = -1;  ///< that no row has more of
};

/// What prepare() may use, which way rows are accumulated, and what the caller knows of A and B.
struct SpgemmOptions {
    std::string accumulator = "auto";  ///< or one of spgemm_accumulators() that the kernel has
    /// Bytes of device memory for prepare() and the operator, besides A, B and C; 0: no limit.
    std::int64_t workspace_limit = 0;
    /// Every row of B that A touches is among these, over `touched_rows` of which B's entries are spread; the rest need
    /// not be looked at. end < 0: all rows.
    RowRange touched{0, -1};
    std::int64_t touched_rows = 0;
    /// A is the rows of B from this one on, in B's arrays of columns; -1: it is not, or this is not known.
    std::int64_t a_in_b = -1;
    KnownProducts known;
    /// Products up to which matrices count as small, where a kernel treats these in another way; -1: as the kernel
    /// likes. Tests set 0, so that small matrices meet what large ones do.
    std::int64_t small_products = -1;
};

/// Structure of C = A B on one device, ready to be filled. Made once by prepare(): analysis and symbolic phase.
template <class T>
class SpgemmOperator {
public:
    virtual ~SpgemmOperator() = default;
    /// Entries of C.
    virtual std::int64_t nnz() const = 0;
    /// Multiplications of one fill() or numeric().
    virtual std::int64_t products() const = 0;
    /// Rows of A + 1 entries in the device's memory, from 0 to nnz(); owned by the operator.
    virtual const std::int64_t* row_ptr() const = 0;
    /// Device memory held between calls.
    virtual std::int64_t workspace_bytes() const = 0;
    /// Writes nnz() columns and the values of alpha A B. Queued on the context's stream (host: done when it returns).
    /// The structure of A and B given to prepare() must still be there; the values come in the order of their columns.
    virtual void fill(T alpha, const T* a_values, const T* b_values, std::int32_t* col_idx, T* values,
                      const Context& context) = 0;
    /// The values alone, for the columns that fill() wrote. Queued on the context's stream (host: done when it
    /// returns). The first call may take memory, through context.memory, for what makes later ones faster, and wait; it
    /// does without where there is none.
    virtual void numeric(T alpha, const T* a_values, const T* b_values, const std::int32_t* col_idx, T* values,
                         const Context& context) = 0;
    /// fill() and numeric() are not called any more: memory that only they need is freed. row_ptr() may move, and both
    /// operands may go. Queued on the context's stream.
    virtual void finish(const Context& /*context*/) {}
};

/// All that is known of one SpGEMM kernel.
template <class T>
struct SpgemmKernel {
    KernelInfo info;
    /// What prepare() calls; null where this build lacks it.
    std::unique_ptr<SpgemmOperator<T>> (*body)(const CsrShard<T>&, const CsrShard<T>&, const SpgemmOptions&,
                                               const Context&) = nullptr;
    /// Null: any matrices. Otherwise why the kernel cannot multiply these (static text), or null.
    const char* (*unsupported)(const CsrShard<T>& a, const CsrShard<T>& b) = nullptr;
    bool automatic = false;  ///< whether "auto" takes it, if none before it in the table is taken

    /// Counts the entries of each row of C; a.cols == b.rows. May allocate through context.memory, launch on
    /// context.stream and wait for it. Values of A and B are not read. The operator keeps pointers to the structure of
    /// both. \throws Error(usage) for an accumulator that the kernel does not have, Error(out_of_memory) if it cannot
    /// keep to the
    ///         workspace limit, naming the bytes it needs, NotCompiled
    std::unique_ptr<SpgemmOperator<T>> prepare(const CsrShard<T>& a, const CsrShard<T>& b, const SpgemmOptions& options,
                                               const Context& context) const
    {
        return prepare_with(info, body, a, b, options, context);
    }
};

/// Every kernel, in the order in which the automatic choice considers them. Kernels that this build lacks are listed
/// with compiled == false and throw NotCompiled in prepare().
template <class T>
std::span<const SpgemmKernel<T>> spgemm_kernels();

/// The kernel of that name for that kind of device, or the default one if name is "auto".
/// \throws Error(usage) if there is none of that name (naming those there are), or if it does not keep the asked
/// determinism
template <class T>
const SpgemmKernel<T>& choose_spgemm(DeviceKind kind, const std::string& name, Determinism determinism);

/// The ways to add up the products of a row: "scatter" (into a dense row; "scatter-1", -2, -4, -8: so many threads for
/// each row of B), "virtual" (the same, but a part of a block has a row of A; "virtual-1", -2, -4, -8: so many parts),
/// "hybrid" (rows of few products sorted, others as "virtual"), "hash", "window" (a dense piece of the row in fast
/// memory), "chunks" (dense pieces of the row, one after the other).
std::span<const char* const> spgemm_accumulators();

/// Steps of products, whatever computes them.
template <class T>
struct ProductSteps {
    /// Products of each row of A B, a.rows entries in the device's memory. Queued on the context's stream (host: done
    /// when it returns). A row's number is exact as long as it fits 64 bits, which nnz of A and B below 2^31 each
    /// guarantee.
    void (*count_products)(const CsrShard<T>& a, const CsrShard<T>& b, std::int64_t* out,
                           const Context& context) = nullptr;

    static const ProductSteps& host();
    static const ProductSteps& cuda();
};
RMSP_VALUE_STEP(ProductSteps, count_products);

}  // namespace rmsp::kernels
