#include "runtime/sequence/stage.hpp"

#include <algorithm>
#include <type_traits>

#include <core/value_types.hpp>
#include <kernels/steps/round/round.hpp>

#include "runtime/matrix/products.hpp"

/// What stages do, but for passes (pass_stage.cpp).
namespace rmsp::sequence {

template <class T>
void MultiplyStage<T>::queue(engine::Worker& worker, engine::Rendezvous& meeting, const kernels::ScalarOp*)
{
    // Devices that share the host's memory read each other's slices where they are.
    const bool waits = matrix_->runtime->shared_memory() && matrix_->runtime->devices() > 1;
    if (waits) {
        meeting.arrive_and_wait();
    }
    const auto rank = static_cast<std::size_t>(worker.rank());
    distributed::Product<T>& product = *matrix_->products[of_transpose_ ? 1 : 0];
    if (sums_) {
        sums_->count[rank] = product.leave_sums(worker.rank(), sums_->places[rank].data());
    }
    distributed::apply_on(*matrix_, worker, meeting, alpha_, distributed::Source<T>{nullptr, x_}, beta_,
                          distributed::Target<T>{nullptr, y_}, nullptr, of_transpose_);
    if (sums_) {
        product.leave_sums(worker.rank(), nullptr);
    }
    if (waits) {
        meeting.arrive_and_wait();
    }
}

template <class T>
std::shared_ptr<ProductSums> MultiplyStage<T>::sums_of(const void* a, const void* b)
{
    const bool these = (a == x_.get() && b == y_.get()) || (a == y_.get() && b == x_.get());
    if (!these || of_transpose_ || matrix_->plan.rows != matrix_->plan.cols || x_->offsets != y_->offsets ||
        matrix_->runtime->shared_memory()) {
        return nullptr;
    }
    if (!sums_) {
        sums_ = std::make_shared<ProductSums>(matrix_->runtime, *y_, 0);
    }
    return sums_;
}

template <class T>
std::int64_t MultiplyStage<T>::bytes() const
{
    std::int64_t sum = 0;
    for (const ShardPlan& shard : matrix_->plan.shards) {
        sum += shard.apply_bytes;
    }
    return sum;
}

template <class T>
ProductSums::ProductSums(std::shared_ptr<node::RuntimeState> of, const VectorState<T>& y, std::int64_t more)
    : places(static_cast<std::size_t>(of->devices())), count(places.size()), room(places.size()), runtime(std::move(of))
{
    runtime
        ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
            const auto rank = static_cast<std::size_t>(worker.rank());
            const std::int64_t rows = y.offsets[rank + 1] - y.offsets[rank];
            places[rank] =
                kernels::DeviceArray<double>(worker.device(), static_cast<std::size_t>(rows / 32 + 1 + more));
        })
        .get();
}

bool ProductSums::leaves() const
{
    return std::none_of(count.begin(), count.end(), [](std::int64_t n) { return n == 0; });
}

ProductSums::~ProductSums()
{
    for (std::size_t rank = 0; rank < places.size(); ++rank) {
        runtime->release(static_cast<int>(rank), room, [array = std::move(places[rank])]() mutable { array.reset(); });
    }
}

template <class To, class From>
void ConvertStage<To, From>::queue(engine::Worker& worker, engine::Rendezvous&, const kernels::ScalarOp*)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const std::int64_t n = from_->offsets[rank + 1] - from_->offsets[rank];
    if constexpr (std::is_same_v<To, float>) {
        kernels::narrow_entries(from_->slices[rank], n, to_->slices[rank], worker.context());
    } else {
        kernels::widen_entries(from_->slices[rank], n, to_->slices[rank], worker.context());
    }
}

void CallStage::queue(engine::Worker& worker, engine::Rendezvous&, const kernels::ScalarOp*)
{
    if (scalars_->takes_part(worker.rank())) {
        const auto context = worker.context();
        f_({worker.rank(), context.kind, context.stream, context.threads,
            scalars_->bank->ends[static_cast<std::size_t>(worker.rank())].bank.data() + kernels::scalar_stopped});
    }
}

#define RMSP_INSTANTIATE(T)          \
    template class MultiplyStage<T>; \
    template ProductSums::ProductSums(std::shared_ptr<node::RuntimeState>, const VectorState<T>&, std::int64_t);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE
template class ConvertStage<float, double>;
template class ConvertStage<double, float>;

}  // namespace rmsp::sequence
