#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <kernels/context.hpp>
#include <kernels/entry.hpp>
#include <rmsp/error.hpp>
#include <rmsp/kernel_info.hpp>
#include <rmsp/partition.hpp>

namespace rmsp::kernels {

/// A numbering of the rows of a square matrix, and of its columns alike, in the memory of a device.
struct RowOrder {
    const std::int32_t* row = nullptr;    ///< of each place
    const std::int32_t* place = nullptr;  ///< of each row
};

/// A kernel made ready for one shard: y = alpha A x + beta y.
template <class T>
class SpmvOperator {
public:
    virtual ~SpmvOperator() = default;
    /// Queues the product on the context's stream (host: runs it). Allocates nothing, waits for nothing. x begins at
    /// column 0, but a device that has part of it may have no more than what lies between the first and the last column
    /// with entries; y has rows entries and is not read if beta == 0. May not be called on two streams at once:
    /// workspaces are the operator's own.
    virtual void apply(T alpha, const T* x, T beta, T* y, const Context& context) = 0;
    /// Whether apply() does nothing but to launch kernels by cuda::launch_early() with its context, so that
    /// Context::launches may keep them.
    virtual bool only_launches() const { return false; }
    /// Rows at whose multiples apply_rows() may begin and end; 0: this operator multiplies whole shards only.
    virtual std::int64_t row_granule() const { return 0; }
    /// apply() for the rows [first, end) alone, which begin and end at multiples of row_granule() or at the shard's
    /// last row; x and y are the shard's. Disjoint rows may be multiplied on several streams at once.
    virtual void apply_rows(std::int64_t /*first*/, std::int64_t /*end*/, T /*alpha*/, const T* /*x*/, T /*beta*/,
                            T* /*y*/, const Context& /*context*/)
    {
        throw Error(ErrorCode::internal, "apply_rows() of an operator that multiplies whole shards only");
    }
    /// Whether apply() can be done in two steps, where CsrShard::early_cols is above 0: apply_early() multiplies by
    /// those entries of x and reads no others, apply_late() by the others, and writes y. Both queued in this order,
    /// with the same x.
    virtual bool splits_columns() const { return false; }
    virtual void apply_early(const T* /*x*/, const Context& /*context*/)
    {
        throw Error(ErrorCode::internal, "apply_early() of an operator that multiplies by all columns at once");
    }
    virtual void apply_late(T /*alpha*/, const T* /*x*/, T /*beta*/, T* /*y*/, const Context& /*context*/)
    {
        throw Error(ErrorCode::internal, "apply_late() of an operator that multiplies by all columns at once");
    }
    /// The order in which the operator multiplies rows and columns of a square matrix, if that is not the matrix's; it
    /// lives as long as the operator does. Null: it is, or the shard is not the whole of a square matrix.
    virtual const RowOrder* order() const { return nullptr; }
    /// apply() with x, y or both in that order.
    virtual void apply_in_order(T /*alpha*/, const T* /*x*/, bool /*x_in_order*/, T /*beta*/, T* /*y*/,
                                bool /*y_in_order*/, const Context& /*context*/)
    {
        throw Error(ErrorCode::internal, "apply_in_order() of an operator that keeps the matrix's order");
    }
    /// How many sums apply() and apply_rows() leave besides, where leave_sums() is called before: each is that of
    /// x[i] y[i] over some rows i of a square matrix, with the new y; all of them together are the inner product of x
    /// and y. 0: this operator cannot.
    virtual std::int64_t sums() const { return 0; }
    /// Where the applies that follow leave them, in memory of the device; null: not at all.
    virtual void leave_sums(double* /*sums*/) {}
    /// The shard's values changed in place. Operators that keep a copy of their own renew it, on the context's stream;
    /// may allocate and wait as prepare() does, after which the operator is as it was if there is no room.
    virtual void update_values(const Context& /*context*/) {}
    /// False where the structure that a format is made for is missing: a kernel without a format of its own is faster
    /// then, and the automatic choice takes one.
    virtual bool worthwhile() const { return true; }
    /// Least bytes of matrix that one apply reads, for operators with a format of their own; -1: the shard's arrays,
    /// once.
    virtual std::int64_t format_bytes() const { return -1; }
    /// Bytes of device memory that the operator keeps besides the shard.
    virtual std::int64_t workspace_bytes() const { return 0; }
};

struct Features;
struct Work;

/// What of a product goes on while the devices exchange an x by rows.
enum class Beside : std::uint8_t {
    nothing,
    rows,     ///< the rows that need none of it
    columns,  ///< the device's own columns, and the popular ones of the others
};

constexpr bool no_rows(const RowStatistics&) { return false; }
constexpr bool any_rows(const RowStatistics&) { return true; }
constexpr bool any_structure(const Features&) { return true; }

/// All that is known of one SpMV kernel: plain data and pure functions, which entry.cpp in the kernel's folder fills
/// in.
template <class T>
struct SpmvKernel {
    KernelInfo info;
    /// What prepare() calls; null where this build lacks it. A kernel whose info says that it streams reads the row
    /// pointers only then, and the shard's own arrays, as they are at that time, in apply().
    std::unique_ptr<SpmvOperator<T>> (*body)(const CsrShard<T>&, const RowStatistics&, const Context&) = nullptr;
    /// Null: any matrix. Otherwise whether the kernel can multiply this shard at all, with the reason if not (static
    /// text).
    const char* (*unsupported)(std::int64_t rows, std::int64_t cols, std::int64_t nnz) = nullptr;
    /// Whether "auto" takes it for such rows without a closer look, if none before it in the table is taken.
    bool (*automatic)(const RowStatistics& rows) = no_rows;
    /// Whether "auto" weighs it besides: formats that pay only for a structure that row lengths do not show.
    bool (*weighed)(const RowStatistics& rows) = no_rows;
    /// Whether its format has a chance, by a sample of the structure: the others are neither made ready nor raced.
    bool (*suits)(const Features& features) = any_structure;
    /// What a product of such a shard takes, where a value has so many bytes. Null: "auto" neither takes nor weighs it.
    Work (*work)(const Features& features, int value_bytes) = nullptr;
    Beside beside = Beside::nothing;

