#include "cluster/halo.hpp"

#include <algorithm>
#include <climits>
#include <cstring>

#include <fmt/format.h>

#include "cluster/transfer.hpp"

namespace rmsp::cluster {
namespace {

/// Which runs of ascending columns belong to which process.
std::vector<Neighbour> runs_of(const std::vector<std::int64_t>& ghosts, const std::vector<std::int64_t>& columns)
{
    std::vector<Neighbour> runs;
    for (auto at = ghosts.begin(); at != ghosts.end();) {
        const auto owner = std::upper_bound(columns.begin(), columns.end(), *at) - 1;
        const auto end = std::lower_bound(at, ghosts.end(), *(owner + 1));
        runs.push_back({static_cast<int>(owner - columns.begin()), at - ghosts.begin(), end - at});
        at = end;
    }
    return runs;
}

}  // namespace

int message_bytes(std::int64_t bytes)
{
    if (bytes > INT_MAX) {
        throw Error(ErrorCode::usage,
                    fmt::format("a message of {} bytes between two processes; MPI takes at most {}", bytes, INT_MAX));
    }
    return static_cast<int>(bytes);
}

template <class I>
Halo find_halo(Communicator& processes, const std::vector<std::int64_t>& columns, const I* col_idx, std::int64_t nnz,
               IndexArray& out)
{
    const auto rank = static_cast<std::size_t>(processes.rank());
    const std::int64_t first = columns[rank];
    const std::int64_t own = columns[rank + 1] - first;
    Halo halo;
    std::vector<std::int64_t> outside;  // which entries
    for (std::int64_t i = 0; i < nnz; ++i) {
        if (col_idx[i] < first || col_idx[i] >= first + own) {
            outside.push_back(i);
            halo.ghosts.push_back(col_idx[i]);
        }
    }
    std::sort(halo.ghosts.begin(), halo.ghosts.end());
    halo.ghosts.erase(std::unique(halo.ghosts.begin(), halo.ghosts.end()), halo.ghosts.end());
    out =
        IndexArray(index_type_for(own + static_cast<std::int64_t>(halo.ghosts.size())), static_cast<std::size_t>(nnz));
    out.visit([&](auto& numbered) {
        using Index = typename std::decay_t<decltype(numbered)>::value_type;
        for (std::int64_t i = 0; i < nnz; ++i) {
            numbered[static_cast<std::size_t>(i)] = static_cast<Index>(col_idx[i] - first);
        }
        for (const std::int64_t i : outside) {
            const auto at = std::lower_bound(halo.ghosts.begin(), halo.ghosts.end(), col_idx[i]);
            numbered[static_cast<std::size_t>(i)] = static_cast<Index>(own + (at - halo.ghosts.begin()));
        }
    });

    halo.receives = runs_of(halo.ghosts, columns);
    std::vector<std::int64_t> wanted(columns.size() - 1);
    for (const Neighbour& from : halo.receives) {
        wanted[static_cast<std::size_t>(from.process)] = from.count;
    }
    const std::vector<std::int64_t> asked = processes.exchange_counts(wanted);
    for (std::size_t other = 0; other < asked.size(); ++other) {
        if (asked[other] > 0) {
            halo.sends.push_back({static_cast<int>(other), static_cast<std::int64_t>(halo.sent.size()), asked[other]});
            halo.sent.resize(halo.sent.size() + static_cast<std::size_t>(asked[other]));
        }
    }
    std::vector<MPI_Request> requests;
    const int tag = processes.next_tag();
    for (const Neighbour& to : halo.sends) {
        processes.check(MPI_Irecv(halo.sent.data() + to.first, message_bytes(to.count), MPI_INT64_T, to.process, tag,
                                  processes.handle(), &requests.emplace_back(MPI_REQUEST_NULL)),
                        "MPI_Irecv");
    }
    for (const Neighbour& from : halo.receives) {
        processes.check(MPI_Isend(halo.ghosts.data() + from.first, message_bytes(from.count), MPI_INT64_T, from.process,
                                  tag, processes.handle(), &requests.emplace_back(MPI_REQUEST_NULL)),
                        "MPI_Isend");
    }
    processes.wait(requests);
    for (std::int64_t& column : halo.sent) {
        column -= first;
    }
    return halo;
}

template Halo find_halo(Communicator&, const std::vector<std::int64_t>&, const std::int32_t*, std::int64_t,
                        IndexArray&);
template Halo find_halo(Communicator&, const std::vector<std::int64_t>&, const std::int64_t*, std::int64_t,
                        IndexArray&);

std::vector<std::vector<std::byte>> Communicator::bring(std::vector<std::vector<std::byte>> to)
{
    std::vector<std::int64_t> lengths;
    for (const std::vector<std::byte>& bytes : to) {
        lengths.push_back(static_cast<std::int64_t>(bytes.size()));
    }
    lengths = exchange_counts(lengths);
    std::vector<std::vector<std::byte>> came(to.size());
    const auto own = static_cast<std::size_t>(rank());
    Transfer transfer(*this);
    for (std::size_t p = 0; p < to.size(); ++p) {
        if (p == own) {
            came[p] = std::move(to[p]);
        } else {
            came[p].resize(static_cast<std::size_t>(lengths[p]));
            transfer.receive(came[p].data(), lengths[p], static_cast<int>(p));
        }
    }
    for (std::size_t p = 0; p < to.size(); ++p) {
        if (p != own) {
            transfer.send(to[p].data(), static_cast<std::int64_t>(to[p].size()), static_cast<int>(p));
        }
    }
    try {
        transfer.wait();
    } catch (...) {
        for (auto* const all : {&to, &came}) {
            for (std::vector<std::byte>& bytes : *all) {
                keep(std::move(bytes));
            }
        }
        throw;
    }
    return came;
}

Messages::Messages(std::shared_ptr<Communicator> processes, std::vector<Neighbour> receives,
                   std::vector<Neighbour> sends, std::size_t entry_bytes)
    : HaloExchange(std::move(processes), static_cast<int>(receives.size()), static_cast<int>(sends.size())),
      receives_(std::move(receives)),
      sends_(std::move(sends)),
      entry_bytes_(entry_bytes)
{
    const std::vector<int>& node_of = processes_->node_of();
    for (const Neighbour& to : sends_) {
        if (node_of[static_cast<std::size_t>(to.process)] != node_of[static_cast<std::size_t>(processes_->rank())]) {
            ++traffic_.messages_between_nodes;
            traffic_.entries_between_nodes += to.count;
        }
    }
}

void Messages::begin(const void* send, void* receive, bool backwards)
{
    const auto& from = backwards ? sends_ : receives_;
    const auto& to = backwards ? receives_ : sends_;
    const int tag = processes_->next_tag();
    const auto bytes = [&](std::int64_t entries) { return entries * static_cast<std::int64_t>(entry_bytes_); };
    for (const Neighbour& other : from) {
        processes_->check(
            MPI_Irecv(static_cast<std::byte*>(receive) + bytes(other.first), message_bytes(bytes(other.count)),
                      MPI_BYTE, other.process, tag, processes_->handle(), &requests_.emplace_back(MPI_REQUEST_NULL)),
            "MPI_Irecv");
    }
    const std::int64_t size = to.empty() ? 0 : bytes(to.back().first + to.back().count);
    out_.resize(static_cast<std::size_t>(size));
    if (size > 0) {
        std::memcpy(out_.data(), send, out_.size());
    }
    for (const Neighbour& other : to) {
        processes_->check(
            MPI_Isend(out_.data() + bytes(other.first), message_bytes(bytes(other.count)), MPI_BYTE, other.process, tag,
                      processes_->handle(), &requests_.emplace_back(MPI_REQUEST_NULL)),
            "MPI_Isend");
        bytes_sent_ += bytes(other.count);
    }
}

void Messages::end()
{
    try {
        processes_->wait(requests_);
    } catch (...) {
        processes_->keep(std::move(out_));
        out_ = {};
        throw;
    }
}

}  // namespace rmsp::cluster
