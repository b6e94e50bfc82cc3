#include "runtime/spgemm/spgemm.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/clock.hpp"
#include "runtime/engine/parallel_copy.hpp"

namespace rmsp {
namespace detail {
namespace {

/// A, B and the structure of C of all rows of the part, and memory for C.
template <class T>
void build_whole(ProductState<T>& state, ProductPart<T>& part, engine::Worker& worker, double& upload, double& symbolic)
{
    const auto begin = core::Clock::now();
    if (state.exchange && !state.exchange->given_up) {
        take_exchanged(state, part, worker);
    } else {
        upload_rows(worker, part.budget, state.b, part.b_rows, 0, state.b.rows, part.b);
    }
    if (state.resident_a && state.resident_a->in_place()) {
        const auto rank = static_cast<std::size_t>(worker.rank());
        const auto& there = state.resident_a->parts[rank];
        part.a.shard = {part.end_row - part.first_row,
                        state.a.cols,
                        state.plan.shards[rank].a_nnz,
                        there.row_ptr,
                        there.col_idx,
                        there.values};
    } else {
        upload_a(worker, part.budget, state.a, state.b, part.first_row, part.end_row, part.b_rows, part.b, part.a);
    }
    worker.stream().synchronize();
    upload = core::seconds_since(begin);
    part.product = prepare_product(worker, part.budget, state.options, part.a, part.b);
    check_counts(*part.product, products_of(state.work, part.first_row, part.end_row), state.b.cols);
    const auto nnz = static_cast<std::size_t>(part.product->nnz());
    part.col_idx = kernels::DeviceArray<std::int32_t>(part.budget, nnz);
    part.values = kernels::DeviceArray<T>(part.budget, nnz);
    worker.stream().synchronize();
    symbolic = core::seconds_since(begin) - upload;
}

template <class T>
void clear(ProductPart<T>& part)
{
    part.col_idx.reset();
    part.values.reset();
    part.product.reset();
    part.a = {};
    part.b = {};
    part.columns_known = false;
}

/// Makes the part ready, and decides whether C stays on the device.
template <class T>
void build_part(ProductState<T>& state, engine::Worker& worker, engine::Rendezvous& meeting, double& gather,
                double& upload, double& symbolic)
{
    const auto rank = static_cast<std::size_t>(worker.rank());
    ProductPart<T>& part = *state.parts[rank];
    SpgemmShardPlan& plan = state.plan.shards[rank];
    if (state.exchange) {
        const auto begin = core::Clock::now();
        if (make_room(state, part, worker, meeting)) {
            exchange_columns(state, worker, meeting);
            exchange_values(state, worker, meeting, state.b.values);
            worker.stream().synchronize();
        } else if (state.exchange->of_resident()) {
            plan.chunks = runs_of(plan);
        }
        gather = core::seconds_since(begin);
    }
    if (plan.chunks > 1) {
        return;
    }
    try {
        build_whole(state, part, worker, upload, symbolic);
        plan.c_nnz = part.product->nnz();
        constexpr auto entry_bytes = static_cast<std::int64_t>(sizeof(T) + sizeof(std::int32_t));
        plan.c_bytes = plan.c_nnz * entry_bytes + (plan.end_row - plan.first_row + 1) * 8;
    } catch (const Error& e) {
        // The estimate was too low, or others took memory since.
        if (e.code() != ErrorCode::out_of_memory || part.end_row - part.first_row < 2) {
            throw;
        }
        clear(part);
        plan.chunks = runs_of(plan);
    }
    plan.peak_bytes = part.budget.peak();
}

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
void set_phase(ProductState<T>& state, const char* name, std::vector<double> seconds)
{
    for (PhaseTimes& phase : state.phases) {
        if (phase.name == name) {
            phase.seconds = std::move(seconds);
            return;
        }
    }
    state.phases.push_back({name, std::move(seconds), true});
}

template <class T>
void renew_a(ProductState<T>& state, ProductPart<T>& part, engine::Worker& worker, const T* a_values, const T* b_values)
{
    const RowSelection a_rows = consecutive(state.a, part.first_row, part.end_row);
    if (part.a.values.size() == 0 && a_rows.nnz > 0 && a_values != b_values) {
        // A's values were a part of B's; they are two matrices from now on.
        part.a.values = kernels::DeviceArray<T>(part.budget, static_cast<std::size_t>(a_rows.nnz));
        worker.stream().copy(part.a.values.data(), part.a.shard.values,
                             static_cast<std::size_t>(a_rows.nnz) * sizeof(T));
        part.a.shard.values = part.a.values.data();
    }
    if (a_values != nullptr && part.a.values.size() > 0) {
        upload_values(worker, state.a.row_ptr, a_rows, a_values, part.a.values.data());
    }
}

/// Every worker of the job calls it.
template <class T>
void renew_b(ProductState<T>& state, ProductPart<T>& part, engine::Worker& worker, engine::Rendezvous& meeting,
             const T* values)
{
    if (state.exchange && !state.exchange->given_up) {
        exchange_values(state, worker, meeting, values);
    } else if (part.product) {
        upload_values(worker, state.b.row_ptr, part.b_rows, values, part.b.values.data());
    }
}

/// Entries of C before those of a device.
template <class T>
std::int64_t entries_before(const ProductState<T>& state, int device)
{
    std::int64_t begin = 0;
    for (int rank = 0; rank < device; ++rank) {
        begin += state.plan.shards[static_cast<std::size_t>(rank)].c_nnz;
    }
    return begin;
}

/// Row pointers of `rows` rows with `begin` entries before them; each row's length is held against its products.
void place_row_pointers(const std::int64_t* local, std::int64_t first_row, std::int64_t rows, std::int64_t begin,
                        const HostVector<std::int64_t>& work, std::int64_t cols, std::int64_t* row_ptr, int threads)
{
    std::int64_t wrong = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : wrong)
    for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t n = local[i + 1] - local[i];
        wrong += n < 0 || n > std::min(products_of(work, first_row + i, first_row + i + 1), cols) ? 1 : 0;
        row_ptr[first_row + i + 1] = begin + local[i + 1];
    }
    if (wrong > 0) {
        throw Error(ErrorCode::internal,
                    fmt::format("{} rows of A B from row {} on have more entries than products", wrong, first_row));
    }
}

}  // namespace

