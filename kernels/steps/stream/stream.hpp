#pragma once

#include <cstdint>

#include <kernels/steps/step.hpp>
#include <kernels/steps/stream/encoding.hpp>
#include <rmsp/host_vector.hpp>

namespace rmsp::kernels {

/// Rows [first_row, first_row + rows) of a matrix in host memory, as far as they lie in nonzeros [first, first + nnz).
template <class T>
struct CsrPiece {
    IndexView row_ptr;  ///< the matrix's
    IndexView col_idx;  ///< the matrix's
    const T* values = nullptr;
    std::int64_t first_row = 0;
    std::int64_t rows = 0;
    std::int64_t first = 0;
    std::int64_t nnz = 0;  ///< below 2^31
};

struct Packet {
    PacketLayout layout;
    HostVector<std::byte> bytes;
};

/// Encodes each of columns and values in the way that takes the fewest bytes, if those are at most `most_share` of the
/// array's own (columns: 4 bytes each). If neither is encoded, nothing is, and the layout says so; otherwise row
/// pointers are as well. Lossless to the bit. One thread; columns must fit 32 bits.
template <class T>
Packet encode_piece(const CsrPiece<T>& piece, double most_share);

/// Whether multiply_packet() takes a packet: columns are lists, and values are encoded.
constexpr bool multipliable(const PacketLayout& layout)
{
    return layout.columns == ColumnCode::patterns && layout.values != ValueCode::raw;
}

template <class T>
struct PacketDecoding {
    /// Queues the decoding of a packet into a piece's local row pointers and those of columns and values that it holds;
    /// the other array is not touched. `packet` is 16-byte aligned; all are memory of the context's device.
    void (*decode_packet)(const PacketLayout& layout, const std::byte* packet, std::int32_t* row_ptr,
                          std::int32_t* col_idx, T* values, const Context& context) = nullptr;

    static const PacketDecoding& host();
    static const PacketDecoding& cuda();
};
RMSP_VALUE_STEP(PacketDecoding, decode_packet);

template <class T>
struct PacketProduct {
    /// Queues y = alpha A x + beta y for the rows of a multipliable() packet, which is read as it is: nothing is
    /// written but y. A row is added up in the order of its entries; there should be many of them, and none much longer
    /// than the others. As decode_packet() otherwise.
    void (*multiply_packet)(const PacketLayout& layout, const std::byte* packet, T alpha, const T* x, T beta, T* y,
                            const Context& context) = nullptr;

    static const PacketProduct& host();
    static const PacketProduct& cuda();
};
RMSP_VALUE_STEP(PacketProduct, multiply_packet);

}  // namespace rmsp::kernels
