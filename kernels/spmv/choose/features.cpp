#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include <kernels/spmv/choose/distinct.hpp>
#include <kernels/spmv/choose/features.hpp>
#include <kernels/spmv/common/slices.hpp>
#include <kernels/spmv/common/tiles.hpp>
#include <kernels/values.hpp>

#include "core/column_numbers.hpp"
#include "core/first_error.hpp"
#include "core/parallel.hpp"

namespace rmsp::kernels {
namespace {

/// Columns of a run of rows.
template <class P, class C>
struct Rows {
    const P* row_ptr;
    const C* col_idx;
    std::int64_t first_entry;  ///< whose column is the first of col_idx

    std::int64_t length(std::int64_t row) const { return static_cast<std::int64_t>(row_ptr[row + 1] - row_ptr[row]); }
    std::int64_t index(std::int64_t row) const { return static_cast<std::int64_t>(row_ptr[row]); }
    const C* begin(std::int64_t row) const { return col_idx + (index(row) - first_entry); }
    const C* end(std::int64_t row) const { return begin(row + 1); }
};

/// What sliced rows would store for one slice.
struct SliceCost {
    std::int64_t entries = 0;
    std::int64_t stored = 0;
    std::int64_t code_bytes = 0;
    std::int64_t value_bytes = 0;  ///< encoded
};

/// What the values of a slice have in common. `index_of(lane, k)`: of entry k of that lane's row among the values, -1
/// if it has none.
template <class IndexOf>
ValueTraits value_traits(const ValueAt& value_at, const IndexOf& index_of, std::int64_t lanes, std::int64_t width)
{
    ValueTraits traits;
    std::unordered_set<std::uint64_t> distinct;
    for (std::int64_t k = 0; k < width; ++k) {
        std::optional<std::uint64_t> common;
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
            if (const std::int64_t i = index_of(lane, k); i >= 0) {
                const double value = value_at(i);
                traits.floats = traits.floats && is_float(value);
                traits.uniform = traits.uniform && common.value_or(bits_of(value)) == bits_of(value);
                common = bits_of(value);
                if (distinct.size() <= most_table_entries) {
                    distinct.insert(*common);
                }
            }
        }
    }
    traits.distinct = static_cast<int>(distinct.size());
    return traits;
}

/// The diagonals, column - lane, in which the rows [first, first + lanes) have entries; none if the columns of a row do
/// not ascend, or if a row alone has more than a mask holds.
template <class R>
std::vector<std::int64_t> diagonals_of(const R& rows, std::int64_t first, std::int64_t lanes)
{
    std::vector<std::int64_t> diagonals;
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
        const auto* const begin = rows.begin(first + lane);
        const auto* const end = rows.end(first + lane);
        // A row may have millions of entries, which nobody needs in order.
        if (end - begin > slice_rows || std::adjacent_find(begin, end, std::greater_equal<>()) != end) {
            return {};
        }
        std::transform(begin, end, std::back_inserter(diagonals),
                       [&](auto column) { return static_cast<std::int64_t>(column) - lane; });
    }
    std::sort(diagonals.begin(), diagonals.end());
    diagonals.erase(std::unique(diagonals.begin(), diagonals.end()), diagonals.end());
    return diagonals;
}

/// Of rows that are as long as `length` says, how many entries of a row count.
std::int64_t counted(std::int64_t length) { return std::min<std::int64_t>(length, slice_policy.longest_row); }

std::int64_t lanes_of(std::int64_t first, std::int64_t end) { return std::min<std::int64_t>(end - first, slice_rows); }

template <class Length>
SliceCost measured(const Length& length, std::int64_t lanes)
{
    SliceCost cost;
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
        cost.entries += length(lane);
        cost.stored = std::max(cost.stored, length(lane) * lanes);
    }
    return cost;
}

/// Whether rows of which a slice is as that one are sorted by length.
bool are_sorted(const SliceCost& cost)
{
    return cost.stored * 100 > cost.entries * (100 + slice_policy.sorted_padding);
}

