#include "runtime/matrix/encode_pieces.hpp"

#include <cstddef>

#include "core/first_error.hpp"

namespace rmsp::distributed {
namespace {

// An array whose encoding is hardly smaller is copied as it is: from where it is, without another copy in host memory.
constexpr double most_encoded_share = 0.9;

}  // namespace

template <class T>
std::vector<kernels::Packet> encode_pieces(const CsrView<T>& a, std::span<const StreamPiece> pieces, int threads)
{
    std::vector<kernels::Packet> packets(pieces.size());
    core::FirstError error;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        error.guard([&] {
            const StreamPiece& piece = pieces[i];
            packets[i] = kernels::encode_piece<T>(
                {a.row_ptr, a.col_idx, a.values, piece.first_row, piece.rows, piece.first, piece.nnz},
                most_encoded_share);
        });
    }
    error.rethrow();
    return packets;
}

#define RMSP_INSTANTIATE(T) \
    template std::vector<kernels::Packet> encode_pieces(const CsrView<T>&, std::span<const StreamPiece>, int);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
