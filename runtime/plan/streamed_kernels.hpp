#pragma once

#include <cstdint>
#include <string>

#include <kernels/spmv/formats.hpp>
#include <kernels/spmv/spmv.hpp>

/// The kernels that multiply a matrix in pieces.
namespace rmsp::plan {

/// choose_spmv() among the kernels that serve a streamed matrix: those that read the caller's format where it is. The
/// others keep a copy of the entries, or examine them beforehand. \throws Error(usage) as that does, and for the others
template <class T>
const kernels::SpmvKernel<T>& choose_streamed_spmv(DeviceKind kind, const std::string& name, Determinism determinism,
                                                   const RowStatistics& rows, std::int64_t cols);

/// The kernel that streams columns: choose_spmv_csc().
template <class T>
const kernels::CscKernel<T>& choose_streamed_csc(DeviceKind kind, const std::string& name, Determinism determinism);

/// The kernel that streams coordinates in that order, choose_spmv_coo(), whether "auto" would take the kernel for
/// resident ones or not.
template <class T>
const kernels::CooKernel<T>& choose_streamed_coo(DeviceKind kind, const std::string& name, Determinism determinism,
                                                 CooOrder order);

/// Least bytes of DistributeOptions::chunk_bytes.
inline constexpr std::int64_t least_chunk_bytes = 1024;

}  // namespace rmsp::plan
