#pragma once

#include <kernels/spmv/choose/model.hpp>

namespace rmsp::kernels {

/// The work of this kernel, also where another makes the matrix ready for it.
inline Work blocked_work(const Features& f, int value_bytes)
{
    const auto nnz = static_cast<double>(f.rows.nnz);
    // Without dense blocks each entry is one of 2 x 2.
    const bool blocks = f.block.entries() > 1;
    Work work;
    work.matrix_bytes =
        nnz * (blocks ? f.block_fill : 4.0) * (narrowed_bytes(f, value_bytes) + 4.0 / (blocks ? f.block.entries() : 4));
    work.gathers = nnz * f.sectors;
    work.bandwidth_share = 0.78;
    work.gather_share = 0.9;
    work.prepare_products = 35;
    work.start_seconds = 0.7e-6;
    return work;
}

}  // namespace rmsp::kernels
