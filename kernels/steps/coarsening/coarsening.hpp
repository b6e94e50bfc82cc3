#pragma once

#include <cstdint>
#include <optional>

#include <kernels/steps/step.hpp>
#include <rmsp/partition.hpp>

#include "matrix/aggregation.hpp"

/// Steps of making a coarser matrix in the memory of a GPU that holds rows of a square matrix, in the matrix's own
/// columns, which rise in each row, each once (is_canonical()). Only on GPUs: what they do on the host, in plain code
/// and for more cases, is in matrix/ (strength.hpp, coarsening.hpp, interpolation.hpp, aggregation.hpp), and each step
/// finds what its counterpart there finds, whose name it has. All pointers are memory of the context's device, results
/// and temporary memory are the context's. What returns a count waits for the device.
///
/// The GPU has all rows, or, where a step takes `first_row`, those from that one on. Vectors along all rows are then
/// given by where the entry of row 0 would be: of them only what those rows and their columns touch is read.
namespace rmsp::kernels {

/// Which rows the coarser matrix has. `strong` marks entries of the matrix (matrix/strength.hpp).
struct Coarsenings {
    /// number[i] = the coarse point that row i becomes, or -1. Returns how many there are.
    std::int64_t (*pmis)(std::int64_t rows, IndexView row_ptr, const std::int32_t* col_idx, const std::uint8_t* strong,
                         std::int32_t* number, const Context& context) = nullptr;
    /// Makes the near-null vector `values` (rows entries) one of length 1 on each aggregate; coarse[a] = the length
    /// that it had there. (tentative() of one vector and one unknown a node)
    void (*normalise)(std::int64_t rows, const std::int32_t* number, std::int64_t count, double* values, double* coarse,
                      const Context& context) = nullptr;
    /// normalise() of the vector of ones, whose sums do not depend on their order: coarse[a] = its length on aggregate
    /// a,
    void (*lengths_of_ones)(std::int64_t rows, const std::int32_t* number, std::int64_t count, double* coarse,
                            const Context& context) = nullptr;
    /// and values[i] = its entries then, of any of the rows.
    void (*normalised_ones)(std::int64_t rows, const std::int32_t* number, const double* coarse, double* values,
                            const Context& context) = nullptr;

    /// row_statistics() of rows that are on the device. Waits.
    RowStatistics (*statistics_of_rows)(std::int64_t rows, IndexView row_ptr, const Context& context) = nullptr;

    /// out[i] = pointers[min(i step, rows)] for i in [0, count).
    void (*sample_pointers)(std::int64_t rows, IndexView pointers, std::int64_t step, std::int64_t count,
                            std::int64_t* out, const Context& context) = nullptr;

    /// v[row] for rows [first_row, first_row + rows): rough, signs that change, lengths that differ.
    void (*rough_vector)(std::int64_t first_row, std::int64_t rows, double* v, const Context& context) = nullptr;

    static const Coarsenings& cuda();
};
inline constexpr Step pmis{&Coarsenings::pmis, "pmis"};
inline constexpr Step normalise{&Coarsenings::normalise, "normalise"};
inline constexpr Step lengths_of_ones{&Coarsenings::lengths_of_ones, "lengths_of_ones"};
inline constexpr Step normalised_ones{&Coarsenings::normalised_ones, "normalised_ones"};
inline constexpr Step statistics_of_rows{&Coarsenings::statistics_of_rows, "statistics_of_rows"};
inline constexpr Step sample_pointers{&Coarsenings::sample_pointers, "sample_pointers"};
inline constexpr Step rough_vector{&Coarsenings::rough_vector, "rough_vector"};

/// Steps on the values of the matrix.
template <class T>
struct Strengths {
    /// Whether columns rise in each row, each once. Waits.
    bool (*is_canonical)(const CsrShard<T>& a, const Context& context) = nullptr;
    /// Of each of A's rows the diagonal entry, 0 where it has none, and how much its entry counts that counts most.
    /// \param symmetric  the measure; else the classical one
    void (*weigh_rows)(const CsrShard<T>& a, std::int64_t first_row, bool symmetric, double* diagonal, double* largest,
                       const Context& context) = nullptr;
    /// Marks the entries. \param diagonal, largest  of weigh_rows()
    void (*strong_entries)(const CsrShard<T>& a, std::int64_t first_row, bool symmetric, double threshold,
                           const double* diagonal, const double* largest, std::uint8_t* marks,
                           const Context& context) = nullptr;

    static const Strengths& cuda();
};
RMSP_VALUE_STEP(Strengths, is_canonical);
RMSP_VALUE_STEP(Strengths, weigh_rows);
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

/// Rows of a matrix that is made coarser by aggregates, and P before it is smoothed.
template <class T>
struct AggregatedRows {
    CsrShard<T> a;
    std::int64_t first_row = 0;
    const std::uint8_t* strong = nullptr;  ///< marks of A's entries
    const std::int32_t* number = nullptr;  ///< of aggregates(), along all rows
    const double* values = nullptr;        ///< of normalise(), along all rows
    const double* coarse = nullptr;        ///< of normalise()
};

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
    /// 1 over the diagonal of each of A's rows, without its weak entries, which are added to it; 0 where there is none,
    /// and where the strong entries are too large beside it (matrix::smoothed_prolongator())
    /// \param inverse  of A's rows, from its first one
    void (*filtered_inverse)(const AggregatedRows<T>& rows, double* inverse, const Context& context) = nullptr;
    /// A step of the power method in A's rows, from v and, where it is not the first one, w, to w; with A_F, which has
    /// no weak entries. Leaves numbers in `squares`, at most most_sums(context), which add up to the squares of w
    /// there, and returns how many. Does not wait. \param inverse  of filtered_inverse() \param v, w  along all rows
    int (*filtered_product)(const AggregatedRows<T>& rows, const double* inverse, const matrix::PowerStep& step,
                            const double* v, double* w, double* squares, const Context& context) = nullptr;
    /// A's rows of P of one near-null vector. None if one is wider than widest_row.
    /// \param omega  4/3 over the largest eigenvalue of D^-1 A_F, or 0
    std::optional<CsrArrays<T>> (*smoothed_rows)(const AggregatedRows<T>& rows, const double* inverse, double omega,
                                                 bool smooth, const Context& context) = nullptr;
    /// Their values for other values of A, where P has entries. \param p_row_ptr  local ones of these rows of P
    void (*renew_smoothed_rows)(const AggregatedRows<T>& rows, const double* inverse, double omega, bool smooth,
                                IndexView p_row_ptr, T* p_values, const Context& context) = nullptr;

    static const Prolongations& cuda();
};
RMSP_VALUE_STEP(Prolongations, interpolation);
RMSP_VALUE_STEP(Prolongations, renew_interpolation);
RMSP_VALUE_STEP(Prolongations, filtered_inverse);
RMSP_VALUE_STEP(Prolongations, filtered_product);
RMSP_VALUE_STEP(Prolongations, smoothed_rows);
RMSP_VALUE_STEP(Prolongations, renew_smoothed_rows);

/// Room for the sums of filtered_product().
inline int most_sums(const Context& context)
{
    constexpr int blocks_each = 16;  // of a multiprocessor
    return blocks_each * (context.compute_units > 0 ? context.compute_units : 1);
}

}  // namespace rmsp::kernels
