#include <algorithm>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "cluster/communicator.hpp"
#include "cluster/transport.hpp"

namespace rmsp::cluster {

void Communicator::number_nodes(const ClusterOptions& options)
{
    require_transport(options.transport);
    int first = rank_;
    for (const NodeProcess& process : node_->processes()) {
        first = std::min(first, process.rank);
    }
    const std::int64_t own[4] = {options.node, first, static_cast<std::int64_t>(node_messages_),
                                 place_of_transport(options.transport)};
    const std::vector<std::int64_t> all = numbers_of_all(own);
    std::vector<std::int64_t> known;
    for (std::size_t p = 0; p < static_cast<std::size_t>(size_); ++p) {
        const std::int64_t* const of = &all[8 * p];
        if ((of[0] < 0) != (all[0] < 0) || of[2] != all[2] || of[3] != all[3]) {
            throw Error(ErrorCode::usage, fmt::format("processes 0 and {} have other ClusterOptions: {} differs", p,
                                                      of[2] != all[2]   ? "node_messages"
                                                      : of[3] != all[3] ? "transport"
                                                                        : "whether a node is given"));
        }
        const std::int64_t node = of[0] < 0 ? of[1] : of[0];
        const auto at = std::find(known.begin(), known.end(), node);
        node_of_.push_back(static_cast<int>(at - known.begin()));
        if (at == known.end()) {
            known.push_back(node);
        }
    }
}

}  // namespace rmsp::cluster
