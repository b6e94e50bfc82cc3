#pragma once

/// What librmsp.so exports: functions so marked, and the classes of its exceptions, whose type must be the same on both
/// sides. Everything else is compiled hidden, and may change without notice. Classes are not marked as a whole: they
/// hold values of hidden types, and their inline functions belong to whoever includes them.
#if defined(__GNUC__)
#define RMSP_API __attribute__((visibility("default")))
#else
#define RMSP_API
#endif
