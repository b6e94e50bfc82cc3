#include <cstdlib>
#include <cstring>
#include <new>

#include "test_device.hpp"

namespace rmsp::kernels::test {
namespace {

class HostMemory final : public Memory {
public:
    void* allocate(std::size_t bytes) override { return ::operator new(bytes); }
    void deallocate(void* p, std::size_t /*bytes*/) noexcept override { ::operator delete(p); }
};

class HostTestDevice final : public TestDevice {
public:
    HostTestDevice()
    {
        context_.threads = 3;
        context_.memory = &memory_;
    }
    Context& context() override { return context_; }
    void copy_in(void* device, const void* host, std::size_t bytes) override { std::memcpy(device, host, bytes); }
    void copy_out(void* host, const void* device, std::size_t bytes) override { std::memcpy(host, device, bytes); }

private:
    HostMemory memory_;
    Context context_;
};

}  // namespace

DeviceKind device_kind() { return DeviceKind::host; }
std::string device_missing() { return ""; }
std::unique_ptr<TestDevice> open_device() { return std::make_unique<HostTestDevice>(); }

}  // namespace rmsp::kernels::test
