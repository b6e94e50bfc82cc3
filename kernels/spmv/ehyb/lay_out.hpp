#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <kernels/spmv/ehyb/layout.hpp>
#include <kernels/spmv/ehyb/pool.hpp>
#include <rmsp/error.hpp>

/// The layout of a shard whose rows have their parts, made where the shard is.
namespace rmsp::kernels::ehyb {
namespace detail {

inline constexpr std::int32_t not_kept = -1;

/// Uses of a column by a part that are told apart.
inline constexpr std::uint32_t most_uses = 0xffff;

/// Columns that each part keeps besides its own, ascending.
template <class Pool>
struct GhostColumns {
    typename Pool::template Array<std::int32_t> first;  ///< of each part; and the end
    typename Pool::template Array<std::int32_t> column;
    std::int64_t count = 0;
};

/// Where each part begins among ascending keys that are parts.
template <class Pool>
void first_of_parts(const Pool& pool, const std::uint64_t* keys, std::int64_t n, std::int64_t parts,
                    std::int32_t* first)
{
    pool.each(parts + 1, [=] RMSP_EHYB_STEP(std::int64_t p) {
        first[p] = p == 0 ? 0 : static_cast<std::int32_t>(not_above(keys, n, static_cast<std::uint64_t>(p) - 1));
    });
}

/// The foreign columns in which each part has most entries, as far as there is room beside its own.
template <class Pool>
GhostColumns<Pool> find_ghosts(const Pool& pool, const Structure& a, const std::int32_t* part, std::int64_t parts,
                               const std::int32_t* own, std::int64_t most_columns, int fewest_uses)
{
    GhostColumns<Pool> result{pool.template array<std::int32_t>(parts + 1), {}, 0};
    std::int32_t* const first = result.first.data();
    pool.each(parts + 1, [=] RMSP_EHYB_STEP(std::int64_t p) { first[p] = 0; });
    if (fewest_uses <= 0) {
        return result;
    }
    auto places = pool.template array<std::uint32_t>(a.nnz + 1);
    std::uint32_t* const place = places.data();
    pool.each(1, [=] RMSP_EHYB_STEP(std::int64_t) { place[a.nnz] = 0; });
    pool.each_entry(a, [=] RMSP_EHYB_STEP(std::int64_t row, std::int64_t i) {
        const std::int64_t other = a.row_of(a.col_idx[i]);
        place[i] = other >= 0 && part[other] == part[row] ? 0 : 1;
    });
    pool.sum_before(place, a.nnz + 1);
    const std::int64_t foreign = pool.read(place + a.nnz, 1)[0];
    if (foreign == 0) {
        return result;
    }
    const int bits = bits_for(a.cols);
    auto keys = pool.template array<std::uint64_t>(foreign);
    auto runs_of = pool.template array<std::int32_t>(foreign + 1);
    std::uint64_t* key = keys.data();
    pool.each_entry(a, [=] RMSP_EHYB_STEP(std::int64_t row, std::int64_t i) {
        if (place[i + 1] != place[i]) {
            key[place[i]] = static_cast<std::uint64_t>(part[row]) << bits | static_cast<std::uint32_t>(a.col_idx[i]);
        }
    });
    places = {};
    pool.sort(keys, runs_of, foreign, bits + bits_for(parts));
    key = keys.data();
    // Runs of equal keys: a column and the part that has entries in it.
    std::int32_t* const run = runs_of.data();
    pool.each(foreign + 1,
              [=] RMSP_EHYB_STEP(std::int64_t i) { run[i] = i < foreign && (i == 0 || key[i] != key[i - 1]) ? 1 : 0; });
    pool.sum_before(run, foreign + 1);
    const std::int64_t runs = pool.read(run + foreign, 1)[0];
    auto starts = pool.template array<std::int32_t>(runs + 1);
    std::int32_t* const start = starts.data();
    pool.each(foreign + 1, [=] RMSP_EHYB_STEP(std::int64_t i) {
        if (i == foreign || run[i + 1] != run[i]) {
            start[run[i]] = static_cast<std::int32_t>(i);
        }
    });
    // Those with most uses first in each part, of equal ones the lower column.
    auto ranked = pool.template array<std::uint64_t>(runs);
    auto which = pool.template array<std::int32_t>(runs);
    std::uint64_t* rank = ranked.data();
    std::int32_t* run_at = which.data();
    pool.each(runs, [=] RMSP_EHYB_STEP(std::int64_t u) {
        const auto uses = static_cast<std::uint32_t>(start[u + 1] - start[u]);
        rank[u] = (key[start[u]] >> bits) << 16 | (most_uses - (uses < most_uses ? uses : most_uses));
        run_at[u] = static_cast<std::int32_t>(u);
    });
    pool.sort(ranked, which, runs, 16 + bits_for(parts));
    rank = ranked.data();
    run_at = which.data();
    auto kept = pool.template array<std::int32_t>(runs + 1);
    std::int32_t* const keep = kept.data();
    pool.each(runs + 1, [=] RMSP_EHYB_STEP(std::int64_t i) {
        if (i == runs) {
            keep[i] = 0;
            return;
        }
        const std::uint64_t p = rank[i] >> 16;
        const std::int64_t before = p == 0 ? 0 : not_above(rank, runs, (p << 16) - 1);
        const std::int64_t uses = start[run_at[i] + 1] - start[run_at[i]];
        keep[run_at[i]] = uses >= fewest_uses && i - before < most_columns - own[p] ? 1 : 0;
    });
    pool.sum_before(keep, runs + 1);
    result.count = pool.read(keep + runs, 1)[0];
    result.column = pool.template array<std::int32_t>(result.count);
    std::int32_t* const column = result.column.data();
    pool.each(runs, [=] RMSP_EHYB_STEP(std::int64_t u) {
        if (keep[u + 1] != keep[u]) {
            column[keep[u]] = static_cast<std::int32_t>(key[start[u]] & ((std::uint64_t{1} << bits) - 1));
        }
    });
    pool.each(parts + 1, [=] RMSP_EHYB_STEP(std::int64_t p) {
        const std::int64_t before = p == 0 ? 0 : not_above(key, foreign, (static_cast<std::uint64_t>(p) << bits) - 1);
        first[p] = keep[run[before]];
    });
    return result;
}

/// Widths of slices to their places, and room for what is in them, filled with padding; padding(slice) is its column.
template <class Column, class Pool, class Stored, class Padding>
void place_slices(const Pool& pool, Stored& sliced, const std::int32_t* width, std::int64_t slices, int vector,
                  const Padding& padding)
{
    auto entries_before = pool.template array<std::int64_t>(slices + 1);
    auto groups_before = pool.template array<std::int64_t>(slices + 1);
    std::int64_t* const entries = entries_before.data();
    std::int64_t* const groups = groups_before.data();
    pool.each(slices + 1, [=] RMSP_EHYB_STEP(std::int64_t s) {
        entries[s] = s < slices ? width[s] : 0;
        groups[s] = s < slices ? (width[s] + group - 1) / group : 0;
    });
    pool.sum_before(entries, slices + 1);
    pool.sum_before(groups, slices + 1);
    const std::int64_t all = pool.read(entries + slices, 1)[0];
    const std::int64_t all_groups = pool.read(groups + slices, 1)[0];
    if (all > std::int64_t{std::numeric_limits<std::uint32_t>::max()}) {
        throw Error(ErrorCode::usage,
                    "ehyb: " + std::to_string(all) + " times 32 values are more than 2^32 - 1 positions");
    }
    sliced.slices = pool.template array<Slice>(slices + 1);
    sliced.columns = pool.template array<Column>(all_groups * group * slice_rows);
    sliced.entry = pool.template array<std::uint32_t>(all * slice_rows);
    Slice* const slice = sliced.slices.data();
    Column* const column = sliced.columns.data();
    std::uint32_t* const entry = sliced.entry.data();
    pool.each(slices + 1, [=] RMSP_EHYB_STEP(std::int64_t s) {
        slice[s] = {static_cast<std::uint32_t>(entries[s]), static_cast<std::uint32_t>(groups[s])};
    });
    pool.each(slices * slice_rows, [=] RMSP_EHYB_STEP(std::int64_t i) {
        const std::int64_t s = i / slice_rows;
        const int lane = static_cast<int>(i % slice_rows);
        const int wide = static_cast<int>(entries[s + 1] - entries[s]);
        const Column none = padding(s);
        for (int k = 0; k < wide; ++k) {
            entry[entries[s] * slice_rows + value_place(k, lane, wide, vector)] = no_entry;
        }
        for (int k = 0; k < static_cast<int>(groups[s + 1] - groups[s]) * group; ++k) {
            column[groups[s] * group * slice_rows + column_place(k, lane)] = none;
        }
    });
}

/// Puts entry k of a lane into a slice.
template <class Column>
RMSP_EHYB_BODY inline void put(const Slice* slices, Column* columns, std::uint32_t* entries, std::int64_t slice,
                               int lane, int k, int vector, std::int64_t entry, Column column)
{
    const Slice begin = slices[slice];
    const int width = static_cast<int>(slices[slice + 1].entries - begin.entries);
    entries[std::int64_t{begin.entries} * slice_rows + value_place(k, lane, width, vector)] =
        static_cast<std::uint32_t>(entry);
    columns[std::int64_t{begin.groups} * group * slice_rows + column_place(k, lane)] = column;
}

/// The padding of a slice in parts: the column behind those that its part keeps.
struct PaddingOfParts {
    const std::int32_t* first_slice;
    const std::int32_t* first_column;
    std::int64_t parts;

