#include "delay.hpp"

namespace rmsp::test {

bool queue_delay(void*, std::chrono::microseconds) { return false; }

}  // namespace rmsp::test
