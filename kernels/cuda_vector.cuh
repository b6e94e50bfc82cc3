#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace rmsp::kernels::cuda {

/// 16 bytes of values, which one instruction loads or stores.
template <class T>
struct Vector;
template <>
struct Vector<double> {
    static constexpr int width = 2;
    using type = double2;
};
template <>
struct Vector<float> {
    static constexpr int width = 4;
    using type = float4;
};

__device__ __forceinline__ void unpack(const double2& v, double* p)
{
    p[0] = v.x;
    p[1] = v.y;
}
__device__ __forceinline__ void unpack(const float4& v, float* p)
{
    p[0] = v.x;
    p[1] = v.y;
    p[2] = v.z;
    p[3] = v.w;
}
__device__ __forceinline__ void unpack(const int4& v, std::int32_t* p)
{
    p[0] = v.x;
    p[1] = v.y;
    p[2] = v.z;
    p[3] = v.w;
}
__device__ __forceinline__ double2 pack(const double* p) { return {p[0], p[1]}; }
__device__ __forceinline__ float4 pack(const float* p) { return {p[0], p[1], p[2], p[3]}; }

}  // namespace rmsp::kernels::cuda
