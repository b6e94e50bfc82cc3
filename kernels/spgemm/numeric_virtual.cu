#include <algorithm>

#include <kernels/cuda_check.cuh>
#include <kernels/spgemm/device.cuh>

namespace rmsp::kernels::spgemm {
namespace {

/// Of virtual warps of so many threads; the widest have one each.
template <int Width>
constexpr int block_threads = std::max(Width, 128);

/// The threads of a virtual warp wait for each other, and see what the others wrote.
template <int Width>
__device__ __forceinline__ void meet(int own)
{
    if constexpr (Width == block_threads<Width>) {
        __syncthreads();
    } else if constexpr (Width > 32) {
        asm volatile("bar.sync %0, %1;" ::"r"(own + 1), "n"(Width) : "memory");
    } else {
        const unsigned all = Width == 32 ? 0xffffffffu : (1u << Width % 32) - 1;
        __syncwarp(all << (static_cast<int>(threadIdx.x) % 32 / Width * Width));
    }
}

/// Rows of C as Kurt et al. compute them: a block is so many virtual warps, each of which has a row of A and a scatter
/// vector, and takes the rows of B that its row names one after the other. Sums are atomic, so that a virtual warp
/// waits for nothing between two rows of B.
template <int Width, class T>
__global__ void __launch_bounds__(block_threads<Width>)
    virtual_warps_kernel(const __grid_constant__ NumericJob<T> job, const std::int32_t* __restrict__ list,
                         std::int64_t count)
{
    constexpr int a_block = block_threads<Width> / Width;
    const int own = static_cast<int>(threadIdx.x) / Width;
    const int lane = static_cast<int>(threadIdx.x) % Width;
    const std::int64_t first = std::int64_t{blockIdx.x} * a_block + own;
    std::int32_t* const map = job.map + first * job.b.cols;
    for (std::int64_t index = first; index < count; index += std::int64_t{gridDim.x} * a_block) {
        const std::int64_t row = list[index];
        const std::int64_t a_begin = job.a.row_ptr[row];
        const std::int64_t a_entries = job.a.row_ptr[row + 1] - a_begin;
        const std::int64_t c_begin = job.row_ptr[row];
        const auto entries = static_cast<std::int32_t>(job.row_ptr[row + 1] - c_begin);
        const int group = job.groups[row];
        for (std::int32_t i = lane; i < entries; i += Width) {
            map[__ldg(job.col_idx + c_begin + i)] = i;
            for (int r = 0; r < group; ++r) {
                job.values[c_begin + r * std::int64_t{entries} + i] = T{0};
            }
        }
        meet<Width>(own);
        // Twins one after the other, with the same places.
        for (int r = 0; r < group; ++r) {
            T* const sums = job.values + c_begin + r * std::int64_t{entries};
            for (std::int64_t k = 0; k < a_entries; ++k) {
                const Extent b_row = load(job.b_entries + __ldg(job.a.col_idx + a_begin + k));
                const T factor = job.alpha * __ldg(job.a_values + a_begin + r * a_entries + k);
                const std::int64_t b_begin = b_row.place();
                for (std::int32_t j = lane; j < b_row.count(); j += Width) {
                    atomicAdd(sums + map[__ldg(job.b.col_idx + b_begin + j)],
                              factor * __ldg(job.b_values + b_begin + j));
                }
            }
        }
        meet<Width>(own);
    }
}

template <int Width, class T>
void launch_warps(const NumericJob<T>& job, const std::int32_t* list, std::int64_t count, cudaStream_t stream)
{
    constexpr std::int64_t a_block = block_threads<Width> / Width;
    const std::int64_t blocks = std::min((count + a_block - 1) / a_block, job.map_rows / a_block);
    // Those before it are done by then: they may have the same scatter vectors.
    virtual_warps_kernel<Width, T>
        <<<static_cast<unsigned>(blocks), block_threads<Width>, 0, stream>>>(job, list, count);
    RMSP_CUDA_CHECK_LAUNCH("virtual_warps_kernel");
}

}  // namespace

template <class T>
void run_numeric_virtual(const NumericJob<T>& job, NumericClass c, const std::int32_t* list, std::int64_t count,
                         cudaStream_t stream)
{
    const auto launch = c == NumericClass::virtual16    ? launch_warps<16, T>
                        : c == NumericClass::virtual32  ? launch_warps<32, T>
                        : c == NumericClass::virtual64  ? launch_warps<64, T>
                        : c == NumericClass::virtual128 ? launch_warps<128, T>
                        : c == NumericClass::virtual256 ? launch_warps<256, T>
                                                        : launch_warps<512, T>;
    launch(job, list, count, stream);
}

#define RMSP_INSTANTIATE(T)                                                                                  \
    template void run_numeric_virtual(const NumericJob<T>&, NumericClass, const std::int32_t*, std::int64_t, \
                                      cudaStream_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels::spgemm
