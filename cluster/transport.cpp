#include "cluster/transport.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace rmsp::cluster {
namespace {

/// What a process says of its first GPU.
struct OfGpu {
    char why_not[200] = {};
    char gpu[32] = {};  ///< where it is on its machine
    char version[16] = {};
    std::int64_t machine = 0;
    std::int32_t gathers = 0;  ///< its sums may stay there
    std::byte id[256] = {};    ///< of the first process: of the link
    std::int64_t id_bytes = 0;
};

template <std::size_t N>
void put(char (&to)[N], std::string_view text)
{
    text.copy(to, N - 1);
}

/// Of each process, in turn.
std::vector<OfGpu> said_by_all(Communicator& processes, const OfGpu& own)
{
    std::vector<OfGpu> all;
    for (const std::vector<OfGpu>& of :
         bring(processes, std::vector<std::vector<OfGpu>>(static_cast<std::size_t>(processes.size()), {own}))) {
        all.push_back(of.front());
    }
    return all;
}

OfGpu own_gpu(const Communicator& processes, const Runtime& runtime)
{
    OfGpu own;
    put(own.why_not, why_no_device_link(runtime));
    if (own.why_not[0] != '\0') {
        return own;
    }
    put(own.gpu, runtime.devices().front().pci_bus_id);
    put(own.version, device_link_version());
    own.gathers = runtime.devices().size() == 1 && processes.on_workers() ? 1 : 0;
    own.machine = processes.node().processes().front().rank;
    if (processes.rank() == 0) {
        try {
            const std::vector<std::byte> id = make_device_link_id();
            own.id_bytes = static_cast<std::int64_t>(std::min(id.size(), sizeof(own.id)));
            std::memcpy(own.id, id.data(), static_cast<std::size_t>(own.id_bytes));
        } catch (const Error& error) {
            put(own.why_not, error.what());
        }
    }
    return own;
}

/// What a process says against it; empty: nothing.
std::string why_not(const std::vector<OfGpu>& all)
{
    for (std::size_t p = 0; p < all.size(); ++p) {
        if (all[p].why_not[0] != '\0') {
            return fmt::format("process {}: {}", p, all[p].why_not);
        }
    }
    return {};
}

/// Why NCCL cannot connect these; empty: it may.
std::string why_apart(const std::vector<OfGpu>& all)
{
    if (std::string why = why_not(all); !why.empty()) {
        return why;
    }
    for (std::size_t p = 1; p < all.size(); ++p) {
        if (std::string_view(all[p].version) != all[0].version) {
            return fmt::format("process 0 has NCCL {}, process {} NCCL {}", all[0].version, p, all[p].version);
        }
        for (std::size_t other = 0; other < p; ++other) {
            if (all[p].machine == all[other].machine && std::string_view(all[p].gpu) == all[other].gpu) {
                return fmt::format("processes {} and {} are on the same GPU, {}, and NCCL takes each once", other, p,
                                   all[p].gpu);
            }
        }
    }
    return {};
}

Connected connect_nccl(Communicator& processes, const Runtime& runtime)
{
    if (processes.size() == 1) {
        return {.why_not = "one process needs none"};
    }
    const std::vector<OfGpu> all = said_by_all(processes, own_gpu(processes, runtime));
    if (const std::string why = why_apart(all); !why.empty()) {
        return {.why_not = why};
    }
    // What hangs inside NCCL is given up before the other processes lose patience with this one.
    constexpr double most_seconds = 30;
    const double limit = std::min(most_seconds, processes.timeout_seconds() / 2);
    DeviceLinkOptions options;
    options.rank = processes.rank();
    options.size = processes.size();
    options.id.assign(all.front().id, all.front().id + all.front().id_bytes);
    options.wait = [&processes, limit](const std::function<bool()>& done, const char* what) {
        processes.wait_for(
            done, what, [] {}, processes.link() ? 0 : limit);
    };
    OfGpu result;
    Connected connected;
    try {
        connected.link = connect_device_link(runtime, options);
    } catch (const Agreed&) {
        throw;
    } catch (const std::exception& error) {
        put(result.why_not, error.what());
    }
    connected.why_not = why_not(said_by_all(processes, result));
    if (!connected.why_not.empty()) {
        return {.why_not = connected.why_not};
    }
    connected.gathers = std::all_of(all.begin(), all.end(), [](const OfGpu& of) { return of.gathers != 0; });
    return connected;
}

Connected connect_messages(Communicator&, const Runtime&) { return {}; }

constexpr std::array<TransportRow, 2> ways{{
    {.name = "nccl", .connect = connect_nccl},
    {.name = "mpi", .connect = connect_messages},
}};

}  // namespace

