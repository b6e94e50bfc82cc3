#pragma once

#include <cstdint>
#include <span>

#include <kernels/spmv/ehyb/layout.hpp>
#include <rmsp/host_vector.hpp>
#include <rmsp/matrix.hpp>

/// Parts and layouts made in host memory.
namespace rmsp::kernels::ehyb {

/// Structure of a shard, in host memory.
struct Pattern {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t diagonal = 0;  ///< CsrShard::diagonal
    IndexView row_ptr;
    const std::int32_t* col_idx = nullptr;

    std::int64_t nnz() const { return rows > 0 ? row_ptr[rows] : 0; }
};

/// \throws NotCompiled naming the kernel, in a build without METIS
void require_metis(const char* kernel);

/// The part of each row. \throws Error(usage) and NotCompiled as graph_parts()
HostVector<std::int32_t> parts_of_rows(const Pattern& a, std::int64_t parts, EhybOrder order, int threads);

/// lay_out() in host memory.
Layout make_layout(const Pattern& a, std::span<const std::int32_t> part, std::int64_t parts, std::int64_t columns,
                   int vector, int threads, const EhybGhosts& ghosts = no_ghosts,
                   const EhybTuning& tuning = ehyb_tuning);

}  // namespace rmsp::kernels::ehyb
