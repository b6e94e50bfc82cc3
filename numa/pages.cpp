#include "numa/pages.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <system_error>

#include <numaif.h>
#include <unistd.h>

namespace rmsp::numa {
namespace {

std::uintptr_t page_size() { return static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)); }

/// The pages that begin in a range: [first, end), whole pages but for the last one.
struct PageRange {
    PageRange(const void* p, std::size_t bytes)
        : size(page_size()),
          first((reinterpret_cast<std::uintptr_t>(p) + size - 1) / size * size),
          end(std::max(first, reinterpret_cast<std::uintptr_t>(p) + bytes))
    {
    }
    std::size_t count() const { return (end - first + size - 1) / size; }
    void* at(std::size_t i) const { return reinterpret_cast<void*>(first + i * size); }

    std::uintptr_t size;
    std::uintptr_t first;
    std::uintptr_t end;
};

// Pages of one call: 16 MiB of small ones.
constexpr std::size_t batch = 4096;

}  // namespace

long system_move_pages(unsigned long count, void** pages, const int* nodes, int* status)
{
    const long result = ::move_pages(0, count, pages, nodes, status, nodes == nullptr ? 0 : MPOL_MF_MOVE);
    return result < 0 ? -errno : result;
}

std::map<int, std::int64_t> nodes_of_pages(const void* p, std::size_t bytes, const MovePages& move_pages)
{
    constexpr std::size_t most_pages = 65'536;
    const PageRange range(p, bytes);
    const std::size_t pages = range.count();
    const std::size_t asked = std::min(pages, most_pages);
    std::map<int, std::int64_t> found;
    std::array<void*, batch> where{};
    std::array<int, batch> status{};
    for (std::size_t begin = 0; begin < asked; begin += batch) {
        const std::size_t n = std::min(batch, asked - begin);
        for (std::size_t i = 0; i < n; ++i) {
            where[i] = range.at((begin + i) * pages / asked);
        }
        status.fill(-1);
        const long result = move_pages(n, where.data(), nullptr, status.data());
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t from = (begin + i) * pages / asked;
            const std::size_t to = (begin + i + 1) * pages / asked;
            found[result < 0 ? -1 : std::max(status[i], -1)] += static_cast<std::int64_t>((to - from) * range.size);
        }
    }
    return found;
}

Moved move_to_node(const void* p, std::size_t bytes, int os_node, const MovePages& move_pages)
{
    const PageRange range(p, bytes);
    Moved moved;
    std::array<void*, batch> where{};
    std::array<int, batch> nodes{};
    std::array<int, batch> status{};
    nodes.fill(os_node);
    for (std::size_t begin = 0; begin < range.count(); begin += batch) {
        const std::size_t n = std::min(batch, range.count() - begin);
        for (std::size_t i = 0; i < n; ++i) {
            where[i] = range.at(begin + i);
        }
        status.fill(-EAGAIN);
        const long result = move_pages(n, where.data(), nodes.data(), status.data());
        for (std::size_t i = 0; i < n; ++i) {
            const bool there = result >= 0 && status[i] == os_node;
            (there ? moved.there_bytes : moved.left_bytes) += static_cast<std::int64_t>(range.size);
            if (!there && moved.reason.empty()) {
                const int code = result < 0 ? static_cast<int>(-result) : status[i] < 0 ? -status[i] : EBUSY;
                moved.reason = std::generic_category().message(code);
            }
        }
    }
    return moved;
}

void prefer_node(void* p, std::size_t bytes, int os_node) noexcept
{
    const PageRange range(p, bytes);
    if (range.count() == 0) {
        return;
    }
    constexpr std::size_t bits = sizeof(unsigned long) * CHAR_BIT;
    std::array<unsigned long, 16> mask{};  // 1024 nodes, as many as Linux has
    if (os_node >= 0 && static_cast<std::size_t>(os_node) < mask.size() * bits) {
        mask[static_cast<std::size_t>(os_node) / bits] = 1UL << (static_cast<std::size_t>(os_node) % bits);
        // The kernel reads one bit less than it is told. Refusals leave ordinary pages, which are right there.
        static_cast<void>(
            mbind(range.at(0), range.count() * range.size, MPOL_PREFERRED, mask.data(), mask.size() * bits + 1, 0));
    } else {
        static_cast<void>(mbind(range.at(0), range.count() * range.size, MPOL_DEFAULT, nullptr, 0, 0));
    }
}

}  // namespace rmsp::numa
