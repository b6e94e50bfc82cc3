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
    const kernels::DeviceArray<double> squares(*context.memory, 2 * room);  // before the last step, and after it
    std::size_t sums = 0;
    for (int step = 0; step < steps; ++step) {
        const bool last = step + 1 == steps;
        sums = static_cast<std::size_t>(kernels::filtered_product(a, inverse, matrix::power_step(step, steps),
                                                                  row_zero(v), row_zero(w),
                                                                  squares.data() + (last ? room : 0), context));
        if (!last) {
            along_rows.complete(worker, meeting, w.data());
        }
        std::swap(v, w);
    }
    std::vector<double> all(squares.size());
    worker.device().download(worker.stream(), all.data(), squares.data(), all.size() * sizeof(double));
    worker.stream().synchronize();
    const auto sum_from = [&](std::size_t first) {
        const auto begin = all.cbegin() + static_cast<std::ptrdiff_t>(first);
        return std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(sums), 0.0);
    };
    last_steps_[rank] = {sum_from(0), sum_from(room)};
    meeting.arrive_and_wait();
    LastStep of_all;
    for (const LastStep& of : last_steps_) {
        of_all.before += of.before;
        of_all.after += of.after;
    }
    const bool good = of_all.before > 0 && of_all.after > 0 && std::isfinite(of_all.after);
    const double largest = good ? std::sqrt(of_all.after / of_all.before) : 0.0;
    const bool kept = goes_on_ && good;
    if (kept) {
        int exponent = 0;
        std::frexp(std::sqrt(of_all.after), &exponent);
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
