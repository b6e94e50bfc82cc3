#include <kernels/cuda_launch_list.cuh>

#include <algorithm>
#include <utility>

#include <kernels/cuda_check.cuh>

namespace rmsp::kernels::cuda {
namespace {

/// The second kernel may be placed early, and waits for the first one itself.
cudaError_t add_edge(cudaGraph_t graph, const cudaGraphNode_t* first, const cudaGraphNode_t* second, bool early)
{
#if CUDART_VERSION >= 12030
    cudaGraphEdgeData edge{};
    if (early) {
        edge.type = cudaGraphDependencyTypeProgrammatic;
        edge.from_port = cudaGraphKernelNodePortProgrammatic;
    }
#if CUDART_VERSION >= 13000
    return cudaGraphAddDependencies(graph, first, second, &edge, 1);
#else
    return cudaGraphAddDependencies_v2(graph, first, second, &edge, 1);
#endif
#else
    static_cast<void>(early);
    return cudaGraphAddDependencies(graph, first, second, 1);
#endif
}

template <class Kept>
cudaKernelNodeParams parameters_of(Kept& kept)
{
    cudaKernelNodeParams parameters{};
    parameters.func = const_cast<void*>(kept.kernel);
    parameters.gridDim = kept.blocks;
    parameters.blockDim = kept.threads;
    parameters.sharedMemBytes = static_cast<unsigned>(kept.shared_bytes);
    parameters.kernelParams = kept.argument.data();
    return parameters;
}

}  // namespace

bool device_launches_early()
{
    int device = 0;
    int major = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
    return major >= 9;
}

void launch_early_with(const char* name, const void* kernel, dim3 blocks, dim3 threads, std::size_t shared_bytes,
                       cudaStream_t stream, void** arguments)
{
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = device_launches_early() ? 1 : 0;
    check(cudaLaunchKernelExC(&config, kernel, arguments), name);
}

CudaLaunchList::~CudaLaunchList()
{
    for (Graph& graph : graphs_) {
        destroy(graph);
    }
}

void CudaLaunchList::destroy(Graph& graph) noexcept
{
    if (graph.executable != nullptr) {
        static_cast<void>(cudaGraphExecDestroy(graph.executable));
    }
    if (graph.graph != nullptr) {
        static_cast<void>(cudaGraphDestroy(graph.graph));
    }
    graph = {};
}

CudaLaunchList::Graph& CudaLaunchList::graph_for(std::size_t count) noexcept
{
    Graph* alike = nullptr;  // of as many kernels, the one not used for longest
    Graph* oldest = graphs_.data();
    for (Graph& graph : graphs_) {
        if (graph.count == count) {
            const auto same = [](const Kept& kept, const void* kernel) { return kept.kernel == kernel; };
            if (std::equal(kept_.begin(), kept_.begin() + count, graph.kernel.begin(), same)) {
                return graph;
            }
            if (alike == nullptr || graph.used < alike->used) {
                alike = &graph;
            }
        }
        if (graph.used < oldest->used) {
            oldest = &graph;
        }
    }
    if (alike != nullptr && oldest->count != 0) {
        return *alike;
    }
    destroy(*oldest);
    return *oldest;
}

cudaError_t CudaLaunchList::make(Graph& graph, std::size_t count) noexcept
{
    cudaError_t status = cudaGraphCreate(&graph.graph, 0);
    for (std::size_t i = 0; i < count && status == cudaSuccess; ++i) {
        const cudaKernelNodeParams parameters = parameters_of(kept_[i]);
        status = cudaGraphAddKernelNode(&graph.node[i], graph.graph, nullptr, 0, &parameters);
        if (status == cudaSuccess && i > 0) {
            status = add_edge(graph.graph, &graph.node[i - 1], &graph.node[i], early_);
        }
    }
    if (status == cudaSuccess) {
        status = cudaGraphInstantiate(&graph.executable, graph.graph, 0);
    }
    if (status == cudaSuccess) {
        graph.count = count;
    } else {
        destroy(graph);
    }
    return status;
}

bool CudaLaunchList::launch_as_graph(std::size_t count) noexcept
{
    if (refused_) {
        return false;
    }
    Graph& graph = graph_for(count);
    cudaError_t status = cudaSuccess;
    if (graph.count == 0) {
        status = make(graph, count);
        refused_ = status != cudaSuccess;
    } else {
        for (std::size_t i = 0; i < count && status == cudaSuccess; ++i) {
            const cudaKernelNodeParams parameters = parameters_of(kept_[i]);
            status = cudaGraphExecKernelNodeSetParams(graph.executable, graph.node[i], &parameters);
        }
    }
    if (status == cudaSuccess) {
        graph.used = ++launches_;
        std::transform(kept_.begin(), kept_.begin() + count, graph.kernel.begin(),
                       [](const Kept& kept) { return kept.kernel; });
        status = cudaGraphLaunch(graph.executable, stream_);
    }
    if (status != cudaSuccess) {
        static_cast<void>(cudaGetLastError());  // a launch of each tells what is wrong with which
    }
    return status == cudaSuccess;
}

void CudaLaunchList::make_room()
{
    try {
        launch_all();
    } catch (...) {
        failure_ = std::current_exception();
        throw;
    }
}

void CudaLaunchList::launch_all()
{
    const std::size_t count = std::exchange(count_, 0);
    if (failure_) {
        std::rethrow_exception(std::exchange(failure_, nullptr));
    }
    if (count > 1 && launch_as_graph(count)) {
        return;
    }
    for (std::size_t i = 0; i < count; ++i) {
        Kept& kept = kept_[i];
        launch_early_with(kept.name, kept.kernel, kept.blocks, kept.threads, kept.shared_bytes, stream_,
                          kept.argument.data());
    }
}

}  // namespace rmsp::kernels::cuda
