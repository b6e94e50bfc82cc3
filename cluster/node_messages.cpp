#include "cluster/node_messages.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "cluster/transfer.hpp"
#include "cluster/transport.hpp"

namespace rmsp::cluster {
namespace {

/// What goes from one process to some of another node, told to the two that pass it on.
struct Parcel {
    std::int64_t node = 0;  ///< the other one, as who hears of it sees it
    std::int64_t from = 0;
    std::int64_t once = 0;                                  ///< entries, each once
    std::vector<std::pair<std::int64_t, std::int64_t>> to;  ///< processes and how many entries
    std::vector<std::int64_t> which;                        ///< of those that travel, process after process
};

void write(std::vector<std::int64_t>& out, const Parcel& parcel)
{
    out.insert(out.end(), {parcel.node, parcel.from, parcel.once, static_cast<std::int64_t>(parcel.to.size())});
    for (const auto& [process, count] : parcel.to) {
        out.insert(out.end(), {process, count});
    }
    out.insert(out.end(), parcel.which.begin(), parcel.which.end());
}

std::vector<Parcel> read_parcels(const std::vector<std::int64_t>& in)
{
    std::vector<Parcel> parcels;
    for (auto at = in.begin(); at != in.end();) {
        Parcel& parcel = parcels.emplace_back();
        parcel.node = *at++;
        parcel.from = *at++;
        parcel.once = *at++;
        std::int64_t entries = 0;
        for (std::int64_t left = *at++; left > 0; --left) {
            const std::int64_t process = *at++;
            parcel.to.emplace_back(process, *at++);
            entries += parcel.to.back().second;
        }
        parcel.which.assign(at, at + entries);
        at += entries;
    }
    return parcels;
}

std::vector<Neighbour> inside(const std::vector<Neighbour>& neighbours, const std::vector<int>& node_of, int node)
{
    std::vector<Neighbour> out;
    std::copy_if(neighbours.begin(), neighbours.end(), std::back_inserter(out),
                 [&](const Neighbour& other) { return node_of[static_cast<std::size_t>(other.process)] == node; });
    return out;
}

/// Neighbours of other nodes, by the node.
std::map<int, std::vector<Neighbour>> by_node(const std::vector<Neighbour>& neighbours, const std::vector<int>& node_of,
                                              int node)
{
    std::map<int, std::vector<Neighbour>> out;
    for (const Neighbour& other : neighbours) {
        if (const int of = node_of[static_cast<std::size_t>(other.process)]; of != node) {
            out[of].push_back(other);
        }
    }
    return out;
}

std::vector<std::int64_t> places_of(const std::vector<Neighbour>& parts)
{
    std::vector<std::int64_t> places;
    for (const Neighbour& part : parts) {
        for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
            places.push_back(i);
        }
    }
    return places;
}

/// The process of a node that speaks with another node: each with as few as can be.
int speaker(const std::vector<int>& node_of, int node, int other)
{
    std::vector<int> members;
    for (std::size_t p = 0; p < node_of.size(); ++p) {
        if (node_of[p] == node) {
            members.push_back(static_cast<int>(p));
        }
    }
    return members[static_cast<std::size_t>(other) % members.size()];
}

/// Which entries of those that go to a node travel: the first place of each; and for each place which of those it is.
struct Once {
    std::vector<std::int64_t> first;
    std::vector<std::int64_t> which;
};
Once once(const std::vector<std::int64_t>& places, std::span<const std::int64_t> sent)
{
    Once out;
    std::map<std::int64_t, std::int64_t> known;
    for (const std::int64_t place : places) {
        const std::int64_t column = sent.empty() ? place : sent[static_cast<std::size_t>(place)];
        const auto [at, is_new] = known.emplace(column, static_cast<std::int64_t>(out.first.size()));
        if (is_new) {
            out.first.push_back(place);
        }
        out.which.push_back(at->second);
    }
    return out;
}

}  // namespace

