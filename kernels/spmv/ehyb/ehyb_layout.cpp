#include <iterator>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <core/subscript.hpp>
#include <kernels/spmv/ehyb/ehyb.hpp>
#include <kernels/spmv/ehyb/graph_parts.hpp>

#include "core/first_error.hpp"

namespace rmsp::kernels::ehyb {
namespace {

constexpr std::int32_t not_kept = -1;

using core::at;

/// The row whose part has a column, or -1.
std::int64_t row_of_column(const Pattern& a, std::int32_t column)
{
    const std::int64_t row = column - a.diagonal;
    return row >= 0 && row < a.rows ? row : -1;
}

/// Rows of one vertex at most: far fewer than those of a part, which METIS could not balance otherwise.
constexpr std::int32_t most_unknowns = 8;

/// A + A^T, as far as columns belong to rows, with one vertex for each run of rows of the same neighbours: the unknowns
/// of a node of a mesh. METIS needs a fraction of the time then.
struct Graph {
    std::vector<std::int32_t> vertex;  ///< of each row
    std::vector<std::int32_t> rows;    ///< of each vertex
    std::vector<std::int64_t> first;   ///< neighbour of each vertex; and the end
    std::vector<std::int32_t> neighbours;
};

Graph symmetrised(const Pattern& a, int threads)
{
    const auto each_other = [&](std::int64_t row, auto&& f) {
        for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
            const std::int64_t other = row_of_column(a, a.col_idx[i]);
            if (other >= 0 && other != row) {
                f(other);
            }
        }
    };
    // Each row's own number is among its neighbours here, so that rows of one node have the same ones.
    std::vector<std::int64_t> first(at(a.rows + 1), 1);
    first[0] = 0;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1024)
    for (std::int64_t row = 0; row < a.rows; ++row) {
        each_other(row, [&](std::int64_t other) {
            std::int64_t& own = first[at(row + 1)];
            std::int64_t& others = first[at(other + 1)];
#pragma omp atomic
            ++own;
#pragma omp atomic
            ++others;
        });
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<std::int64_t> next(first.begin(), first.end() - 1);
    HostVector<std::int32_t> neighbours(at(first.back()));
    const auto append = [&](std::int64_t row, std::int64_t other) {
        std::int64_t place = 0;
        std::int64_t& end = next[at(row)];
#pragma omp atomic capture
        place = end++;
        neighbours[at(place)] = static_cast<std::int32_t>(other);
    };
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1024)
    for (std::int64_t row = 0; row < a.rows; ++row) {
        append(row, row);
        each_other(row, [&](std::int64_t other) {
            append(row, other);
            append(other, row);
        });
    }
    // Both directions of an entry may be there, and entries may be repeated.
    const auto begin_of = [&](std::int64_t row) { return neighbours.begin() + first[at(row)]; };
    const auto end_of = [&](std::int64_t row) { return neighbours.begin() + next[at(row)]; };
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1024)
    for (std::int64_t row = 0; row < a.rows; ++row) {
        std::sort(begin_of(row), end_of(row));
        next[at(row)] = std::unique(begin_of(row), end_of(row)) - neighbours.begin();
    }
    Graph g;
    g.vertex.resize(at(a.rows));
    std::vector<std::int64_t> row_of;
    for (std::int64_t row = 0; row < a.rows; ++row) {
        if (row == 0 || g.rows.back() == most_unknowns ||
            !std::equal(begin_of(row), end_of(row), begin_of(row - 1), end_of(row - 1))) {
            row_of.push_back(row);
            g.rows.push_back(0);
        }
        ++g.rows.back();
        g.vertex[at(row)] = static_cast<std::int32_t>(row_of.size() - 1);
    }
    g.first.push_back(0);
    for (std::size_t v = 0; v < row_of.size(); ++v) {
        std::int32_t last = -1;
        std::for_each(begin_of(row_of[v]), end_of(row_of[v]), [&](std::int32_t row) {
            const std::int32_t other = g.vertex[at(row)];
            if (other != last && other != static_cast<std::int32_t>(v)) {
                g.neighbours.push_back(other);
            }
            last = other;
        });
        g.first.push_back(static_cast<std::int64_t>(g.neighbours.size()));
    }
    return g;
}