int threads_of(engine::Worker& worker)
{
    const DeviceInfo& info = worker.device().info();
    return info.kind == DeviceKind::host ? std::max(info.compute_units, 1)
                                         : std::max(static_cast<int>(info.placement.cpus.size()), 1);
}

template <class T>
std::unique_ptr<kernels::SpgemmOperator<T>> prepare_product(engine::Worker& worker, MemoryBudget& memory,
                                                            const SpgemmOptions& options, const DeviceRows<T>& left,
                                                            const DeviceRows<T>& right)
{
    const kernels::CsrShard<T>& a = left.shard;
    const kernels::CsrShard<T>& b = right.shard;
    const kernels::SpgemmKernel<T>& kernel =
        kernels::choose_spgemm<T>(worker.device().info().kind, options.kernel, options.determinism);
    if (const char* const why = kernel.unsupported == nullptr ? nullptr : kernel.unsupported(a, b); why != nullptr) {
        throw Error(ErrorCode::usage,
                    fmt::format("SpGEMM kernel \"{}\" cannot multiply {} x {} ({} nonzeros) by {} x {} ({}): {}",
                                kernel.info.name, a.rows, a.cols, a.nnz, b.rows, b.cols, b.nnz, why));
    }
    return kernel.prepare(a, b, {options.accumulator, memory.left(), right.filled, right.selected, left.in_b},
                          context_of(worker, memory));
}

