#include <rmsp/host_vector.hpp>

#include <sys/mman.h>

namespace rmsp::detail {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
// Rounding up to whole huge pages wastes little of an array of this size.
constexpr std::size_t least_huge = 8 * huge_page;
constexpr std::align_val_t line{64};

std::size_t whole_huge_pages(std::size_t bytes) { return (bytes + huge_page - 1) / huge_page * huge_page; }

}  // namespace

void* allocate_host(std::size_t bytes)
{
    if (bytes < least_huge) {
        return ::operator new(bytes, line);
    }
    const std::size_t size = whole_huge_pages(bytes);
    void* const p = ::operator new (size, std::align_val_t{huge_page});
    madvise(p, size, MADV_HUGEPAGE);  // advice only: kernels without huge pages refuse it
    return p;
}

void free_host(void* p, std::size_t bytes) noexcept
{
    if (bytes < least_huge) {
        ::operator delete(p, line);
    } else {
        ::operator delete (p, std::align_val_t{huge_page});
    }
}

}  // namespace rmsp::detail
