#pragma once

#include <kernels/spgemm/device.cuh>

/// Some rows of C, counted before all are, to see how many words all of them take.
namespace rmsp::kernels::spgemm {

/// Counts every `stride`-th row, in the list of list_structure(), of the classes that keep words, as job.row_nnz and
/// job.stored will have them again when all are counted. Adds what these rows may take at most, but for those that
/// job.spread_above leaves out, and the entries that they have, to job.counters->sampled_bound and sampled_entries.
/// \param sampled  room for a list of them
/// \return whether there are enough to tell; if not, nothing is counted
bool count_sample(StructureJob job, const Counters& found, std::int64_t stride, const std::int32_t* list,
                  std::int32_t* sampled, bool overlaps, cudaStream_t stream);

}  // namespace rmsp::kernels::spgemm
