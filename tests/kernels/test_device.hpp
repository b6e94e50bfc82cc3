#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <kernels/context.hpp>

/// The device that the tests of this program run on.
namespace rmsp::kernels::test {

class TestDevice {
public:
    virtual ~TestDevice() = default;
    /// With memory and stream.
    virtual Context& context() = 0;
    virtual void copy_in(void* device, const void* host, std::size_t bytes) = 0;
    /// After all work queued before.
    virtual void copy_out(void* host, const void* device, std::size_t bytes) = 0;
};

/// The same for all tests of a program, also where there is no such device.
DeviceKind device_kind();
/// Why there is no device, "" if there is one.
std::string device_missing();
std::unique_ptr<TestDevice> open_device();

template <class T>
DeviceArray<T> upload(TestDevice& device, const std::vector<T>& host)
{
    DeviceArray<T> array(*device.context().memory, host.size());
    if (!host.empty()) {
        device.copy_in(array.data(), host.data(), host.size() * sizeof(T));
    }
    return array;
}

template <class T>
std::vector<T> download(TestDevice& device, const T* data, std::size_t n)
{
    std::vector<T> host(n);
    if (n > 0) {
        device.copy_out(host.data(), data, n * sizeof(T));
    }
    return host;
}

}  // namespace rmsp::kernels::test
