#include "runtime/spgemm/product.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/clock.hpp"
#include "runtime/matrix/update.hpp"
#include "runtime/node/node.hpp"
#include "runtime/spgemm/plan.hpp"
#include "runtime/spgemm/runs.hpp"

namespace rmsp::detail {

template <class T>
ProductState<T>::~ProductState()
{
    for (std::size_t rank = 0; runtime && rank < parts.size(); ++rank) {
        spgemm::ProductPart<T>* const part = parts[rank].release();
        runtime->release(static_cast<int>(rank), room, [part] { delete part; });
    }
}

template <class T>
void ProductState<T>::set_phase(const char* name, std::vector<double> seconds)
{
    for (PhaseTimes& phase : phases) {
        if (phase.name == name) {
            phase.seconds = std::move(seconds);
            return;
        }
    }
    phases.push_back({name, std::move(seconds), true});
}

#define RMSP_INSTANTIATE(T) template struct ProductState<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::detail

namespace rmsp::spgemm {

template <class T>
ProductState<T>& checked(const std::shared_ptr<ProductState<T>>& state)
{
    if (!state) {
        throw Error(ErrorCode::usage, "this SparseProduct is empty; make one from a Runtime and two matrices");
    }
    return *state;
}

template <class T>
std::vector<double> on_devices(ProductState<T>& state, const DeviceBody<T>& body, bool may_end_early)
{
    engine::JobTerms terms;
    terms.kind = "product of matrices";
    terms.host_data = true;
    terms.may_end_early = may_end_early;
    std::vector<double> seconds(state.parts.size());
    state.runtime
        ->submit(
            [&](engine::Worker& worker, engine::Rendezvous& meeting) {
                const auto begin = core::Clock::now();
                body(worker, *state.parts[static_cast<std::size_t>(worker.rank())], meeting);
                worker.stream().synchronize();
                seconds[static_cast<std::size_t>(worker.rank())] = core::seconds_since(begin);
            },
            {}, terms)
        .get();
    return seconds;
}

namespace {

/// Sums the devices' counts up, once all are known.
template <class T>
void finish_counts(ProductState<T>& state)
{
    SpgemmPlan& plan = state.plan;
    plan.c_nnz = 0;
    plan.exact = state.computed || !plan.chunked();
    for (const SpgemmShardPlan& shard : plan.shards) {
        plan.c_nnz += shard.c_nnz;
    }
}

template <class T>
bool all_on_devices(const ProductState<T>& state)
{
    return std::all_of(state.parts.begin(), state.parts.end(),
                       [](const auto& part) { return part->product != nullptr; });
}

/// Connects the devices where they get entries of B from each other.
template <class T>
void connect_devices(ProductState<T>& state, const std::vector<RowSelection>& selections)
{
    Factors<T>& factors = state.factors;
    std::vector<transport::Range> needed = needed_entries(selections, factors.b.row_ptr);
    if (b_is_on_devices(factors.b)) {
        factors.exchange = open_exchange(*state.runtime, state.plan.exchange, factors.resident_b->slices,
                                         std::move(needed), &factors.resident_b->parts);
    } else if (state.plan.exchange != "none") {
        std::vector<std::int64_t> slices = entry_slices(needed);
        factors.exchange =
            open_exchange<T>(*state.runtime, state.plan.exchange, std::move(slices), std::move(needed), nullptr);
    }
}

/// Which factors have newer values than what the devices were sent, or gathered, of them.
struct Renewed {
    bool a = false;
    bool b = false;
};

/// Where values of a factor that is on the devices are needed on the host, they are there afterwards.
template <class T>
Renewed look_for_values(ProductState<T>& state)
{
    const bool in_runs = !all_on_devices(state);
    const auto look = [&](ResidentFactor<T>& factor, CsrView<T>& view) {
        const std::int64_t round = factor.round();
        const bool renewed = std::exchange(factor.taken, round) != round;
        const bool here = view.values != nullptr;
        if (here ? renewed : in_runs) {
            factor.bring_all(*state.runtime);
            view = factor.view();
        }
        return renewed;
    };
    Factors<T>& factors = state.factors;
    Renewed renewed;
    if (factors.resident_a) {
        renewed.a = look(*factors.resident_a, factors.a);
    }
    if (factors.resident_b) {
        renewed.b = look(*factors.resident_b, factors.b);
    }
    return renewed;
}

template <class T>
std::vector<std::int64_t> memory_limits(ProductState<T>& state)
{
    std::vector<std::int64_t> limits(static_cast<std::size_t>(state.runtime->devices()));
    state.runtime
        ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
            const std::int64_t room = worker.device().room();
            const std::int64_t limit = memory_limit(state.factors.options, room);
            limits[static_cast<std::size_t>(worker.rank())] = room > 0 ? std::min(limit, room) : limit;
        })
        .get();
    return limits;
}

/// What of each device's memory the product takes as planned. Parts that are computed in runs of rows, to which B's and
/// A's come, take what there is.
std::vector<std::int64_t> placed_bytes(const SpgemmPlan& plan)
{
    std::vector<std::int64_t> bytes;
    for (const SpgemmShardPlan& shard : plan.shards) {
        const std::int64_t whole = shard.a_bytes + shard.b_bytes + shard.c_bytes;
        const bool in_runs = shard.chunks > 1 || shard.products == 0;
        bytes.push_back(in_runs ? 0 : shard.limit_bytes > 0 ? std::min(whole, shard.limit_bytes) : whole);
    }
    return bytes;
}

/// Memory for the product as planned. Where others took some meanwhile, it is planned again for what is left.
template <class T>
std::shared_ptr<engine::Reservation> admit(ProductState<T>& state, const std::function<void()>& plan_again)
{
    constexpr int most_plans = 4;
    for (int plans = 1;; ++plans) {
        try {
            return state.runtime->admit("the product", placed_bytes(state.plan));
        } catch (const Error& e) {
            if (e.code() != ErrorCode::out_of_memory || plans == most_plans) {
                throw;
            }
        }
        plan_again();
    }
}

template <class T>
std::unique_ptr<ProductPart<T>> make_part(engine::Worker& worker, std::int64_t limit, const SpgemmShardPlan& shard,
                                          RowSelection b_rows)
{
    auto part = std::make_unique<ProductPart<T>>(worker.device().make_pool(worker.stream()), limit);
    part->first_row = shard.first_row;
    part->end_row = shard.end_row;
    part->b_rows = std::move(b_rows);
    return part;
}

/// Whether the devices can multiply the factors where they are.
template <class T>
bool may_build_in_place(const ProductState<T>& state)
{
    const Factors<T>& factors = state.factors;
    const auto is_there = [](const auto& factor) { return factor && factor->in_place(); };
    return is_there(factors.resident_a) && is_there(factors.resident_b) &&
           (state.runtime->devices() == 1 ||
            (factors.resident_b->slices.back() > 0 && !factors.resident_a->touched_columns().empty() &&
             exchange_transport(*state.runtime, factors.options) != "none"));
}

/// Gives up what was built, on the devices' workers.
template <class T>
void take_apart(ProductState<T>& state)
{
    state.runtime
        ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
            state.parts[static_cast<std::size_t>(worker.rank())].reset();
        })
        .get();
    state.factors.exchange.reset();
    state.factors.pointers.reset();
}