NodeMessages::NodeMessages(std::shared_ptr<Communicator> processes, std::vector<Neighbour> receives,
                           std::vector<Neighbour> sends, std::span<const std::int64_t> sent, std::size_t entry_bytes)
    : HaloExchange(std::move(processes), static_cast<int>(receives.size()), static_cast<int>(sends.size())),
      entry_bytes_(entry_bytes)
{
    find_routes(sent, receives, sends);
    traffic_.gathered = true;
    for (const Gathered& message : forwards_.gathered) {
        ++traffic_.messages_between_nodes;
        traffic_.entries_between_nodes += message.entries;
    }
}

void NodeMessages::find_routes(std::span<const std::int64_t> sent, const std::vector<Neighbour>& receives,
                               const std::vector<Neighbour>& sends)
{
    const std::vector<int>& node_of = processes_->node_of();
    const int node = node_of[static_cast<std::size_t>(processes_->rank())];
    forwards_.sends = backwards_.receives = inside(sends, node_of, node);
    forwards_.receives = backwards_.sends = inside(receives, node_of, node);

    std::vector<std::vector<std::int64_t>> to_gather(node_of.size());
    std::vector<std::vector<std::int64_t>> to_hand_out(node_of.size());
    for (const auto& [other, parts] : by_node(sends, node_of, node)) {
        const std::vector<std::int64_t> places = places_of(parts);
        Once entries = once(places, sent);
        Parcel parcel{other, processes_->rank(), static_cast<std::int64_t>(entries.first.size()), {}, {}};
        for (const Neighbour& part : parts) {
            parcel.to.emplace_back(part.process, part.count);
        }
        parcel.which = std::move(entries.which);
        const int here = speaker(node_of, node, other);
        write(to_gather[static_cast<std::size_t>(here)], parcel);
        parcel.node = node;
        write(to_hand_out[static_cast<std::size_t>(speaker(node_of, other, node))], parcel);
        forwards_.out.push_back({here, std::move(entries.first)});
        backwards_.in.push_back({here, places});
    }
    for (const auto& [other, parts] : by_node(receives, node_of, node)) {
        const int here = speaker(node_of, node, other);
        const std::vector<std::int64_t> places = places_of(parts);
        forwards_.in.push_back({here, places});
        backwards_.out.push_back({here, places});
    }

    // Those of one node and another: processes that send, in their order.
    const auto sorted = [&](const std::vector<std::vector<std::int64_t>>& to) {
        std::map<std::int64_t, std::vector<Parcel>> parcels;
        for (const std::vector<std::int64_t>& came : bring(*processes_, to)) {
            for (Parcel& parcel : read_parcels(came)) {
                parcels[parcel.node].push_back(std::move(parcel));
            }
        }
        return parcels;
    };
    for (const auto& [other, parcels] : sorted(to_gather)) {
        const int there = speaker(node_of, static_cast<int>(other), node);
        Gathered gathered{there, {}, 0};
        // What comes back stands by the processes there, and of each by those here.
        std::map<std::int64_t, std::vector<std::pair<std::int64_t, std::int64_t>>> back;
        for (const Parcel& parcel : parcels) {
            gathered.from.emplace_back(static_cast<int>(parcel.from), parcel.once);
            gathered.entries += parcel.once;
            for (const auto& [process, count] : parcel.to) {
                back[process].emplace_back(parcel.from, count);
            }
        }
        HandedOut returned{there, 0, {}};
        std::map<std::int64_t, Places> places;
        for (const auto& [process, counts] : back) {
            for (const auto& [from, count] : counts) {
                for (std::int64_t i = 0; i < count; ++i) {
                    places[from].push_back(returned.entries++);
                }
            }
        }
        for (auto& [process, of] : places) {
            returned.to.push_back({static_cast<int>(process), std::move(of)});
        }
        forwards_.gathered.push_back(std::move(gathered));
        backwards_.handed_out.push_back(std::move(returned));
    }
    for (const auto& [other, parcels] : sorted(to_hand_out)) {
        const int there = speaker(node_of, static_cast<int>(other), node);
        HandedOut handed_out{there, 0, {}};
        std::map<std::int64_t, Places> places;
        for (const Parcel& parcel : parcels) {
            std::size_t at = 0;
            for (const auto& [process, count] : parcel.to) {
                for (std::int64_t i = 0; i < count; ++i) {
                    places[process].push_back(handed_out.entries + parcel.which[at++]);
                }
            }
            handed_out.entries += parcel.once;
        }
        Gathered returned{there, {}, 0};
        for (auto& [process, of] : places) {
            const auto count = static_cast<std::int64_t>(of.size());
            returned.from.emplace_back(static_cast<int>(process), count);
            returned.entries += count;
            handed_out.to.push_back({static_cast<int>(process), std::move(of)});
        }
        forwards_.handed_out.push_back(std::move(handed_out));
        backwards_.gathered.push_back(std::move(returned));
    }
}

