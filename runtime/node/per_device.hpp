#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/node/node.hpp"

namespace rmsp::node {

/// Something of each device, which is freed on its worker behind all that was queued.
template <class Part>
class PerDevice {
public:
    explicit PerDevice(std::shared_ptr<detail::RuntimeState> runtime)
        : parts_(std::make_shared<std::vector<Part>>(static_cast<std::size_t>(runtime->devices()))),
          room_(parts_->size()),
          runtime_(std::move(runtime)),
          parts(*parts_)
    {
    }
    ~PerDevice()
    {
        for (std::size_t rank = 0; rank < parts.size(); ++rank) {
            runtime_->release(static_cast<int>(rank), room_, [held = parts_, rank] { (*held)[rank] = Part(); });
        }
    }
    PerDevice(const PerDevice&) = delete;
    PerDevice& operator=(const PerDevice&) = delete;

private:
    std::shared_ptr<std::vector<Part>> parts_;
    engine::Tasks room_;  ///< to free them
    std::shared_ptr<detail::RuntimeState> runtime_;

public:
    std::vector<Part>& parts;
};

}  // namespace rmsp::node
