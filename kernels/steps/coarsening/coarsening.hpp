#pragma once

#include <cstdint>
#include <optional>

#include <kernels/steps/step.hpp>
#include <rmsp/partition.hpp>

/// Steps of making a coarser matrix in the memory of a GPU that holds all rows of a square matrix, in the matrix's own
/// columns, which rise in each row, each once (is_canonical()). Only on GPUs: what they do on the host, in plain code
/// and for more cases, is in matrix/ (strength.hpp, coarsening.hpp, interpolation.hpp, aggregation.hpp), and each step
/// finds what its counterpart there finds, whose name it has. All pointers are memory of the context's device, results
/// and temporary memory are the context's. What returns a count waits for the device.
namespace rmsp::kernels {

/// Which rows the coarser matrix has. `strong` marks entries of the matrix (matrix/strength.hpp).
struct Coarsenings {
    /// alike[k] = whether an entry or its counterpart on the other side of the diagonal is strong, as a mark. Rounding
    /// makes one of two alike entries strong and not the other. Returns false where a strong one has none. Waits.
    bool (*symmetrise)(std::int64_t rows, IndexView row_ptr, const std::int32_t* col_idx, const std::uint8_t* strong,
                       std::uint8_t* alike, const Context& context) = nullptr;
    /// number[i] = the coarse point that row i becomes, or -1. Returns how many there are.
    std::int64_t (*pmis)(std::int64_t rows, IndexView row_ptr, const std::int32_t* col_idx, const std::uint8_t* strong,
                         std::int32_t* number, const Context& context) = nullptr;
    /// number[i] = the aggregate that row i is in, or -1. Returns how many there are; -1 where so many rows wait for
    /// each other, as along a line, that the host is faster. `strong` is of
    /// symmetrise().
    std::int64_t (*aggregates)(std::int64_t rows, IndexView row_ptr, const std::int32_t* col_idx,
                               const std::uint8_t* strong, std::int32_t* number, const Context& context) = nullptr;
    /// Makes the near-null vector `values` (rows entries) one of length 1 on each aggregate; coarse[a] = the length
    /// that it had there. (tentative() of one vector and one unknown a node)
    void (*normalise)(std::int64_t rows, const std::int32_t* number, std::int64_t count, double* values, double* coarse,
                      const Context& context) = nullptr;

    /// row_statistics() of rows that are on the device. Waits.
    RowStatistics (*statistics_of_rows)(std::int64_t rows, IndexView row_ptr, const Context& context) = nullptr;

    static const Coarsenings& cuda();
};
inline constexpr Step symmetrise{&Coarsenings::symmetrise, "symmetrise"};
inline constexpr Step pmis{&Coarsenings::pmis, "pmis"};
inline constexpr Step aggregates{&Coarsenings::aggregates, "aggregates"};
inline constexpr Step normalise{&Coarsenings::normalise, "normalise"};
inline constexpr Step statistics_of_rows{&Coarsenings::statistics_of_rows, "statistics_of_rows"};

/// Steps on the values of the matrix.
template <class T>
struct Strengths {
    /// Whether columns rise in each row, each once. Waits.
    bool (*is_canonical)(const CsrShard<T>& a, const Context& context) = nullptr;
    /// Marks the entries. \param symmetric  the measure; else the classical one
    void (*strong_entries)(const CsrShard<T>& a, bool symmetric, double threshold, std::uint8_t* marks,
                           const Context& context) = nullptr;

    static const Strengths& cuda();
};
RMSP_VALUE_STEP(Strengths, is_canonical);
RMSP_VALUE_STEP(Strengths, strong_entries);

/// Rows of a matrix that a step made; columns rise in each.
template <class T>
struct CsrArrays {
    DeviceArray<std::int64_t> row_ptr;  ///< rows + 1 entries
    DeviceArray<std::int32_t> col_idx;
    DeviceArray<T> values;
};

/// Rows of P may have so many entries before truncation; steps refuse wider ones, for which a thread is too slow.
inline constexpr std::int64_t widest_row = 2048;

/// Steps that make P. What they compute is in double, and in an order that does not depend on the device.
template <class T>
struct Prolongations {
    /// P of classical multigrid (matrix::interpolation()), with its bits; none if a row is wider than widest_row.
    /// \param number  of pmis() \param direct  the kind; else the extended one
    /// \param most  entries that stay in a row; 0: all
    std::optional<CsrArrays<T>> (*interpolation)(const CsrShard<T>& a, const std::uint8_t* strong,
                                                 const std::int32_t* number, bool direct, double truncation,
                                                 std::int64_t most, const Context& context) = nullptr;
    /// Values of P for other values of A, where P has entries (matrix::renew_interpolation()).
    void (*renew_interpolation)(const CsrShard<T>& a, const std::uint8_t* strong, const std::int32_t* number,
                                bool direct, const CsrShard<T>& p, T* values, const Context& context) = nullptr;
    /// P of one near-null vector (matrix::smoothed_prolongator()), whose values agree to rounding: the eigenvalue is
    /// estimated with sums in another order. None if a row is wider than widest_row.
    /// \param number  of aggregates() \param values, coarse  of normalise()
    /// \param vector  of the power method, as of matrix::smoothed_prolongator(): of A's rows, or empty
    std::optional<CsrArrays<T>> (*smoothed_prolongator)(const CsrShard<T>& a, const std::uint8_t* strong,
                                                        const std::int32_t* number, const double* values,
                                                        const double* coarse, bool smooth, DeviceArray<double>& vector,
                                                        const Context& context) = nullptr;
    /// Its values for other values of A, where P has entries.
    void (*renew_smoothed)(const CsrShard<T>& a, const std::uint8_t* strong, const std::int32_t* number,
                           const double* values, const double* coarse, bool smooth, DeviceArray<double>& vector,
                           const CsrShard<T>& p, T* p_values, const Context& context) = nullptr;

    static const Prolongations& cuda();
};
RMSP_VALUE_STEP(Prolongations, interpolation);
RMSP_VALUE_STEP(Prolongations, renew_interpolation);
RMSP_VALUE_STEP(Prolongations, smoothed_prolongator);
RMSP_VALUE_STEP(Prolongations, renew_smoothed);

}  // namespace rmsp::kernels
