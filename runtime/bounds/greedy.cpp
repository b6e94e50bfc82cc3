#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <rmsp/characterize.hpp>

namespace rmsp {
namespace {

/// Grows parts vertex by vertex. Vertices that nets tie to the part wait in buckets by how many nets do; within a
/// bucket first come, first served, so that a part grows evenly around where it began.
class Growth {
public:
    explicit Growth(const Hypergraph& graph)
        : graph_(graph),
          part_(static_cast<std::size_t>(graph.vertices()), -1),
          ties_(part_.size(), 0),
          ties_of_(part_.size(), -1),
          net_of_(static_cast<std::size_t>(graph.nets()), -1),
          buckets_(most_ties + 1),
          heads_(most_ties + 1, 0)
    {
        std::vector<std::int64_t> next(part_.size() + 1, 0);
        for (const std::int32_t pin : graph.pins) {
            ++next[static_cast<std::size_t>(pin) + 1];
        }
        for (std::size_t v = 0; v < part_.size(); ++v) {
            next[v + 1] += next[v];
        }
        nets_ptr_ = next;
        nets_.resize(graph.pins.size());
        for (std::int64_t net = 0; net < graph.nets(); ++net) {
            for (std::int64_t p = begin(net); p < end(net); ++p) {
                const auto v = static_cast<std::size_t>(graph.pins[static_cast<std::size_t>(p)]);
                nets_[static_cast<std::size_t>(next[v]++)] = net;
            }
        }
    }

    std::vector<std::int32_t> run(std::int32_t parts)
    {
        std::int64_t left = 0;
        for (const std::int64_t weight : graph_.vertex_weight) {
            left += weight;
        }
        for (std::int32_t part = 0; part < parts; ++part) {
            const std::int64_t share = (left + parts - part - 1) / (parts - part);
            left -= grow(part, share, part + 1 == parts);
        }
        return std::move(part_);
    }

private:
    static constexpr std::int32_t most_ties = 255;
    /// Nets of more pins tie nearly everything to nearly every part, and would be walked for each.
    static constexpr std::int64_t most_pins = 1024;

    std::int64_t begin(std::int64_t net) const { return graph_.net_ptr[static_cast<std::size_t>(net)]; }
    std::int64_t end(std::int64_t net) const { return graph_.net_ptr[static_cast<std::size_t>(net) + 1]; }

    std::int64_t grow(std::int32_t part, std::int64_t share, bool last)
    {
        for (std::size_t b = 0; b < buckets_.size(); ++b) {
            buckets_[b].clear();
            heads_[b] = 0;
        }
        top_ = 0;
        std::int64_t weight = 0;
        while (last || weight < share) {
            const std::int64_t v = next_vertex(part);
            if (v < 0) {
                break;
            }
            const std::int64_t own = graph_.vertex_weight[static_cast<std::size_t>(v)];
            // A vertex that is too much by more than it is needed stays for the next part.
            if (!last && weight > 0 && weight + own - share > share - weight) {
                break;
            }
            take(static_cast<std::size_t>(v), part);
            weight += own;
        }
        return weight;
    }

    std::int64_t next_vertex(std::int32_t part)
    {
        for (; top_ > 0; --top_) {
            auto& bucket = buckets_[static_cast<std::size_t>(top_)];
            std::size_t& head = heads_[static_cast<std::size_t>(top_)];
            while (head < bucket.size()) {
                const auto v = static_cast<std::size_t>(bucket[head++]);
                if (part_[v] < 0 && ties_of_[v] == part && std::min(ties_[v], most_ties) == top_) {
                    return static_cast<std::int64_t>(v);
                }
            }
        }
        while (first_left_ < part_.size() && part_[first_left_] >= 0) {
            ++first_left_;
        }
        return first_left_ < part_.size() ? static_cast<std::int64_t>(first_left_) : -1;
    }

    void take(std::size_t v, std::int32_t part)
    {
        part_[v] = part;
        for (std::int64_t at = nets_ptr_[v]; at < nets_ptr_[v + 1]; ++at) {
            const std::int64_t net = nets_[static_cast<std::size_t>(at)];
            std::int32_t& owner = net_of_[static_cast<std::size_t>(net)];
            if (owner == part || end(net) - begin(net) > most_pins) {
                continue;
            }
            owner = part;
            for (std::int64_t p = begin(net); p < end(net); ++p) {
                tie(static_cast<std::size_t>(graph_.pins[static_cast<std::size_t>(p)]), part);
            }
        }
    }

    void tie(std::size_t v, std::int32_t part)
    {
        if (part_[v] >= 0) {
            return;
        }
        if (ties_of_[v] != part) {
            ties_of_[v] = part;
            ties_[v] = 0;
        }
        ++ties_[v];
        const std::int32_t ties = std::min(ties_[v], most_ties);
        buckets_[static_cast<std::size_t>(ties)].push_back(static_cast<std::int32_t>(v));
        top_ = std::max(top_, ties);
    }

    const Hypergraph& graph_;
    std::vector<std::int32_t> part_;
    std::vector<std::int32_t> ties_;     ///< nets between a vertex and the part that grows
    std::vector<std::int32_t> ties_of_;  ///< for which ties_ counts
    std::vector<std::int32_t> net_of_;   ///< the last part that has a pin of a net
    std::vector<std::vector<std::int32_t>> buckets_;
    std::vector<std::size_t> heads_;
    std::vector<std::int64_t> nets_ptr_;
    std::vector<std::int64_t> nets_;
    std::int32_t top_ = 0;
    std::size_t first_left_ = 0;
};

}  // namespace

HypergraphPartitioner greedy_partitioner()
{
    return {"greedy growth",
            [](const Hypergraph& graph, std::int32_t parts) { return Growth(graph).run(std::max(parts, 1)); }};
}

}  // namespace rmsp
