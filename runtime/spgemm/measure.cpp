#include "runtime/spgemm/measure.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/clock.hpp"
#include "runtime/spgemm/work.hpp"

namespace rmsp::spgemm {

template <class T>
std::vector<Measurement> measure(ProductState<T>& state, std::int64_t warmup, std::int64_t iterations, T alpha)
{
    if (iterations < 1 || warmup < 0) {
        throw Error(ErrorCode::usage,
                    fmt::format("measure({}, {}): at least one iteration is timed", warmup, iterations));
    }
    if (state.borrowers > 0) {
        throw Error(ErrorCode::usage, "measure() would make C anew, which is the B of another product");
    }
    if (state.plan.chunked()) {
        throw Error(ErrorCode::usage,
                    "measure() needs A, B and C on the devices; this plan is computed in runs of rows");
    }
    using Times = std::vector<std::vector<double>>;  // of each device and round
    const std::size_t devices = state.parts.size();
    Times symbolic(devices);
    Times allocate(devices);
    Times fill(devices);
    Times whole(devices);
    Times values(devices);
    std::vector<std::int64_t> peak(devices);  // of whole products; what is kept for repeated values comes on top
    double wall_whole = 0;
    double wall_values = 0;
    on_devices<T>(state, [&](engine::Worker& worker, ProductPart<T>& part, engine::Rendezvous& meeting) {
        const auto rank = static_cast<std::size_t>(worker.rank());
        const kernels::KnownProducts known = known_products(state.factors.work, part.first_row, part.end_row);
        auto loop_begin = core::Clock::now();
        for (std::int64_t round = -warmup; round < iterations; ++round) {
            part.col_idx.reset();
            part.values.reset();
            part.product.reset();
            part.columns_known = false;
            worker.stream().synchronize();
            meeting.arrive_and_wait();
            if (round == 0) {
                loop_begin = core::Clock::now();
            }
            const auto begin = core::Clock::now();
            part.product = prepare_product(worker, part.budget, state.factors.options, part.a, part.b, known);
            const double prepared = core::seconds_since(begin);
            const auto nnz = static_cast<std::size_t>(part.product->nnz());
            part.col_idx = kernels::DeviceArray<std::int32_t>(part.budget, nnz);
            part.values = kernels::DeviceArray<T>(part.budget, nnz);
            const double allocated = core::seconds_since(begin);
            fill_or_renew(part, worker, alpha);
            worker.stream().synchronize();
            if (round >= 0) {
                whole[rank].push_back(core::seconds_since(begin));
                symbolic[rank].push_back(prepared);
                allocate[rank].push_back(allocated - prepared);
                fill[rank].push_back(whole[rank].back() - allocated);
            }
        }
        meeting.arrive_and_wait();
        peak[rank] = part.budget.peak();
        if (rank == 0) {
            wall_whole = core::seconds_since(loop_begin);
        }
        for (std::int64_t round = -warmup; round < iterations; ++round) {
            meeting.arrive_and_wait();
            if (round == 0) {
                loop_begin = core::Clock::now();
            }
            const auto begin = core::Clock::now();
            fill_or_renew(part, worker, alpha);
            worker.stream().synchronize();
            if (round >= 0) {
                values[rank].push_back(core::seconds_since(begin));
            }
        }
        meeting.arrive_and_wait();
        if (rank == 0) {
            wall_values = core::seconds_since(loop_begin);
        }
    });
    state.computed = true;

    const auto median = [](std::vector<double> v) {
        std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
        return v[v.size() / 2];
    };
    const auto summary = [&](const char* name, const Times& times, double wall) {
        Measurement m;
        m.name = fmt::format("spgemm/{}/{}", state.plan.precision, name);
        m.layout = "devices -> rows";
        m.iterations = iterations;
        std::vector<double> slowest(static_cast<std::size_t>(iterations));
        double sum = 0;
        double most = 0;
        for (const auto& device : times) {
            for (std::size_t i = 0; i < slowest.size(); ++i) {
                slowest[i] = std::max(slowest[i], device[i]);
            }
            const double typical = median(device);
            sum += typical;
            most = std::max(most, typical);
        }
        m.median_seconds = median(slowest);
        m.min_seconds = *std::min_element(slowest.begin(), slowest.end());
        m.max_seconds = *std::max_element(slowest.begin(), slowest.end());
        m.wall_seconds = wall;
        m.flops = 2 * static_cast<double>(state.plan.products);
        for (const SpgemmShardPlan& shard : state.plan.shards) {
            m.bytes += static_cast<double>(shard.a_bytes + shard.b_bytes + shard.c_bytes);
        }
        m.time_imbalance = sum > 0 ? most * static_cast<double>(devices) / sum - 1 : 0;
        return m;
    };
    const auto phase = [&](const char* name, const Times& times) {
        PhaseTimes p;
        p.name = name;
        for (const auto& device : times) {
            p.seconds.push_back(median(device));
        }
        return p;
    };
    std::vector<Measurement> measurements{summary("whole", whole, wall_whole), summary("numeric", values, wall_values)};
    measurements[0].phases = {phase("symbolic", symbolic), phase("allocate", allocate), phase("fill", fill)};
    measurements[1].phases = {phase("numeric", values)};
    for (std::size_t rank = 0; rank < devices; ++rank) {
        state.plan.shards[rank].peak_bytes = peak[rank];
    }
    return measurements;
}

#define RMSP_INSTANTIATE(T) template std::vector<Measurement> measure(ProductState<T>&, std::int64_t, std::int64_t, T);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
