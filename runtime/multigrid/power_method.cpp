#include "runtime/multigrid/power_method.hpp"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include <kernels/steps/blas1/blas1.hpp>
#include <kernels/steps/support/support.hpp>

#include "core/value_types.hpp"
#include "matrix/aggregation.hpp"

namespace rmsp::multigrid {

template <class T>
double PowerMethod<T>::operator()(engine::Worker& worker, engine::Rendezvous& meeting,
                                  const kernels::AggregatedRows<T>& a, const double* inverse,
                                  spgemm::SliceExchange& along_rows, kernels::DeviceArray<double>& v)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    const kernels::Context context = worker.context();
    const transport::Range range = along_rows.needed(worker.rank());
    const auto entries = static_cast<std::size_t>(along_rows.size(worker.rank()));
    const auto row_zero = [&](const kernels::DeviceArray<double>& x) {
        return static_cast<double*>(spgemm::entry_zero(x.data(), range.first));
    };
    const bool again = has_vector_;
    const int steps = again ? matrix::power_steps_again : matrix::power_steps;
    if (again) {
        along_rows.complete(worker, meeting, v.data());
    } else {
        v = kernels::DeviceArray<double>(*context.memory, entries);
        kernels::rough_vector(range.first, range.end - range.first, row_zero(v), context);
    }
    kernels::DeviceArray<double> w(*context.memory, entries);
    // No step waits for the host: vectors grow and shrink, and are brought to their size in the end.
    const auto room = static_cast<std::size_t>(kernels::most_sums(context));
    const kernels::DeviceArray<double> squares(*context.memory, room * static_cast<std::size_t>(steps) + 1);
    constexpr std::int64_t work = kernels::dot_workspace_bytes / static_cast<std::int64_t>(sizeof(double));
    const kernels::DeviceArray<double> workspace(*context.memory, static_cast<std::size_t>(work));
    kernels::fill(workspace.data(), work, 0.0, context);
    const double* const own = row_zero(v) + a.first_row;
    kernels::dot(own, own, a.a.rows, workspace.data(), squares.data() + squares.size() - 1, context);
    int sums = 0;
    for (int step = 0; step < steps; ++step) {
        sums = kernels::filtered_product(a, inverse, row_zero(v), row_zero(w),
                                         squares.data() + room * static_cast<std::size_t>(step), context);
        if (step + 1 < steps) {
            along_rows.complete(worker, meeting, w.data());
        }
        std::swap(v, w);
    }
    std::vector<double> all(squares.size());
    worker.device().download(worker.stream(), all.data(), squares.data(), all.size() * sizeof(double));
    worker.stream().synchronize();
    steps_[rank].clear();
    first_[rank] = all.back();
    for (std::size_t first = 0; first + 1 < all.size(); first += room) {
        const auto begin = all.cbegin() + static_cast<std::ptrdiff_t>(first);
        steps_[rank].push_back(std::accumulate(begin, begin + sums, 0.0));
    }
    meeting.arrive_and_wait();
    double squares_v = std::accumulate(first_.begin(), first_.end(), 0.0);
    double largest = 0;
    int good = 0;
    for (; good < steps; ++good) {
        double squares_w = 0;
        for (const std::vector<double>& of : steps_) {
            squares_w += of[static_cast<std::size_t>(good)];
        }
        if (!(squares_w > 0) || !(squares_v > 0) || !std::isfinite(squares_w)) {
            break;
        }
        largest = std::sqrt(squares_w / squares_v);
        squares_v = squares_w;
    }
    const bool kept = goes_on_ && good == steps;
    if (kept) {
        int exponent = 0;
        std::frexp(std::sqrt(squares_v), &exponent);
        kernels::scal(std::ldexp(1.0, -exponent), row_zero(v) + a.first_row, a.a.rows, context);
    } else {
        v.reset();
    }
    // All have read the others' sums, and whether there was a vector.
    meeting.arrive_and_wait();
    if (rank == 0) {
        has_vector_ = kept;
    }
    meeting.arrive_and_wait();
    return largest == 0 && again ? (*this)(worker, meeting, a, inverse, along_rows, v) : largest;
}

#define RMSP_INSTANTIATE(T) template class PowerMethod<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::multigrid