std::byte* NodeMessages::buffer(std::int64_t entries)
{
    return buffers_.emplace_back(static_cast<std::size_t>(entries) * entry_bytes_).data();
}

void NodeMessages::copy_entry(std::byte* to, std::int64_t at, const std::byte* from, std::int64_t of) const
{
    std::memcpy(to + static_cast<std::size_t>(at) * entry_bytes_, from + static_cast<std::size_t>(of) * entry_bytes_,
                entry_bytes_);
}

void NodeMessages::send(const void* data, std::int64_t entries, int to, int tag)
{
    const std::int64_t bytes = entries * static_cast<std::int64_t>(entry_bytes_);
    processes_->check(MPI_Isend(data, message_bytes(bytes), MPI_BYTE, to, tag, processes_->handle(),
                                &requests_.emplace_back(MPI_REQUEST_NULL)),
                      "MPI_Isend");
    bytes_sent_ += to == processes_->rank() ? 0 : bytes;
}

void NodeMessages::receive(void* data, std::int64_t entries, int from, int tag, std::vector<MPI_Request>& requests)
{
    processes_->check(MPI_Irecv(data, message_bytes(entries * static_cast<std::int64_t>(entry_bytes_)), MPI_BYTE, from,
                                tag, processes_->handle(), &requests.emplace_back(MPI_REQUEST_NULL)),
                      "MPI_Irecv");
}

void NodeMessages::give_up() noexcept
{
    processes_->give_up(requests_);
    processes_->give_up(from_nodes_);
    for (std::vector<std::byte>& kept : buffers_) {
        processes_->keep(std::move(kept));
    }
    buffers_.clear();
}

