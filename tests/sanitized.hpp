#pragma once

namespace rmsp::test {

/// Whether a sanitizer watches, under which all takes ten times as long. Tests keep their shapes, machines and types
/// there, and have fewer entries and repetitions of what is alike.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace rmsp::test