/// One slice of the rows [first, end), which are sorted by length where the kernel would sort them; the median one
/// then, else the first.
template <class R>
SliceCost slice_cost(const R& rows, std::int64_t first, std::int64_t end, int value_bytes, const ValueAt& value_at)
{
    const auto length = [&](std::int64_t row) { return counted(rows.length(row)); };
    std::vector<std::int64_t> order(static_cast<std::size_t>(end - first));
    std::iota(order.begin(), order.end(), first);
    const std::int64_t lanes = lanes_of(first, end);
    const std::int64_t* slice = order.data();
    const auto measure = [&] { return measured([&](std::int64_t lane) { return length(slice[lane]); }, lanes); };
    SliceCost cost = measure();
    const bool sorted = are_sorted(cost);
    if (sorted) {
        // By counting: there are far more rows than lengths.
        std::array<std::int32_t, slice_policy.longest_row + 2> place{};
        for (std::int64_t row = first; row < end; ++row) {
            ++place[static_cast<std::size_t>(length(row)) + 1];
        }
        std::partial_sum(place.begin(), place.end(), place.begin());
        for (std::int64_t row = first; row < end; ++row) {
            order[static_cast<std::size_t>(place[static_cast<std::size_t>(length(row))]++)] = row;
        }
        slice += (end - first - lanes) / 2;
        cost = measure();
    }
    SliceColumns columns;
    for (std::int64_t k = 0; k < cost.stored / lanes; ++k) {
        std::int64_t least = std::numeric_limits<std::int64_t>::max();
        std::int64_t most = std::numeric_limits<std::int64_t>::min();
        std::int64_t least_skew = least;
        std::int64_t most_skew = most;
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
            if (k < length(slice[lane])) {
                const auto column = static_cast<std::int64_t>(rows.begin(slice[lane])[k]);
                least = std::min(least, column);
                most = std::max(most, column);
                least_skew = std::min(least_skew, column - lane);
                most_skew = std::max(most_skew, column - lane);
            }
        }
        columns.spread = std::max(columns.spread, static_cast<std::int32_t>(most - least));
        columns.skew = std::max(columns.skew, static_cast<std::int32_t>(most_skew - least_skew));
    }
    SliceCode code = slice_code(columns);
    std::vector<std::int64_t> diagonals;
    if (!sorted && code != SliceCode::diagonal) {
        diagonals = diagonals_of(rows, first, lanes);
        const auto count = static_cast<int>(std::min<std::size_t>(diagonals.size(), slice_rows + 1));
        if (count > 0 && takes_masks(count, static_cast<int>(cost.stored / lanes), code, value_bytes)) {
            code = SliceCode::masked;
            cost.stored = count * lanes;
        }
    }
    cost.code_bytes = cost.stored * code_bytes(code);
    cost.value_bytes = cost.stored * value_bytes;
    const std::int64_t width = cost.stored / lanes;
    if (value_at && width > 0 && lanes == slice_rows) {
        const auto index_of = [&](std::int64_t lane, std::int64_t k) {
            if (code == SliceCode::masked) {
                const auto* const entries = rows.begin(slice[lane]);
                const auto* const behind = rows.end(slice[lane]);
                const std::int64_t column = diagonals[static_cast<std::size_t>(k)] + lane;
                const auto* const entry = std::lower_bound(entries, behind, column);
                return entry != behind && *entry == column ? rows.index(slice[lane]) + (entry - entries) : -1;
            }
            return k < length(slice[lane]) ? rows.index(slice[lane]) + k : -1;
        };
        const ValueTraits traits = value_traits(value_at, index_of, lanes, width);
        const int w = static_cast<int>(width);
        cost.value_bytes = std::int64_t{slice_block_bytes} *
                           value_blocks(slice_storage(traits, w, value_bytes), w, traits.distinct, value_bytes);
    }
    return cost;
}

/// Dense blocks that hold the entries of the rows [first, first + block.rows).
template <class R>
std::int64_t blocks_of(const R& rows, std::int64_t first, const BlockShape& block, Distinct& columns)
{
    columns.clear();
    for (std::int64_t row = first; row < first + block.rows; ++row) {
        std::for_each(rows.begin(row), rows.end(row), [&](auto column) {
            // Division of 32 bits takes a fraction of the time.
            using Unsigned = std::make_unsigned_t<decltype(column)>;
            columns.add(static_cast<std::int64_t>(static_cast<Unsigned>(column) / static_cast<Unsigned>(block.cols)));
        });
    }
    return columns.count();
}

