#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <kernels/spmv/spmv.hpp>

#include "runtime/device.hpp"
#include "runtime/worker.hpp"

/// The streamed mode: a matrix that stays in the caller's host memory and comes to the devices in pieces at each apply.
namespace rmsp::detail {

/// A stretch of a device's part that is copied and multiplied as one.
struct StreamPiece {
    std::int64_t first_row = 0;
    std::int64_t rows = 0;
    std::int64_t first = 0;  ///< nonzero
    std::int64_t nnz = 0;
    bool carry = false;      ///< of the row that the part shares with its predecessor
    bool continues = false;  ///< of a row that the piece before began: adds to what that one found
    bool operator==(const StreamPiece&) const = default;
};

/// Cuts a part into pieces of at most `chunk_bytes` of row pointers, columns and values: between rows, and inside a row only
/// where it is longer than a chunk. Such a row is cut at distances from its start that do not depend on the part. The first
/// carry_nnz nonzeros belong to the shared row. `entry_bytes` are of one column and its value.
std::vector<StreamPiece> cut_stream(IndexView row_ptr, const PartialCsr& part, std::int64_t carry_nnz,
                                    std::int64_t chunk_bytes, std::int64_t entry_bytes);

/// choose_spmv() among the kernels that serve a streamed matrix: those that read the caller's format where it is. The others
/// keep a copy of the entries, or examine them beforehand. \throws Error(usage) as that does, and for the others
template <class T>
const kernels::SpmvKernel<T>& choose_streamed_spmv(DeviceKind kind, const std::string& name, Determinism determinism,
                                                   const RowStatistics& rows, std::int64_t cols);

/// An array of the caller's, page-locked while this lives unless it already was. Only whole pages are locked: those at the
/// ends may belong to others' data as well.
class LockedArray {
public:
    LockedArray(runtime::Device& device, const void* data, std::size_t bytes, bool lock);
    ~LockedArray();
    LockedArray(const LockedArray&) = delete;
    LockedArray& operator=(const LockedArray&) = delete;

    /// Queues a copy of `bytes` at `src` in this array to a device: directly where the array is locked, through the device's
    /// pinned ring where it is not.
    void send(runtime::Device& device, runtime::Stream& stream, void* dst, const void* src, std::size_t bytes) const;
    /// Whether the system refused to lock it.
    bool refused() const noexcept { return refused_; }

private:
    runtime::Device& device_;
    std::uintptr_t begin_ = 0;  ///< what devices may copy directly
    std::uintptr_t end_ = 0;
    bool owned_ = false;
    bool refused_ = false;
};

/// The caller's arrays, where the pieces come from. One for all devices of a matrix.
template <class T>
struct StreamSource {
    StreamSource(runtime::Device& device, const CsrView<T>& matrix, bool lock);
    bool refused() const noexcept { return row_ptr.refused() || col_idx.refused() || values.refused(); }

    CsrView<T> a;
    LockedArray row_ptr;
    LockedArray col_idx;  ///< locked if 32-bit: wider ones are narrowed on the way
    LockedArray values;
};

/// One device's part of a streamed matrix. Three slots of device memory hold the pieces on their way: one is filled, one waits,
/// one is multiplied, by two streams that wait for each other's events. Made, used and freed on the device's worker.
template <class T>
class StreamedPart {
public:
    /// Cuts the part, makes the slots and prepares the kernel of every piece; of the matrix only row pointers are copied.
    /// `source` outlives the applies.
    StreamedPart(runtime::Worker& worker, const StreamSource<T>& source, const PartialCsr& part, std::int64_t carry_nnz,
                 const std::string& kernel, const DistributeOptions& options);

    /// Queues y = alpha A x + beta y for the owned rows and, if the part has a shared row, *carry = alpha A x for that.
    void apply(runtime::Worker& worker, T alpha, const T* x, T beta, T* y, T* carry);

private:
    struct Slot {
        kernels::DeviceArray<std::byte> caller_row_ptr;  ///< as they are in the caller's array
        kernels::DeviceArray<std::int32_t> row_ptr;
        kernels::DeviceArray<std::int32_t> col_idx;
        kernels::DeviceArray<T> values;
        std::unique_ptr<runtime::Event> filled;  ///< recorded by the copies' stream
        std::unique_ptr<runtime::Event>
            free;  ///< recorded by the worker's stream behind the kernels that read the slot
    };

    Slot& slot_of(std::size_t piece) noexcept { return slots_[piece % slots_.size()]; }
    void make_slots(runtime::Worker& worker);
    void prepare(runtime::Worker& worker, std::size_t piece, const std::string& kernel, Determinism determinism);
    /// As they are in the caller's array, or made local on the way.
    void send_row_pointers(runtime::Worker& worker, runtime::Stream& stream, const StreamPiece& piece,
                           Slot& slot) const;
    /// Makes what was sent local, on the worker's stream, unless it is. (MSREP, section 4.1)
    void localize_row_pointers(runtime::Worker& worker, const StreamPiece& piece, Slot& slot) const;
    void send_entries(runtime::Worker& worker, const StreamPiece& piece, Slot& slot) const;
    void queue(runtime::Worker& worker, std::size_t piece, T alpha, const T* x, T beta, T* y, T* carry);

    const StreamSource<T>& source_;
    const RowPointers row_pointers_;
    const std::int64_t first_owned_row_;
    std::unique_ptr<runtime::Stream> copies_;
    std::vector<Slot> slots_;
    std::vector<StreamPiece> pieces_;
    std::vector<std::unique_ptr<kernels::SpmvOperator<T>>>
        operators_;  ///< one a piece, for the slot that it passes through
};

}  // namespace rmsp::detail
