#pragma once

#include <cstdint>

#include <kernels/steps/support/support.hpp>

/// The CUDA bodies of support.hpp; stand-ins that throw NotCompiled in a build without CUDA.
namespace rmsp::kernels::cuda {

template <class Out>
void localize_row_ptr(IndexView row_ptr, std::int64_t rows, std::int64_t start, std::int64_t nnz, Out* out,
                      const Context& context);
void narrow_indices(const std::int64_t* in, std::int64_t n, std::int32_t* out, const Context& context);
template <class T>
void fill(T* y, std::int64_t n, T value, const Context& context);
template <class T>
void add_carries(T* y, const T* carries, int count, const Context& context);
template <class T>
void add_partials(T* y, std::int64_t first, std::int64_t end, T beta, const PartialSums<T>* parts, int count,
                  const Context& context);
void copy_parts(const CopyPart* parts, int count, const Context& context);
void interior_rows(IndexView row_ptr, std::int64_t rows, const std::int32_t* col_idx, std::int64_t first_column,
                   std::int64_t end_column, std::int64_t* run, const Context& context);
void read_all(const double* data, std::int64_t n, double* sink, const Context& context);

}  // namespace rmsp::kernels::cuda