template <class T>
void check_counts(const kernels::SpgemmOperator<T>& product, std::int64_t products, std::int64_t cols)
{
    if (product.products() != products || product.nnz() < 0 || product.nnz() > products ||
        (cols == 0 && product.nnz() > 0)) {
        throw Error(ErrorCode::internal,
                    fmt::format("the SpGEMM kernel found {} products and {} entries where {} products were planned",
                                product.products(), product.nnz(), products));
    }
}

template <class T>
void fill_or_renew(ProductPart<T>& part, engine::Worker& worker, T alpha)
{
    const kernels::Context context = context_of(worker, part.budget);
    if (part.columns_known) {
        part.product->numeric(alpha, part.a.shard.values, part.b.shard.values, part.col_idx.data(), part.values.data(),
                              context);
    } else {
        part.product->fill(alpha, part.a.shard.values, part.b.shard.values, part.col_idx.data(), part.values.data(),
                           context);
        part.columns_known = true;
    }
}

template <class T>
std::vector<double> on_devices(ProductState<T>& state, const DeviceBody<T>& body)
{
    std::vector<double> seconds(state.parts.size());
    state.runtime
        ->submit(
            [&](engine::Worker& worker, engine::Rendezvous& meeting) {
                const auto begin = core::Clock::now();
                body(worker, *state.parts[static_cast<std::size_t>(worker.rank())], meeting);
                worker.stream().synchronize();
                seconds[static_cast<std::size_t>(worker.rank())] = core::seconds_since(begin);
            },
            {}, true)
        .get();
    return seconds;
}

template <class T>
ProductState<T>& checked(const std::shared_ptr<ProductState<T>>& state)
{
    if (!state) {
        throw Error(ErrorCode::usage, "this SparseProduct is empty; make one from a Runtime and two matrices");
    }
    return *state;
}

template <class T>
ProductState<T>::~ProductState()
{
    const std::shared_ptr<EntryExchange> exchanged = std::move(exchange);
    for (std::size_t rank = 0; runtime && rank < parts.size(); ++rank) {
        ProductPart<T>* const part = parts[rank].release();
        runtime->release(static_cast<int>(rank), [part, exchanged, rank] {
            if (exchanged && exchanged->channel) {
                exchanged->channel->close(static_cast<int>(rank));
            }
            delete part;
        });
    }
}

namespace {

/// Row pointers of a part of C that is on its device, to their place in those of C.
template <class T>
void download_row_pointers(const ProductState<T>& state, const ProductPart<T>& part, engine::Worker& worker,
                           std::int64_t begin, std::int64_t* row_ptr)
{
    const std::int64_t rows = part.end_row - part.first_row;
    HostVector<std::int64_t> local(static_cast<std::size_t>(rows) + 1);
    worker.device().download(worker.stream(), local.data(), part.product->row_ptr(),
                             local.size() * sizeof(std::int64_t));
    worker.stream().synchronize();
    place_row_pointers(local.data(), part.first_row, rows, begin, state.work, state.plan.cols, row_ptr,
                       threads_of(worker));
}

/// C without entries.
template <class T>
CsrMatrix<T> empty_c(const SpgemmPlan& plan)
{
    CsrMatrix<T> c;
    c.rows = plan.rows;
    c.cols = plan.cols;
    c.row_ptr.resize(static_cast<std::size_t>(c.rows) + 1);
    c.row_ptr[0] = 0;
    return c;
}

}  // namespace

