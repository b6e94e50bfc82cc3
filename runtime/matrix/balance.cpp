#include "runtime/matrix/balance.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include <kernels/steps/support/support.hpp>
#include <partition/balance.hpp>

#include "core/clock.hpp"
#include "runtime/matrix/row_product.hpp"
#include "runtime/plan/planner.hpp"

namespace rmsp::distributed {
namespace {

// Parts within this much of each other are left alone.
constexpr double good_imbalance = 0.03;
// Each costs what distributing costs. The first one takes a part's nonzeros to be alike, those after it make up for
// that.
constexpr int most_moves = 3;
// Fewer hardly repay that, and not the timing either.
constexpr std::int64_t least_applies = 1000;

/// Whether the parts are to be timed.
bool is_timed(const RuntimeState& runtime, const Plan& plan, const DistributeOptions& options)
{
    return options.balance == Balance::time ||
           (options.balance == Balance::automatic && plan::can_move_cuts(plan.format, options) &&
            runtime.connection.transport && options.determinism == Determinism::none &&
            options.expected_applies >= least_applies);
}

/// Least seconds of each device's kernel, while the others run theirs.
template <class T>
std::vector<double> kernel_seconds(MatrixState<T>& matrix)
{
    // Short ones more often, as their times vary most.
    constexpr int least_timed = 5;
    constexpr int most_timed = 100;
    constexpr double long_enough = 2e-3;
    RuntimeState& runtime = *matrix.runtime;
    std::vector<double> least(static_cast<std::size_t>(runtime.devices()), std::numeric_limits<double>::infinity());
    runtime
        .submit([&](engine::Worker& worker, engine::Rendezvous& meeting) {
            const auto rank = static_cast<std::size_t>(worker.rank());
            const Shard<T>& shard = *matrix.shards[rank];
            RowShard<T>& own = row_product(matrix)->shard(rank);
            engine::Device& device = worker.device();
            const auto context = worker.context();
            // A GPU has room of its own for vectors of the host.
            const bool room = !device.shares_host_memory();
            const kernels::DeviceArray<T> own_x(device, room ? 0 : static_cast<std::size_t>(shard.owned.cols));
            const kernels::DeviceArray<T> own_y(device, room ? 0 : static_cast<std::size_t>(shard.owned.rows));
            T* const x = room ? own.x.data() : own_x.data();
            T* const y = room ? own.y.data() : own_y.data();
            kernels::fill(x, shard.owned.cols, T{1}, context);
            const auto before = device.make_event(true);
            const auto after = device.make_event(true);
            const auto apply = [&] {
                worker.stream().record(*before);
                if (begins_with_own_columns(shard, own)) {
                    own.owned_operator->apply_early(x, context);
                    own.owned_operator->apply_late(T{1}, x, T{0}, y, context);
                } else {
                    own.owned_operator->apply(T{1}, x, T{0}, y, context);
                }
                if (own.carry_operator) {
                    own.carry_operator->apply(T{1}, x, T{0}, own.carry_out.data(), context);
                }
                worker.stream().record(*after);
                worker.stream().synchronize();
                return after->seconds_since(*before);
            };
            // To warm up, and until a race is decided, which would otherwise be the user's first applies.
            apply();
            while (is_racing(own)) {
                apply();
            }
            meeting.arrive_and_wait();
            double total = 0;
            for (int i = 0; i < least_timed || (i < most_timed && total < long_enough); ++i) {
                const double once = apply();
                total += once;
                least[rank] = std::min(least[rank], once);
            }
        })
        .get();
    least.resize(static_cast<std::size_t>(matrix.plan.devices));
    return least;
}

}  // namespace

template <class T>
std::shared_ptr<MatrixState<T>> balance_time(std::shared_ptr<MatrixState<T>> matrix, const DistributeOptions& options,
                                             core::Clock::time_point start, const DistributeByWeights<T>& distribute)
{
    const RuntimeState& runtime = *matrix->runtime;
    double distributing = core::seconds_since(start);
    const auto parts_nonzeros = [&] {
        std::vector<std::int64_t> nonzeros;
        for (int i = 0; i < matrix->plan.devices; ++i) {
            nonzeros.push_back(matrix->plan.partition.parts[static_cast<std::size_t>(i)].nnz());
        }
        return nonzeros;
    };
    std::vector<std::int64_t> nonzeros = parts_nonzeros();
    // A part without any says nothing of how long its nonzeros take; cuts that were moved may leave one, too.
    const auto each_has_some = [&] { return *std::min_element(nonzeros.begin(), nonzeros.end()) > 0; };
    if (!is_timed(runtime, matrix->plan, options) || nonzeros.size() < 2 || !each_has_some()) {
        return matrix;
    }
    std::vector<double> seconds = kernel_seconds(*matrix);
    const double first = partition::time_imbalance(seconds);
    double imbalance = first;
    std::vector<double> weights;
    int moves = 0;
    const auto distribute_again = [&] {
        matrix.reset();  // room for the next
        const auto begin = core::Clock::now();
        matrix = distribute(weights);
        distributing = core::seconds_since(begin);
    };
    while (imbalance > good_imbalance && moves < most_moves && each_has_some()) {
        const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
        if (options.balance == Balance::automatic &&
            imbalance * mean * static_cast<double>(options.expected_applies) < distributing) {
            break;
        }
        const std::vector<double> before = std::exchange(weights, partition::equal_time_weights(nonzeros, seconds));
        distribute_again();
        nonzeros = parts_nonzeros();
        seconds = kernel_seconds(*matrix);
        if (partition::time_imbalance(seconds) > imbalance) {
            // The times change more from one measurement to the next than the parts differ.
            weights = before;
            distribute_again();
            break;
        }
        imbalance = partition::time_imbalance(seconds);
        ++moves;
    }
    matrix->plan.first_time_imbalance = first;
    matrix->plan.time_imbalance = imbalance;
    matrix->plan.moves = moves;
    matrix->record.setup.push_back({"balance", {core::seconds_since(start) - distributing}, true});
    return matrix;
}

#define RMSP_INSTANTIATE(T)                                                                                          \
    template std::shared_ptr<MatrixState<T>> balance_time(std::shared_ptr<MatrixState<T>>, const DistributeOptions&, \
                                                          core::Clock::time_point, const DistributeByWeights<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::distributed