/// Sizes of slices to their places; returns the size of all.
Slice place_slices(std::vector<Slice>& slices)
{
    std::int64_t entries = 0;
    std::int64_t groups = 0;
    for (Slice& slice : slices) {
        const Slice size = slice;
        slice = {static_cast<std::uint32_t>(entries), static_cast<std::uint32_t>(groups)};
        entries += size.entries;
        groups += size.groups;
    }
    constexpr std::int64_t limit = std::numeric_limits<std::uint32_t>::max();
    if (entries > limit || groups > limit) {
        throw Error(ErrorCode::usage,
                    fmt::format("ehyb: {} times 32 values are more than 2^32 - 1 positions", entries));
    }
    return slices.back();
}

Slice sized(std::int64_t width)
{
    return {static_cast<std::uint32_t>(width), static_cast<std::uint32_t>((width + group - 1) / group)};
}

/// Room for all slices, filled with padding. Slice s has columns whose number for padding is padding(s).
template <class Column, class Padding>
void fill_padding(Sliced<Column>& sliced, int threads, const Padding& padding)
{
    const Slice size = place_slices(sliced.slices);
    sliced.columns = HostVector<Column>(std::size_t{size.groups} * group * slice_rows);
    sliced.entry = HostVector<std::uint32_t>(std::size_t{size.entries} * slice_rows);
    const auto slices = static_cast<std::int64_t>(sliced.slices.size()) - 1;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 64)
    for (std::int64_t s = 0; s < slices; ++s) {
        const Slice& begin = sliced.slices[at(s)];
        const Slice& end = sliced.slices[at(s + 1)];
        std::fill(sliced.columns.begin() + std::int64_t{begin.groups} * group * slice_rows,
                  sliced.columns.begin() + std::int64_t{end.groups} * group * slice_rows, padding(s));
        std::fill(sliced.entry.begin() + std::int64_t{begin.entries} * slice_rows,
                  sliced.entry.begin() + std::int64_t{end.entries} * slice_rows, no_entry);
    }
}

/// Puts entry k of a lane into a slice.
template <class Column>
void put(Sliced<Column>& sliced, std::int64_t slice, int lane, int k, int vector, std::int64_t entry, Column column)
{
    const Slice& begin = sliced.slices[at(slice)];
    const int width = static_cast<int>(sliced.slices[at(slice + 1)].entries - begin.entries);
    sliced.entry[at(std::int64_t{begin.entries} * slice_rows + value_place(k, lane, width, vector))] =
        static_cast<std::uint32_t>(entry);
    sliced.columns[at(std::int64_t{begin.groups} * group * slice_rows + column_place(k, lane))] = column;
}

class Builder {
public:
    Builder(const Pattern& a, std::span<const std::int32_t> part, std::int64_t parts, std::int64_t columns, int vector,
            int threads, const EhybGhosts& ghosts, const EhybTuning& tuning)
        : a_(a),
          part_(part),
          parts_(parts),
          most_columns_(std::min(columns, most_columns)),
          vector_(vector),
          threads_(std::max(threads, 1)),
          longest_(tuning.longest_row),
          fewest_uses_(ghosts.fewest_uses),
          ghosts_(at(parts)),
          own_(at(parts)),
          local_(at(a.rows), not_kept),
          inside_(at(a.rows)),
          outside_(at(a.rows))
    {
    }

    Layout build()
    {
        order_by_part();
        keep_columns();
        sort_parts();
        fill_parts();
        if (cut_outside()) {
            fill_outside();
        }
        return std::move(out_);
    }

private:
    bool is_own(std::int64_t part, std::int32_t column) const
    {
        const std::int64_t row = row_of_column(a_, column);
        return row >= 0 && part_[at(row)] == part;
    }

    /// Number of a column among those that the part keeps, or not_kept.
    std::int32_t local_column(std::int32_t part, std::int32_t column) const
    {
        if (is_own(part, column)) {
            return local_[at(row_of_column(a_, column))];
        }
        const auto& ghosts = ghosts_[at(part)];
        const auto place = std::lower_bound(ghosts.begin(), ghosts.end(), column);
        return place != ghosts.end() && *place == column
                   ? own_[at(part)] + static_cast<std::int32_t>(place - ghosts.begin())
                   : not_kept;
    }