void NodeMessages::begin(const void* send_, void* receive_, bool backwards)
{
    const auto* const from = static_cast<const std::byte*>(send_);
    way_ = backwards ? &backwards_ : &forwards_;
    to_ = static_cast<std::byte*>(receive_);
    buffers_.clear();
    handed_out_.clear();
    in_.clear();
    // Inside the node, to who speaks with another one, between nodes, and to who needs it.
    const int inside_tag = processes_->next_tag();
    const int gather_tag = processes_->next_tag();
    const int node_tag = processes_->next_tag();
    last_tag_ = processes_->next_tag();
    try {
        std::vector<MPI_Request> gathering;
        std::vector<std::byte*> gathered;
        for (const Gathered& message : way_->gathered) {
            std::byte* at = gathered.emplace_back(buffer(message.entries));
            for (const auto& [process, entries] : message.from) {
                receive(at, entries, process, gather_tag, gathering);
                at += static_cast<std::size_t>(entries) * entry_bytes_;
            }
        }
        for (const HandedOut& message : way_->handed_out) {
            receive(handed_out_.emplace_back(buffer(message.entries)), message.entries, message.from, node_tag,
                    from_nodes_);
        }
        for (const Some& in : way_->in) {
            const auto entries = static_cast<std::int64_t>(in.places.size());
            receive(in_.emplace_back(buffer(entries)), entries, in.process, last_tag_, requests_);
        }
        for (const Neighbour& other : way_->receives) {
            receive(to_ + static_cast<std::size_t>(other.first) * entry_bytes_, other.count, other.process, inside_tag,
                    requests_);
        }
        const auto send_some = [&](const std::byte* array, const Some& some, int tag) {
            const auto entries = static_cast<std::int64_t>(some.places.size());
            std::byte* const out = buffer(entries);
            for (std::int64_t i = 0; i < entries; ++i) {
                copy_entry(out, i, array, some.places[static_cast<std::size_t>(i)]);
            }
            send(out, entries, some.process, tag);
        };
        for (const Some& out : way_->out) {
            send_some(from, out, gather_tag);
        }
        for (const Neighbour& other : way_->sends) {
            send_some(from, {other.process, places_of({other})}, inside_tag);
        }
        // So that messages between nodes are on their way while own columns are multiplied.
        try {
            processes_->wait(gathering);
        } catch (...) {
            processes_->give_up(gathering);
            throw;
        }
        for (std::size_t i = 0; i < gathered.size(); ++i) {
            send(gathered[i], way_->gathered[i].entries, way_->gathered[i].to, node_tag);
        }
    } catch (...) {
        give_up();
        throw;
    }
}

void NodeMessages::end()
{
    try {
        processes_->wait(from_nodes_);
        for (std::size_t i = 0; i < handed_out_.size(); ++i) {
            for (const Some& some : way_->handed_out[i].to) {
                const auto entries = static_cast<std::int64_t>(some.places.size());
                std::byte* const out = buffer(entries);
                for (std::int64_t k = 0; k < entries; ++k) {
                    copy_entry(out, k, handed_out_[i], some.places[static_cast<std::size_t>(k)]);
                }
                send(out, entries, some.process, last_tag_);
            }
        }
        processes_->wait(requests_);
    } catch (...) {
        give_up();
        throw;
    }
    for (std::size_t i = 0; i < in_.size(); ++i) {
        const Places& places = way_->in[i].places;
        for (std::size_t k = 0; k < places.size(); ++k) {
            copy_entry(to_, places[k], in_[i], static_cast<std::int64_t>(k));
        }
    }
}

ExchangeSeconds exchange_seconds(const std::vector<int>& node_of, const std::vector<std::vector<ToNode>>& to_nodes)
{
    // Assumed, of adapters and shared memory as they are common: no measured cluster is behind them.
    constexpr double node_latency = 2e-6;
    constexpr double node_bytes_per_second = 25e9;
    constexpr double inside_latency = 0.7e-6;
    constexpr double inside_bytes_per_second = 10e9;
    struct OfNode {
        double bytes = 0;
        double bytes_once = 0;
        double most_messages = 0;
        std::set<int> others;
        double processes = 0;
    };
    std::map<int, OfNode> nodes;
    for (std::size_t p = 0; p < node_of.size(); ++p) {
        OfNode& node = nodes[node_of[p]];
        ++node.processes;
        double messages = 0;
        for (const ToNode& to : to_nodes[p]) {
            node.bytes += static_cast<double>(to.bytes);
            node.bytes_once += static_cast<double>(to.bytes_once);
            node.others.insert(to.node);
            messages += static_cast<double>(to.messages);
        }
        node.most_messages = std::max(node.most_messages, messages);
    }
    ExchangeSeconds seconds;
    for (const auto& [number, node] : nodes) {
        const auto pairs = static_cast<double>(node.others.size());
        if (pairs == 0) {
            continue;
        }
        seconds.direct =
            std::max(seconds.direct, node.most_messages * node_latency + node.bytes / node_bytes_per_second);
        const double speakers = std::min(pairs, node.processes);
        const double of_each = std::ceil(pairs / speakers);
        const double inside = 2 * ((node.processes - 1) * of_each * inside_latency +
                                   node.bytes_once / speakers / inside_bytes_per_second);
        seconds.gathered =
            std::max(seconds.gathered, of_each * node_latency + node.bytes_once / node_bytes_per_second + inside);
    }
    return seconds;
}

