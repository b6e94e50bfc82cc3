#pragma once

#include <cstdint>

#include <kernels/steps/step.hpp>

/// Steps of making a coarser matrix in the memory of a GPU that holds all rows of a square matrix, in the matrix's own
/// columns, which rise in each row, each once (is_canonical()). Only on GPUs: what they do on the host, in plain code
/// and for more cases, is in matrix/ (strength.hpp, coarsening.hpp, interpolation.hpp, aggregation.hpp), and each step
/// finds what its counterpart there finds, whose name it has. All pointers are memory of the context's device, results
/// and temporary memory are the context's. What returns a count waits for the device.
namespace rmsp::kernels {

/// Which rows the coarser matrix has. `strong` marks entries of the matrix: 1 or 0.
struct Coarsenings {
    /// Whether an entry is strong wherever its counterpart on the other side of the diagonal is. Waits.
    bool (*is_symmetric)(std::int64_t rows, IndexView row_ptr, const std::int32_t* col_idx, const std::uint8_t* strong,
                         const Context& context) = nullptr;
    /// number[i] = the coarse point that row i becomes, or -1. Returns how many there are.
    std::int64_t (*pmis)(std::int64_t rows, IndexView row_ptr, const std::int32_t* col_idx, const std::uint8_t* strong,
                         std::int32_t* number, const Context& context) = nullptr;
    /// number[i] = the aggregate that row i is in, or -1. Returns how many there are. is_symmetric() must hold.
    std::int64_t (*aggregates)(std::int64_t rows, IndexView row_ptr, const std::int32_t* col_idx,
                               const std::uint8_t* strong, std::int32_t* number, const Context& context) = nullptr;
    /// Makes the near-null vector `values` (rows entries) one of length 1 on each aggregate; coarse[a] = the length
    /// that it had there. (tentative() of one vector and one unknown a node)
    void (*normalise)(std::int64_t rows, const std::int32_t* number, std::int64_t count, double* values, double* coarse,
                      const Context& context) = nullptr;

    static const Coarsenings& cuda();
};
inline constexpr Step is_symmetric{&Coarsenings::is_symmetric, "is_symmetric"};
inline constexpr Step pmis{&Coarsenings::pmis, "pmis"};
inline constexpr Step aggregates{&Coarsenings::aggregates, "aggregates"};
inline constexpr Step normalise{&Coarsenings::normalise, "normalise"};

/// Steps on the values of the matrix.
template <class T>
struct Strengths {
    /// Whether columns rise in each row, each once. Waits.
    bool (*is_canonical)(const CsrShard<T>& a, const Context& context) = nullptr;
    /// Marks the strong entries. \param symmetric  the measure; else the classical one
    void (*strong_entries)(const CsrShard<T>& a, bool symmetric, double threshold, std::uint8_t* strong,
                           const Context& context) = nullptr;

    static const Strengths& cuda();
};
RMSP_VALUE_STEP(Strengths, is_canonical);
RMSP_VALUE_STEP(Strengths, strong_entries);

}  // namespace rmsp::kernels
