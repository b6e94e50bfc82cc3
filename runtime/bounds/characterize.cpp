#include <rmsp/characterize.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/partition.hpp>
#include <rmsp/renumber.hpp>

#include "core/value_names.hpp"
#include "core/value_types.hpp"
#include "runtime/bounds/pattern.hpp"

namespace rmsp {
namespace {

using namespace bounds;

void require_options(const CharacterizeOptions& options, const Operation& op)
{
    const std::int64_t least = footprint_bytes(op, {1, 1, 1});
    if (options.fast_bytes < least) {
        throw Error(ErrorCode::usage,
                    fmt::format("a fast memory of {} bytes does not hold the operands of one multiply, {} bytes",
                                options.fast_bytes, least));
    }
    if (options.line_bytes < 8 || !std::has_single_bit(static_cast<std::uint64_t>(options.line_bytes)) ||
        options.line_bytes > options.fast_bytes) {
        throw Error(ErrorCode::usage, fmt::format("a line of {} bytes is no power of two from 8 to the {} bytes of the "
                                                  "fast memory",
                                                  options.line_bytes, options.fast_bytes));
    }
    if (options.fine_limit < 0 || options.simulate_limit < 0) {
        throw Error(ErrorCode::usage, fmt::format("limits of multiplies are at least 0, not {} and {}",
                                                  options.fine_limit, options.simulate_limit));
    }
    if (!options.partitioner.partition) {
        throw Error(ErrorCode::usage, "a hypergraph partitioner is needed");
    }
}

void measure_rows(const Pattern& a, Characterization& out)
{
    out.row_lengths = row_statistics(a.rows, IndexView(a.row_ptr.data()));
    out.shortest_row = a.rows > 0 ? out.row_lengths.longest_row : 0;
    for (std::int64_t row = 0; row < a.rows; ++row) {
        out.shortest_row = std::min(out.shortest_row, a.length(row));
        const auto bin = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(a.length(row))));
        out.row_histogram.resize(std::max(out.row_histogram.size(), bin + 1));
        ++out.row_histogram[bin];
    }
}

constexpr std::int64_t most_spy_cells = 96;

void count_spy(const Pattern& a, Characterization& out)
{
    const std::int64_t longer = std::max(a.rows, a.cols);
    out.spy_side = std::min(most_spy_cells, longer);
    out.spy.assign(static_cast<std::size_t>(out.spy_side * out.spy_side), 0);
    for (std::int64_t row = 0; row < a.rows; ++row) {
        const std::int64_t y = row * out.spy_side / longer;
        for (std::int64_t k = a.begin(row); k < a.end(row); ++k) {
            ++out.spy[static_cast<std::size_t>(y * out.spy_side + a.column(k) * out.spy_side / longer)];
        }
    }
}

void report(const CharacterizeOptions& options, const char* phase, double done)
{
    if (options.progress) {
        options.progress(phase, done);
    }
}

/// Traffic of the operation in the order that it has.
OrderTraffic traffic_in_order(std::string name, const Operation& op, const Counts& counts,
                              const CharacterizeOptions& options)
{
    OrderTraffic out;
    out.name = std::move(name);
    out.cut = traffic(op, counts, cut_rows(op, options.fast_bytes, nullptr, nullptr).touches);
    if (counts.multiplies <= options.simulate_limit) {
        out.cache = simulate(op, counts, options.fast_bytes, options.line_bytes);
    }
    return out;
}

