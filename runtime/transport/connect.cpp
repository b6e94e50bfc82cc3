#include "runtime/transport/connect.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/log.hpp"
#include "runtime/transport/table.hpp"
#include "runtime/transport/test.hpp"

namespace rmsp::transport {

std::vector<std::string> names_behind(const std::vector<std::string>& names, const std::string& name)
{
    const auto at = std::find(names.begin(), names.end(), name);
    return {at == names.end() ? at : at + 1, names.end()};
}

Connection connect(std::span<const std::unique_ptr<engine::Worker>> workers, const std::vector<std::string>& order,
                   std::span<const TestedTransport> tested)
{
    const std::vector<std::string> candidates = order.empty() ? transport_names() : order;
    for (const auto& name : candidates) {
        (void)transport_named(name);
    }
    if (workers.size() < 2) {
        return {nullptr, "none", "one device"};
    }
    const bool shared =
        std::all_of(workers.begin(), workers.end(), [](const auto& w) { return w->device().shares_host_memory(); });
    if (shared) {
        return {nullptr, "shared", "host devices read each other's memory"};
    }
    std::string failures;
    ErrorCode code = ErrorCode::device;
    for (const auto& name : candidates) {
        try {
            const auto known =
                std::find_if(tested.begin(), tested.end(), [&](const auto& test) { return test.name == name; });
            if (known != tested.end() && !known->passed) {
                throw Error(ErrorCode::device, known->detail);
            }
            auto transport = make_transport(name, workers);
            if (known == tested.end()) {
                test_with_data(*transport, workers, communication_limit);
            }
            auto link = std::make_unique<Link>(std::move(transport), names_behind(candidates, name), workers);
            return {std::move(link), name,
                    failures + (known != tested.end() ? known->detail : "moved test data between all devices")};
        } catch (const Error& e) {
            failures += fmt::format("{}: {}; ", name, e.what());
            // Who has no memory is told so, as of all reasons that is the one that he can mend.
            code = e.code() == ErrorCode::out_of_memory ? e.code() : code;
            core::log_info(fmt::format("transport {} not used: {}", name, e.what()));
        }
    }
    throw Error(code, "no transport connects the devices: " + failures);
}

}  // namespace rmsp::transport
