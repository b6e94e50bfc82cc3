#include "core/team.hpp"

#include <cerrno>
#include <new>

#ifdef __GLIBC__
#include <execinfo.h>
#endif

namespace rmsp::core {

void make_ready_for_ends_of_teams()
{
#ifdef __GLIBC__
    void* frame = nullptr;
    errno = 0;
    if (::backtrace(&frame, 1) == 0 && errno == ENOMEM) {
        throw std::bad_alloc();
    }
#endif
}

}  // namespace rmsp::core