    RMSP_EHYB_BODY std::uint16_t operator()(std::int64_t slice) const
    {
        const std::int64_t p = not_above(first_slice, parts, static_cast<std::int32_t>(slice)) - 1;
        return static_cast<std::uint16_t>(first_column[p + 1] - first_column[p]);
    }
};
struct PaddingOfEr {
    RMSP_EHYB_BODY std::int32_t operator()(std::int64_t) const { return no_column; }
};

/// Where the entries of a shard go: of each row those that its part keeps the column of, as far as rows may be long,
/// and the others.
struct Split {
    const std::int32_t* kept;   ///< the column's number in the part of each entry, or not_kept
    const std::uint32_t* rank;  ///< entries before it whose column is kept
    std::int64_t longest;

    /// Entries of the row before entry i that are in slices of its part.
    RMSP_EHYB_BODY std::int64_t inside_before(const Structure& a, std::int64_t row, std::int64_t i) const
    {
        const auto n = static_cast<std::int64_t>(rank[i] - rank[a.first(row)]);
        return n < longest ? n : longest;
    }
    RMSP_EHYB_BODY bool is_inside(const Structure& a, std::int64_t row, std::int64_t i) const
    {
        return kept[i] != not_kept && inside_before(a, row, i) < longest;
    }
};

/// What is outside: rows cut into pieces, the longest pieces first.
template <class Pool>
void lay_out_er(const Pool& pool, const Structure& a, const Split& split, const std::int32_t* inside, int vector,
                LayoutOf<Pool::template Array>& out)
{
    const auto longest = static_cast<std::int64_t>(split.longest);
    auto numbers = pool.template array<std::int32_t>(a.rows + 1);
    auto pieces_of = pool.template array<std::int64_t>(a.rows + 1);
    std::int32_t* const number = numbers.data();
    std::int64_t* const before = pieces_of.data();
    pool.each(a.rows + 1, [=] RMSP_EHYB_STEP(std::int64_t row) {
        const std::int64_t n = row < a.rows ? a.first(row + 1) - a.first(row) - inside[row] : 0;
        number[row] = n > 0 ? 1 : 0;
        before[row] = (n + longest - 1) / longest;
    });
    pool.sum_before(number, a.rows + 1);
    pool.sum_before(before, a.rows + 1);
    const std::int64_t rows = pool.read(number + a.rows, 1)[0];
    const std::int64_t pieces = pool.read(before + a.rows, 1)[0];
    out.pieces = pieces;
    out.er_row = pool.template array<std::int32_t>(rows);
    out.er_first = pool.template array<std::int32_t>(rows + 1);
    std::int32_t* const er_row = out.er_row.data();
    std::int32_t* const er_first = out.er_first.data();
    auto keys = pool.template array<std::uint64_t>(pieces);
    out.er_piece = pool.template array<std::int32_t>(pieces);
    std::uint64_t* key = keys.data();
    std::int32_t* piece_at = out.er_piece.data();
    pool.each(a.rows + 1, [=] RMSP_EHYB_STEP(std::int64_t row) {
        if (row == a.rows) {
            er_first[rows] = static_cast<std::int32_t>(pieces);
            return;
        }
        std::int64_t left = a.first(row + 1) - a.first(row) - inside[row];
        if (left == 0) {
            return;
        }
        er_row[number[row]] = static_cast<std::int32_t>(row);
        er_first[number[row]] = static_cast<std::int32_t>(before[row]);
        for (std::int64_t piece = before[row]; left > 0; ++piece, left -= longest) {
            key[piece] = static_cast<std::uint64_t>(left < longest ? longest - left : 0);
            piece_at[piece] = static_cast<std::int32_t>(piece);
        }
    });
    pool.sort(keys, out.er_piece, pieces, bits_for(longest + 1));
    key = keys.data();
    piece_at = out.er_piece.data();
    const std::int64_t slices = (pieces + slice_rows - 1) / slice_rows;
    auto widths = pool.template array<std::int32_t>(slices);
    auto lanes = pool.template array<std::int32_t>(pieces);
    std::int32_t* const width = widths.data();
    std::int32_t* const lane_of = lanes.data();
    pool.each(pieces, [=] RMSP_EHYB_STEP(std::int64_t i) {
        lane_of[piece_at[i]] = static_cast<std::int32_t>(i);
        if (i % slice_rows == 0) {
            width[i / slice_rows] = static_cast<std::int32_t>(longest - static_cast<std::int64_t>(key[i]));
        }
    });
    place_slices<std::int32_t>(pool, out.er, width, slices, vector, PaddingOfEr{});
    const Slice* const slice = out.er.slices.data();
    std::int32_t* const columns = out.er.columns.data();
    std::uint32_t* const entries = out.er.entry.data();
    pool.each_entry(a, [=] RMSP_EHYB_STEP(std::int64_t row, std::int64_t i) {
        if (split.is_inside(a, row, i)) {
            return;
        }
        const std::int64_t k = i - a.first(row) - split.inside_before(a, row, i);
        const std::int32_t lane = lane_of[before[row] + k / longest];
        put(slice, columns, entries, lane / slice_rows, lane % slice_rows, static_cast<int>(k % longest), vector, i,
            a.col_idx[i]);
    });
}

}  // namespace detail

/// \param part     of each row, from 0 to parts - 1
/// \param columns  that a part keeps at most; entries in others become ER
/// \param vector   values of a 16-byte load
/// \throws Error(usage) if there are more entries or slots than 2^32 - 2
template <class Pool>
LayoutOf<Pool::template Array> lay_out(const Pool& pool, const Structure& a, const std::int32_t* part,
                                       std::int64_t parts, std::int64_t columns, int vector, const EhybGhosts& ghosts,
                                       const EhybTuning& tuning)
{
    using namespace detail;
    if (a.nnz >= no_entry) {
        throw Error(ErrorCode::usage, "ehyb: " + std::to_string(a.nnz) + " nonzeros are more than 2^32 - 2 a device");
    }
    const std::int64_t rows = a.rows;
    const std::int64_t most = std::min(columns, most_columns);
    LayoutOf<Pool::template Array> out;
    out.part_count = parts;

    // Rows by part.
    auto keys = pool.template array<std::uint64_t>(rows);
    out.order = pool.template array<std::int32_t>(rows);
    out.first_row = pool.template array<std::int32_t>(parts + 1);
    std::int32_t* const first_row = out.first_row.data();
    {
        std::uint64_t* const key = keys.data();
        std::int32_t* const order = out.order.data();
        pool.each(rows, [=] RMSP_EHYB_STEP(std::int64_t row) {
            key[row] = static_cast<std::uint64_t>(part[row]);
            order[row] = static_cast<std::int32_t>(row);
        });
    }
    pool.sort(keys, out.order, rows, bits_for(parts));
    first_of_parts(pool, keys.data(), rows, parts, first_row);

    // A part's own columns are those of its rows that it has entries in.
    auto locals = pool.template array<std::int32_t>(rows);
    auto counts = pool.template array<std::int32_t>(rows + 1);
    auto owns = pool.template array<std::int32_t>(parts);
    std::int32_t* const local = locals.data();
    std::int32_t* const own = owns.data();
    {
        const std::int32_t* const order = out.order.data();
        std::int32_t* const count = counts.data();
        pool.each(rows, [=] RMSP_EHYB_STEP(std::int64_t row) { local[row] = 0; });
        pool.each_entry(a, [=] RMSP_EHYB_STEP(std::int64_t row, std::int64_t i) {
            const std::int64_t other = a.row_of(a.col_idx[i]);
            if (other >= 0 && part[other] == part[row]) {
                store_shared(local + other, 1);
            }
        });
        pool.each(rows + 1, [=] RMSP_EHYB_STEP(std::int64_t i) { count[i] = i < rows ? local[order[i]] : 0; });
        pool.sum_before(count, rows + 1);
        pool.each(rows, [=] RMSP_EHYB_STEP(std::int64_t i) {
            const std::int32_t n = count[i] - count[first_row[part[order[i]]]];
            local[order[i]] = count[i + 1] != count[i] && n < most ? n : not_kept;
        });
        pool.each(parts, [=] RMSP_EHYB_STEP(std::int64_t p) {
            const std::int32_t n = count[first_row[p + 1]] - count[first_row[p]];
            own[p] = n < most ? n : static_cast<std::int32_t>(most);
        });
    }

    // The columns that each part keeps.
    const GhostColumns<Pool> ghost = find_ghosts(pool, a, part, parts, own, most, ghosts.fewest_uses);
    const std::int32_t* const first_ghost = ghost.first.data();
    const std::int32_t* const ghost_column = ghost.column.data();
    out.first_column = pool.template array<std::int32_t>(parts + 1);
    std::int32_t* const first_column = out.first_column.data();
    pool.each(parts + 1, [=] RMSP_EHYB_STEP(std::int64_t p) {
        first_column[p] = p < parts ? own[p] + first_ghost[p + 1] - first_ghost[p] : 0;
    });
    pool.sum_before(first_column, parts + 1);
    const std::vector<std::int32_t> column_of_part = pool.read(first_column, parts + 1);
    for (std::size_t p = 0; p + 1 < column_of_part.size(); ++p) {
        out.widest_part = std::max<std::int64_t>(out.widest_part, column_of_part[p + 1] - column_of_part[p]);
    }
    out.columns = pool.template array<std::int32_t>(column_of_part.back());
    std::int32_t* const kept_columns = out.columns.data();
    pool.each(rows, [=] RMSP_EHYB_STEP(std::int64_t row) {
        if (local[row] != not_kept) {
            kept_columns[first_column[part[row]] + local[row]] = static_cast<std::int32_t>(row + a.diagonal);
        }
    });
    pool.each(ghost.count, [=] RMSP_EHYB_STEP(std::int64_t g) {
        const std::int64_t p = not_above(first_ghost, parts, static_cast<std::int32_t>(g)) - 1;
        kept_columns[first_column[p] + own[p] + (g - first_ghost[p])] = ghost_column[g];
    });

    // Which entries are inside.
    auto kept = pool.template array<std::int32_t>(a.nnz);
    auto ranks = pool.template array<std::uint32_t>(a.nnz + 1);
    auto insides = pool.template array<std::int32_t>(rows);
    std::int32_t* const kept_as = kept.data();
    std::uint32_t* const rank = ranks.data();
    std::int32_t* const inside = insides.data();
    pool.each(1, [=] RMSP_EHYB_STEP(std::int64_t) { rank[a.nnz] = 0; });
    pool.each_entry(a, [=] RMSP_EHYB_STEP(std::int64_t row, std::int64_t i) {
        const std::int32_t column = a.col_idx[i];
        const std::int64_t other = a.row_of(column);
        const std::int32_t p = part[row];
        std::int32_t found = not_kept;
        if (other >= 0 && part[other] == p) {
            found = local[other];
        } else if (const std::int32_t n = first_ghost[p + 1] - first_ghost[p]; n > 0) {
            const std::int32_t* const of_part = ghost_column + first_ghost[p];
            const auto place = static_cast<std::int32_t>(not_above(of_part, n, column)) - 1;
            found = place >= 0 && of_part[place] == column ? own[p] + place : not_kept;
        }
        kept_as[i] = found;
        rank[i] = found != not_kept ? 1 : 0;
    });
    pool.sum_before(rank, a.nnz + 1);
    const Split split{kept_as, rank, tuning.longest_row};
    pool.each(rows, [=] RMSP_EHYB_STEP(std::int64_t row) {
        inside[row] = static_cast<std::int32_t>(split.inside_before(a, row, a.first(row + 1)));
    });

    // The longest rows first in each part.
    const int bits = bits_for(std::int64_t{tuning.longest_row} + 1);
    const std::int64_t longest = tuning.longest_row;
    {
        std::uint64_t* const key = keys.data();
        const std::int32_t* const order = out.order.data();
        pool.each(rows, [=] RMSP_EHYB_STEP(std::int64_t i) {
            key[i] = static_cast<std::uint64_t>(part[order[i]]) << bits |
                     static_cast<std::uint64_t>(longest - inside[order[i]]);
        });
    }
    pool.sort(keys, out.order, rows, bits + bits_for(parts));
    const std::int32_t* const order = out.order.data();
    out.first_slice = pool.template array<std::int32_t>(parts + 1);
    std::int32_t* const first_slice = out.first_slice.data();
    pool.each(parts + 1, [=] RMSP_EHYB_STEP(std::int64_t p) {
        first_slice[p] = p < parts ? (first_row[p + 1] - first_row[p] + slice_rows - 1) / slice_rows : 0;
    });
    pool.sum_before(first_slice, parts + 1);
    const std::int64_t slices = pool.read(first_slice + parts, 1)[0];
    auto widths = pool.template array<std::int32_t>(slices);
    std::int32_t* const width = widths.data();
    std::int32_t* const place = counts.data();
    pool.each(rows, [=] RMSP_EHYB_STEP(std::int64_t i) {
        const std::int32_t p = part[order[i]];
        const std::int64_t in_part = i - first_row[p];
        place[order[i]] = static_cast<std::int32_t>(in_part);
        if (in_part % slice_rows == 0) {
            width[first_slice[p] + in_part / slice_rows] = inside[order[i]];
        }
    });
    place_slices<std::uint16_t>(pool, out.inside, width, slices, vector,
                                PaddingOfParts{first_slice, first_column, parts});
    const Slice* const slice = out.inside.slices.data();
    std::uint16_t* const slot_column = out.inside.columns.data();
    std::uint32_t* const slot_entry = out.inside.entry.data();
    pool.each_entry(a, [=] RMSP_EHYB_STEP(std::int64_t row, std::int64_t i) {
        if (split.is_inside(a, row, i)) {
            put(slice, slot_column, slot_entry, first_slice[part[row]] + place[row] / slice_rows,
                place[row] % slice_rows, static_cast<int>(split.inside_before(a, row, i)), vector, i,
                static_cast<std::uint16_t>(kept_as[i]));
        }
    });
    lay_out_er(pool, a, split, inside, vector, out);
    return out;
}

}  // namespace rmsp::kernels::ehyb
