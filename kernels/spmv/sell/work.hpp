#pragma once

#include <kernels/spmv/choose/model.hpp>
#include <kernels/spmv/sell/layout.hpp>

namespace rmsp::kernels {

/// The work of kernel "sell" where its codes take so many bytes a nonzero.
inline Work sliced_work(const Features& f, double code_bytes)
{
    const auto nnz = static_cast<double>(f.rows.nnz);
    Work work;
    work.matrix_bytes = nnz * ((1 + f.padding) * (f.stored_value_bytes + 4.0 / 32) + code_bytes);
    work.gathers = nnz * f.sectors;
    // What is not a diagonal gathers from 32 rows at once, and reads codes before columns are known.
    work.bandwidth_share = 0.93 - 0.08 * code_bytes;
    work.gather_share = 0.9;
    work.prepare_products = 17;
    work.start_seconds = 1.4e-6;
    work.entry_bytes = 4.5 + 1.4 * code_bytes;
    // Where all slices are on the device together, loads of a lane that wait for one another decide.
    constexpr int multiprocessors = 132;
    const std::int64_t slices = (f.rows.rows + slice_rows - 1) / slice_rows;
    if (groups_at_once(slices, f.rows.nnz, multiprocessors) > 1) {
        work.start_seconds += 0.08e-6 * f.rows.mean;
    }
    return work;
}

}  // namespace rmsp::kernels
