#include "cluster/scatter.hpp"

#include <algorithm>
#include <vector>

#include <rmsp/partition.hpp>
#include <rmsp/value_types.hpp>

#include "cluster/transfer.hpp"

namespace rmsp::cluster {
namespace {

/// The first row of each process, and their number.
template <class T>
std::vector<std::int64_t> cut_rows(const CsrMatrix<T>& whole, const Shares& shares)
{
    PartitionOptions options;
    options.alignment = RowAlignment::row;
    options.row_multiple = 1;  // processes number their rows from 0 on
    options.weights = shares.weights;
    // Costs take the place of entries.
    HostVector<std::int64_t> costs;
    if (shares.of_row > 0) {
        costs.resize(whole.row_ptr.size());
        for (std::size_t row = 0; row < costs.size(); ++row) {
            costs[row] = shares.of_entry * whole.row_ptr[row] + shares.of_row * static_cast<std::int64_t>(row);
        }
    }
    const IndexView starts = costs.empty() ? whole.view().row_ptr : IndexView(costs.data());
    std::vector<std::int64_t> cuts;
    for (const PartialCsr& part :
         partition_csr(whole.rows, whole.cols, starts, static_cast<int>(shares.weights.size()), options).parts) {
        cuts.push_back(part.first_owned_row());
    }
    cuts.push_back(whole.rows);
    return cuts;
}

constexpr std::int64_t row_ptr_bytes(std::int64_t rows) { return (rows + 1) * std::int64_t{8}; }

}  // namespace

template <class T>
ClusterRows<T> scatter_rows(Communicator& processes, const CsrMatrix<T>& whole, const Shares& shares)
{
    const bool first = processes.rank() == 0;
    const auto size = static_cast<std::size_t>(processes.size());
    if (first) {
        validate(whole.view());
    }
    const std::vector<std::int64_t> cuts = first ? cut_rows(whole, shares) : std::vector<std::int64_t>(size + 1);
    // What each needs to make room: first row, rows, nonzeros, columns, their type.
    std::vector<std::int64_t> sizes(5 * size);
    for (std::size_t p = 0; first && p < size; ++p) {
        const std::int64_t begin = whole.row_ptr[static_cast<std::size_t>(cuts[p])];
        const std::int64_t end = whole.row_ptr[static_cast<std::size_t>(cuts[p + 1])];
        std::int64_t* const of = &sizes[5 * p];
        of[0] = cuts[p];
        of[1] = cuts[p + 1] - cuts[p];
        of[2] = end - begin;
        of[3] = whole.cols;
        of[4] = static_cast<std::int64_t>(whole.col_idx.type());
    }
    Transfer of_sizes(processes);
    std::int64_t own[5] = {};
    for (std::size_t p = 0; first && p < size; ++p) {
        of_sizes.send(&sizes[5 * p], sizeof(own), static_cast<int>(p));
    }
    of_sizes.receive(own, sizeof(own), 0);
    of_sizes.wait();

    ClusterRows<T> part{{own[1], own[3], HostVector<std::int64_t>(static_cast<std::size_t>(own[1]) + 1),
                         IndexArray(static_cast<IndexType>(own[4]), static_cast<std::size_t>(own[2])),
                         HostVector<T>(static_cast<std::size_t>(own[2]))},
                        own[0]};
    Transfer arrays(processes);
    part.rows.col_idx.visit([&](auto& columns) {
        const auto column_bytes = static_cast<std::int64_t>(sizeof(columns[0]));
        arrays.receive(part.rows.row_ptr.data(), row_ptr_bytes(own[1]), 0);
        arrays.receive(columns.data(), own[2] * column_bytes, 0);
        arrays.receive(part.rows.values.data(), own[2] * static_cast<std::int64_t>(sizeof(T)), 0);
        for (std::size_t p = 0; first && p < size; ++p) {
            const std::int64_t* const of = &sizes[5 * p];
            const std::int64_t begin = whole.row_ptr[static_cast<std::size_t>(of[0])];
            const int to = static_cast<int>(p);
            arrays.send(whole.row_ptr.data() + of[0], row_ptr_bytes(of[1]), to);
            arrays.send(static_cast<const std::byte*>(whole.col_idx.view().data()) + begin * column_bytes,
                        of[2] * column_bytes, to);
            arrays.send(whole.values.data() + begin, of[2] * static_cast<std::int64_t>(sizeof(T)), to);
        }
        arrays.wait();
    });
    const std::int64_t base = part.rows.row_ptr[0];
    for (std::int64_t& at : part.rows.row_ptr) {
        at -= base;
    }
    return part;
}

#define RMSP_INSTANTIATE(T) template ClusterRows<T> scatter_rows(Communicator&, const CsrMatrix<T>&, const Shares&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::cluster
