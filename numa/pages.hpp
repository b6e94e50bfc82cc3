#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

/// Where the pages of host memory lie, and moving them.
namespace rmsp::numa {

/// move_pages(2) of this process: wants `pages[i]` on `nodes[i]`, or, with null `nodes`, says in `status[i]` where each
/// is; there a negative number is an error of that page. Returns 0, how many pages were not moved, or a negative error
/// number. What moves pages is given to who needs it, so that a test can put a machine of several nodes in its place.
using MovePages = std::function<long(unsigned long count, void** pages, const int* nodes, int* status)>;

/// The system's. Any thread.
long system_move_pages(unsigned long count, void** pages, const int* nodes, int* status);

/// Bytes of the pages that begin in the `bytes` at `p`, by the system's number of the node that holds them; -1: not
/// touched yet, or the system does not say. Of more than 65,536 pages a sample of so many stands for all.
std::map<int, std::int64_t> nodes_of_pages(const void* p, std::size_t bytes, const MovePages& move_pages);

struct Moved {
    std::int64_t there_bytes = 0;  ///< of pages that are on the node now
    std::int64_t left_bytes = 0;   ///< of pages that are not
    std::string reason;            ///< why some are not: the system's message; empty if all are
};

/// Moves the pages that begin in the `bytes` at `p` to a node, with all that they hold; addresses stay as they are.
/// Pages that are locked stay where they are. Waits until they are moved.
Moved move_to_node(const void* p, std::size_t bytes, int os_node, const MovePages& move_pages);

/// Pages that begin in the `bytes` at `p` and were not touched yet will come from that node, or from the nearest one
/// with room; os_node < 0: from that of the core that touches them first. Memory of allocate_on_node(). A system
/// without NUMA refuses, which changes nothing.
void prefer_node(void* p, std::size_t bytes, int os_node) noexcept;

}  // namespace rmsp::numa