template <class T>
CsrMatrix<T> download_c(ProductState<T>& state)
{
    CsrMatrix<T> c = empty_c<T>(state.plan);
    HostVector<std::int32_t> col_idx(static_cast<std::size_t>(state.plan.c_nnz));
    c.values.resize(static_cast<std::size_t>(state.plan.c_nnz));
    const auto seconds = on_devices<T>(state, [&](engine::Worker& worker, ProductPart<T>& part, engine::Rendezvous&) {
        std::int64_t begin = entries_before(state, worker.rank());
        const int threads = threads_of(worker);
        if (part.product) {
            engine::Device& device = worker.device();
            const auto nnz = static_cast<std::size_t>(part.product->nnz());
            device.download(worker.stream(), col_idx.data() + begin, part.col_idx.data(), nnz * sizeof(std::int32_t));
            device.download(worker.stream(), c.values.data() + begin, part.values.data(), nnz * sizeof(T));
            download_row_pointers(state, part, worker, begin, c.row_ptr.data());
            return;
        }
        for (const HostRows<T>& chunk : part.chunks) {
            const auto rows = static_cast<std::int64_t>(chunk.row_ptr.size()) - 1;
            place_row_pointers(chunk.row_ptr.data(), chunk.first_row, rows, begin, state.work, c.cols, c.row_ptr.data(),
                               threads);
            engine::parallel_ranges(threads, chunk.values.size() * sizeof(T), [&](std::size_t first, std::size_t n) {
                std::memcpy(reinterpret_cast<std::byte*>(c.values.data() + begin) + first,
                            reinterpret_cast<const std::byte*>(chunk.values.data()) + first, n);
            });
            engine::parallel_ranges(
                threads, chunk.col_idx.size() * sizeof(std::int32_t), [&](std::size_t first, std::size_t n) {
                    std::memcpy(reinterpret_cast<std::byte*>(col_idx.data() + begin) + first,
                                reinterpret_cast<const std::byte*>(chunk.col_idx.data()) + first, n);
                });
            begin += static_cast<std::int64_t>(chunk.values.size());
        }
    });
    set_phase(state, "download", seconds);
    c.col_idx = std::move(col_idx);
    return c;
}

namespace {

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
    std::vector<transport::Range> needed = needed_entries(selections, state.b.row_ptr);
    if (b_is_on_devices(state.b)) {
        open_exchange(state, state.resident_b->slices, std::move(needed));
    } else if (state.plan.exchange != "none") {
        std::vector<std::int64_t> slices = entry_slices(needed);
        open_exchange(state, std::move(slices), std::move(needed));
    }
}

/// Plans, and makes the parts.
template <class T>
void build(ProductState<T>& state)
{
    const auto begin = core::Clock::now();
    const auto devices = static_cast<std::size_t>(state.runtime->devices());
    std::vector<std::int64_t> limits(devices);
    state.runtime
        ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
            limits[static_cast<std::size_t>(worker.rank())] = spgemm_limit(state.options, worker.device().free_bytes());
        })
        .get();
    std::vector<RowSelection> selections;
    const auto plan = [&] {
        const bool a_is_there = state.resident_a && state.resident_a->in_place();
        state.plan =
            make_spgemm_plan(*state.runtime, state.a, state.b, state.options,
                             a_is_there ? &state.resident_a->first_rows : nullptr, limits, state.work, &selections);
    };
    plan();
    if (b_is_on_devices(state.b) && (state.plan.chunked() || (devices > 1 && state.plan.exchange == "none"))) {
        state.resident_b->bring_all(*state.runtime);
        state.b = state.resident_b->view();
        plan();
    }
    state.parts.resize(devices);
    connect_devices(state, selections);
    set_phase(state, "plan", {core::seconds_since(begin)});

    std::vector<double> gather(devices);
    std::vector<double> upload(devices);
    std::vector<double> symbolic(devices);
    state.runtime
        ->submit(
            [&](engine::Worker& worker, engine::Rendezvous& meeting) {
                const auto rank = static_cast<std::size_t>(worker.rank());
                auto part = std::make_unique<ProductPart<T>>(worker.device().make_pool(worker.stream()), limits[rank]);
                part->first_row = state.plan.shards[rank].first_row;
                part->end_row = state.plan.shards[rank].end_row;
                part->b_rows = std::move(selections[rank]);
                state.parts[rank] = std::move(part);
                build_part(state, worker, meeting, gather[rank], upload[rank], symbolic[rank]);
            },
            {}, true)
        .get();
    if (state.exchange) {
        set_phase(state, "gather", gather);
        // A part in runs has no room for its slice, if that is not another product's.
        state.exchange->given_up =
            state.exchange->given_up || (!all_on_devices(state) && !state.exchange->of_resident());
        for (std::size_t rank = 0; rank < devices; ++rank) {
            if (!state.parts[rank]->product) {
                state.exchange->needed[rank] = {};
            }
        }
    }
    set_phase(state, "upload", upload);
    set_phase(state, "symbolic", symbolic);
    finish_counts(state);
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
    Renewed renewed;
    if (state.resident_a) {
        renewed.a = look(*state.resident_a, state.a);
    }
    if (state.resident_b) {
        renewed.b = look(*state.resident_b, state.b);
    }
    return renewed;
}

}  // namespace
}  // namespace detail