    /// Builds the operator; may allocate through context.memory, launch on context.stream, and wait for it. The shard's
    /// arrays outlive the operator. \throws NotCompiled
    std::unique_ptr<SpmvOperator<T>> prepare(const CsrShard<T>& shard, const RowStatistics& rows,
                                             const Context& context) const
    {
        return prepare_with(info, body, shard, rows, context);
    }
};

/// The instantiation for T of what an entry names as its body; given to RMSP_FOR_EACH_VALUE_TYPE in the body's source.
#define RMSP_CSR_BODY(T, prepare) \
    template std::unique_ptr<SpmvOperator<T>> prepare(const CsrShard<T>&, const RowStatistics&, const Context&);

/// Every kernel, in the order in which the automatic choice considers them. Kernels that this build lacks are listed
/// with compiled == false and throw NotCompiled in prepare().
template <class T>
std::span<const SpmvKernel<T>> spmv_kernels();

/// The kernel of that name for that kind of device, or the best for the shard if name is "auto".
/// \throws Error(usage) if there is none of that name (naming those there are), if it does not support the shard, or if
///         it does not keep the asked determinism
template <class T>
const SpmvKernel<T>& choose_spmv(DeviceKind kind, const std::string& name, Determinism determinism,
                                 const RowStatistics& rows, std::int64_t cols);

/// Every kernel that is worth a closer look for "auto", in table order: what choose_spmv() may take, and formats that
/// pay only for a structure that row lengths do not show. Never none. \throws Error(usage) as choose_spmv()
template <class T>
std::vector<const SpmvKernel<T>*> automatic_spmv(DeviceKind kind, Determinism determinism, const RowStatistics& rows,
                                                 std::int64_t cols);

/// What goes on beside an exchange in a product by the kernel of that name; nothing if there is none.
Beside beside_exchange(DeviceKind kind, const std::string& name);

}  // namespace rmsp::kernels
