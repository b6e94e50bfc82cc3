#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include <rmsp/host_vector.hpp>

#include "matrix/strength.hpp"

/// Which rows a coarser matrix has. What comes out depends on the graph alone, not on threads or devices: what is
/// random is a hash of a row's number.
namespace rmsp::matrix {

/// Rows that stay, or groups of rows that become one.
struct Coarsening {
    HostVector<std::int32_t> number;  ///< of each row's coarse point or aggregate; -1: it has none
    std::int64_t count = 0;           ///< of coarse points or aggregates
};

/// The row of each coarse point.
HostVector<std::int64_t> rows_of_points(const Coarsening& coarse);

/// Coarse points: an independent set of rows that many depend on, so that every other row depends on one of them, or on
/// none at all. Rows that nobody depends on are no coarse points. (PMIS of De Sterck, Yang, Heys: Reducing complexity
/// in parallel algebraic multigrid preconditioners, SIAM J. Matrix Anal. Appl. 27, 2006) \param depends  row i has an
/// edge to each row that it strongly depends on
Coarsening pmis(const Graph& depends);

/// Rows [first, end) of a larger graph, with the rows around them, in the order of the larger one. Each function is
/// called by all who have a part of it, in the same order.
struct PartOfRows {
    std::int64_t first = 0;
    std::int64_t end = 0;
    std::span<const std::int64_t> numbers;  ///< of all rows that are here, in the larger graph
    /// Overwrite what is here for rows of others by what those have.
    std::function<void(std::span<std::int32_t>)> share_counts;
    std::function<void(std::span<std::uint8_t>)> share_states;
    std::function<bool(bool)> any;  ///< whether it is so for one of them
};

/// pmis() of a part: finds what the larger graph's coarse points are, if the edges from and to its rows are here.
/// Only rows of the part get numbers, from 0.
Coarsening pmis(const Graph& depends, const PartOfRows& part);

/// Coarse points by their numbers, with an edge from each to those that it depends on, itself or through one row
/// between. \param depends  as pmis()
Graph graph_of_points(const Graph& depends, const Coarsening& first);

/// Which points of such a graph stay when coarsening is done again, by marks of the part's: those that PMIS chooses,
/// and what depends on none of these. Every other point depends on one that stays. Marks of points of others are
/// theirs.
HostVector<std::uint8_t> staying_points(const Graph& points, const PartOfRows& part);

/// Of coarse points, those that stay when coarsening is done again. Numbers are of all rows. (Aggressive coarsening: U.
/// M. Yang: On long-range interpolation operators for aggressive coarsening, Numer. Linear Algebra Appl. 17, 2010)
/// \param depends  as pmis()
Coarsening coarser_pmis(const Graph& depends, const Coarsening& first);

/// Aggregates: each row in turn becomes a root that is at least three steps from those before it; their neighbours join
/// them, and then the neighbours of these, each the aggregate of most of its own. Rows without an edge have no
/// aggregate. In the order of the rows aggregates lie as closely as a grid's lines let them; by random numbers they
/// would be larger and take more iterations. (Vanek, Mandel, Brezina: Algebraic multigrid by smoothed aggregation,
/// Computing 56, 1996, algorithm 5.1) One thread chooses the roots, in one pass. \param graph  with an edge in both
/// directions or none (symmetrised())
Coarsening aggregates(const Graph& graph);

}  // namespace rmsp::matrix