template <class T>
SparseProduct<T>::SparseProduct(Runtime& runtime, const SpgemmOperand<T>& a, const SpgemmOperand<T>& b,
                                const SpgemmOptions& options)
{
    auto state = std::make_shared<detail::ProductState<T>>();
    state->runtime = detail::checked(runtime.state_);
    state->runtime->require_live();
    state->a = a.view_;
    state->b = b.view_;
    state->options = options;
    state->resident_a = detail::ResidentFactor<T>::make(*state->runtime, a, "A");
    state->resident_b = detail::ResidentFactor<T>::make(*state->runtime, b, "B");
    if (state->resident_a) {
        state->resident_a->bring_structure(*state->runtime, true);
        state->a = state->resident_a->view();
    }
    if (state->resident_b) {
        state->resident_b->bring_structure(*state->runtime, false);
        state->b = state->resident_b->view();
    }
    detail::build(*state);
    state_ = std::move(state);
}

template <class T>
SpgemmPlan SparseProduct<T>::plan(const Runtime& runtime, const CsrView<T>& a, const CsrView<T>& b,
                                  const SpgemmOptions& options)
{
    std::vector<std::int64_t> limits;
    for (const DeviceInfo& info : runtime.devices()) {
        limits.push_back(detail::spgemm_limit(options, info.kind == DeviceKind::cuda ? info.memory_bytes : 0));
    }
    HostVector<std::int64_t> work;
    return detail::make_spgemm_plan(*detail::checked(runtime.state_), a, b, options, nullptr, limits, work, nullptr);
}

template <class T>
const SpgemmPlan& SparseProduct<T>::plan() const
{
    return detail::checked(state_).plan;
}

template <class T>
std::int64_t SparseProduct<T>::rows() const
{
    return detail::checked(state_).plan.rows;
}

template <class T>
std::int64_t SparseProduct<T>::cols() const
{
    return detail::checked(state_).plan.cols;
}

template <class T>
std::int64_t SparseProduct<T>::nnz() const
{
    return detail::checked(state_).plan.c_nnz;
}

template <class T>
void SparseProduct<T>::compute(T alpha)
{
    detail::ProductState<T>& state = detail::checked(state_);
    const detail::Renewed renewed = detail::look_for_values(state);
    state.computed = false;
    const auto seconds = detail::on_devices<T>(
        state, [&](engine::Worker& worker, detail::ProductPart<T>& part, engine::Rendezvous& meeting) {
            if (renewed.a && state.resident_a->in_place()) {
                state.resident_a->refresh(worker, meeting);
            } else if (renewed.a && part.product) {
                detail::renew_a(state, part, worker, state.a.values, static_cast<const T*>(nullptr));
            }
            if (renewed.b) {
                state.resident_b->refresh(worker, meeting);
                detail::renew_b(state, part, worker, meeting, state.b.values);
            }
            if (part.product) {
                detail::fill_or_renew(part, worker, alpha);
            } else {
                detail::compute_chunked(state, part, worker, alpha);
            }
        });
    state.computed = true;
    ++state.round;
    detail::set_phase(state, "numeric", seconds);
    detail::finish_counts(state);
}

