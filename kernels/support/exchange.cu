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
// Enough loads in flight for NVLink, few enough to leave room for a product that runs beside.
constexpr int blocks_per_multiprocessor = 2;
constexpr std::int64_t bytes_per_block = std::int64_t{threads} * 4 * 16;

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
    if (link.in.bytes > 0) {
        if (thread == 0) {
            wait_for(link.ready, exchange);
        }
        __syncthreads();
        cuda::copy_part<threads>(link.in, blockIdx.x, gridDim.x);
        __syncthreads();
        if (thread == 0) {
            __threadfence_system();
            unsigned* const arrived = exchange.arrived + blockIdx.y;
            if (atomicAdd(arrived, 1u) + 1 == gridDim.x) {
                *arrived = 0;
                __threadfence_system();
                store_release(link.peer_read, exchange.epoch);
            }
        }
    }
    if (first && thread < exchange.links && exchange.link[thread].read != nullptr) {
        wait_for(exchange.link[thread].read, exchange);
    }
}

}  // namespace

void exchange_with_peers(const PeerExchange& exchange, const Context& context)
{
    if (exchange.links == 0) {
        return;
    }
    std::int64_t longest = 0;
    for (int i = 0; i < exchange.links; ++i) {
        const CopyPart& in = exchange.link[i].in;
        if (in.bytes > 0 && !cuda::aligned_alike(in)) {
            throw Error(ErrorCode::internal, "exchange_with_peers: a part whose ends are not aligned alike");
        }
        longest = std::max(longest, in.bytes);
    }
    const std::int64_t most =
        std::max(1, std::max(context.compute_units, 1) * blocks_per_multiprocessor / exchange.links);
    const std::int64_t blocks = std::clamp<std::int64_t>((longest + bytes_per_block - 1) / bytes_per_block, 1, most);
    exchange_kernel<<<dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(exchange.links)), threads, 0,
                      static_cast<cudaStream_t>(context.stream)>>>(exchange);
    RMSP_CUDA_CHECK_LAUNCH("exchange_with_peers");
}

}  // namespace rmsp::kernels