    /// Calls inside(k, entry, column of the part) and outside(k, entry) for the entries of a row, which each count from
    /// 0.
    template <class Inside, class Outside>
    void visit_entries(std::int64_t row, const Inside& inside, const Outside& outside) const
    {
        const std::int32_t part = part_[at(row)];
        int in = 0;
        std::int64_t out = 0;
        for (std::int64_t i = a_.row_ptr[row]; i < a_.row_ptr[row + 1]; ++i) {
            const std::int32_t column = local_column(part, a_.col_idx[i]);
            if (column != not_kept && in < longest_) {
                inside(in++, i, column);
            } else {
                outside(out++, i);
            }
        }
    }

    std::int64_t rows_of(std::int64_t part) const { return out_.first_row[at(part + 1)] - out_.first_row[at(part)]; }

    void order_by_part()
    {
        out_.first_row.assign(at(parts_ + 1), 0);
        for (const std::int32_t p : part_) {
            ++out_.first_row[at(p + 1)];
        }
        std::partial_sum(out_.first_row.begin(), out_.first_row.end(), out_.first_row.begin());
        std::vector<std::int32_t> next(out_.first_row.begin(), out_.first_row.end() - 1);
        out_.order.resize(at(a_.rows));
        for (std::int64_t row = 0; row < a_.rows; ++row) {
            out_.order[at(next[at(part_[at(row)])]++)] = static_cast<std::int32_t>(row);
        }
    }

    /// The foreign columns in which the part has most entries, at most `room` of them, ascending.
    std::vector<std::int32_t> find_ghosts(std::int64_t part, std::int64_t room) const
    {
        std::vector<std::int32_t> foreign;
        for (auto i = out_.first_row[at(part)]; i < out_.first_row[at(part + 1)]; ++i) {
            const std::int64_t row = out_.order[at(i)];
            std::copy_if(a_.col_idx + a_.row_ptr[row], a_.col_idx + a_.row_ptr[row + 1], std::back_inserter(foreign),
                         [&](std::int32_t column) { return !is_own(part, column); });
        }
        std::sort(foreign.begin(), foreign.end());
        struct Ghost {
            std::int64_t uses;
            std::int32_t column;
        };
        std::vector<Ghost> ghosts;
        for (auto first = foreign.begin(); first != foreign.end();) {
            const auto end = std::upper_bound(first, foreign.end(), *first);
            if (end - first >= fewest_uses_) {
                ghosts.push_back({end - first, *first});
            }
            first = end;
        }
        if (static_cast<std::int64_t>(ghosts.size()) > room) {
            std::sort(ghosts.begin(), ghosts.end(), [](const Ghost& left, const Ghost& right) {
                return left.uses != right.uses ? left.uses > right.uses : left.column < right.column;
            });
            ghosts.resize(at(room));
        }
        std::vector<std::int32_t> columns;
        for (const Ghost& ghost : ghosts) {
            columns.push_back(ghost.column);
        }
        std::sort(columns.begin(), columns.end());
        return columns;
    }