/// The entries of a factor's rows in each of these ranges.
template <class T>
std::vector<transport::Range> entries_of(const ResidentFactor<T>& factor, RuntimeState& runtime,
                                         const std::vector<transport::Range>& ranges)
{
    std::vector<std::int64_t> rows;
    for (const transport::Range& range : ranges) {
        rows.push_back(range.first);
        rows.push_back(range.end);
    }
    const std::vector<std::int64_t> before = factor.entries_before(runtime, rows);
    std::vector<transport::Range> entries;
    for (std::size_t i = 0; i < rows.size(); i += 2) {
        entries.push_back({before[i], before[i + 1]});
    }
    return entries;
}

/// Multiplies two factors where they are: each device the rows of A that it has. False: one has no room for C.
template <class T>
bool build_in_place(ProductState<T>& state)
{
    const auto begin = core::Clock::now();
    Factors<T>& factors = state.factors;
    const auto devices = static_cast<std::size_t>(state.runtime->devices());
    std::vector<transport::Range> touched(1);
    std::vector<transport::Range> needed;
    if (devices > 1) {
        touched = factors.resident_a->touched_columns();
        needed = entries_of(*factors.resident_b, *state.runtime, touched);
    }
    factors.a = factors.resident_a->view();
    factors.b = factors.resident_b->view();
    const std::vector<std::int64_t> limits = memory_limits(state);
    std::vector<RowSelection> selections;
    state.plan = plan_in_place(*state.runtime, factors.a, factors.b, factors.options, factors.resident_a->first_rows,
                               factors.resident_a->slices, touched, needed, limits, selections);
    state.parts.resize(devices);
    if (devices > 1) {
        std::vector<std::int64_t> ends;
        for (const transport::Range& entries : needed) {
            ends.push_back(entries.end);
        }
        const ResidentFactor<T>& b = *factors.resident_b;
        factors.exchange = open_exchange(*state.runtime, state.plan.exchange, b.slices, std::move(needed), &b.parts);
        factors.pointers = std::make_unique<PointerExchange>(*state.runtime, state.plan.exchange, b.first_rows,
                                                             b.slices, std::move(touched), std::move(ends));
        state.set_phase("plan", {core::seconds_since(begin)});
    }
    std::vector<double> gather(devices);
    std::vector<double> symbolic(devices);
    state.runtime
        ->submit(
            [&](engine::Worker& worker, engine::Rendezvous& meeting) {
                const auto rank = static_cast<std::size_t>(worker.rank());
                SpgemmShardPlan& shard = state.plan.shards[rank];
                auto part = make_part<T>(worker, limits[rank], shard, std::move(selections[rank]));
                const PartSeconds seconds = build_part(factors, shard, *part, worker, meeting);
                gather[rank] = seconds.gather;
                symbolic[rank] = seconds.symbolic;
                if (part->product) {
                    shard.products = shard.c_nnz_most = part->product->products();
                }
                state.parts[rank] = std::move(part);
            },
            {}, true)
        .get();
    if (!all_on_devices(state)) {
        if (factors.resident_b->goes()) {
            // Devices that had copied what they need have freed B: who asked for that makes it again, and keeps it.
            throw Error(ErrorCode::out_of_memory,
                        fmt::format("C ({} x {}) has no room on the devices", state.plan.rows, state.plan.cols));
        }
        take_apart(state);
        return false;
    }
    if (devices > 1) {
        state.set_phase("gather", gather);
    }
    state.set_phase("symbolic", symbolic);
    std::int64_t most = 0;
    for (const SpgemmShardPlan& shard : state.plan.shards) {
        state.plan.products += shard.products;
        most = std::max(most, shard.products);
    }
    const auto fair = static_cast<double>(state.plan.products) / static_cast<double>(devices);
    state.plan.product_imbalance = fair > 0 ? static_cast<double>(most) / fair - 1 : 0;
    finish_counts(state);
    return true;
}

}  // namespace