template <class T>
void SparseProduct<T>::update_values(const T* a_values, const T* b_values)
{
    detail::ProductState<T>& state = detail::checked(state_);
    if ((state.resident_a && a_values != nullptr) || (state.resident_b && b_values != nullptr)) {
        throw Error(ErrorCode::usage,
                    fmt::format("update_values(): {} is on the devices, where its values are taken as they are",
                                state.resident_a && a_values != nullptr ? "A" : "B"));
    }
    const auto seconds = detail::on_devices<T>(
        state, [&](engine::Worker& worker, detail::ProductPart<T>& part, engine::Rendezvous& meeting) {
            if (part.product && !state.resident_a) {
                detail::renew_a(state, part, worker, a_values, b_values);
            }
            if (b_values != nullptr) {
                detail::renew_b(state, part, worker, meeting, b_values);
            }
        });
    state.a.values = a_values != nullptr ? a_values : state.a.values;
    state.b.values = b_values != nullptr ? b_values : state.b.values;
    state.computed = false;
    detail::set_phase(state, "update", seconds);
}

template <class T>
CsrMatrix<T> SparseProduct<T>::download() const
{
    detail::ProductState<T>& state = detail::checked(state_);
    if (!state.computed) {
        throw Error(ErrorCode::usage, "SparseProduct::download() before compute(): C has no values yet");
    }
    CsrMatrix<T> c = detail::download_c(state);
    return state.options.prune_below > 0 ? pruned<T>(c.view(), state.options.prune_below) : std::move(c);
}

template <class T>
std::vector<PhaseTimes> SparseProduct<T>::phases() const
{
    return detail::checked(state_).phases;
}

template <class T>
CsrMatrix<T> multiply(Runtime& runtime, const CsrView<T>& a, const CsrView<T>& b, const SpgemmOptions& options, T alpha)
{
    SparseProduct<T> product(runtime, a, b, options);
    product.compute(alpha);
    return product.download();
}

template <class T>
CsrMatrix<T> multiply_add(Runtime& runtime, T alpha, const CsrView<T>& a, const CsrView<T>& b, T beta,
                          const CsrView<T>& d, const SpgemmOptions& options)
{
    if (d.rows != a.rows || d.cols != b.cols) {
        throw Error(ErrorCode::usage, fmt::format("D is {} x {}, but A B is {} x {}", d.rows, d.cols, a.rows, b.cols));
    }
    SpgemmOptions whole = options;
    whole.prune_below = 0;
    const CsrMatrix<T> product = multiply(runtime, a, b, whole, alpha);
    CsrMatrix<T> sum = add(T{1}, product.view(), beta, d);
    return options.prune_below > 0 ? pruned<T>(sum.view(), options.prune_below) : std::move(sum);
}

#define RMSP_INSTANTIATE(T)                                                                                     \
    template class SparseProduct<T>;                                                                            \
    template CsrMatrix<T> multiply(Runtime&, const CsrView<T>&, const CsrView<T>&, const SpgemmOptions&, T);    \
    template CsrMatrix<T> multiply_add(Runtime&, T, const CsrView<T>&, const CsrView<T>&, T, const CsrView<T>&, \
                                       const SpgemmOptions&);                                                   \
    template struct detail::ProductState<T>;                                                                    \
    template CsrMatrix<T> detail::download_c(ProductState<T>&);                                                 \
    template std::unique_ptr<kernels::SpgemmOperator<T>> detail::prepare_product(                               \
        engine::Worker&, MemoryBudget&, const SpgemmOptions&, const DeviceRows<T>&, const DeviceRows<T>&);      \
    template void detail::check_counts(const kernels::SpgemmOperator<T>&, std::int64_t, std::int64_t);          \
    template void detail::fill_or_renew(ProductPart<T>&, engine::Worker&, T);                                   \
    template std::vector<double> detail::on_devices<T>(ProductState<T>&, const DeviceBody<T>&);                 \
    template detail::ProductState<T>& detail::checked(const std::shared_ptr<ProductState<T>>&);
RMSP_INSTANTIATE(float)
RMSP_INSTANTIATE(double)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
