#pragma once

namespace rmsp::core {

/// getpid(), without asking the system each time: what every call of the library may ask.
int own_process() noexcept;

/// Of a process that fork() made of one that had used librmsp: threads do not follow into it, so OpenMP's teams and
/// devices would be waited for without end. Asked wherever threads are first needed.
/// \throws Error(usage)
void require_own_process();

}  // namespace rmsp::core
