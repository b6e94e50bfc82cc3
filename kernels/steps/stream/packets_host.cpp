#include <algorithm>
#include <cstdint>

#include <kernels/steps/stream/stream.hpp>

namespace rmsp::kernels {
namespace host {
namespace {

template <class T>
T decoded_value(const PacketLayout& layout, const std::byte* packet, std::uint32_t code)
{
    switch (layout.values) {
        case ValueCode::integers:
            return static_cast<T>(static_cast<std::int32_t>(code));
        case ValueCode::floats:
            return static_cast<T>(std::bit_cast<float>(code));
        case ValueCode::dictionary:
            return reinterpret_cast<const T*>(packet + layout.dictionary)[code];
        case ValueCode::raw:
            break;
    }
    return T{0};
}

template <class T>
void decode_packet(const PacketLayout& layout, const std::byte* packet, std::int32_t* row_ptr, std::int32_t* col_idx,
                   T* values, const Context& context)
{
    const auto* const words = reinterpret_cast<const std::uint32_t*>(packet + layout.words);
    const auto blocks_at = [&](std::int64_t offset) { return reinterpret_cast<const PackedBlock*>(packet + offset); };
    // A team costs more than it gains on small pieces.
    const int threads = layout.nnz < (1 << 16) ? 1 : std::max(context.threads, 1);
#pragma omp parallel for num_threads(threads)
    for (std::int64_t i = 0; i <= layout.rows; ++i) {
        row_ptr[i] = static_cast<std::int32_t>(unpack(blocks_at(layout.row_ptr_blocks), words, i));
    }
    if (layout.columns == ColumnCode::packed) {
#pragma omp parallel for num_threads(threads)
        for (std::int64_t i = 0; i < layout.nnz; ++i) {
            col_idx[i] = static_cast<std::int32_t>(unpack(blocks_at(layout.column_blocks), words, i));
        }
    } else if (layout.columns == ColumnCode::patterns) {
        const auto* const start = reinterpret_cast<const std::uint32_t*>(packet + layout.pattern_start);
        const auto* const offsets = reinterpret_cast<const std::uint32_t*>(packet + layout.pattern_offsets);
#pragma omp parallel for num_threads(threads)
        for (std::int64_t row = 0; row < layout.rows; ++row) {
            const std::uint32_t first = start[unpack(blocks_at(layout.column_blocks), words, row)];
            for (std::int32_t i = row_ptr[row]; i < row_ptr[row + 1]; ++i) {
                col_idx[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(layout.first_row + row) +
                                                       offsets[first + static_cast<std::uint32_t>(i - row_ptr[row])]);
            }
        }
    }
    if (layout.values != ValueCode::raw) {
#pragma omp parallel for num_threads(threads)
        for (std::int64_t i = 0; i < layout.nnz; ++i) {
            values[i] = decoded_value<T>(layout, packet, unpack(blocks_at(layout.value_blocks), words, i));
        }
    }
}

template <class T>
void multiply_packet(const PacketLayout& layout, const std::byte* packet, T alpha, const T* x, T beta, T* y,
                     const Context& context)
{
    const auto* const words = reinterpret_cast<const std::uint32_t*>(packet + layout.words);
    const auto integer = [&](std::int64_t blocks, std::int64_t i) {
        return unpack(reinterpret_cast<const PackedBlock*>(packet + blocks), words, i);
    };
    const auto* const start = reinterpret_cast<const std::uint32_t*>(packet + layout.pattern_start);
    const auto* const offsets = reinterpret_cast<const std::uint32_t*>(packet + layout.pattern_offsets);
    const int threads = layout.nnz < (1 << 16) ? 1 : std::max(context.threads, 1);
#pragma omp parallel for num_threads(threads)
    for (std::int64_t row = 0; row < layout.rows; ++row) {
        const std::uint32_t begin = integer(layout.row_ptr_blocks, row);
        const std::uint32_t* const list = offsets + start[integer(layout.column_blocks, row)];
        T sum = 0;
        for (std::uint32_t i = begin; i < integer(layout.row_ptr_blocks, row + 1); ++i) {
            const std::uint32_t column = static_cast<std::uint32_t>(layout.first_row + row) + list[i - begin];
            sum += decoded_value<T>(layout, packet, integer(layout.value_blocks, i)) * x[column];
        }
        y[row] = beta == T{0} ? alpha * sum : alpha * sum + beta * y[row];
    }
}

}  // namespace
}  // namespace host

RMSP_VALUE_ROW(PacketDecoding, host, .decode_packet = host::decode_packet<T>)

RMSP_VALUE_ROW(PacketProduct, host, .multiply_packet = host::multiply_packet<T>)

}  // namespace rmsp::kernels
