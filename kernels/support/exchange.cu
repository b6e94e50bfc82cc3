#include <algorithm>
#include <cstdint>

#include <kernels/cuda_check.cuh>
#include <kernels/support/copy_part.cuh>
#include <kernels/support/exchange.hpp>
#include <rmsp/error.hpp>

namespace rmsp::kernels {
namespace {

constexpr int threads = 256;
static_assert(threads >= most_peer_links);
// Copies: enough loads in flight for NVLink, few enough to leave room for a product that runs beside. Pushes gather, which takes
// all threads there are.
constexpr int copying_blocks = 2;  // a multiprocessor
constexpr int pushing_blocks = 8;
constexpr std::int64_t bytes_per_block = std::int64_t{threads} * 4 * 16;
constexpr std::int64_t entries_per_block = std::int64_t{threads} * 4;

__device__ __forceinline__ std::uint64_t load_acquire(const std::uint64_t* word)
{
    std::uint64_t value = 0;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

__device__ __forceinline__ void store_release(std::uint64_t* word, std::uint64_t value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

__device__ __forceinline__ void wait_for(const std::uint64_t* word, const PeerExchange& exchange)
{
    // The look at the host's memory takes about as long as a thousand at the word.
    constexpr unsigned looks_between = 1u << 12;
    for (unsigned looks = 1; load_acquire(word) < exchange.epoch; ++looks) {
        if (looks % looks_between == 0 && *exchange.given_up >= exchange.epoch) {
            return;
        }
    }
}

template <class T>
__device__ __forceinline__ void push_part(const PushPart& part, const void* slice)
{
    constexpr int unroll = 4;
    const T* const from = static_cast<const T*>(slice);
    T* const to = static_cast<T*>(part.to);
    const std::int64_t step = std::int64_t{gridDim.x} * threads;
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < part.n; i += unroll * step) {
        T value[unroll];
#pragma unroll
        for (int k = 0; k < unroll; ++k) {
            value[k] = i + k * step < part.n ? from[__ldcs(part.list + i + k * step)] : T{0};
        }
#pragma unroll
        for (int k = 0; k < unroll; ++k) {
            if (i + k * step < part.n) {
                to[i + k * step] = value[k];
            }
        }
    }
}

/// blockIdx.y is the link. The first block tells the peers, and waits for them last.
__global__ void __launch_bounds__(threads) exchange_kernel(const __grid_constant__ PeerExchange exchange)
{
    const bool first = blockIdx.x == 0 && blockIdx.y == 0;
    const int thread = static_cast<int>(threadIdx.x);
    if (first && thread < exchange.links && exchange.link[thread].peer_ready != nullptr) {
        __threadfence_system();
        store_release(exchange.link[thread].peer_ready, exchange.epoch);
    }
    const PeerLink& link = exchange.link[blockIdx.y];
    if (link.ready != nullptr) {
        if (thread == 0) {
            wait_for(link.ready, exchange);
        }
        __syncthreads();
        if (link.in.bytes > 0) {
            cuda::copy_part<threads>(link.in, blockIdx.x, gridDim.x);
        } else if (exchange.entry_bytes == sizeof(float)) {
            push_part<float>(link.out, exchange.slice);
        } else {
            push_part<double>(link.out, exchange.slice);
        }
        __syncthreads();
        if (thread == 0) {
            __threadfence_system();
            unsigned* const arrived = exchange.arrived + blockIdx.y;
            if (atomicAdd(arrived, 1u) + 1 == gridDim.x) {
                *arrived = 0;
                __threadfence_system();
                store_release(link.peer_done, exchange.epoch);
            }
        }
    }
    if (first && thread < exchange.links && exchange.link[thread].done != nullptr) {
        wait_for(exchange.link[thread].done, exchange);
    }
}

}  // namespace

void exchange_with_peers(const PeerExchange& exchange, const Context& context)
{
    if (exchange.links == 0) {
        return;
    }
    std::int64_t copying = 1;
    std::int64_t pushing = 0;
    for (int i = 0; i < exchange.links; ++i) {
        const PeerLink& link = exchange.link[i];
        if (link.in.bytes > 0 && !cuda::aligned_alike(link.in)) {
            throw Error(ErrorCode::internal, "exchange_with_peers: a part whose ends are not aligned alike");
        }
        copying = std::max(copying, (link.in.bytes + bytes_per_block - 1) / bytes_per_block);
        pushing = std::max(pushing, (link.out.n + entries_per_block - 1) / entries_per_block);
    }
    const std::int64_t most = std::int64_t{std::max(context.compute_units, 1)} *
                              (pushing > 0 ? pushing_blocks : copying_blocks) / exchange.links;
    const std::int64_t blocks =
        std::clamp<std::int64_t>(std::max(copying, pushing), 1, std::max<std::int64_t>(1, most));
    exchange_kernel<<<dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(exchange.links)), threads, 0,
                      static_cast<cudaStream_t>(context.stream)>>>(exchange);
    RMSP_CUDA_CHECK_LAUNCH("exchange_with_peers");
}

}  // namespace rmsp::kernels