/// Columns are chosen by one half of a sample and counted in the other, since one that is drawn once would always seem
/// to be a hub.
double hub_share(ColumnReader& columns, std::int64_t first, std::int64_t nnz, int sample)
{
    const std::int64_t count = std::min<std::int64_t>(nnz, sample);
    const std::vector<std::int64_t> seen = columns.spread(first, nnz / count, count);
    // Looked up in a table: to sort the sample and search in it takes longer than all the rest that is looked at.
    core::ColumnNumbers chosen;
    chosen.clear(count / 2 + 1);
    for (std::size_t i = 0; i < seen.size(); i += 2) {
        chosen.find_or_add(seen[i]);
    }
    std::int64_t hits = 0;
    std::int64_t tries = 0;
    for (std::size_t i = 1; i < seen.size(); i += 2, ++tries) {
        hits += chosen.contains(seen[i]) ? 1 : 0;
    }
    return tries > 0 ? static_cast<double>(hits) / static_cast<double>(tries) : 0;
}

/// What values [first, first + nnz) have in common, as far as a sample shows.
void compare_values(Features& f, const ValueAt& value_at, std::int64_t first, int sample)
{
    const std::int64_t count = std::min<std::int64_t>(f.rows.nnz, sample);
    const std::int64_t step = (f.rows.nnz / count - 1) | 1;  // odd: values may come in pairs
    const auto common = bits_of(value_at(first));
    f.floats = true;
    f.constant = true;
    for (std::int64_t i = 0; i < count && (f.floats || f.constant); ++i) {
        const double value = value_at(first + i * step);
        f.floats = f.floats && is_float(value);
        f.constant = f.constant && bits_of(value) == common;
    }
}

constexpr std::size_t shapes = std::size(block_shapes);
/// Rows at the begin of a run in which blocks are looked for.
constexpr std::int64_t most_block_rows = 12;

/// What one run of rows shows.
struct RunSample {
    SliceCost slice;
    std::array<std::int64_t, shapes> blocks{};
    std::array<std::int64_t, shapes> block_entries{};
};

/// What a stretch of neighbouring entries shows.
struct StretchSample {
    bool narrow = false;
    std::int64_t sectors = 0;
};

/// Entries whose sectors of x are counted together: what a multiprocessor gathers at about the same time.
constexpr std::int64_t stretch_entries = 4096;

template <class C>
StretchSample sample_stretch(const C* col_idx, std::int64_t count, int value_bytes)
{
    StretchSample sample;
    const auto [least, most] =
        std::minmax_element(col_idx, col_idx + std::min<std::int64_t>(count, tile_entries_in_a_step));
    sample.narrow = fits_16_bits(static_cast<std::int64_t>(*least), static_cast<std::int64_t>(*most));
    Distinct sectors;
    sectors.reserve(count);
    std::for_each(col_idx, col_idx + count,
                  [&](C column) { sectors.add(static_cast<std::int64_t>(column) * value_bytes / 32); });
    sample.sectors = sectors.count();
    return sample;
}

template <class P, class C>
RunSample sample_run(const Rows<P, C>& rows, std::int64_t at, std::int64_t end, int value_bytes,
                     const ValueAt& value_at)
{
    constexpr std::int64_t longest_looked_at = 4096;  // a dense row has neither slices nor blocks of its own
    RunSample sample;
    sample.slice = slice_cost(rows, at, end, value_bytes, value_at);
    Distinct columns;
    for (std::size_t s = 0; s < shapes; ++s) {
        const BlockShape& shape = block_shapes[s];
        for (std::int64_t first = at; first + shape.rows <= std::min(end, at + most_block_rows); first += shape.rows) {
            const auto entries = static_cast<std::int64_t>(rows.end(first + shape.rows - 1) - rows.begin(first));
            if (entries <= longest_looked_at) {
                sample.blocks[s] += blocks_of(rows, first, shape, columns);
                sample.block_entries[s] += entries;
            }
        }
    }
    return sample;
}

/// What is looked at, as ranges of entries: runs of rows, then stretches.
struct Looks {
    struct Run {
        std::int64_t at, end;  ///< rows
    };
    std::vector<Run> runs;
    std::vector<EntryRange> ranges;  ///< of each run, as far as its columns are looked at, and of each stretch
};