std::span<const TransportRow> transports() { return ways; }

std::int64_t place_of_transport(const std::string& name)
{
    const auto row = std::find_if(ways.begin(), ways.end(), [&](const TransportRow& one) { return one.name == name; });
    return row == ways.end() ? -1 : row - ways.begin();
}

void require_transport(const std::string& name)
{
    if (name != "auto" && place_of_transport(name) < 0) {
        throw Error(ErrorCode::usage, fmt::format("transport is \"{}\", it must be auto, nccl or mpi", name));
    }
}

void connect_processes(Communicator& processes, const Runtime& runtime, const std::string& wanted)
{
    std::string reason;
    for (auto row = ways.begin() + std::max<std::int64_t>(0, place_of_transport(wanted)); row != ways.end(); ++row) {
        Connected connected = row->connect(processes, runtime);
        if (connected.why_not.empty()) {
            if (reason.empty()) {
                reason = wanted == row->name ? "asked for" : "the first one that works";
            }
            processes.set_transport({row->name, reason}, std::move(connected.link), connected.gathers);
            return;
        }
        reason += fmt::format("{}{}: {}", reason.empty() ? "" : "; ", row->name, connected.why_not);
    }
}

void Communicator::give_up_link()
{
    if (link_) {
        link_->give_up();
        transport_ = {ways.back().name, "NCCL was given up after an error"};
    }
    linking_ = false;
}

DeviceExchange::DeviceExchange(const std::shared_ptr<Communicator>& processes, std::vector<Neighbour> receives,
                               std::vector<Neighbour> sends, std::size_t entry_bytes)
    : HaloExchange(processes, static_cast<int>(receives.size()), static_cast<int>(sends.size())),
      link_(processes->link()),
      receives_(std::move(receives)),
      sends_(std::move(sends)),
      entry_bytes_(entry_bytes),
      messages_(processes, receives_, sends_, entry_bytes)
{
    traffic_ = messages_.traffic();
}

std::int64_t DeviceExchange::bytes(const std::vector<Neighbour>& all) const
{
    return all.empty() ? 0 : (all.back().first + all.back().count) * static_cast<std::int64_t>(entry_bytes_);
}

void DeviceExchange::begin(const void*, void*, bool)
{
    throw Error(ErrorCode::internal, "entries in memory of a GPU are exchanged behind a stream");
}

void DeviceExchange::begin_on(void* stream, const void* send, void* receive, bool backwards)
{
    const auto& from = backwards ? sends_ : receives_;
    const auto& to = backwards ? receives_ : sends_;
    for (const Neighbour& other : to) {
        bytes_sent_ += other.count * static_cast<std::int64_t>(entry_bytes_);
    }
    by_messages_ = !link_->usable();
    if (!by_messages_) {
        (void)processes_->next_tag();  // an exchange as any other, which the processes count
        processes_->set_linking(true);
        link_->begin(stream, to, send, from, receive, entry_bytes_);
        return;
    }
    out_.resize(static_cast<std::size_t>(bytes(to)));
    in_.resize(static_cast<std::size_t>(bytes(from)));
    stream_ = stream;
    to_ = receive;
    link_->copy(stream, out_.data(), send, out_.size());
    messages_.begin(out_.data(), in_.data(), backwards);
}

void DeviceExchange::end()
{
    if (!by_messages_) {
        processes_->settle();
        return;
    }
    messages_.end();
    link_->copy(stream_, to_, in_.data(), in_.size());
}

}  // namespace rmsp::cluster
