#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rmsp::numa {

/// What became of a request to bind a thread.
struct BindResult {
    bool bound = false;
    std::string reason;  ///< why not; empty if bound
};

/// Hardware threads of the process, ascending: those its main thread may use, which is what taskset, numactl, batch
/// systems and cgroups set. Binding never leaves this set.
std::vector<int> process_cpuset();

/// Hardware threads that the calling thread may use, ascending.
std::vector<int> current_cpuset();

/// Binds the calling thread to `pus` (operating system's numbers). Changes nothing and says why if `pus` is empty,
/// holds one outside process_cpuset(), or the kernel refuses. Does not throw but for memory. Thread safe.
BindResult bind_current_thread(const std::vector<int>& pus);

/// Page-aligned host memory whose pages come from NUMA node `os_node` when they are first touched, or from the nearest
/// node with room (as numa_alloc_onnode does). os_node < 0, a node that does not exist, or a kernel without NUMA give
/// ordinary pages. From 2 MiB on, memory is aligned to 2 MiB and transparent huge pages are asked for. Zero-filled;
/// null for 0 bytes. \throws Error(out_of_memory) with the bytes asked for and what was free
void* allocate_on_node(std::size_t bytes, int os_node);

/// Gives back what allocate_on_node(bytes, ...) returned. Null is allowed.
void free_on_node(void* p, std::size_t bytes) noexcept;

/// OS number of the node that holds the page at `p`; -1 if it was not touched yet or the kernel does not say.
int node_of_page(const void* p) noexcept;

}  // namespace rmsp::numa
