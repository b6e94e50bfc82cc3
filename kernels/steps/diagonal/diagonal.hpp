#pragma once

#include <cstdint>

#include <kernels/steps/step.hpp>

/// The diagonal of the part of a square matrix that one device holds. Queued on the context's stream; all pointers are
/// memory of the context's device. Repeated entries add up, missing ones are 0.
namespace rmsp::kernels {

/// Divisors that are none: zero, or not finite.
struct NoDivisors {
    std::int64_t count = 0;
    std::int64_t first = -1;  ///< -1: there is none
};

template <class T>
struct Diagonals {
    /// out[i] = the sum of the entries of row i in column part.diagonal + i. The same bits each time.
    void (*csr_diagonal)(const CsrShard<T>& part, T* out, const Context& context) = nullptr;
    /// out[i] = the sum of the entries (row, column) with row = column = first + i, for i in [0, count). `sorted`: rows
    /// do not fall, and all are in the range; the same bits each time then. Else out has to be 0 before, and GPUs add
    /// repeated entries in any order.
    void (*coo_diagonal)(const std::int32_t* row_idx, const std::int32_t* col_idx, const T* values, std::int64_t nnz,
                         std::int64_t first, std::int64_t count, bool sorted, T* out, const Context& context) = nullptr;

    /// out[i] = the sum of the magnitudes of row i, negative where csr_diagonal() is; in double, in an order that
    /// depends on the part alone.
    void (*csr_row_norms)(const CsrShard<T>& part, T* out, const Context& context) = nullptr;

    /// out[i] = factor / in[i] for i in [0, n), which may be the same; what is no divisor counts as 1. Waits.
    NoDivisors (*divide_by)(double factor, const T* in, std::int64_t n, T* out, const Context& context) = nullptr;

    static const Diagonals& host();
    static const Diagonals& cuda();
};
RMSP_VALUE_STEP(Diagonals, csr_diagonal);
RMSP_VALUE_STEP(Diagonals, coo_diagonal);
RMSP_VALUE_STEP(Diagonals, csr_row_norms);
RMSP_VALUE_STEP(Diagonals, divide_by);

}  // namespace rmsp::kernels
