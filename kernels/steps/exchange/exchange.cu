#include <algorithm>
#include <cstdint>
#include <type_traits>

#include <kernels/cuda_check.cuh>
#include <kernels/cuda_launch.cuh>
#include <kernels/cuda_lines.cuh>
#include <kernels/cuda_load.cuh>
#include <kernels/cuda_words.cuh>
#include <kernels/steps/exchange/exchange.hpp>
#include <kernels/steps/support/copy_part.cuh>
#include <rmsp/error.hpp>

namespace rmsp::kernels {
namespace cuda::exchange {
namespace {

constexpr int threads = 256;
static_assert(threads >= most_peer_links);
// Copies: enough loads in flight for NVLink, few enough to leave room for a product that runs beside. Pushes gather,
// which takes all threads there are. Devices that share a GPU count its multiprocessors among them, so that their
// kernels, which wait for each other, have room side by side.
constexpr int copying_blocks = 2;  // a multiprocessor
constexpr int pushing_blocks = 8;
constexpr std::int64_t bytes_per_block = std::int64_t{threads} * 4 * 16;
constexpr std::int64_t entries_per_block = std::int64_t{threads} * 4;

// Kernels are compiled for 1 link, so many, and all.
constexpr int few_links = 8;

/// The links of an exchange as a kernel gets them, with room for `most`: a launch takes the longer the more it hands
/// over.
template <class Link, int most>
struct Links {
    Link link[most];
};

/// Calls f with those links and the least room that kernels are compiled for.
template <int most = 1, class Link, class F>
void with_links(const Link* links, int n, const F& f)
{
    if constexpr (most < most_peer_links) {
        if (n > most) {
            with_links<(most < few_links ? few_links : most_peer_links)>(links, n, f);
            return;
        }
    }
    Links<Link, most> few{};
    std::copy_n(links, n, few.link);
    f(few);
}

__device__ __forceinline__ void wait_for(const std::uint64_t* word, const PeerExchangeTerms& terms)
{
    // The look at the host's memory takes about as long as a thousand at the word.
    constexpr unsigned looks_between = 1u << 12;
    for (unsigned looks = 1; load_acquire(word) < terms.epoch; ++looks) {
        if (looks % looks_between == 0 && *terms.given_up >= terms.epoch) {
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

/// blockIdx.y is the link, of gridDim.y. The first block tells the peers, and waits for them last.
template <int most>
__global__ void __launch_bounds__(threads, pushing_blocks)
    exchange_kernel(const PeerExchangeTerms terms, const __grid_constant__ Links<PeerLink, most> links)
{
    const bool first = blockIdx.x == 0 && blockIdx.y == 0;
    const int thread = static_cast<int>(threadIdx.x);
    const int n = static_cast<int>(gridDim.y);
    if (first && thread < n && links.link[thread].peer_ready != nullptr) {
        __threadfence_system();
        store_release(links.link[thread].peer_ready, terms.epoch);
    }
    const PeerLink& link = links.link[blockIdx.y];
    if (link.ready != nullptr) {
        if (thread == 0) {
            wait_for(link.ready, terms);
        }
        __syncthreads();
        if (link.in.bytes > 0) {
            copy_part<threads>(link.in, blockIdx.x, gridDim.x);
        } else if (terms.entry_bytes == sizeof(float)) {
            push_part<float>(link.out, terms.slice);
        } else {
            push_part<double>(link.out, terms.slice);
        }
        __syncthreads();
        if (thread == 0) {
            __threadfence_system();
            unsigned* const arrived = terms.arrived + blockIdx.y;
            if (atomicAdd(arrived, 1u) + 1 == gridDim.x) {
                *arrived = 0;
                __threadfence_system();
                store_release(link.peer_done, terms.epoch);
            }
        }
    }
    if (first && thread < n && links.link[thread].done != nullptr) {
        wait_for(links.link[thread].done, terms);
    }
}

/// blockIdx.y is the link. Every thread sends its lines before it waits for any, so that the devices' kernels need not
/// run whole at once.
template <int most>
__global__ void __launch_bounds__(threads)
    lines_kernel(const LineExchangeTerms terms, const __grid_constant__ Links<LineLink, most> links)
{
    wait_for_kernel_before();
    const LineLink& link = links.link[blockIdx.y];
    const auto tag = static_cast<std::uint32_t>(terms.epoch);
    const std::int64_t first = std::int64_t{blockIdx.x} * threads + threadIdx.x;
    const std::int64_t step = std::int64_t{gridDim.x} * threads;
    const auto* const from = static_cast<const std::uint32_t*>(link.from);
    auto* const out = static_cast<Line*>(link.lines_out);
    const bool doubles = terms.entry_bytes == sizeof(double);
    const std::int64_t words_out = link.bytes_out / 4;
    for (std::int64_t i = first; i == 0 || 3 * i < words_out; i += step) {
        Line line{{0, 0, 0}, tag};
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            const std::int64_t word = 3 * i + k;
            if (word < words_out) {
                line.word[k] = link.list == nullptr ? from[word]
                               : doubles            ? from[2 * std::int64_t{link.list[word / 2]} + word % 2]
                                                    : from[link.list[word]];
            }
        }
        store_line(out + i, line);
    }
    // Devices in step wait a few microseconds. Longer ones must not take the issue slots of a product that runs beside.
    constexpr unsigned looks_at_once = 16;
    constexpr unsigned sleep = 100;  // ns
    // With the sleep, a look at the host's memory each fraction of a millisecond.
    constexpr unsigned looks_between = 1u << 10;
    auto* const to = static_cast<std::uint32_t*>(link.to);
    const std::int64_t words_in = link.bytes_in / 4;
    for (std::int64_t i = first; i == 0 || 3 * i < words_in; i += step) {
        Line line{};
        for (unsigned looks = 1;; ++looks) {
            // Whichever set the peer has used: devices that failed at different exchanges do not count them alike.
            const Line one = load_line(static_cast<const Line*>(link.lines_in[0]) + i);
            const Line other = load_line(static_cast<const Line*>(link.lines_in[1]) + i);
            line = one.tag == tag ? one : other;
            if (line.tag == tag) {
                break;
            }
            if (looks % looks_between == 0 && *terms.given_up >= terms.epoch) {
                return;
            }
            if (looks > looks_at_once) {
                __nanosleep(sleep);
            }
        }
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            if (3 * i + k < words_in) {
                to[3 * i + k] = line.word[k];
            }
        }
    }
}

void load_exchanges(const Context&)
{
    static cuda::LoadedKernels loaded;
    loaded.need([] {
        const auto load = []<int most>(std::integral_constant<int, most>) {
            cudaFuncAttributes attributes{};
            check(cudaFuncGetAttributes(&attributes, lines_kernel<most>), "cudaFuncGetAttributes");
            check(cudaFuncGetAttributes(&attributes, exchange_kernel<most>), "cudaFuncGetAttributes");
        };
        load(std::integral_constant<int, 1>());
        load(std::integral_constant<int, few_links>());
        load(std::integral_constant<int, most_peer_links>());
    });
}

void exchange_lines(const LineExchange& exchange, const Context& context)
{
    if (exchange.links == 0) {
        return;
    }
    constexpr std::int64_t block_bytes = std::int64_t{threads} * 16;
    std::int64_t blocks = 1;
    for (int i = 0; i < exchange.links; ++i) {
        const LineLink& link = exchange.link[i];
        blocks =
            std::max(blocks, (line_bytes(std::max(link.bytes_in, link.bytes_out)) + block_bytes - 1) / block_bytes);
    }
    const std::int64_t most = std::int64_t{std::max(context.compute_units, 1)} * copying_blocks / exchange.links;
    blocks = std::clamp<std::int64_t>(blocks, 1, std::max<std::int64_t>(1, most));
    with_links(exchange.link, exchange.links, [&]<int most>(const Links<LineLink, most>& links) {
        launch_early("launch of exchange_lines", lines_kernel<most>,
                     dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(exchange.links)), threads,
                     static_cast<cudaStream_t>(context.stream), exchange.terms, links);
    });
}

void exchange_with_peers(const PeerExchange& exchange, const Context& context)
{
    if (exchange.links == 0) {
        return;
    }
    std::int64_t copying = 1;
    std::int64_t pushing = 0;
    for (int i = 0; i < exchange.links; ++i) {
        const PeerLink& link = exchange.link[i];
        if (link.in.bytes > 0 && !aligned_alike(link.in)) {
            throw Error(ErrorCode::internal, "exchange_with_peers: a part whose ends are not aligned alike");
        }
        copying = std::max(copying, (link.in.bytes + bytes_per_block - 1) / bytes_per_block);
        pushing = std::max(pushing, (link.out.n + entries_per_block - 1) / entries_per_block);
    }
    const std::int64_t most = std::int64_t{std::max(context.compute_units, 1)} *
                              (pushing > 0 ? pushing_blocks : copying_blocks) / exchange.links;
    const std::int64_t blocks =
        std::clamp<std::int64_t>(std::max(copying, pushing), 1, std::max<std::int64_t>(1, most));
    with_links(exchange.link, exchange.links, [&]<int most>(const Links<PeerLink, most>& links) {
        exchange_kernel<most><<<dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(exchange.links)), threads, 0,
                                static_cast<cudaStream_t>(context.stream)>>>(exchange.terms, links);
    });
    RMSP_CUDA_CHECK_LAUNCH("exchange_with_peers");
}

}  // namespace
}  // namespace cuda::exchange

RMSP_ROW(Exchanges, cuda, .load_exchanges = cuda::exchange::load_exchanges,
         .exchange_with_peers = cuda::exchange::exchange_with_peers, .exchange_lines = cuda::exchange::exchange_lines)

}  // namespace rmsp::kernels
