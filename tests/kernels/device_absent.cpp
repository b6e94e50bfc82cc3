#include "test_device.hpp"

namespace rmsp::kernels::test {

DeviceKind device_kind() { return DeviceKind::cuda; }
std::string device_missing() { return "this build has no CUDA"; }
std::unique_ptr<TestDevice> open_device() { return nullptr; }

}  // namespace rmsp::kernels::test
