#include "core/team.hpp"

#include <cerrno>
#include <cstdlib>
#include <new>

#include <strings.h>

#ifdef __GLIBC__
#include <execinfo.h>
#endif

namespace rmsp::core {

bool team_may_wait_awake()
{
    static const bool may = [] {
        const char* const policy = std::getenv("OMP_WAIT_POLICY");
        return policy == nullptr || strcasecmp(policy, "passive") != 0;
    }();
    return may;
}

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