template <class T>
void build(ProductState<T>& state)
{
    const auto begin = core::Clock::now();
    Factors<T>& factors = state.factors;
    const auto devices = static_cast<std::size_t>(state.runtime->devices());
    factors.in_place = may_build_in_place(state);
    if (factors.in_place && build_in_place(state)) {
        return;
    }
    factors.in_place = false;
    if (factors.resident_a) {
        factors.resident_a->bring_structure(*state.runtime, true);
        factors.a = factors.resident_a->view();
    }
    if (factors.resident_b) {
        factors.resident_b->bring_structure(*state.runtime, false);
        factors.b = factors.resident_b->view();
    }
    std::vector<std::int64_t> limits;
    std::vector<RowSelection> selections;
    const auto plan = [&] {
        limits = memory_limits(state);
        const bool a_is_there = factors.resident_a && factors.resident_a->in_place();
        state.plan =
            plan_product(*state.runtime, factors.a, factors.b, factors.options,
                         a_is_there ? &factors.resident_a->first_rows : nullptr, limits, factors.work, &selections);
    };
    plan();
    if (b_is_on_devices(factors.b) && (state.plan.chunked() || (devices > 1 && state.plan.exchange == "none"))) {
        factors.resident_b->bring_all(*state.runtime);
        factors.b = factors.resident_b->view();
        plan();
    }
    const engine::Placing placing(admit(state, plan));
    state.parts.resize(devices);
    connect_devices(state, selections);
    state.set_phase("plan", {core::seconds_since(begin)});

    std::vector<double> gather(devices);
    std::vector<double> upload(devices);
    std::vector<double> symbolic(devices);
    state.runtime
        ->submit(
            [&](engine::Worker& worker, engine::Rendezvous& meeting) {
                const auto rank = static_cast<std::size_t>(worker.rank());
                state.parts[rank] =
                    make_part<T>(worker, limits[rank], state.plan.shards[rank], std::move(selections[rank]));
                const PartSeconds seconds =
                    build_part(factors, state.plan.shards[rank], *state.parts[rank], worker, meeting);
                gather[rank] = seconds.gather;
                upload[rank] = seconds.upload;
                symbolic[rank] = seconds.symbolic;
            },
            {}, true)
        .get();
    if (EntryExchange* const exchange = factors.exchange.get(); exchange != nullptr) {
        state.set_phase("gather", gather);
        // A part in runs has no room for its slice, if that is not another product's.
        exchange->given_up = exchange->given_up || (!all_on_devices(state) && !exchange->of_resident());
        for (std::size_t rank = 0; rank < devices; ++rank) {
            if (!state.parts[rank]->product) {
                exchange->needed[rank] = {};
            }
        }
    }
    state.set_phase("upload", upload);
    state.set_phase("symbolic", symbolic);
    finish_counts(state);
}