    /// Numbers the columns that each part has entries in, as far as there is room, and counts what is inside.
    void keep_columns()
    {
        out_.first_column.assign(at(parts_ + 1), 0);
        constexpr std::int32_t used = 0;
        core::FirstError error;
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 1)
        for (std::int64_t p = 0; p < parts_; ++p) {
            const auto begin = out_.first_row[at(p)];
            const auto end = out_.first_row[at(p + 1)];
            for (auto i = begin; i < end; ++i) {
                const std::int64_t row = out_.order[at(i)];
                for (std::int64_t k = a_.row_ptr[row]; k < a_.row_ptr[row + 1]; ++k) {
                    if (is_own(p, a_.col_idx[k])) {
                        local_[at(row_of_column(a_, a_.col_idx[k]))] = used;
                    }
                }
            }
            std::int32_t& kept = own_[at(p)];
            for (auto i = begin; i < end; ++i) {
                std::int32_t& column = local_[at(out_.order[at(i)])];
                column = column == used && kept < most_columns_ ? kept++ : not_kept;
            }
            if (fewest_uses_ > 0) {
                error.guard([&] { ghosts_[at(p)] = find_ghosts(p, most_columns_ - kept); });
            }
            out_.first_column[at(p + 1)] = kept + static_cast<std::int32_t>(ghosts_[at(p)].size());
            for (auto i = begin; i < end; ++i) {
                const std::int64_t row = out_.order[at(i)];
                std::int32_t in = 0;
                std::int64_t out = 0;
                visit_entries(
                    row, [&](auto...) { ++in; }, [&](auto...) { ++out; });
                inside_[at(row)] = in;
                outside_[at(row)] = static_cast<std::uint32_t>(out);
            }
        }
        error.rethrow();
        std::partial_sum(out_.first_column.begin(), out_.first_column.end(), out_.first_column.begin());
        out_.columns.resize(at(out_.first_column.back()));
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 1)
        for (std::int64_t p = 0; p < parts_; ++p) {
            for (auto i = out_.first_row[at(p)]; i < out_.first_row[at(p + 1)]; ++i) {
                const std::int32_t row = out_.order[at(i)];
                if (local_[at(row)] != not_kept) {
                    out_.columns[at(out_.first_column[at(p)] + local_[at(row)])] =
                        static_cast<std::int32_t>(row + a_.diagonal);
                }
            }
            std::copy(ghosts_[at(p)].begin(), ghosts_[at(p)].end(),
                      out_.columns.begin() + out_.first_column[at(p)] + own_[at(p)]);
        }
    }

    /// The longest rows first in each part, and the sizes of its slices.
    void sort_parts()
    {
        out_.first_slice.assign(at(parts_ + 1), 0);
        for (std::int64_t p = 0; p < parts_; ++p) {
            out_.first_slice[at(p + 1)] =
                out_.first_slice[at(p)] + static_cast<std::int32_t>((rows_of(p) + slice_rows - 1) / slice_rows);
        }
        out_.inside.slices.resize(at(out_.first_slice.back() + 1));
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 1)
        for (std::int64_t p = 0; p < parts_; ++p) {
            const auto begin = out_.order.begin() + out_.first_row[at(p)];
            std::stable_sort(begin, begin + rows_of(p), [&](std::int32_t left, std::int32_t right) {
                return inside_[at(left)] > inside_[at(right)];
            });
            for (std::int64_t i = 0; i < rows_of(p); i += slice_rows) {
                out_.inside.slices[at(out_.first_slice[at(p)] + i / slice_rows)] = sized(inside_[at(begin[i])]);
            }
        }
    }

    void fill_parts()
    {
        std::vector<std::uint16_t> padding(at(out_.first_slice.back()));
        for (std::int64_t p = 0; p < parts_; ++p) {
            std::fill(padding.begin() + out_.first_slice[at(p)], padding.begin() + out_.first_slice[at(p + 1)],
                      static_cast<std::uint16_t>(out_.first_column[at(p + 1)] - out_.first_column[at(p)]));
        }
        fill_padding(out_.inside, threads_, [&](std::int64_t slice) { return padding[at(slice)]; });
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 1)
        for (std::int64_t p = 0; p < parts_; ++p) {
            for (std::int64_t i = 0; i < rows_of(p); ++i) {
                const std::int64_t slice = out_.first_slice[at(p)] + i / slice_rows;
                visit_entries(
                    out_.order[at(out_.first_row[at(p)] + i)],
                    [&](int k, std::int64_t entry, std::int32_t column) {
                        put(out_.inside, slice, static_cast<int>(i % slice_rows), k, vector_, entry,
                            static_cast<std::uint16_t>(column));
                    },
                    [](auto...) {});
            }
        }
    }

    /// Cuts what is outside into pieces and orders them by length. Returns whether there are any.
    bool cut_outside()
    {
        std::int64_t pieces = 0;
        std::vector<std::int32_t> of_length(at(longest_ + 1), 0);
        out_.er_first.push_back(0);
        for (std::int64_t row = 0; row < a_.rows; ++row) {
            const std::int64_t n = outside_[at(row)];
            if (n == 0) {
                continue;
            }
            pieces += (n + longest_ - 1) / longest_;
            of_length[at(longest_)] += static_cast<std::int32_t>(n / longest_);
            of_length[at(n % longest_)] += n % longest_ > 0 ? 1 : 0;
            out_.er_row.push_back(static_cast<std::int32_t>(row));
            out_.er_first.push_back(static_cast<std::int32_t>(pieces));
        }
        // Where the pieces of each length begin, the longest first.
        std::vector<std::int32_t> next(of_length.size(), 0);
        for (std::size_t length = next.size() - 1; length > 0; --length) {
            next[length - 1] = next[length] + of_length[length];
        }
        out_.er_piece.resize(at(pieces));
        lane_.resize(at(pieces));
        out_.er.slices.resize(at((pieces + slice_rows - 1) / slice_rows + 1));
        for (std::size_t i = 0; i < out_.er_row.size(); ++i) {
            std::int64_t left = outside_[at(out_.er_row[i])];
            for (std::int32_t piece = out_.er_first[i]; piece < out_.er_first[i + 1]; ++piece, left -= longest_) {
                const std::int64_t length = std::min<std::int64_t>(left, longest_);
                const std::int32_t lane = next[at(length)]++;
                lane_[at(piece)] = lane;
                out_.er_piece[at(lane)] = piece;
                if (lane % slice_rows == 0) {
                    out_.er.slices[at(lane / slice_rows)] = sized(length);
                }
            }
        }
        return pieces > 0;
    }

    void fill_outside()
    {
        fill_padding(out_.er, threads_, [](std::int64_t) { return no_column; });
        const auto rows = static_cast<std::int64_t>(out_.er_row.size());
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 64)
        for (std::int64_t i = 0; i < rows; ++i) {
            visit_entries(
                out_.er_row[at(i)], [](auto...) {},
                [&](std::int64_t k, std::int64_t entry) {
                    const std::int32_t lane = lane_[at(out_.er_first[at(i)] + k / longest_)];
                    put(out_.er, lane / slice_rows, lane % slice_rows, static_cast<int>(k % longest_), vector_, entry,
                        a_.col_idx[entry]);
                });
        }
    }

    const Pattern& a_;
    std::span<const std::int32_t> part_;
    std::int64_t parts_;
    std::int64_t most_columns_;
    int vector_;
    int threads_;
    int longest_;
    int fewest_uses_;
    std::vector<std::vector<std::int32_t>> ghosts_;  ///< foreign columns of each part, ascending
    std::vector<std::int32_t> own_;                  ///< how many of its own columns each part keeps
    std::vector<std::int32_t> local_;                ///< of each row: the number of its column in its part
    std::vector<std::int32_t> inside_;               ///< entries of each row in the slices of its part
    std::vector<std::uint32_t> outside_;             ///< the others
    std::vector<std::int32_t> lane_;                 ///< of each piece
    Layout out_;
};

}  // namespace