template <class P>
Looks looks(const Features& f, const P* row_ptr, const FeatureSample& sample)
{
    Looks out;
    const std::int64_t n = f.rows.rows;
    const std::int64_t runs = std::min<std::int64_t>(sample.slices, (n + sort_rows - 1) / sort_rows);
    for (std::int64_t run = 0; run < runs; ++run) {
        const std::int64_t at = (n - 1) * run / runs / 96 * 96;  // where slices and blocks of 2 and 3 begin
        const std::int64_t end = std::min(n, at + sort_rows);
        out.runs.push_back({at, end});
        // Where rows are not sorted it is the first slice, in which the blocks are, too.
        const std::int64_t lanes = lanes_of(at, end);
        static_assert(most_block_rows <= slice_rows);
        const SliceCost slice = measured(
            [&](std::int64_t lane) {
                return counted(static_cast<std::int64_t>(row_ptr[at + lane + 1] - row_ptr[at + lane]));
            },
            lanes);
        const auto first = static_cast<std::int64_t>(row_ptr[at]);
        const std::int64_t behind = are_sorted(slice) ? end : at + lanes;
        out.ranges.push_back({first, static_cast<std::int64_t>(row_ptr[behind]) - first});
    }
    // At equal distances among the entries, not the rows: the few long rows of a graph have most of its entries.
    const std::int64_t count = std::min(f.rows.nnz, stretch_entries);
    const std::int64_t stretches = std::min<std::int64_t>(sample.slices, (f.rows.nnz + count - 1) / count);
    for (std::int64_t i = 0; i < stretches; ++i) {
        const auto first = static_cast<std::int64_t>(static_cast<double>(f.rows.nnz - count) * static_cast<double>(i) /
                                                     static_cast<double>(stretches));
        out.ranges.push_back({static_cast<std::int64_t>(row_ptr[0]) + first, count});
    }
    return out;
}

template <class P, class C>
void look(Features& f, const P* row_ptr, const Looks& where, const std::vector<IndexView>& columns,
          ColumnReader& reader, int value_bytes, const ValueAt& value_at, const FeatureSample& sample)
{
    const auto runs = static_cast<std::int64_t>(where.runs.size());
    const auto columns_of = [&](std::int64_t range) {
        return static_cast<const C*>(columns[static_cast<std::size_t>(range)].data());
    };
    std::vector<RunSample> samples(where.runs.size());
    core::FirstError error;
    // Fewer are looked at before the threads of a team have met.
    [[maybe_unused]] const bool many = f.rows.nnz > 100000 && runs > sample_beside_devices.slices;
#pragma omp parallel for schedule(dynamic, 1) if (many)
    for (std::int64_t run = 0; run < runs; ++run) {
        const auto [at, end] = where.runs[static_cast<std::size_t>(run)];
        const Rows<P, C> rows{row_ptr, columns_of(run), where.ranges[static_cast<std::size_t>(run)].first};
        error.guard([&] { samples[static_cast<std::size_t>(run)] = sample_run(rows, at, end, value_bytes, value_at); });
    }
    error.rethrow();
    RunSample total;
    for (const RunSample& one : samples) {
        total.slice.entries += one.slice.entries;
        total.slice.stored += one.slice.stored;
        total.slice.code_bytes += one.slice.code_bytes;
        total.slice.value_bytes += one.slice.value_bytes;
        for (std::size_t s = 0; s < shapes; ++s) {
            total.blocks[s] += one.blocks[s];
            total.block_entries[s] += one.block_entries[s];
        }
    }
    const std::int64_t count = std::min(f.rows.nnz, stretch_entries);
    std::vector<StretchSample> stretches(where.ranges.size() - where.runs.size());
#pragma omp parallel for schedule(dynamic, 1) if (many)
    for (std::size_t i = 0; i < stretches.size(); ++i) {
        const std::int64_t range = runs + static_cast<std::int64_t>(i);
        error.guard([&] { stretches[i] = sample_stretch(columns_of(range), count, value_bytes); });
    }
    error.rethrow();
    std::int64_t narrow = 0;
    std::int64_t sectors = 0;
    for (const StretchSample& one : stretches) {
        narrow += one.narrow ? 1 : 0;
        sectors += one.sectors;
    }
    const auto ratio = [](std::int64_t a, std::int64_t b) {
        return b > 0 ? static_cast<double>(a) / static_cast<double>(b) : 0.0;
    };
    f.code_bytes = ratio(total.slice.code_bytes, total.slice.entries);
    if (values_are_encoded(total.slice.value_bytes, total.slice.stored * value_bytes)) {
        f.stored_value_bytes = ratio(total.slice.value_bytes, total.slice.stored);
    }
    f.padding = ratio(total.slice.stored - total.slice.entries, total.slice.entries);
    const auto looked_at = static_cast<std::int64_t>(stretches.size());
    f.narrow = ratio(narrow, looked_at);
    f.sectors = ratio(sectors, looked_at * count);
    double best = value_bytes + static_cast<double>(sizeof(std::int32_t));
    for (std::size_t s = 0; s < shapes; ++s) {
        const double each = ratio(total.blocks[s], total.block_entries[s]);
        const double fill = each * block_shapes[s].entries();
        const double bytes = fill * value_bytes + each * static_cast<double>(sizeof(std::int32_t));
        if (total.block_entries[s] > 0 && bytes < best) {
            best = bytes;
            f.block = block_shapes[s];
            f.block_fill = fill;
        }
    }
    f.hub_share = hub_share(reader, static_cast<std::int64_t>(row_ptr[0]), f.rows.nnz, sample.entries);
    if (value_at) {
        compare_values(f, value_at, static_cast<std::int64_t>(row_ptr[0]), sample.values);
    }
}

}  // namespace

