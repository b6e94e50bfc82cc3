#pragma once

#include <cstdint>

#include <kernels/steps/step.hpp>

/// Products with matrices of dense blocks along the diagonal, as block Jacobi's preconditioner is one. On one device,
/// queued on the context's stream; all pointers are memory of the context's device.
namespace rmsp::kernels {

/// Rows of the largest block.
inline constexpr int most_block_rows = 32;

template <class T>
struct DenseBlocks {
    /// z = D r, with `rows` entries each, which must not overlap. D has blocks of `size` rows and columns, from 1 to
    /// most_block_rows, each stored by columns (matrix::BlockInverses); the last one is stored whole, but only what
    /// lies in the rows is read. Sums are in the order of the columns. `skip`: if not null, and not 0 there when the
    /// device comes to it, nothing is done.
    void (*multiply_blocks)(const T* blocks, int size, std::int64_t rows, const T* r, T* z, const double* skip,
                            const Context& context) = nullptr;

    static const DenseBlocks& host();
    static const DenseBlocks& cuda();
};
RMSP_VALUE_STEP(DenseBlocks, multiply_blocks);

/// Loads the kernel of multiply_blocks() on the current device: the first launch of a kernel may wait for those that
/// run, which must not be where one of them waits for another device.
struct DenseBlockLoading {
    void (*load_dense_blocks)(const Context& context) = nullptr;

    static const DenseBlockLoading& host();
    static const DenseBlockLoading& cuda();
};
inline constexpr Step load_dense_blocks{&DenseBlockLoading::load_dense_blocks, "load_dense_blocks"};

}  // namespace rmsp::kernels