template <class T>
void compute(ProductState<T>& state, T alpha)
{
    const Renewed renewed = look_for_values(state);
    const Factors<T>& factors = state.factors;
    state.computed = false;
    const auto seconds = on_devices<T>(
        state,
        [&](engine::Worker& worker, ProductPart<T>& part, engine::Rendezvous& meeting) {
            if (renewed.a && factors.resident_a->in_place()) {
                factors.resident_a->refresh(worker, meeting);
            } else if (renewed.a && part.product) {
                renew_a(factors, part, worker, factors.a.values, static_cast<const T*>(nullptr));
            }
            if (renewed.b) {
                factors.resident_b->refresh(worker, meeting);
                renew_b(factors, part, worker, meeting, factors.b.values);
            }
            if (part.product) {
                fill_or_renew(part, worker, alpha);
            } else {
                compute_in_runs(factors, state.plan.shards[static_cast<std::size_t>(worker.rank())], part, worker,
                                meeting, alpha);
            }
        },
        true);
    state.computed = true;
    ++state.round;
    state.set_phase("numeric", seconds);
    finish_counts(state);
}

template <class T>
void finish(ProductState<T>& state)
{
    if (state.plan.chunked()) {
        return;
    }
    state.runtime
        ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
            ProductPart<T>& part = *state.parts[static_cast<std::size_t>(worker.rank())];
            if (part.product) {
                part.product->finish(worker.context());
            }
            part.a = {};
            part.b = {};
        })
        .get();
}

template <class T>
bool is_current(const ProductState<T>& state)
{
    const auto unchanged = [](const auto& factor) { return !factor || factor->unchanged(); };
    return state.computed && unchanged(state.factors.resident_a) && unchanged(state.factors.resident_b);
}

template <class T>
void update_values(ProductState<T>& state, const T* a_values, const T* b_values)
{
    Factors<T>& factors = state.factors;
    for (auto [made, values] : {std::pair{&state.made_a, &a_values}, std::pair{&state.made_b, &b_values}}) {
        if (*made && *values != nullptr) {
            distributed::update_values(*made, *values);
            *values = nullptr;
            state.computed = false;
        }
    }
    if ((factors.resident_a && a_values != nullptr) || (factors.resident_b && b_values != nullptr)) {
        throw Error(ErrorCode::usage,
                    fmt::format("update_values(): {} is on the devices, where its values are taken as they are",
                                factors.resident_a && a_values != nullptr ? "A" : "B"));
    }
    const auto seconds =
        on_devices<T>(state, [&](engine::Worker& worker, ProductPart<T>& part, engine::Rendezvous& meeting) {
            if (part.product && !factors.resident_a) {
                renew_a(factors, part, worker, a_values, b_values);
            }
            if (b_values != nullptr) {
                renew_b(factors, part, worker, meeting, b_values);
            }
        });
    factors.a.values = a_values != nullptr ? a_values : factors.a.values;
    factors.b.values = b_values != nullptr ? b_values : factors.b.values;
    state.computed = false;
    state.set_phase("update", seconds);
}

#define RMSP_INSTANTIATE(T)                                                                   \
    template ProductState<T>& checked(const std::shared_ptr<ProductState<T>>&);               \
    template std::vector<double> on_devices<T>(ProductState<T>&, const DeviceBody<T>&, bool); \
    template void build(ProductState<T>&);                                                    \
    template void compute(ProductState<T>&, T);                                               \
    template bool is_current(const ProductState<T>&);                                         \
    template void finish(ProductState<T>&);                                                   \
    template void update_values(ProductState<T>&, const T*, const T*);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::spgemm
