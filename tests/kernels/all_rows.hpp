#pragma once

#include <cstdint>

#include <kernels/steps/coarsening/aggregates.hpp>
#include <rmsp/matrix.hpp>

#include "matrices.hpp"

/// What the tests of coarsening share.
namespace rmsp::kernels::test {

inline HostCsr<double> host_csr(const CsrMatrix<double>& a)
{
    HostCsr<double> out;
    out.rows = a.rows;
    out.cols = a.cols;
    out.row_ptr.assign(a.row_ptr.begin(), a.row_ptr.end());
    for (std::int64_t k = 0; k < a.nnz(); ++k) {
        out.col_idx.push_back(static_cast<std::int32_t>(a.col_idx[k]));
    }
    out.values.assign(a.values.begin(), a.values.end());
    return out;
}

/// What finds aggregates of a matrix that is on one device.
struct AllRows {
    AllRows(const CsrShard<double>& a, const DeviceArray<std::uint8_t>& marks, const DeviceArray<std::int32_t>& number,
            const Context& context)
        : room(*context.memory, a.rows, a.nnz)
    {
        parts.part[0] = aggregate_part(a, 0, marks.data(), number.data());
        room.lend(parts.part[0]);
    }

    AggregateRoom room;
    AggregateParts parts;
};

}  // namespace rmsp::kernels::test
