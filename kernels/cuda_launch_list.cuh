#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include <cuda_runtime.h>

#include <kernels/context.hpp>

namespace rmsp::kernels::cuda {

/// Whether the current device places thread blocks of a kernel before the one in front of it has ended (see
/// launch_early()).
bool device_launches_early();

/// launch_early() of a kernel with its arguments' addresses. \throws as check(), naming the kernel
void launch_early_with(const char* name, const void* kernel, dim3 blocks, dim3 threads, std::size_t shared_bytes,
                       cudaStream_t stream, void** arguments);

/// A LaunchList of one stream of a GPU. Several kernels are launched as a CUDA graph, which is kept and told their
/// arguments: that takes about half as long as a launch of each.
class CudaLaunchList final : public LaunchList {
public:
    /// On the device that the list is of, as is its end. \throws as check()
    explicit CudaLaunchList(cudaStream_t stream) : stream_(stream), early_(device_launches_early()) {}
    ~CudaLaunchList() override;
    CudaLaunchList(const CudaLaunchList&) = delete;
    CudaLaunchList& operator=(const CudaLaunchList&) = delete;

    /// Keeps the launch of a kernel that may be launched early, with copies of its arguments. False: it has no room
    /// for them, is empty now, and the caller is to launch it. \throws as launch_all(), which then throws once more, as
    /// the caller need not be who asked for what failed
    template <class... Parameters, class... Arguments>
    bool keep(const char* name, void (*kernel)(Parameters...), dim3 blocks, int threads, std::size_t shared_bytes,
              const Arguments&... arguments)
    {
        static_assert((std::is_trivially_copyable_v<Parameters> && ...));
        constexpr std::size_t bytes = ((sizeof(Parameters) + alignof(std::max_align_t)) + ... + 0);
        if constexpr (bytes > room_for_arguments || sizeof...(Parameters) > most_arguments) {
            make_room();
            return false;
        } else {
            if (count_ == most_kept) {
                make_room();
            }
            Kept& kept = kept_[count_];
            kept.name = name;
            kept.kernel = reinterpret_cast<const void*>(kernel);
            kept.blocks = blocks;
            kept.threads = dim3(static_cast<unsigned>(threads));
            kept.shared_bytes = shared_bytes;
            std::size_t used = 0;
            std::size_t number = 0;
            const auto copy = [&]<class P>(const P& argument) {
                used = (used + alignof(P) - 1) / alignof(P) * alignof(P);
                kept.argument[number++] = ::new (kept.room + used) P(argument);
                used += sizeof(P);
            };
            (copy(static_cast<Parameters>(arguments)), ...);
            ++count_;
            return true;
        }
    }
    void launch_all() override;
    bool drop() noexcept override
    {
        failure_ = nullptr;
        return std::exchange(count_, 0) > 0;
    }

private:
    static constexpr std::size_t most_kept = 8;
    static constexpr std::size_t most_arguments = 16;
    static constexpr std::size_t room_for_arguments = 768;

    struct Kept {
        const char* name;
        const void* kernel;
        dim3 blocks;
        dim3 threads;
        std::size_t shared_bytes;
        std::array<void*, most_arguments> argument;
        alignas(std::max_align_t) std::byte room[room_for_arguments];
    };
    struct Graph {
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t executable = nullptr;
        std::size_t count = 0;
        std::array<cudaGraphNode_t, most_kept> node{};
        std::array<const void*, most_kept> kernel{};
        std::uint64_t used = 0;  ///< when last, counted in launches
    };

    /// launch_all() for one who keeps more.
    void make_room();
    /// The first `count` of what is kept. False: this cannot be done, and nothing was launched.
    bool launch_as_graph(std::size_t count) noexcept;
    /// One of as many kernels, the same if possible; else one that is to be made.
    Graph& graph_for(std::size_t count) noexcept;
    cudaError_t make(Graph& graph, std::size_t count) noexcept;
    static void destroy(Graph& graph) noexcept;

    cudaStream_t stream_;
    bool early_;
    std::size_t count_ = 0;
    std::array<Kept, most_kept> kept_;
    std::exception_ptr failure_;  ///< of make_room(), for the next launch_all()
    /// Several of one size, so that each turn of a loop of some steps finds one of its kernels: to be told other ones
    /// seemed to take longer than other arguments.
    std::array<Graph, 24> graphs_;
    std::uint64_t launches_ = 0;
    bool refused_ = false;  ///< no graph could be made: none is tried again
};

}  // namespace rmsp::kernels::cuda
