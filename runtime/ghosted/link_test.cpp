#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include <rmsp/device_link.hpp>
#include <rmsp/error.hpp>

namespace rmsp {
namespace {

/// Memory of each device from which bytes go, and into which as many come, and a stream.
class TestRoom {
public:
    TestRoom(DeviceAccess& devices, std::size_t room_bytes)
    {
        for (int device = 0; device < devices.devices(); ++device) {
            const std::shared_ptr<void> memory = owned_.emplace_back(devices.allocate(device, 2 * room_bytes));
            const std::shared_ptr<void> stream = owned_.emplace_back(devices.make_stream(device));
            arrays_.push_back({stream.get(), memory.get(), static_cast<std::byte*>(memory.get()) + room_bytes});
        }
    }
    const std::vector<DeviceArrays>& arrays() const { return arrays_; }

private:
    std::vector<std::shared_ptr<void>> owned_;
    std::vector<DeviceArrays> arrays_;
};

std::byte test_byte(int from, int to, std::size_t at)
{
    return static_cast<std::byte>(31 * from + 17 * to + static_cast<int>(at % 251) + static_cast<int>(at / 251 % 7));
}

void upload(DeviceAccess& devices, int device, const DeviceArrays& there, const std::vector<std::byte>& bytes)
{
    devices.copy(device, there.stream, const_cast<void*>(there.from), bytes.data(), bytes.size());
}

/// Messages of so many bytes between each two GPUs.
void test_messages(DeviceLink& link, DeviceAccess& devices, const LinkTest& test, std::int64_t bytes)
{
    const auto length = static_cast<std::size_t>(bytes);
    const auto here = static_cast<std::size_t>(devices.devices());
    const std::size_t room_bytes = static_cast<std::size_t>(test.size) * length;
    const TestRoom room(devices, room_bytes);
    std::vector<LinkMessages> others(here);
    std::vector<std::byte> host(room_bytes);
    const auto is_tested = [&](int own, int other) {
        const bool is_own = other >= test.first && other < test.first + static_cast<int>(here);
        return is_own ? test.own_gpus && (other != own || test.size == 1) : true;
    };
    for (std::size_t i = 0; i < here; ++i) {
        const int own = test.first + static_cast<int>(i);
        for (int other = 0; other < test.size; ++other) {
            if (!is_tested(own, other)) {
                continue;
            }
            others[i].push_back({other, other * bytes, bytes});
            for (std::size_t at = 0; at < length; ++at) {
                host[static_cast<std::size_t>(other) * length + at] = test_byte(own, other, at);
            }
        }
        upload(devices, static_cast<int>(i), room.arrays()[i], host);
    }
    link.begin(room.arrays(), others, others, 1);
    link.end();
    for (std::size_t i = 0; i < here; ++i) {
        const DeviceArrays& there = room.arrays()[i];
        devices.copy(static_cast<int>(i), there.stream, host.data(), there.to, room_bytes);
        for (const LinkMessage& other : others[i]) {
            const std::byte* const came = host.data() + static_cast<std::size_t>(other.first);
            for (std::size_t at = 0; at < length; ++at) {
                if (came[at] != test_byte(other.gpu, test.first + static_cast<int>(i), at)) {
                    throw Error(ErrorCode::device, fmt::format("{} brought wrong data from GPU {}: byte {} of {}",
                                                               test.name, other.gpu, at, length));
                }
            }
        }
    }
}

/// A few bytes of each GPU.
void test_gathering(DeviceLink& link, DeviceAccess& devices, const LinkTest& test)
{
    constexpr std::size_t length = 64;
    const std::size_t room_bytes = static_cast<std::size_t>(test.size) * length;
    const TestRoom room(devices, room_bytes);
    for (int i = 0; i < devices.devices(); ++i) {
        std::vector<std::byte> own(length);
        for (std::size_t at = 0; at < length; ++at) {
            own[at] = test_byte(test.first + i, 0, at);
        }
        upload(devices, i, room.arrays()[static_cast<std::size_t>(i)], own);
    }
    link.gather(room.arrays(), length);
    link.end();
    std::vector<std::byte> all(room_bytes);
    for (int i = 0; i < devices.devices(); ++i) {
        const DeviceArrays& there = room.arrays()[static_cast<std::size_t>(i)];
        devices.copy(i, there.stream, all.data(), there.to, room_bytes);
        for (std::size_t at = 0; at < room_bytes; ++at) {
            const int from = static_cast<int>(at / length);
            if (all[at] != test_byte(from, 0, at % length)) {
                throw Error(ErrorCode::device, fmt::format("{} gathered wrong data from GPU {}", test.name, from));
            }
        }
    }
}

}  // namespace

void test_device_link(DeviceLink& link, DeviceAccess& devices, const LinkTest& test)
{
    constexpr std::int64_t short_message = 48;
    constexpr std::int64_t long_message = std::int64_t{1} << 20;
    constexpr std::int64_t all_messages = std::int64_t{64} << 20;
    for (const std::int64_t bytes : {short_message, std::min(long_message, all_messages / test.size)}) {
        test_messages(link, devices, test, bytes);
    }
    if (link.in_stream_order()) {
        test_gathering(link, devices, test);
    }
}

}  // namespace rmsp
