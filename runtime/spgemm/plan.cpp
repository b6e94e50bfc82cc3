#include "runtime/spgemm/plan.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "core/enumerator.hpp"
#include "core/first_error.hpp"
#include "core/team.hpp"
#include "core/text.hpp"
#include "core/value_names.hpp"
#include "runtime/node/node.hpp"
#include "runtime/spgemm/work.hpp"
#include "runtime/transport/table.hpp"

namespace rmsp {
namespace spgemm {
namespace {

/// Rows whose entries are counted to estimate those of C.
constexpr std::int64_t sampled_rows_each = 128;
/// A sampled row with more products than this is not counted but bounded.
constexpr std::int64_t most_sampled_products = std::int64_t{1} << 20;

/// About how many columns a row of C has, by linear counting (Whang, Vander-Zanden and Taylor, ACM TODS 15(2), 1990):
/// from the bits that n columns set under a hash. Sorting the columns of graphs took longer than all else of a plan.
template <class T>
double distinct_columns(const CsrView<T>& a, const CsrView<T>& b, std::int64_t row, std::int64_t n)
{
    constexpr std::uint64_t bits_a_word = 64;
    const std::uint64_t bits = std::bit_ceil(std::max<std::uint64_t>(4 * static_cast<std::uint64_t>(n), 1024));
    const int shift = std::countl_zero(bits) + 1;
    std::vector<std::uint64_t> set(bits / bits_a_word);
    b.col_idx.visit([&](const auto* columns) {
        for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
            const std::int64_t k = a.col_idx[i];
            const std::int64_t end = b.row_ptr[k + 1];
            for (std::int64_t j = b.row_ptr[k]; j < end; ++j) {
                // Mixed twice: the columns of grids are as regular as a product with a constant.
                std::uint64_t hash = static_cast<std::uint64_t>(columns[j]) * 0x9e3779b97f4a7c15U;
                hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93U;
                const std::uint64_t bit = hash >> shift;
                set[bit / bits_a_word] |= std::uint64_t{1} << (bit % bits_a_word);
            }
        }
    });
    std::int64_t ones = 0;
    for (const std::uint64_t word : set) {
        ones += std::popcount(word);
    }
    const auto size = static_cast<double>(bits);
    return -size * std::log1p(-static_cast<double>(ones) / size);
}

/// Entries of some rows of C over their products.
template <class T>
double sampled_compression(const CsrView<T>& a, const CsrView<T>& b, const RowWork& work, std::int64_t first_row,
                           std::int64_t end_row)
{
    const std::int64_t samples = std::min(end_row - first_row, sampled_rows_each);
    std::int64_t products = 0;
    double entries = 0;
    core::FirstError error;
#pragma omp parallel for reduction(+ : products, entries) schedule(dynamic, 4)
    for (std::int64_t s = 0; s < samples; ++s) {
        const std::int64_t row =
            first_row + (end_row - first_row) / samples * s + (end_row - first_row) % samples * s / samples;
        const std::int64_t n = products_of(work, row, row + 1);
        products += n;
        if (n > most_sampled_products) {
            entries += static_cast<double>(std::min(n, b.cols));
            continue;
        }
        error.guard([&] { entries += distinct_columns(a, b, row, n); });
    }
    error.rethrow();
    return products > 0 ? entries / static_cast<double>(products) : 0;
}

RowSelection without_gaps(const RowSelection& selection, IndexView row_ptr)
{
    RowSelection all;
    if (!selection.runs.empty()) {
        const std::int64_t first = selection.runs.front().first;
        const std::int64_t end = selection.runs.back().end;
        all.runs = {{first, end, 0}};
        all.rows = end - first;
        all.nnz = row_ptr[end] - row_ptr[first];
    }
    return all;
}

std::int64_t pointer_bytes(std::int64_t nnz) { return nnz > std::numeric_limits<std::int32_t>::max() ? 8 : 4; }

/// What each device takes with these rows of B, and whether it computes in runs.
template <class T>
void count_bytes(SpgemmPlan& plan, const CsrView<T>& a, bool a_is_resident, const CsrView<T>& b,
                 const std::vector<RowSelection>& of_b)
{
    constexpr auto entry_bytes = static_cast<std::int64_t>(sizeof(T) + sizeof(std::int32_t));
    for (std::size_t rank = 0; rank < plan.shards.size(); ++rank) {
        SpgemmShardPlan& shard = plan.shards[rank];
        const std::int64_t rows = shard.end_row - shard.first_row;
        const bool came_with_b = position_in_b(a, b, shard.first_row, shard.end_row, of_b[rank]) >= 0;
        shard.b_rows = of_b[rank].rows;
        shard.b_nnz = of_b[rank].nnz;
        shard.a_bytes =
            a_is_resident ? 0 : (came_with_b ? 0 : shard.a_nnz * entry_bytes) + (rows + 1) * pointer_bytes(shard.a_nnz);
        shard.b_bytes = shard.b_nnz * entry_bytes + (b.rows + 1) * pointer_bytes(shard.b_nnz);
        shard.c_bytes = shard.c_nnz * entry_bytes + (rows + 1) * 8;
        // A bound may be far above C: whether it fits is then tried.
        const std::int64_t c_bytes = b_is_on_devices(b) ? 0 : shard.c_bytes;
        if (shard.limit_bytes > 0 && shard.a_bytes + shard.b_bytes + c_bytes > shard.limit_bytes) {
            shard.chunks = runs_of(shard);
        }
    }
}

/// Parts that begin at these rows.
Partition partition_at(const std::vector<std::int64_t>& first_rows, const RowWork& work)
{
    Partition partition;
    partition.rows = first_rows.back();
    partition.nnz = work.before.back();
    for (std::size_t i = 0; i + 1 < first_rows.size(); ++i) {
        const std::int64_t first = first_rows[i];
        const std::int64_t end = first_rows[i + 1];
        partition.parts.push_back({work.before[static_cast<std::size_t>(first)],
                                   work.before[static_cast<std::size_t>(end)], first, end, false});
    }
    return partition;
}

template <class T>
void check_dimensions(const CsrView<T>& a, const CsrView<T>& b)
{
    if (a.cols != b.rows) {
        throw Error(ErrorCode::usage,
                    fmt::format("A is {} x {} and B is {} x {}: the columns of A must be as many as the rows of B",
                                a.rows, a.cols, b.rows, b.cols));
    }
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (b.rows > most || b.cols > most) {
        throw Error(ErrorCode::usage, fmt::format("A is {} x {} and B is {} x {}: a device indexes at most {} columns",
                                                  a.rows, a.cols, b.rows, b.cols, most));
    }
}

void check_options(const SpgemmOptions& options)
{
    core::require_enumerator("SpgemmOptions::determinism", options.determinism, Determinism::device_count);
    if (!(options.prune_below >= 0)) {
        throw Error(ErrorCode::usage, fmt::format("a threshold of {} to prune below: it is a magnitude, at least 0",
                                                  options.prune_below));
    }
}

template <class T>
SpgemmPlan plan_of(const CsrView<T>& a, const CsrView<T>& b)
{
    SpgemmPlan plan;
    plan.rows = a.rows;
    plan.inner = a.cols;
    plan.cols = b.cols;
    plan.a_nnz = a.nnz;
    plan.b_nnz = b.nnz;
    plan.precision = core::value_name<T>;
    return plan;
}

template <class T>
SpgemmShardPlan shard_on(const RuntimeState& runtime, int device, const SpgemmOptions& options)
{
    const DeviceInfo& info = runtime.infos[static_cast<std::size_t>(device)];
    SpgemmShardPlan shard;
    shard.device = device;
    shard.device_name = fmt::format("{}:{} {}", to_string(info.kind), info.index, info.name);
    shard.placement = info.placement;
    shard.kernel = kernels::choose_spgemm<T>(runtime.infos.front().kind, options.kernel, options.determinism).info.name;
    return shard;
}

}  // namespace

std::int64_t runs_of(const SpgemmShardPlan& shard)
{
    // B, or what a run needs of it, takes at most half; A and C of a run, work space, and C of the run before, which is
    // on its way to the host, share the rest. The fewer runs, the less of that is hidden.
    constexpr std::int64_t least = 4;
    const std::int64_t room = std::max<std::int64_t>(shard.limit_bytes / 6, 1);
    const std::int64_t runs = shard.limit_bytes > 0 ? (shard.a_bytes + shard.c_bytes) / room + 1 : least;
    return std::clamp(runs, least, std::max(shard.end_row - shard.first_row, least));
}

std::int64_t memory_limit(const SpgemmOptions& options, std::int64_t free_bytes)
{
    if (!(options.memory_limit > 0) || options.memory_limit >= 0x1p63) {
        throw Error(ErrorCode::usage,
                    fmt::format("a memory limit of {}: it is a share of the free memory up to 1, or bytes",
                                options.memory_limit));
    }
    return options.memory_limit > 1 ? static_cast<std::int64_t>(options.memory_limit)
                                    : static_cast<std::int64_t>(options.memory_limit * static_cast<double>(free_bytes));
}

template <class T>
SpgemmPlan plan_product(const RuntimeState& runtime, const CsrView<T>& a, const CsrView<T>& b,
                        const SpgemmOptions& options, const std::vector<std::int64_t>* first_rows,
                        const std::vector<std::int64_t>& limits, RowWork& work, std::vector<RowSelection>* selections)
{
    check_dimensions(a, b);
    check_options(options);
    // What is on the devices is good.
    if (first_rows == nullptr) {
        validate(a);
    }
    const bool b_is_resident = b_is_on_devices(b);
    if (!b_is_resident &&
        (a.col_idx.data() != b.col_idx.data() || a.row_ptr.data() != b.row_ptr.data() || a.nnz != b.nnz)) {
        validate(b);
    }
    work = count_work(a, b);

    SpgemmPlan plan = plan_of(a, b);
    plan.links = runtime.links;
    plan.products = products_of(work, 0, a.rows);
    PartitionOptions split;
    split.alignment = RowAlignment::row;
    split.weights = runtime.options.weights;
    for (const auto& info : runtime.infos) {
        split.nodes.push_back(std::max(0, info.placement.node));
    }
    // The work of a row takes the place of its nonzeros; there is some even where A has no columns.
    const Partition partition = first_rows != nullptr
                                    ? partition_at(*first_rows, work)
                                    : partition_csr(a.rows, std::max<std::int64_t>(a.cols, 1),
                                                    IndexView(work.before.data()), runtime.devices(), split);
    plan.product_imbalance = partition.imbalance(split.weights);
    std::vector<RowSelection> chosen;
    for (int i = 0; i < runtime.devices(); ++i) {
        const auto rank = static_cast<std::size_t>(i);
        SpgemmShardPlan shard = shard_on<T>(runtime, i, options);
        shard.first_row = partition.parts[rank].start_row;
        shard.end_row = partition.parts[rank].end_row;
        shard.a_nnz = a.row_ptr[shard.end_row] - a.row_ptr[shard.first_row];
        shard.products = products_of(work, shard.first_row, shard.end_row);
        chosen.push_back(select_rows(a, shard.first_row, shard.end_row, b, core::threads_of_team()));
        std::int64_t most = 0;
#pragma omp parallel for reduction(+ : most) schedule(static)
        for (std::int64_t row = shard.first_row; row < shard.end_row; ++row) {
            most += std::min(products_of(work, row, row + 1), b.cols);
        }
        shard.c_nnz_most = most;
        shard.c_nnz = most;
        if (!b_is_resident) {
            const double estimate =
                sampled_compression(a, b, work, shard.first_row, shard.end_row) * static_cast<double>(shard.products);
            shard.c_nnz = std::min(most, static_cast<std::int64_t>(estimate));
        }
        shard.limit_bytes = limits[rank];
        plan.c_nnz += shard.c_nnz;
        plan.shards.push_back(std::move(shard));
    }
    count_bytes(plan, a, first_rows != nullptr, b, chosen);
    const std::string transport = exchange_transport(runtime, options);
    if (b_is_resident) {
        plan.exchange = transport;
    } else if (transport != "none" && !plan.chunked() &&
               (transport != transport::transport_through_host().name || options.transport == transport)) {
        // Copies through the host would take the links that slices spare.
        std::vector<RowSelection> all_between;
        for (const RowSelection& selection : chosen) {
            all_between.push_back(without_gaps(selection, b.row_ptr));
        }
        SpgemmPlan exchanging = plan;
        exchanging.exchange = transport;
        count_bytes(exchanging, a, first_rows != nullptr, b, all_between);
        if (!exchanging.chunked() && exchange_pays(chosen, needed_entries(all_between, b.row_ptr))) {
            plan = std::move(exchanging);
            chosen = std::move(all_between);
        }
    }
    if (selections != nullptr) {
        *selections = std::move(chosen);
    }
    return plan;
}

template <class T>
SpgemmPlan plan_in_place(const RuntimeState& runtime, const CsrView<T>& a, const CsrView<T>& b,
                         const SpgemmOptions& options, const std::vector<std::int64_t>& first_rows,
                         const std::vector<std::int64_t>& slices, const std::vector<transport::Range>& touched,
                         const std::vector<transport::Range>& needed, const std::vector<std::int64_t>& limits,
                         std::vector<RowSelection>& selections)
{
    check_dimensions(a, b);
    check_options(options);
    SpgemmPlan plan = plan_of(a, b);
    plan.links = runtime.links;
    plan.exchange = exchange_transport(runtime, options);
    for (std::size_t rank = 0; rank < touched.size(); ++rank) {
        SpgemmShardPlan shard = shard_on<T>(runtime, static_cast<int>(rank), options);
        shard.first_row = first_rows[rank];
        shard.end_row = first_rows[rank + 1];
        shard.a_nnz = slices[rank + 1] - slices[rank];
        RowSelection of_b;
        if (touched.size() == 1 && b.rows > 0) {
            of_b = {{{0, b.rows, 0}}, b.rows, b.nnz};
        } else if (touched[rank].first < touched[rank].end) {
            const transport::Range rows = touched[rank];
            of_b = {{{rows.first, rows.end, 0}}, rows.end - rows.first, needed[rank].end - needed[rank].first};
        }
        shard.b_rows = of_b.rows;
        shard.b_nnz = of_b.nnz;
        shard.limit_bytes = limits[rank];
        selections.push_back(std::move(of_b));
        plan.shards.push_back(std::move(shard));
    }
    return plan;
}

#define RMSP_INSTANTIATE(T)                                                                                            \
    template SpgemmPlan plan_in_place(const RuntimeState&, const CsrView<T>&, const CsrView<T>&, const SpgemmOptions&, \
                                      const std::vector<std::int64_t>&, const std::vector<std::int64_t>&,              \
                                      const std::vector<transport::Range>&, const std::vector<transport::Range>&,      \
                                      const std::vector<std::int64_t>&, std::vector<RowSelection>&);                   \
    template SpgemmPlan plan_product(const RuntimeState&, const CsrView<T>&, const CsrView<T>&, const SpgemmOptions&,  \
                                     const std::vector<std::int64_t>*, const std::vector<std::int64_t>&, RowWork&,     \
                                     std::vector<RowSelection>*);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace spgemm

bool SpgemmPlan::chunked() const
{
    return std::any_of(shards.begin(), shards.end(), [](const SpgemmShardPlan& shard) { return shard.chunks > 1; });
}

std::string SpgemmPlan::to_text() const
{
    using Align = text::Table::Align;
    std::string out = text::wrapped(
        "Plan          ",
        fmt::format("C ({} x {}) = A ({} x {}, {} nonzeros) B ({} nonzeros), {}, {} {}", text::grouped(rows),
                    text::grouped(cols), text::grouped(rows), text::grouped(inner), text::grouped(a_nnz),
                    text::grouped(b_nnz), precision, shards.size(), shards.size() == 1 ? "device" : "devices"));
    out += text::wrapped(
        "  products    ",
        fmt::format("{}, within {} of the fair share on each device; C has {}{} nonzeros", text::grouped(products),
                    text::percent(product_imbalance), exact ? "" : "about ", text::grouped(c_nnz)));
    text::Table table({{"device", Align::left},
                       {"node", Align::right},
                       {"rows", Align::right},
                       {"products", Align::right},
                       {"rows of B", Align::right},
                       {"A", Align::right},
                       {"B", Align::right},
                       {"C", Align::right},
                       {"limit", Align::right},
                       {"runs", Align::right}});
    for (const SpgemmShardPlan& shard : shards) {
        table.add({text::shortened(shard.device_name, 22),
                   shard.placement.node < 0 ? "-" : fmt::format("{}", shard.placement.node),
                   text::grouped(shard.end_row - shard.first_row), text::grouped(shard.products),
                   text::grouped(shard.b_rows), text::bytes(shard.a_bytes), text::bytes(shard.b_bytes),
                   text::bytes(shard.c_bytes), shard.limit_bytes > 0 ? text::bytes(shard.limit_bytes) : "-",
                   text::grouped(shard.chunks)});
    }
    out += table.to_text(2);
    if (!shards.empty()) {
        out += fmt::format("  kernel      {}\n", shards.front().kernel);
    }
    if (exchange != "none") {
        out += text::wrapped("  rows of B   ",
                             fmt::format("slices to the devices, which gather the rest from each other: {}", exchange));
    }
    if (chunked()) {
        out += text::wrapped("  memory      ",
                             "C does not fit beside A and B: it is computed in runs of rows, which go to the host");
    }
    std::int64_t peak = 0;
    for (const SpgemmShardPlan& shard : shards) {
        peak = std::max(peak, shard.peak_bytes);
    }
    if (peak > 0) {
        out += fmt::format("  peak        {} on a device\n", text::bytes(peak));
    }
    return out;
}

}  // namespace rmsp
