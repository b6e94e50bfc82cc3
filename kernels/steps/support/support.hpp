#pragma once

#include <cstdint>

#include <kernels/steps/step.hpp>

/// Small device-side steps of distributing and merging. All are queued on the context's stream and return at once on
/// GPUs; all pointers are memory of the context's device.
namespace rmsp::kernels {

/// What one device found of the entries [first, end) of a vector.
template <class T>
struct PartialSums {
    const T* sums = nullptr;  ///< where entry 0 is, or would be
    std::int64_t first = 0;
    std::int64_t end = 0;
};
/// Most parts that one add_partials() takes.
inline constexpr int most_partials = 32;

/// Bytes to copy from one place to another, both aligned alike to 16 bytes; a multiple of 4.
struct CopyPart {
    void* to = nullptr;
    const void* from = nullptr;
    std::int64_t bytes = 0;
};
/// Most parts that one copy_parts() takes.
inline constexpr int most_copy_parts = 32;

/// Steps on indices alone, or on bytes.
struct Support {
    /// out[i] = in[i], narrowed. The caller has checked the range.
    void (*narrow_indices)(const std::int64_t* in, std::int64_t n, std::int32_t* out, const Context& context) = nullptr;
    /// out[i] = in[i] + by; out may be in.
    void (*shift_indices)(const std::int32_t* in, std::int64_t n, std::int32_t by, std::int32_t* out,
                          const Context& context) = nullptr;
    /// Copies all parts in one launch; `from` may be the memory of a peer. One launch for all peers, because each
    /// cudaMemcpyPeerAsync costs more than a small halo takes to move.
    void (*copy_parts)(const CopyPart* parts, int count, const Context& context) = nullptr;
    /// The rows around the middle one that have no column outside [first_column, end_column): run[0] becomes the first
    /// of them, run[1] one past the last. Row pointers are local; run is memory of the device.
    void (*interior_rows)(IndexView row_ptr, std::int64_t rows, const std::int32_t* col_idx, std::int64_t first_column,
                          std::int64_t end_column, std::int64_t* run, const Context& context) = nullptr;
    /// extent[0] = the least of n indices, extent[1] = the largest; of none the largest and the least 32-bit integer.
    /// extent is memory of the device.
    void (*index_extent)(const std::int32_t* indices, std::int64_t n, std::int32_t* extent,
                         const Context& context) = nullptr;
    /// Reads n doubles and writes one number for each block to `sink` (at least 4096 entries): what the memory limit is
    /// measured with.
    void (*read_all)(const double* data, std::int64_t n, double* sink, const Context& context) = nullptr;

    static const Support& host();
    static const Support& cuda();
};
inline constexpr Step narrow_indices{&Support::narrow_indices, "narrow_indices"};
inline constexpr Step shift_indices{&Support::shift_indices, "shift_indices"};
inline constexpr Step copy_parts{&Support::copy_parts, "copy_parts"};
inline constexpr Step interior_rows{&Support::interior_rows, "interior_rows"};
inline constexpr Step index_extent{&Support::index_extent, "index_extent"};
inline constexpr Step read_all{&Support::read_all, "read_all"};

/// Steps that write indices of one width.
template <class Out>
struct IndexSupport {
    /// out[i] = clamp(row_ptr[i] - start, 0, nnz) for i in [0, rows]: the local row pointers of a part, from the slice
    /// of the global ones that begins at its first row. (MSREP, section 4.1)
    void (*localize_row_ptr)(IndexView row_ptr, std::int64_t rows, std::int64_t start, std::int64_t nnz, Out* out,
                             const Context& context) = nullptr;
    /// localize_row_ptr() for a matrix of `all` rows of which the others are empty: `rows` begin at row `first` of it,
    /// and out has all + 1 pointers.
    void (*spread_row_ptr)(IndexView row_ptr, std::int64_t first, std::int64_t rows, std::int64_t all,
                           std::int64_t start, std::int64_t nnz, Out* out, const Context& context) = nullptr;

    static const IndexSupport& host();
    static const IndexSupport& cuda();
};
RMSP_INDEX_STEP(IndexSupport, localize_row_ptr);
RMSP_INDEX_STEP(IndexSupport, spread_row_ptr);

/// Steps on values.
template <class T>
struct ValueSupport {
    /// y[i] = value
    void (*fill)(T* y, std::int64_t n, T value, const Context& context) = nullptr;
    /// y[0] += carries[0] + carries[1] + ... in this order, one rounding each. `carries` may be pinned host memory.
    void (*add_carries)(T* y, const T* carries, int count, const Context& context) = nullptr;
    /// y[i] = beta y[i] + the parts' sums of entry i, in the order of the parts and with one rounding each, for i in
    /// [first, end). y is not read if beta == 0. The sums may be the memory of peers or pinned host memory.
    void (*add_partials)(T* y, std::int64_t first, std::int64_t end, T beta, const PartialSums<T>* parts, int count,
                         const Context& context) = nullptr;

    static const ValueSupport& host();
    static const ValueSupport& cuda();
};
RMSP_VALUE_STEP(ValueSupport, fill);
RMSP_VALUE_STEP(ValueSupport, add_carries);
RMSP_VALUE_STEP(ValueSupport, add_partials);

}  // namespace rmsp::kernels