void require_metis(const char* kernel)
{
    if (!has_metis()) {
        throw NotCompiled(fmt::format("SpMV kernel \"{}\" (METIS)", kernel));
    }
}

std::vector<std::int32_t> parts_of_rows(const Pattern& a, std::int64_t parts, EhybOrder order, int threads)
{
    std::vector<std::int32_t> part(at(a.rows));
    if (order == EhybOrder::metis && parts > 1) {
        const Graph g = symmetrised(a, std::max(threads, 1));
        const auto part_of_vertex = graph_parts(g.first, g.neighbours, g.rows, parts, imbalance_per_mille);
        std::transform(g.vertex.begin(), g.vertex.end(), part.begin(),
                       [&](std::int32_t vertex) { return part_of_vertex[at(vertex)]; });
        return part;
    }
    const std::int64_t each = std::max<std::int64_t>((a.rows + parts - 1) / parts, 1);
    for (std::int64_t row = 0; row < a.rows; ++row) {
        part[at(row)] = static_cast<std::int32_t>(row / each);
    }
    return part;
}

Layout make_layout(const Pattern& a, std::span<const std::int32_t> part, std::int64_t parts, std::int64_t columns,
                   int vector, int threads, const EhybGhosts& ghosts, const EhybTuning& tuning)
{
    if (a.nnz() >= no_entry) {
        throw Error(ErrorCode::usage, fmt::format("ehyb: {} nonzeros are more than 2^32 - 2 a device", a.nnz()));
    }
    return Builder(a, part, parts, columns, vector, threads, ghosts, tuning).build();
}

}  // namespace rmsp::kernels::ehyb
