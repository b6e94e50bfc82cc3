#include <rmsp/partition.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include <rmsp/error.hpp>

namespace rmsp {
namespace {

// A cut may move to a row boundary for this share of an average part (RowAlignment::automatic).
constexpr double alignment_tolerance = 0.005;

// Splits [0, n) in proportion to weights.
class Splitter {
public:
    explicit Splitter(const std::vector<double>& weights) : parts_(static_cast<std::int64_t>(weights.size()))
    {
        equal_ = std::all_of(weights.begin(), weights.end(), [&](double w) { return w == weights.front(); });
        cumulative_.resize(weights.size() + 1, 0.0L);
        for (std::size_t i = 0; i < weights.size(); ++i) {
            cumulative_[i + 1] = cumulative_[i] + static_cast<long double>(weights[i]);
        }
    }

    // floor(n * weight of the first k parts), the exact cut before part k of n items
    std::int64_t cut(std::int64_t n, std::int64_t k) const
    {
        if (k == parts_) {
            return n;
        }
        if (equal_) {  // in integers, because n * k may not fit and floating point may be one off
            return n / parts_ * k + n % parts_ * k / parts_;
        }
        // Multiplied first, so that whole-number weights (a node's count of equal parts) give exact cuts.
        const long double weight = cumulative_[static_cast<std::size_t>(k)];
        const long double before = std::floor(static_cast<long double>(n) * weight / cumulative_.back());
        return before < static_cast<long double>(n) ? static_cast<std::int64_t>(before) : n;
    }

private:
    std::int64_t parts_;
    bool equal_;
    std::vector<long double> cumulative_;
};

// First row that starts at nonzero `idx` or later; `rows` if none does.
std::int64_t first_row_from(std::int64_t rows, IndexView row_ptr, std::int64_t idx)
{
    return row_ptr.visit([&](const auto* p) -> std::int64_t { return std::lower_bound(p, p + rows, idx) - p; });
}

// Moves an exact cut to the nearest row boundary if that is at most `tolerance` nonzeros away. Of two cuts in one row
// the one nearer to a boundary moves first, so cuts stay in order.
std::int64_t align(std::int64_t rows, IndexView row_ptr, std::int64_t cut, double tolerance)
{
    const std::int64_t next = first_row_from(rows, row_ptr, cut);
    const std::int64_t above = row_ptr[next];
    if (above == cut) {
        return cut;
    }
    const std::int64_t below = row_ptr[next - 1];
    const std::int64_t nearest = cut - below <= above - cut ? below : above;
    return static_cast<double>(std::abs(nearest - cut)) <= tolerance ? nearest : cut;
}

void check_arguments(std::int64_t rows, std::int64_t cols, IndexView row_ptr, int parts,
                     const PartitionOptions& options)
{
    const auto fail = [&](const std::string& what) {
        throw Error(ErrorCode::usage,
                    fmt::format("cannot split a {} x {} matrix into {} parts: {}", rows, cols, parts, what));
    };
    if (parts < 1) {
        fail("at least one part is needed");
    }
    if (rows < 0 || cols < 0) {
        fail("sizes must not be negative");
    }
    if (rows > 0 && row_ptr.data() == nullptr) {
        fail("the row pointers are null");
    }
    if (row_ptr.data() != nullptr) {
        if (row_ptr[0] != 0) {
            fail(fmt::format("row_ptr[0] is {}, not 0", row_ptr[0]));
        }
        if (row_ptr[rows] < 0 || (row_ptr[rows] > 0 && (rows == 0 || cols == 0))) {
            fail(fmt::format("it cannot have {} nonzeros", row_ptr[rows]));
        }
    }
    const auto count = static_cast<std::size_t>(parts);
    if (!options.weights.empty() && options.weights.size() != count) {
        fail(fmt::format("there are {} weights", options.weights.size()));
    }
    for (std::size_t i = 0; i < options.weights.size(); ++i) {
        if (!(options.weights[i] > 0) || !std::isfinite(options.weights[i])) {
            fail(fmt::format("the weight of part {} is {}, not a positive number", i, options.weights[i]));
        }
    }
    if (!std::isfinite(std::accumulate(options.weights.begin(), options.weights.end(), 0.0))) {
        fail("the sum of the weights overflows");
    }
    if (!options.nodes.empty() && options.nodes.size() != count) {
        fail(fmt::format("there are NUMA nodes for {} parts", options.nodes.size()));
    }
    const auto drop = std::is_sorted_until(options.nodes.begin(), options.nodes.end());
    if (drop != options.nodes.end()) {
        fail(fmt::format("part {} is on node {} after one on node {}; parts of one node must be adjacent, in order",
                         drop - options.nodes.begin(), *drop, *(drop - 1)));
    }
}

std::vector<NodeShare> group_by_node(int parts, const std::vector<int>& nodes)
{
    std::vector<NodeShare> groups;
    for (int k = 0; k < parts; ++k) {
        const int node = nodes.empty() ? 0 : nodes[static_cast<std::size_t>(k)];
        if (groups.empty() || groups.back().node != node) {
            groups.push_back({node, k, k, 0, 0});
        }
        groups.back().end_part = k + 1;
    }
    return groups;
}

// The two levels of cuts of n items: among nodes by the sum of their weights, then among the parts of each node.
// adjust(c) moves an exact cut.
template <class Adjust>
std::vector<std::int64_t> two_level_cuts(std::int64_t n, int parts, const std::vector<NodeShare>& groups,
                                         const std::vector<double>& given_weights, const Adjust& adjust)
{
    const std::vector<double> weights =
        given_weights.empty() ? std::vector<double>(static_cast<std::size_t>(parts), 1.0) : given_weights;
    std::vector<double> node_weights;
    for (const NodeShare& group : groups) {
        node_weights.push_back(
            std::accumulate(weights.begin() + group.first_part, weights.begin() + group.end_part, 0.0));
    }
    const Splitter among_nodes(node_weights);
    const auto node_count = static_cast<std::int64_t>(groups.size());
    std::vector<std::int64_t> cuts(static_cast<std::size_t>(parts) + 1, 0);
    cuts.back() = n;
    for (std::int64_t g = 1; g < node_count; ++g) {
        cuts[static_cast<std::size_t>(groups[static_cast<std::size_t>(g)].first_part)] = adjust(among_nodes.cut(n, g));
    }
    for (const NodeShare& group : groups) {
        const std::int64_t begin = cuts[static_cast<std::size_t>(group.first_part)];
        const std::int64_t end = cuts[static_cast<std::size_t>(group.end_part)];
        const Splitter inside({weights.begin() + group.first_part, weights.begin() + group.end_part});
#pragma omp parallel for schedule(static) if (group.end_part - group.first_part > 256)
        for (int k = group.first_part + 1; k < group.end_part; ++k) {
            const std::int64_t exact = begin + inside.cut(end - begin, k - group.first_part);
            cuts[static_cast<std::size_t>(k)] = std::clamp(adjust(exact), begin, end);
        }
    }
    return cuts;
}

}  // namespace

// MSREP, Algorithm 2: the nonzeros are cut, and a binary search in the row pointers finds the rows of each cut.
Partition partition_csr(std::int64_t rows, std::int64_t cols, IndexView row_ptr, int parts,
                        const PartitionOptions& options)
{
    check_arguments(rows, cols, row_ptr, parts, options);
    Partition result;
    result.rows = rows;
    result.cols = cols;
    result.nnz = rows == 0 ? 0 : row_ptr[rows];
    result.nodes = group_by_node(parts, options.nodes);
    result.parts.resize(static_cast<std::size_t>(parts));

    // Without nonzeros there is nothing but rows to balance.
    const bool by_rows = options.strategy == PartitionStrategy::rows || result.nnz == 0;
    std::vector<std::int64_t> cuts;
    if (by_rows) {
        cuts = two_level_cuts(rows, parts, result.nodes, options.weights, [](std::int64_t cut) { return cut; });
    } else {
        const double average = static_cast<double>(result.nnz) / parts;
        const double tolerance = options.alignment == RowAlignment::exact ? 0.0
                                 : options.alignment == RowAlignment::row ? std::numeric_limits<double>::infinity()
                                                                          : alignment_tolerance * average;
        cuts = two_level_cuts(result.nnz, parts, result.nodes, options.weights,
                              [&](std::int64_t cut) { return align(rows, row_ptr, cut, tolerance); });
    }

#pragma omp parallel for schedule(static) if (parts > 256)
    for (int k = 0; k < parts; ++k) {
        PartialCsr& part = result.parts[static_cast<std::size_t>(k)];
        const std::int64_t begin = cuts[static_cast<std::size_t>(k)];
        const std::int64_t end = cuts[static_cast<std::size_t>(k) + 1];
        if (by_rows) {
            part = {rows == 0 ? 0 : row_ptr[begin], rows == 0 ? 0 : row_ptr[end], begin, end, false};
            continue;
        }
        // A row belongs to the part in which it starts, empty rows at a cut to the part that starts there.
        const std::int64_t first = first_row_from(rows, row_ptr, begin);
        part.start_idx = begin;
        part.end_idx = end;
        part.start_flag = begin < end && row_ptr[first] != begin;
        part.start_row = part.start_flag ? first - 1 : first;
        part.end_row = k + 1 == parts ? rows : first_row_from(rows, row_ptr, end);
    }
    for (NodeShare& share : result.nodes) {
        share.start_idx = result.parts[static_cast<std::size_t>(share.first_part)].start_idx;
        share.end_idx = result.parts[static_cast<std::size_t>(share.end_part) - 1].end_idx;
    }
    return result;
}

double Partition::imbalance(const std::vector<double>& weights) const
{
    if (!weights.empty() && weights.size() != parts.size()) {
        throw Error(ErrorCode::usage, fmt::format("{} weights for {} parts", weights.size(), parts.size()));
    }
    if (nnz == 0 || parts.empty()) {
        return 0.0;
    }
    const double total =
        weights.empty() ? static_cast<double>(parts.size()) : std::accumulate(weights.begin(), weights.end(), 0.0);
    double worst = 0.0;
    for (std::size_t k = 0; k < parts.size(); ++k) {
        const double fair = static_cast<double>(nnz) * (weights.empty() ? 1.0 : weights[k]) / total;
        worst = std::max(worst, static_cast<double>(parts[k].nnz()) / fair);
    }
    return worst - 1.0;
}

void Partition::check() const
{
    const auto fail = [&](std::size_t k, const std::string& what) {
        throw Error(ErrorCode::internal, fmt::format("part {} of {} of a {} x {} matrix with {} nonzeros {}", k,
                                                     parts.size(), rows, cols, nnz, what));
    };
    if (parts.empty()) {
        throw Error(ErrorCode::internal, "a partition without parts");
    }
    std::int64_t idx = 0;
    std::int64_t row = 0;
    for (std::size_t k = 0; k < parts.size(); ++k) {
        const PartialCsr& part = parts[k];
        if (part.start_idx != idx || part.end_idx < part.start_idx) {
            fail(k, fmt::format("holds nonzeros [{}, {}) where {} comes next", part.start_idx, part.end_idx, idx));
        }
        if (part.first_owned_row() != row || part.owned_rows() < 0) {
            fail(k, fmt::format("owns rows [{}, {}) where {} comes next", part.first_owned_row(), part.end_row, row));
        }
        if (part.start_flag && (k == 0 || part.nnz() == 0)) {
            fail(k, fmt::format("shares row {} with a predecessor, but has {} nonzeros", part.start_row, part.nnz()));
        }
        if (part.nnz() > 0 && part.rows() == 0) {
            fail(k, fmt::format("has {} nonzeros and no row", part.nnz()));
        }
        idx = part.end_idx;
        row = part.end_row;
    }
    if (idx != nnz) {
        fail(parts.size() - 1, fmt::format("ends at nonzero {}", idx));
    }
    if (row != rows) {
        fail(parts.size() - 1, fmt::format("ends at row {}", row));
    }
    int next_part = 0;
    for (const NodeShare& share : nodes) {
        if (share.first_part != next_part || share.end_part <= next_part ||
            static_cast<std::size_t>(share.end_part) > parts.size() ||
            share.start_idx != parts[static_cast<std::size_t>(share.first_part)].start_idx ||
            share.end_idx != parts[static_cast<std::size_t>(share.end_part) - 1].end_idx) {
            fail(static_cast<std::size_t>(next_part), fmt::format("does not begin the share of node {}", share.node));
        }
        next_part = share.end_part;
    }
    if (static_cast<std::size_t>(next_part) != parts.size()) {
        fail(static_cast<std::size_t>(next_part), "is on no node");
    }
}

}  // namespace rmsp
