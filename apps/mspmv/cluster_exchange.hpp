#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <rmsp/config.hpp>
#include <rmsp/matrix.hpp>

/// What nodes that have a matrix's rows in turn send each other for a product: the columns outside a node's own.
namespace rmsp::mspmv {

struct NodeExchange {
    double ghosts = 0;    ///< entries of x that come from other nodes
    double messages = 0;  ///< from as many nodes
    double outside = 0;   ///< share of the node's nonzeros that are in their columns
};

/// Rows and own columns of each node, as rmsp::Cluster gives them out: rows of about equally many nonzeros, the same
/// columns of a square matrix, else evenly many.
struct NodeCuts {
    std::vector<std::int64_t> rows;  ///< nodes + 1, the first row of each
    std::vector<std::int64_t> cols;
};
template <class T>
NodeCuts cut_for_nodes(const CsrMatrix<T>& a, int nodes);

/// Columns of other nodes that one node's rows have, ascending, each once.
template <class T>
std::vector<std::int64_t> ghost_columns(const CsrMatrix<T>& a, const NodeCuts& cuts, int node);

/// Each node's, counted in the matrix. Reads every column.
template <class T>
std::vector<NodeExchange> count_exchange(const CsrMatrix<T>& a, int nodes);

/// The most of any node, of that many nodes that share a matrix of so many rows.
using ExchangeModel = std::function<NodeExchange(int nodes, double rows)>;

/// Of a matrix that is there. Another number of rows: as on `planned` nodes, since it has no larger kin. The matrix
/// must outlive it.
template <class T>
ExchangeModel counted_exchange(const CsrMatrix<T>& a, int planned);

/// Of stencils and banded matrices, whose columns are their rows shifted by some offsets, without any matrix. Exact but
/// for the edges of the grid. Nothing for others.
std::optional<ExchangeModel> shifted_exchange(const Config::Matrix& config);

/// From two samples of a kind, of rows in another number: means grow as the power of the rows that leads from one to
/// the other, the most of any node is as far above the mean as in the larger one. \param large  must outlive it, as
/// `small` must
template <class T>
ExchangeModel sampled_exchange(const CsrMatrix<T>& small, const CsrMatrix<T>& large);

}  // namespace rmsp::mspmv