std::shared_ptr<HaloExchange> make_exchange(std::shared_ptr<Communicator> processes, std::vector<Neighbour> receives,
                                            std::vector<Neighbour> sends, std::span<const std::int64_t> sent,
                                            std::size_t entry_bytes)
{
    const std::vector<int>& node_of = processes->node_of();
    const auto size = node_of.size();
    const int nodes = 1 + *std::max_element(node_of.begin(), node_of.end());
    const auto direct = [&](std::string reason) {
        std::shared_ptr<HaloExchange> exchange;
        if (processes->link()) {
            exchange = std::make_shared<DeviceExchange>(processes, std::move(receives), std::move(sends), entry_bytes);
        } else {
            exchange = std::make_shared<Messages>(processes, std::move(receives), std::move(sends), entry_bytes);
        }
        exchange->set_reason(std::move(reason));
        return exchange;
    };
    if (nodes == 1 || static_cast<std::size_t>(nodes) == size) {
        return direct(nodes == 1 ? "all processes are on one node" : "each process is a node");
    }
    if (processes->node_messages() == NodeMessagesChoice::direct) {
        return direct("asked for");
    }
    std::string reason = "asked for";
    if (processes->node_messages() == NodeMessagesChoice::automatic) {
        if (processes->link()) {
            return direct("gathered ones would pass through host memory");
        }
        std::vector<std::int64_t> own;
        const int node = node_of[static_cast<std::size_t>(processes->rank())];
        for (const auto& [other, parts] : by_node(sends, node_of, node)) {
            const std::vector<std::int64_t> places = places_of(parts);
            own.insert(own.end(), {other, static_cast<std::int64_t>(parts.size()),
                                   static_cast<std::int64_t>(places.size() * entry_bytes),
                                   static_cast<std::int64_t>(once(places, sent).first.size() * entry_bytes)});
        }
        std::vector<std::vector<ToNode>> to_nodes;
        std::int64_t messages = 0;
        std::set<std::pair<int, int>> pairs;
        for (const std::vector<std::int64_t>& of :
             bring(*processes, std::vector<std::vector<std::int64_t>>(size, own))) {
            std::vector<ToNode>& to = to_nodes.emplace_back();
            for (std::size_t i = 0; i < of.size(); i += 4) {
                to.push_back({static_cast<int>(of[i]), of[i + 1], of[i + 2], of[i + 3]});
                messages += of[i + 1];
                pairs.emplace(node_of[to_nodes.size() - 1], static_cast<int>(of[i]));
            }
        }
        const ExchangeSeconds seconds = exchange_seconds(node_of, to_nodes);
        reason = fmt::format("{} messages between nodes as {}: expected to take {:.3g} us in place of {:.3g} us",
                             messages, pairs.size(), 1e6 * seconds.gathered, 1e6 * seconds.direct);
        if (seconds.gathered >= seconds.direct) {
            return direct(std::move(reason));
        }
    }
    auto exchange = std::make_shared<NodeMessages>(processes, receives, sends, sent, entry_bytes);
    exchange->set_reason(std::move(reason));
    return exchange;
}

std::shared_ptr<GhostExchange> Communicator::exchange(const std::vector<GhostNeighbour>& receives,
                                                      const std::vector<GhostNeighbour>& sends, std::size_t entry_bytes)
{
    return make_exchange(shared_from_this(), receives, sends, {}, entry_bytes);
}

}  // namespace rmsp::cluster
