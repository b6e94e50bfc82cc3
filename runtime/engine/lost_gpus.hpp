#pragma once

namespace rmsp::engine {

/// Whether a GPU of this process was lost, by its CUDA ordinal: until the process ends.
bool is_lost_gpu(int ordinal);
/// It is, from now on.
void remember_lost_gpu(int ordinal);

}  // namespace rmsp::engine