IndexRange HostColumns::extent(const EntryRange& entries)
{
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = -1;
    [[maybe_unused]] const bool shared = entries.count > core::least_parallel;
    col_idx_.visit([&](const auto* columns) {
#pragma omp parallel for reduction(min : first) reduction(max : last) schedule(static) if (shared)
        for (std::int64_t i = entries.first; i < entries.first + entries.count; ++i) {
            const std::int64_t c = columns[i];
            first = std::min(first, c);
            last = std::max(last, c);
        }
    });
    return last < first ? IndexRange{} : IndexRange{first, last + 1};
}

std::vector<IndexView> HostColumns::ranges(std::span<const EntryRange> ranges)
{
    std::vector<IndexView> out;
    col_idx_.visit([&](const auto* columns) {
        std::transform(ranges.begin(), ranges.end(), std::back_inserter(out),
                       [&](const EntryRange& range) { return IndexView(columns + range.first); });
    });
    return out;
}

std::vector<std::int64_t> HostColumns::spread(std::int64_t first, std::int64_t step, std::int64_t count)
{
    std::vector<std::int64_t> out(static_cast<std::size_t>(count));
    col_idx_.visit([&](const auto* columns) {
        for (std::int64_t i = 0; i < count; ++i) {
            out[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(columns[first + i * step]);
        }
    });
    return out;
}

Features spmv_features(const RowStatistics& rows, IndexView row_ptr, std::int64_t cols, std::int64_t x_entries,
                       ColumnReader& columns, int value_bytes, const ValueAt& value_at, const FeatureSample& sample)
{
    Features f;
    f.rows = rows;
    f.cols = cols;
    f.x_entries = x_entries;
    f.stored_value_bytes = value_bytes;
    if (rows.rows > 0 && rows.nnz > 0) {
        row_ptr.visit([&](const auto* p) {
            const Looks where = looks(f, p, sample);
            const std::vector<IndexView> there = columns.ranges(where.ranges);
            there.front().visit([&](const auto* first) {
                using P = std::remove_cvref_t<decltype(*p)>;
                using C = std::remove_cvref_t<decltype(*first)>;
                look<P, C>(f, p, where, there, columns, value_bytes, value_at, sample);
            });
        });
    }
    return f;
}

Features spmv_features(const RowStatistics& rows, IndexView row_ptr, std::int64_t cols, std::int64_t x_entries,
                       IndexView col_idx, int value_bytes, const ValueAt& value_at, const FeatureSample& sample)
{
    HostColumns columns(col_idx);
    return spmv_features(rows, row_ptr, cols, x_entries, columns, value_bytes, value_at, sample);
}

}  // namespace rmsp::kernels
