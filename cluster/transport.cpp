#include "cluster/transport.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cluster/message_link.hpp"

namespace rmsp::cluster {
namespace {

/// What a process says of a GPU; at least of one.
struct OfGpu {
    char why_not[200] = {};
    char gpu[32] = {};  ///< where it is on its machine
    char version[16] = {};
    std::int64_t machine = 0;
    std::int32_t gathers = 0;  ///< its sums may stay there
    std::byte id[256] = {};    ///< of the first process's first one: of the link
    std::int64_t id_bytes = 0;
};
using OfGpus = std::vector<OfGpu>;  ///< of a process

template <std::size_t N>
void put(char (&to)[N], std::string_view text)
{
    text.copy(to, N - 1);
}

/// Of each process, in turn.
std::vector<OfGpus> said_by_all(Communicator& processes, const OfGpus& own)
{
    return bring(processes, std::vector<OfGpus>(static_cast<std::size_t>(processes.size()), own));
}

/// \param why_not  what is against it here
OfGpus own_gpus(const Communicator& processes, const Runtime& runtime, const std::string& why_not)
{
    OfGpu first;
    put(first.why_not, why_not);
    if (first.why_not[0] != '\0') {
        return {first};
    }
    first.gathers = processes.on_workers() ? 1 : 0;
    first.machine = processes.node().processes().front().rank;
    OfGpus own;
    for (const DeviceInfo& device : runtime.devices()) {
        OfGpu& of = own.emplace_back(first);
        put(of.gpu, device.pci_bus_id);
    }
    return own;
}

/// What NCCL has to know besides.
OfGpus with_nccl(const Communicator& processes, OfGpus own)
{
    OfGpu& first = own.front();
    if (first.why_not[0] != '\0') {
        return own;
    }
    for (OfGpu& of : own) {
        put(of.version, device_link_version());
    }
    if (processes.rank() == 0) {
        try {
            const std::vector<std::byte> id = make_device_link_id();
            first.id_bytes = static_cast<std::int64_t>(std::min(id.size(), sizeof(first.id)));
            std::memcpy(first.id, id.data(), static_cast<std::size_t>(first.id_bytes));
        } catch (const Error& error) {
            put(first.why_not, error.what());
        }
    }
    return own;
}

/// What a process says against it; empty: nothing.
std::string why_not(const std::vector<OfGpus>& all)
{
    for (std::size_t p = 0; p < all.size(); ++p) {
        if (all[p].front().why_not[0] != '\0') {
            return fmt::format("process {}: {}", p, all[p].front().why_not);
        }
    }
    return {};
}

/// Why NCCL cannot connect these; empty: it may.
std::string why_apart(const std::vector<OfGpus>& all)
{
    if (std::string why = why_not(all); !why.empty()) {
        return why;
    }
    const auto same = [](const OfGpu& a, const OfGpu& b) {
        return a.machine == b.machine && std::string_view(a.gpu) == b.gpu;
    };
    for (std::size_t p = 1; p < all.size(); ++p) {
        if (std::string_view(all[p].front().version) != all[0].front().version) {
            return fmt::format("process 0 has NCCL {}, process {} NCCL {}", all[0].front().version, p,
                               all[p].front().version);
        }
        for (std::size_t other = 0; other < p; ++other) {
            for (const OfGpu& gpu : all[p]) {
                if (std::any_of(all[other].begin(), all[other].end(), [&](const OfGpu& of) { return same(of, gpu); })) {
                    return fmt::format("processes {} and {} are on the same GPU, {}, and NCCL takes each once", other,
                                       p, gpu.gpu);
                }
            }
        }
    }
    return {};
}

constexpr const char* alone = "one process needs none";

/// Number of each process's first GPU, and of all.
std::vector<int> first_devices_of(const std::vector<OfGpus>& all)
{
    std::vector<int> first = {0};
    for (const OfGpus& of : all) {
        first.push_back(first.back() + static_cast<int>(of.size()));
    }
    return first;
}

/// What hangs while processes are connected is given up before the other processes lose patience with this one.
double seconds_to_connect(const Communicator& processes)
{
    constexpr double most_seconds = 30;
    return std::min(most_seconds, processes.timeout_seconds() / 2);
}

/// make(), where each process can; else says on all of them why one cannot.
std::shared_ptr<DeviceLink> make_together(Communicator& processes,
                                          const std::function<std::shared_ptr<DeviceLink>()>& make, std::string& why)
{
    OfGpu result;
    std::shared_ptr<DeviceLink> link;
    try {
        link = make();
    } catch (const Agreed&) {
        throw;
    } catch (const std::exception& error) {
        put(result.why_not, error.what());
    }
    why = why_not(said_by_all(processes, {result}));
    return why.empty() ? link : nullptr;
}

Connected connect_nccl(Communicator& processes, const Runtime& runtime)
{
    if (processes.size() == 1) {
        return {.why_not = alone};
    }
    const std::vector<OfGpus> all =
        said_by_all(processes, with_nccl(processes, own_gpus(processes, runtime, why_no_device_link(runtime))));
    if (const std::string why = why_apart(all); !why.empty()) {
        return {.why_not = why};
    }
    Connected connected;
    connected.first_devices = first_devices_of(all);
    const double limit = seconds_to_connect(processes);
    const OfGpu& first = all.front().front();
    DeviceLinkOptions options;
    options.first = connected.first_devices[static_cast<std::size_t>(processes.rank())];
    options.size = connected.first_devices.back();
    options.id.assign(first.id, first.id + first.id_bytes);
    options.wait = [&processes, limit](const std::function<bool()>& done, const char* what) {
        processes.wait_for(
            done, what, [] {}, processes.link() ? 0 : limit);
    };
    connected.link = make_together(
        processes, [&] { return connect_device_link(runtime, options); }, connected.why_not);
    connected.gathers = std::all_of(all.begin(), all.end(), [&](const OfGpus& of) {
        return of.size() == all.front().size() && of.front().gathers != 0;
    });
    return connected;
}

Connected connect_gpu_aware_mpi(Communicator& processes, const Runtime& runtime)
{
    if (processes.size() == 1) {
        return {.why_not = alone};
    }
    const std::vector<DeviceInfo> devices = runtime.devices();
    const bool has_gpus = std::all_of(devices.begin(), devices.end(),
                                      [](const DeviceInfo& device) { return device.kind == DeviceKind::cuda; });
    const std::vector<OfGpus> all =
        said_by_all(processes, own_gpus(processes, runtime, has_gpus ? why_not_gpu_aware() : "it is for GPUs"));
    Connected connected;
    connected.why_not = why_not(all);
    if (!connected.why_not.empty()) {
        return connected;
    }
    connected.first_devices = first_devices_of(all);
    const auto make = [&] {
        const std::shared_ptr<DeviceAccess> access = open_device_access(runtime);
        auto link = std::make_shared<MessageLink>(processes, access, connected.first_devices);
        link->wait_at_most(seconds_to_connect(processes));
        test_device_link(*link, *access,
                         {.first = connected.first_devices[static_cast<std::size_t>(processes.rank())],
                          .size = connected.first_devices.back(),
                          .own_gpus = false,
                          .name = "MPI"});
        link->wait_at_most(0);
        return link;
    };
    connected.link = make_together(processes, make, connected.why_not);
    return connected;
}

Connected connect_messages(Communicator&, const Runtime&) { return {}; }

constexpr std::array<TransportRow, 3> ways{{
    {.name = "nccl", .connect = connect_nccl},
    {.name = "gpu-aware-mpi", .connect = connect_gpu_aware_mpi},
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
        std::string known = "auto";
        for (auto row = ways.begin(); row != ways.end(); ++row) {
            known += fmt::format("{}{}", row + 1 == ways.end() ? " or " : ", ", row->name);
        }
        throw Error(ErrorCode::usage, fmt::format("transport is \"{}\", it must be {}", name, known));
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
            processes.set_transport({row->name, reason}, std::move(connected.link), std::move(connected.first_devices),
                                    connected.gathers);
            return;
        }
        reason += fmt::format("{}{}: {}", reason.empty() ? "" : "; ", row->name, connected.why_not);
    }
}

void Communicator::give_up_link()
{
    if (link_) {
        link_->give_up();
        transport_ = {ways.back().name, fmt::format("{} was given up after an error", transport_.name)};
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

DevicePlaces DeviceExchange::place(std::span<const int> sent, std::span<const int> ghosts, int devices)
{
    const auto in_link = [&](std::span<const int> here) {
        std::vector<int> numbers(here.begin(), here.end());
        for (int& number : numbers) {
            number += processes_->first_device();
        }
        return numbers;
    };
    // Both sides hear on which GPU the other has each entry.
    Messages of_devices(processes_, receives_, sends_, sizeof(int));
    std::vector<int> sent_from(ghosts.size());
    std::vector<int> goes_to(sent.size());
    of_devices.begin(in_link(sent).data(), sent_from.data(), false);
    of_devices.end();
    of_devices.begin(in_link(ghosts).data(), goes_to.data(), true);
    of_devices.end();
    DevicePlaces places;
    sent_ = side_of(sent, goes_to, devices, places.sent);
    ghosts_ = side_of(ghosts, sent_from, devices, places.ghosts);
    return places;
}

DeviceExchange::Side DeviceExchange::side_of(std::span<const int> here, std::span<const int> there, int devices,
                                             std::vector<std::int64_t>& places)
{
    LinkedEntries entries = place_entries(here, there, devices);
    Side side{std::move(entries.messages), {0}, {}};
    for (const LinkMessages& of_gpu : side.messages) {
        side.first.push_back(
            side.first.back() +
            (of_gpu.empty() ? 0 : static_cast<std::size_t>(of_gpu.back().first + of_gpu.back().count)));
    }
    for (std::size_t i = 0; i < here.size(); ++i) {
        side.place.push_back(side.first[static_cast<std::size_t>(here[i])] +
                             static_cast<std::size_t>(entries.places[i]));
    }
    places = std::move(entries.places);
    return side;
}

void DeviceExchange::begin(const void*, void*, bool)
{
    throw Error(ErrorCode::internal, "entries in memory of a GPU are exchanged behind a stream");
}

void DeviceExchange::begin_on(std::span<const DeviceArrays> devices, bool backwards)
{
    const Side& from = backwards ? sent_ : ghosts_;
    const Side& to = backwards ? ghosts_ : sent_;
    bytes_sent_ += static_cast<std::int64_t>(to.place.size() * entry_bytes_);
    by_messages_ = !link_->usable();
    if (!by_messages_) {
        (void)processes_->next_tag();  // an exchange as any other, which the processes count
        processes_->set_linking(true);
        link_->begin(devices, to.messages, from.messages, entry_bytes_);
        return;
    }
    devices_.assign(devices.begin(), devices.end());
    backwards_ = backwards;
    copy_from_devices(to);
    out_.resize(staged_.size());
    for (std::size_t i = 0; i < to.place.size(); ++i) {
        std::memcpy(&out_[i * entry_bytes_], &staged_[to.place[i] * entry_bytes_], entry_bytes_);
    }
    in_.resize(from.place.size() * entry_bytes_);
    messages_.begin(out_.data(), in_.data(), backwards);
}

void DeviceExchange::end()
{
    if (!by_messages_) {
        processes_->settle();
        return;
    }
    messages_.end();
    const Side& from = backwards_ ? sent_ : ghosts_;
    staged_.resize(in_.size());
    for (std::size_t i = 0; i < from.place.size(); ++i) {
        std::memcpy(&staged_[from.place[i] * entry_bytes_], &in_[i * entry_bytes_], entry_bytes_);
    }
    copy_to_devices(from);
}

void DeviceExchange::copy_from_devices(const Side& side)
{
    staged_.resize(side.first.back() * entry_bytes_);
    for (std::size_t device = 0; device < devices_.size(); ++device) {
        link_->copy(static_cast<int>(device), devices_[device].stream,
                    staged_.data() + side.first[device] * entry_bytes_, devices_[device].from,
                    (side.first[device + 1] - side.first[device]) * entry_bytes_);
    }
}

void DeviceExchange::copy_to_devices(const Side& side)
{
    for (std::size_t device = 0; device < devices_.size(); ++device) {
        link_->copy(static_cast<int>(device), devices_[device].stream, devices_[device].to,
                    staged_.data() + side.first[device] * entry_bytes_,
                    (side.first[device + 1] - side.first[device]) * entry_bytes_);
    }
}

}  // namespace rmsp::cluster

namespace rmsp {

std::vector<std::string> list_cluster_transports()
{
    std::vector<std::string> names;
    for (const cluster::TransportRow& row : cluster::transports()) {
        names.emplace_back(row.name);
    }
    return names;
}

}  // namespace rmsp
