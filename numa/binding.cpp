#include "numa/binding.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numaif.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rmsp/error.hpp>

namespace rmsp::numa {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

// A cpu_set_t of any size: machines with more than CPU_SETSIZE (1024) processors exist.
class CpuSet {
public:
    explicit CpuSet(int cpus) : cpus_(cpus), set_(CPU_ALLOC(static_cast<std::size_t>(cpus)))
    {
        if (set_ == nullptr) {
            throw Error(ErrorCode::out_of_memory, fmt::format("no memory for a set of {} processors", cpus));
        }
        CPU_ZERO_S(bytes(), set_);
    }
    CpuSet(const CpuSet&) = delete;
    CpuSet& operator=(const CpuSet&) = delete;
    ~CpuSet() { CPU_FREE(set_); }

    std::size_t bytes() const { return CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus_)); }
    cpu_set_t* get() const { return set_; }
    void add(int cpu) { CPU_SET_S(static_cast<std::size_t>(cpu), bytes(), set_); }
    std::vector<int> members() const
    {
        std::vector<int> result;
        for (int cpu = 0; cpu < cpus_; ++cpu) {
            if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes(), set_)) {
                result.push_back(cpu);
            }
        }
        return result;
    }

private:
    int cpus_;
    cpu_set_t* set_;
};

// The kernel answers EINVAL as long as the set is smaller than its own.
std::vector<int> affinity_of(pid_t thread)
{
    for (int cpus = CPU_SETSIZE; cpus <= (1 << 20); cpus *= 2) {
        const CpuSet set(cpus);
        if (sched_getaffinity(thread, set.bytes(), set.get()) == 0) {
            return set.members();
        }
        if (errno != EINVAL) {
            break;
        }
    }
    return {};
}

std::size_t mapped_bytes(std::size_t bytes)
{
    const std::size_t unit = bytes >= huge_page ? huge_page : static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return (bytes + unit - 1) / unit * unit;
}

void* map_pages(std::size_t bytes)
{
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? nullptr : p;
}

// Huge pages need the alignment, which mmap alone gives only on recent kernels: map more, and give the ends back.
void* map_huge_aligned(std::size_t bytes)
{
    auto* p = static_cast<char*>(map_pages(bytes + huge_page));
    if (p == nullptr) {
        return nullptr;
    }
    const std::size_t head = (huge_page - reinterpret_cast<std::uintptr_t>(p) % huge_page) % huge_page;
    if (head > 0) {
        munmap(p, head);
    }
    munmap(p + head + bytes, huge_page - head);
    madvise(p + head, bytes, MADV_HUGEPAGE);  // advice only: kernels without huge pages refuse it
    return p + head;
}

}  // namespace

std::vector<int> process_cpuset()
{
    std::vector<int> cpus = affinity_of(getpid());
    return cpus.empty() ? current_cpuset() : cpus;
}

std::vector<int> current_cpuset() { return affinity_of(0); }

BindResult bind_current_thread(const std::vector<int>& pus)
{
    if (pus.empty()) {
        return {false, "no hardware thread was asked for"};
    }
    const std::vector<int> own = process_cpuset();
    if (own.empty()) {
        return {false, "the system does not tell the process's cpuset"};
    }
    CpuSet wanted(own.back() + 1);
    for (const int pu : pus) {
        if (!std::binary_search(own.begin(), own.end(), pu)) {
            return {false, fmt::format("hardware thread {} is outside the process's cpuset of {} threads ({} to {})",
                                       pu, own.size(), own.front(), own.back())};
        }
        wanted.add(pu);
    }
    if (sched_setaffinity(0, wanted.bytes(), wanted.get()) != 0) {
        return {false,
                fmt::format("the system refused hardware threads {}: {}", fmt::join(pus, ","), std::strerror(errno))};
    }
    return {true, ""};
}

void* allocate_on_node(std::size_t bytes, int os_node)
{
    if (bytes == 0) {
        return nullptr;
    }
    void* p = nullptr;
    if (bytes <= PTRDIFF_MAX - 2 * huge_page) {
        const std::size_t size = mapped_bytes(bytes);
        p = bytes >= huge_page ? map_huge_aligned(size) : map_pages(size);
        if (p != nullptr && os_node >= 0) {
            constexpr std::size_t bits = sizeof(unsigned long) * CHAR_BIT;
            const auto node = static_cast<std::size_t>(os_node);
            std::vector<unsigned long> mask(node / bits + 1, 0UL);
            mask[node / bits] = 1UL << (node % bits);
            // Preferred, not bound: a full node must not kill the process. The result does not matter, because
            // containers and kernels without NUMA refuse the call and ordinary pages are right there. The kernel reads
            // one bit less than it is told.
            mbind(p, size, MPOL_PREFERRED, mask.data(), mask.size() * bits + 1, 0);
        }
    }
    if (p == nullptr) {
        const auto free_bytes = static_cast<unsigned long long>(sysconf(_SC_AVPHYS_PAGES)) *
                                static_cast<unsigned long long>(sysconf(_SC_PAGESIZE));
        throw Error(ErrorCode::out_of_memory, fmt::format("cannot map {} bytes of host memory near NUMA node {} "
                                                          "({} bytes are free on the machine)",
                                                          bytes, os_node, free_bytes));
    }
    return p;
}

void free_on_node(void* p, std::size_t bytes) noexcept
{
    if (p != nullptr) {
        munmap(p, mapped_bytes(bytes));
    }
}

int node_of_page(const void* p) noexcept
{
    const auto page_size = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    void* page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(p) / page_size * page_size);
    int status = -1;
    if (move_pages(0, 1, &page, nullptr, &status, 0) != 0) {
        return -1;
    }
    return status >= 0 ? status : -1;
}

}  // namespace rmsp::numa
