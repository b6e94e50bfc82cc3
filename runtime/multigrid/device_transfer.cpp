#include "runtime/multigrid/device_transfer.hpp"

#include <utility>

#include <kernels/steps/coarsening/coarsening.hpp>
#include <kernels/steps/convert/convert.hpp>

#include "core/value_types.hpp"
#include "runtime/node/node.hpp"

namespace rmsp::multigrid {

template <class T>
std::unique_ptr<Transfer<T>> device_transfer(std::shared_ptr<MatrixState<T>> a, const Coarsener& coarsener)
{
    const DeviceKind kind = a->runtime->infos.front().kind;
    const bool has_steps = kernels::steps_on<kernels::Coarsenings>(kind) != nullptr &&
                           kernels::steps_on<kernels::Conversion<std::int64_t>>(kind) != nullptr;
    if (!has_steps || coarsener.unknowns != 1 || coarsener.aggressive || plan::transposed(a->plan)) {
        return nullptr;
    }
    return coarsener.method == Method::classical ? classical_transfer(std::move(a), coarsener)
                                                 : aggregation_transfer(std::move(a), coarsener);
}

#define RMSP_INSTANTIATE(T) \
    template std::unique_ptr<Transfer<T>> device_transfer(std::shared_ptr<MatrixState<T>>, const Coarsener&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::multigrid