template <class T>
void reorder(const CsrView<T>& a, const Pattern& pattern, const Operation& op, const Bound& bound,
             const CharacterizeOptions& options, Characterization& out)
{
    std::pair<const char*, HostVector<std::int64_t>> orders[] = {
        {"mesh", mesh_order(a)}, {"degree", order_by_length(pattern)}, {"partition", order_by_part(bound.part_of_row)}};
    double done = 0;
    for (auto& [name, row_at] : orders) {
        report(options, "reorder", done);
        done += 1.0 / 3;
        const CsrMatrix<T> renumbered_a = renumbered(a, row_at);
        const Pattern p = pattern_of(renumbered_a.view());
        const Operation renumbered_op{p, op.b == nullptr ? nullptr : &p, op.value_bytes};
        OrderTraffic order = traffic_in_order(name, renumbered_op, count(renumbered_op), options);
        order.row_at = std::move(row_at);
        out.orders.push_back(std::move(order));
    }
    report(options, "reorder", 1);
}

template <class T>
Characterization characterize_operation(const CsrView<T>& a, const Pattern& pattern, const Pattern* b, bool square,
                                        const CharacterizeOptions& options)
{
    const Operation op{pattern, b, sizeof(T)};
    require_options(options, op);
    report(options, "count", 0);
    const Counts counts = count(op);
    Characterization out;
    out.product = b != nullptr;
    out.precision = core::value_name<T>;
    out.value_bytes = op.value_bytes;
    out.rows = pattern.rows;
    out.inner = pattern.cols;
    out.cols = b == nullptr ? 1 : b->cols;
    out.a_nnz = pattern.nnz();
    out.b_nnz = b == nullptr ? pattern.cols : b->nnz();
    out.c_nnz = counts.c_nnz;
    out.multiplies = counts.multiplies;
    measure_rows(pattern, out);
    out.fast_bytes = options.fast_bytes;
    out.line_bytes = options.line_bytes;
    out.footprint = traffic(op, counts, {counts.a_used, counts.b_used, counts.c_used});
    if (b != nullptr) {
        out.multiply_bound_words =
            1.72 * static_cast<double>(counts.multiplies) /
            std::sqrt(static_cast<double>(options.fast_bytes) / static_cast<double>(op.value_bytes));
    }
    count_spy(pattern, out);
    report(options, "bound", 0);
    const Bound bound = upper_bound(op, counts, options);
    out.upper = bound.upper;
    report(options, "simulate", 0);
    OrderTraffic none = traffic_in_order("none", op, counts, options);
    out.cache = none.cache;
    if (options.reorder && square && !bound.part_of_row.empty()) {
        out.orders.push_back(std::move(none));
        reorder(a, pattern, op, bound, options, out);
    }
    return out;
}

}  // namespace

Traffic Characterization::lower() const
{
    Traffic out = footprint;
    out.words = std::max(out.words, static_cast<std::int64_t>(std::ceil(multiply_bound_words)));
    out.bytes = std::max(out.bytes,
                         static_cast<std::int64_t>(std::ceil(multiply_bound_words * static_cast<double>(value_bytes))));
    return out;
}

template <class T>
Characterization characterize(const CsrView<T>& a, const CharacterizeOptions& options)
{
    const Pattern pattern = pattern_of(a);
    return characterize_operation(a, pattern, nullptr, a.rows == a.cols, options);
}

template <class T>
Characterization characterize(const CsrView<T>& a, const CsrView<T>& b, const CharacterizeOptions& options)
{
    if (a.cols != b.rows) {
        throw Error(ErrorCode::usage, fmt::format("A is {} x {} and B {} x {}: A must have as many columns as B rows",
                                                  a.rows, a.cols, b.rows, b.cols));
    }
    const Pattern pattern = pattern_of(a);
    if (a.col_idx.data() == b.col_idx.data() && a.row_ptr.data() == b.row_ptr.data() && a.rows == b.rows) {
        return characterize_operation(a, pattern, &pattern, a.rows == a.cols, options);
    }
    const Pattern other = pattern_of(b);
    return characterize_operation(a, pattern, &other, false, options);
}

#define RMSP_INSTANTIATE(T)                                                                \
    template Characterization characterize(const CsrView<T>&, const CharacterizeOptions&); \
    template Characterization characterize(const CsrView<T>&, const CsrView<T>&, const CharacterizeOptions&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
