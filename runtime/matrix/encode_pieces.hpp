#pragma once

#include <span>
#include <vector>

#include <kernels/steps/stream/stream.hpp>
#include <rmsp/matrix.hpp>

#include "runtime/matrix/stream_pieces.hpp"

namespace rmsp::distributed {

/// The pieces of a streamed matrix in the form in which they are copied to their device, by so many threads. \throws
/// what a piece's encoding throws
template <class T>
std::vector<kernels::Packet> encode_pieces(const CsrView<T>& a, std::span<const StreamPiece> pieces, int threads);

}  // namespace rmsp::distributed
