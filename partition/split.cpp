#include "partition/split.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/enumerator.hpp"

namespace rmsp::partition {
namespace {

// A cut may move to a row boundary for this share of an average part (RowAlignment::automatic).
constexpr double alignment_tolerance = 0.005;
// And for this one to a multiple of lines (PartitionOptions::row_multiple).
constexpr double multiple_tolerance = 0.0005;

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

// How far a cut may move, in nonzeros.
struct Tolerance {
    double of_line = 0;      // to any boundary of lines
    double of_multiple = 0;  // to one of a multiple of lines
    std::int64_t multiple = 1;
};

// The boundary between lines, of those at a multiple of so many, that is nearest to a cut.
std::int64_t nearest_boundary(const Lines& lines, std::int64_t cut, std::int64_t multiple)
{
    const std::int64_t next = lines.first_from(cut);
    const std::int64_t above = std::min((next + multiple - 1) / multiple * multiple, lines.count());
    const std::int64_t there = lines.start(above);
    if (there == cut || above == 0) {
        return there;
    }
    const std::int64_t below = lines.start((above - 1) / multiple * multiple);
    return cut - below <= there - cut ? below : there;
}

// Moves an exact cut to the nearest multiple of lines if that is near enough, or else to the nearest boundary of lines
// if that is. Of two cuts between the same boundaries the one nearer to one moves first, so cuts stay in order.
std::int64_t align(const Lines& lines, std::int64_t cut, const Tolerance& tolerance)
{
    const auto is_within = [&](std::int64_t there, double most) {
        return static_cast<double>(std::abs(there - cut)) <= most;
    };
    const std::int64_t whole = nearest_boundary(lines, cut, tolerance.multiple);
    if (is_within(whole, tolerance.of_multiple)) {
        return whole;
    }
    const std::int64_t nearest = nearest_boundary(lines, cut, 1);
    return is_within(nearest, tolerance.of_line) ? nearest : cut;
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

void finish_nodes(Split& split)
{
    for (NodeShare& share : split.nodes) {
        share.start_idx = split.runs[static_cast<std::size_t>(share.first_part)].start_idx;
        share.end_idx = split.runs[static_cast<std::size_t>(share.end_part) - 1].end_idx;
    }
}

}  // namespace

void refuse(std::int64_t rows, std::int64_t cols, int parts, const std::string& what)
{
    throw Error(ErrorCode::usage,
                fmt::format("cannot split a {} x {} matrix into {} parts: {}", rows, cols, parts, what));
}

void check_arguments(std::int64_t rows, std::int64_t cols, int parts, const PartitionOptions& options)
{
    core::require_enumerator("PartitionOptions::strategy", options.strategy, PartitionStrategy::rows);
    core::require_enumerator("PartitionOptions::alignment", options.alignment, RowAlignment::row);
    const auto fail = [&](const std::string& what) { refuse(rows, cols, parts, what); };
    if (parts < 1) {
        fail("at least one part is needed");
    }
    if (rows < 0 || cols < 0) {
        fail("sizes must not be negative");
    }
    if (options.row_multiple < 1) {
        fail(fmt::format("row_multiple is {}, it must be 1 or more", options.row_multiple));
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

// MSREP, Algorithms 2, 4 and 6: the nonzeros are cut, and a binary search finds the lines of each cut.
Split split_lines(const Lines& lines, int parts, const PartitionOptions& options)
{
    Split result;
    result.nodes = group_by_node(parts, options.nodes);
    result.runs.resize(static_cast<std::size_t>(parts));

    // Without nonzeros there is nothing but lines to balance.
    const bool by_lines = options.strategy == PartitionStrategy::rows || lines.nnz() == 0;
    std::vector<std::int64_t> cuts;
    if (by_lines) {
        cuts =
            two_level_cuts(lines.count(), parts, result.nodes, options.weights, [](std::int64_t cut) { return cut; });
    } else {
        const double average = static_cast<double>(lines.nnz()) / parts;
        Tolerance tolerance;
        if (options.alignment != RowAlignment::exact) {
            tolerance = {options.alignment == RowAlignment::row ? std::numeric_limits<double>::infinity()
                                                                : alignment_tolerance * average,
                         multiple_tolerance * average, options.row_multiple};
        }
        cuts = two_level_cuts(lines.nnz(), parts, result.nodes, options.weights,
                              [&](std::int64_t cut) { return align(lines, cut, tolerance); });
    }

#pragma omp parallel for schedule(static) if (parts > 256)
    for (int k = 0; k < parts; ++k) {
        Run& run = result.runs[static_cast<std::size_t>(k)];
        const std::int64_t begin = cuts[static_cast<std::size_t>(k)];
        const std::int64_t end = cuts[static_cast<std::size_t>(k) + 1];
        if (by_lines) {
            run = {lines.start(begin), lines.start(end), begin, end, false};
            continue;
        }
        // A line belongs to the part in which it starts, empty lines at a cut to the part that starts there.
        const std::int64_t first = lines.first_from(begin);
        run.start_idx = begin;
        run.end_idx = end;
        run.start_flag = begin < end && lines.start(first) != begin;
        run.start_line = run.start_flag ? first - 1 : first;
        run.end_line = k + 1 == parts ? lines.count() : lines.first_from(end);
    }
    finish_nodes(result);
    return result;
}

Split split_entries(std::int64_t nnz, int parts, const PartitionOptions& options)
{
    Split result;
    result.nodes = group_by_node(parts, options.nodes);
    const std::vector<std::int64_t> cuts =
        two_level_cuts(nnz, parts, result.nodes, options.weights, [](std::int64_t cut) { return cut; });
    for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
        result.runs.push_back({cuts[k], cuts[k + 1], 0, 0, false});
    }
    finish_nodes(result);
    return result;
}

double imbalance(const std::vector<Run>& runs, std::int64_t nnz, const std::vector<double>& weights)
{
    if (!weights.empty() && weights.size() != runs.size()) {
        throw Error(ErrorCode::usage, fmt::format("{} weights for {} parts", weights.size(), runs.size()));
    }
    if (nnz == 0 || runs.empty()) {
        return 0.0;
    }
    const double total =
        weights.empty() ? static_cast<double>(runs.size()) : std::accumulate(weights.begin(), weights.end(), 0.0);
    double worst = 0.0;
    for (std::size_t k = 0; k < runs.size(); ++k) {
        const double fair = static_cast<double>(nnz) * (weights.empty() ? 1.0 : weights[k]) / total;
        worst = std::max(worst, static_cast<double>(runs[k].end_idx - runs[k].start_idx) / fair);
    }
    return worst - 1.0;
}

void check_cover(const Shape& shape, const std::vector<NodeShare>& nodes, const std::vector<Run>& runs,
                 std::int64_t lines, const char* line)
{
    const auto fail = [&](std::size_t k, const std::string& what) {
        throw Error(ErrorCode::internal, fmt::format("part {} of {} of a {} x {} matrix with {} nonzeros {}", k,
                                                     runs.size(), shape.rows, shape.cols, shape.nnz, what));
    };
    if (runs.empty()) {
        throw Error(ErrorCode::internal, "a partition without parts");
    }
    std::int64_t idx = 0;
    std::int64_t next_line = 0;
    for (std::size_t k = 0; k < runs.size(); ++k) {
        const Run& run = runs[k];
        const std::int64_t nnz = run.end_idx - run.start_idx;
        const std::int64_t first_owned = run.start_line + (run.start_flag ? 1 : 0);
        if (run.start_idx != idx || nnz < 0) {
            fail(k, fmt::format("holds nonzeros [{}, {}) where {} comes next", run.start_idx, run.end_idx, idx));
        }
        idx = run.end_idx;
        if (line == nullptr) {
            continue;
        }
        if (first_owned != next_line || run.end_line < first_owned) {
            fail(k, fmt::format("owns {}s [{}, {}) where {} comes next", line, first_owned, run.end_line, next_line));
        }
        if (run.start_flag && (k == 0 || nnz == 0)) {
            fail(k, fmt::format("shares {} {} with a predecessor, but has {} nonzeros", line, run.start_line, nnz));
        }
        if (nnz > 0 && run.end_line == run.start_line) {
            fail(k, fmt::format("has {} nonzeros and no {}", nnz, line));
        }
        next_line = run.end_line;
    }
    if (idx != shape.nnz) {
        fail(runs.size() - 1, fmt::format("ends at nonzero {}", idx));
    }
    if (line != nullptr && next_line != lines) {
        fail(runs.size() - 1, fmt::format("ends at {} {}", line, next_line));
    }
    int next_part = 0;
    for (const NodeShare& share : nodes) {
        if (share.first_part != next_part || share.end_part <= next_part ||
            static_cast<std::size_t>(share.end_part) > runs.size() ||
            share.start_idx != runs[static_cast<std::size_t>(share.first_part)].start_idx ||
            share.end_idx != runs[static_cast<std::size_t>(share.end_part) - 1].end_idx) {
            fail(static_cast<std::size_t>(next_part), fmt::format("does not begin the share of node {}", share.node));
        }
        next_part = share.end_part;
    }
    if (static_cast<std::size_t>(next_part) != runs.size()) {
        fail(static_cast<std::size_t>(next_part), "is on no node");
    }
}

}  // namespace rmsp::partition
