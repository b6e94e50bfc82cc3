#include "runtime/matrix/update.hpp"

#include "runtime/matrix/caller_indices.hpp"
#include "runtime/matrix/place_source.hpp"
#include "runtime/matrix/upload.hpp"

namespace rmsp::distributed {
template <class T>
void update_values(const std::shared_ptr<MatrixState<T>>& matrix, const T* values, plan::ResidentEntries<T>* resident)
{
    HostVector<T> brought;
    HostVector<T> ordered;
    const bool there = resident == nullptr && in_gpu_memory(*matrix->runtime, values);
    if (there && !matrix->origin.blocks && matrix->options.values == StoredValues::floats) {
        throw Error(ErrorCode::usage,
                    "values are rounded to floats on their way from host memory; these are in GPU memory");
    }
    if (resident == nullptr && matrix->origin.blocks) {
        const std::int64_t entries = matrix->plan.nnz;
        if (there) {
            brought.resize(static_cast<std::size_t>(entries));
            bring_to_host(*matrix->runtime, brought.data(), values, entries);
            values = brought.data();
        }
        ordered.resize(static_cast<std::size_t>(entries));
        rmsp::matrix::to_rows(*matrix->origin.blocks, values, ordered.data());
        values = ordered.data();
    }
    matrix->runtime
        ->submit(
            [&](engine::Worker& worker, engine::Rendezvous& meeting) {
                Shard<T>& shard = *matrix->shards[static_cast<std::size_t>(worker.rank())];
                if (matrix->origin.sorted_copy) {
                    throw Error(ErrorCode::usage,
                                "the entries of this matrix were sorted when it was distributed, so new values have no "
                                "place: sort them first, or distribute again");
                }
                if (resident != nullptr) {
                    resident->gather(worker, meeting, shard.values.data());
                } else if (matrix->origin.source) {
                    const bool copied = matrix->origin.copied_values != nullptr;
                    if (values != (copied ? matrix->origin.copied_values : matrix->origin.source->a.values)) {
                        throw Error(
                            ErrorCode::usage,
                            "this matrix is streamed from the caller's values: write the new ones into the same "
                            "array");
                    }
                    if (copied) {
                        renew_copy(*matrix, worker);
                        meeting.arrive_and_wait();
                    }
                    if (worker.rank() == 0) {
                        matrix->origin.source->values->refresh();
                    }
                    if (shard.streamed) {
                        shard.streamed->update_values(worker);
                    }
                } else if (shard.values.size() == 0 && shard.part.nnz() > 0) {
                    if (values + shard.part.start_idx !=
                        (shard.carry_nnz > 0 ? shard.carry.values : shard.owned.values)) {
                        throw Error(ErrorCode::usage,
                                    "this matrix borrows the caller's values: write the new ones into the same array");
                    }
                } else {
                    upload_values(shard, worker, values);
                }
                for (const auto& product : matrix->products) {
                    if (product) {
                        product->update_values(worker);
                    }
                }
            },
            {}, true)
        .get();
    ++matrix->round;
}

#define RMSP_INSTANTIATE(T) \
    template void update_values(const std::shared_ptr<MatrixState<T>>&, const T*, plan::ResidentEntries<T>*);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
