#include <rmsp/runtime.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kernels/support/support.hpp>

#include "runtime/caller_array.hpp"
#include "runtime/cuda/cuda_backend.hpp"
#include "runtime/doctor_cache.hpp"
#include "runtime/host/host_device.hpp"
#include "runtime/predict.hpp"
#include "runtime/state.hpp"

namespace rmsp {
namespace {

/// What `devices` asks for.
struct DeviceChoice {
    DeviceKind kind = DeviceKind::host;
    std::vector<int> ordinals;  // GPUs
    int host_devices = 0;
    int threads_each = 0;  // 0: the cores divided evenly
};

[[noreturn]] void throw_bad_devices(const std::string& text, const std::string& why)
{
    throw Error(
        ErrorCode::usage,
        fmt::format(
            "devices \"{}\": {}; write \"auto\", GPU numbers such as \"0,1\", \"shared:0,0\" where GPUs are to stand "
            "for several devices, or \"host:4\" or \"host:4x2\"",
            text, why));
}

int parse_number(const std::string& text, std::string_view word, int least)
{
    int value = 0;
    const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (status != std::errc{} || end != word.data() + word.size() || value < least) {
        throw_bad_devices(text, fmt::format("\"{}\" is not a number of at least {}", word, least));
    }
    return value;
}

DeviceChoice parse_devices(const std::string& text, const Topology& topology, std::size_t gpus)
{
    constexpr std::string_view shared = "shared:";
    std::string_view view = text;
    const bool shares = view.starts_with(shared);
    DeviceChoice choice;
    const auto add_gpu = [&](int ordinal) {
        if (ordinal >= static_cast<int>(gpus)) {
            throw Error(ErrorCode::device,
                        fmt::format("devices \"{}\": there is no GPU {}; this machine offers {} GPU{}", text, ordinal,
                                    gpus, gpus == 1 ? "" : "s"));
        }
        if (!shares && std::find(choice.ordinals.begin(), choice.ordinals.end(), ordinal) != choice.ordinals.end()) {
            throw_bad_devices(text, fmt::format("GPU {} is named twice", ordinal));
        }
        choice.ordinals.push_back(ordinal);
    };
    if (text == "auto") {
        if (gpus > 0) {
            choice.kind = DeviceKind::cuda;
            for (std::size_t i = 0; i < gpus; ++i) {
                add_gpu(static_cast<int>(i));
            }
        } else {
            // Two at least, so that partition and merge are real; one for each NUMA node where there are more.
            choice.host_devices = std::max(2, static_cast<int>(topology.nodes.size()));
        }
        return choice;
    }
    if (view.starts_with("host:")) {
        const std::string_view counts = view.substr(5);
        const auto cross = counts.find('x');
        choice.host_devices = parse_number(text, counts.substr(0, cross), 1);
        if (cross != std::string_view::npos) {
            choice.threads_each = parse_number(text, counts.substr(cross + 1), 1);
        }
        constexpr int most_devices = 1024;
        constexpr int most_threads = 4096;
        if (choice.host_devices > most_devices ||
            std::int64_t{choice.host_devices} * std::max(1, choice.threads_each) > most_threads) {
            throw_bad_devices(
                text, fmt::format("more than {} devices, or {} threads of all of them", most_devices, most_threads));
        }
        return choice;
    }
    choice.kind = DeviceKind::cuda;
    view.remove_prefix(shares ? shared.size() : 0);
    std::size_t begin = 0;
    while (begin <= view.size()) {
        const std::size_t end = std::min(view.find(',', begin), view.size());
        add_gpu(parse_number(text, view.substr(begin, end - begin), 0));
        begin = end + 1;
    }
    return choice;
}

/// GPUs as CUDA counts them, with the NUMA nodes that the platform gives for their PCI addresses.
std::vector<GpuDescription> locate(std::vector<GpuDescription> gpus, const Topology& topology)
{
    for (auto& gpu : gpus) {
        const auto known = std::find_if(topology.gpus.begin(), topology.gpus.end(),
                                        [&](const auto& other) { return other.pci_bus_id == gpu.pci_bus_id; });
        if (known != topology.gpus.end()) {
            gpu.numa_node = known->numa_node;
            gpu.numa_source = known->numa_source;
        } else {
            gpu.numa_source = fmt::format("no PCI device {} in the topology", gpu.pci_bus_id);
        }
    }
    return gpus;
}

int core_count(const Topology& topology)
{
    std::size_t cores = 0;
    for (const NumaNode& node : topology.nodes) {
        cores += node.cores.size();
    }
    return static_cast<int>(cores);
}

}  // namespace

namespace detail {

std::unique_ptr<RuntimeState> open_devices(const RuntimeOptions& options)
{
    auto state = std::make_unique<RuntimeState>();
    state->options = options;
    state->cache = runtime::Cache(options.cache);
    const bool live = options.topology_file.empty();
    state->topology = live ? Topology::detect() : Topology::load(options.topology_file);
    const Topology& topology = state->topology;

    const bool may_use_gpus = !std::string_view(options.devices).starts_with("host:");
    auto gpus =
        live ? (may_use_gpus ? locate(runtime::cuda_gpus(), topology) : std::vector<GpuDescription>{}) : topology.gpus;
    const DeviceChoice choice = parse_devices(options.devices, topology, gpus.size());
    std::vector<Placement> placements;
    if (choice.kind == DeviceKind::cuda) {
        std::vector<GpuDescription> chosen;
        for (const int ordinal : choice.ordinals) {
            chosen.push_back(gpus[static_cast<std::size_t>(ordinal)]);
        }
        // Ranks go by node, which is the order of the two-level split.
        const auto placed = place_gpus(topology, chosen, options.bind);
        std::vector<std::size_t> order(chosen.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return placed[a].node < placed[b].node; });
        gpus.clear();
        for (const std::size_t i : order) {
            gpus.push_back(chosen[i]);
            placements.push_back(placed[i]);
            placements.back().device = static_cast<int>(placements.size()) - 1;
        }
    } else {
        placements = place_host_devices(topology, choice.host_devices, choice.threads_each, options.bind);
    }
    const std::size_t count = placements.size();
    if (!options.weights.empty() && options.weights.size() != count) {
        throw Error(ErrorCode::usage,
                    fmt::format("runtime.weights: {} weights for {} devices", options.weights.size(), count));
    }
    for (const double weight : options.weights) {
        if (!(weight > 0) || std::isinf(weight)) {
            throw Error(ErrorCode::usage, fmt::format("runtime.weights: {} is not a number above 0", weight));
        }
    }
    if (!(options.limit_gbs >= 0) || std::isinf(options.limit_gbs)) {
        throw Error(ErrorCode::usage,
                    fmt::format("runtime.limit_gbs: {} is not a number of at least 0", options.limit_gbs));
    }

    std::vector<int> sharers(count, 1);
    for (std::size_t i = 0; i < count; ++i) {
        DeviceInfo info;
        info.kind = choice.kind;
        info.placement = placements[i];
        info.limit_gbs = options.limit_gbs;
        const int node = placements[i].node;
        if (node >= 0) {
            info.numa_node = topology.nodes[static_cast<std::size_t>(node)].os_index;
        }
        if (choice.kind == DeviceKind::cuda) {
            info.index = gpus[i].index;
            info.name = gpus[i].name.empty() ? "GPU" : gpus[i].name;
            sharers[i] = static_cast<int>(std::count(choice.ordinals.begin(), choice.ordinals.end(), info.index));
            if (sharers[i] > 1) {
                info.name += fmt::format(" (shared by {})", sharers[i]);
            }
            info.pci_bus_id = gpus[i].pci_bus_id;
            if (gpus[i].numa_node < 0) {
                state->notes.push_back(fmt::format("cuda:{}: {}", info.index, placements[i].reason));
            }
        } else {
            info.index = static_cast<int>(i);
            const auto placed = static_cast<int>(placements[i].threads.size());
            const int even =
                core_count(topology) / static_cast<int>(count);  // not bound, so not placed on cores either
            info.compute_units = std::max(1, choice.threads_each > 0 ? choice.threads_each
                                             : placed > 0            ? placed
                                                                     : even);
            info.name = fmt::format("({} thread{})", info.compute_units, info.compute_units == 1 ? "" : "s");
        }
        state->infos.push_back(std::move(info));
    }
    if (!live) {
        state->connection.name = "unknown";
        state->connection.reason = "a described machine";
        return state;
    }

    for (std::size_t i = 0; i < count; ++i) {
        state->workers.push_back(std::make_unique<runtime::Worker>(
            static_cast<int>(i), placements[i], [info = state->infos[i], n = sharers[i]] {
                return info.kind == DeviceKind::cuda ? runtime::make_cuda_device(info, info.index, n)
                                                     : runtime::make_host_device(info);
            }));
    }
    for (std::size_t i = 0; i < count; ++i) {
        state->workers[i]->wait_until_open();
        state->infos[i] = state->workers[i]->device().info();
    }
    return state;
}

}  // namespace detail

namespace {

void check_length(const char* what, std::int64_t has, std::int64_t wants)
{
    if (has != wants) {
        throw Error(ErrorCode::usage, fmt::format("{} has {} entries; the matrix needs {}", what, has, wants));
    }
}

/// Row pointers of coordinates that are sorted by row.
template <class T>
HostVector<std::int64_t> row_pointers(const detail::Stored<T>& a)
{
    HostVector<std::int64_t> row_ptr(static_cast<std::size_t>(a.rows) + 1);
    a.row_idx.visit([&](const auto* row) {
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i <= a.nnz; ++i) {
            const std::int64_t end = i == a.nnz ? a.rows : std::int64_t{row[i]};
            for (std::int64_t r = i == 0 ? 0 : std::int64_t{row[i - 1]} + 1; r <= end; ++r) {
                row_ptr[static_cast<std::size_t>(r)] = i;
            }
        }
    });
    return row_ptr;
}

/// A caller's matrix on its way to the devices: checked, and sorted if that was asked for.
template <class T>
class Prepared {
public:
    template <class View>
    Prepared(const View& a, const DistributeOptions& options) : options_(options)
    {
        const auto begin = std::chrono::steady_clock::now();
        const auto seconds = [&] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        };
        validate(a);
        const double validated = seconds();
        setup_.push_back({"validate", {validated}, true});
        stored_ = detail::stored(a);
        if constexpr (std::is_same_v<View, CooView<T>>) {
            if (stored_.order == CooOrder::unsorted && options.unsorted == Unsorted::sort) {
                copy_ = sort_by_row(a);
                stored_ = detail::stored(copy_->view());
                options_.borrow = false;
                setup_.push_back({"sort", {seconds() - validated}, true});
            }
            if (options.mode == Mode::streamed && stored_.order == CooOrder::by_row) {
                // Row pointers cost one pass, and spare sending the row indices at each apply.
                const double before = seconds();
                row_ptr_ = row_pointers(stored_);
                stored_.row_ptr = IndexView(row_ptr_.data());
                stored_.coordinates = false;
                setup_.push_back({"row pointers", {seconds() - before}, true});
            }
        }
    }

    Plan plan(const detail::RuntimeState& runtime) const
    {
        Plan plan = detail::make_plan(runtime, stored_, options_);
        detail::plan_exchange(plan, runtime, stored_, options_);
        return plan;
    }
    /// Once.
    std::shared_ptr<detail::MatrixState<T>> distribute(const std::shared_ptr<detail::RuntimeState>& runtime)
    {
        auto matrix = detail::distribute(runtime, stored_, options_);
        matrix->sorted_copy = copy_.has_value();
        if (options_.mode == Mode::streamed) {
            matrix->kept_row_ptr = std::move(row_ptr_);
            matrix->kept_copy = copy_ ? std::move(*copy_) : CooMatrix<T>();
        }
        matrix->setup.insert(matrix->setup.begin(), setup_.begin(), setup_.end());
        return matrix;
    }

private:
    DistributeOptions options_;
    detail::Stored<T> stored_;
    std::optional<CooMatrix<T>> copy_;
    HostVector<std::int64_t> row_ptr_;
    std::vector<PhaseTimes> setup_;
};

template <class T, class View>
std::shared_ptr<detail::MatrixState<T>> distribute_view(const std::shared_ptr<detail::RuntimeState>& runtime,
                                                        const View& a, const DistributeOptions& options)
{
    detail::checked(runtime)->require_live();
    return Prepared<T>(a, options).distribute(runtime);
}

/// Applies with vectors in host memory.
template <class T>
std::future<void> submit_apply(const std::shared_ptr<detail::MatrixState<T>>& matrix, bool of_transpose, T alpha,
                               const T* x, T beta, T* y)
{
    detail::require_array("x", x, detail::x_side(*matrix, of_transpose).size());
    detail::require_array("y", y, detail::x_side(*matrix, !of_transpose).size());
    return matrix->runtime->submit(
        [matrix, of_transpose, alpha, beta, source = detail::Source<T>{x, nullptr},
         target = detail::Target<T>{y, nullptr}](runtime::Worker& worker, runtime::Rendezvous& meeting) {
            detail::apply_on(*matrix, worker, meeting, alpha, source, beta, target, nullptr, of_transpose);
        },
        [matrix, y, of_transpose] { detail::finish_host_y(*matrix, y, of_transpose); }, true);
}

/// Applies with vectors on the devices.
template <class T>
std::future<void> submit_apply(const std::shared_ptr<detail::MatrixState<T>>& matrix, bool of_transpose, T alpha,
                               const std::shared_ptr<detail::VectorState<T>>& x, T beta,
                               const std::shared_ptr<detail::VectorState<T>>& y)
{
    const detail::Side& side = detail::x_side(*matrix, of_transpose);
    const detail::Side& other = detail::x_side(*matrix, !of_transpose);
    check_length("x", x->size, side.size());
    check_length("y", y->size, other.size());
    if (x->runtime != matrix->runtime || y->runtime != matrix->runtime) {
        throw Error(ErrorCode::usage, "the matrix and its vectors belong to different runtimes");
    }
    const char* const y_maker = of_transpose ? "make_x(Layout::rows)" : "make_y()";
    if (y->layout != Layout::rows || y->offsets != other.slices) {
        throw Error(ErrorCode::usage, fmt::format("y is not sliced as the matrix's {} are; make it with {}",
                                                  of_transpose ? "columns" : "rows", y_maker));
    }
    if (x == y) {
        throw Error(ErrorCode::usage, "x and y are the same vector");
    }
    for (const auto& [name, vector] : {std::pair{"x", &x}, {"y", &y}}) {
        const auto& order = (*vector)->order;
        if (order && (of_transpose || order->matrix != matrix)) {
            throw Error(ErrorCode::usage,
                        fmt::format("{} is in the order of {}; make it with Order::matrix", name,
                                    of_transpose ? "a kernel, which products with the transpose do not take"
                                                 : "another matrix's kernel"));
        }
    }
    if (!detail::multiplies_by_rows(matrix->plan, of_transpose) && matrix->runtime->connection.transport) {
        if (x->layout == Layout::rows && !x->holds(side.touched)) {
            throw Error(ErrorCode::usage, fmt::format("x has no room for what the devices need of it; make it with {}",
                                                      of_transpose ? "make_y()" : "make_x()"));
        }
        if (!y->holds(other.touched)) {
            throw Error(ErrorCode::usage,
                        fmt::format("y has no room for what the devices find of it; make it with {}", y_maker));
        }
    }
    return matrix->runtime->submit(
        [matrix, of_transpose, alpha, beta, source = detail::Source<T>{nullptr, x},
         target = detail::Target<T>{nullptr, y}](runtime::Worker& worker, runtime::Rendezvous& meeting) {
            detail::apply_on(*matrix, worker, meeting, alpha, source, beta, target, nullptr, of_transpose);
        });
}

}  // namespace

BindPolicy parse_bind_policy(const std::string& text)
{
    if (text == "auto") {
        return BindPolicy::automatic;
    }
    if (text == "none") {
        return BindPolicy::none;
    }
    if (text == "strict") {
        return BindPolicy::strict;
    }
    throw Error(ErrorCode::usage, fmt::format("bind policy \"{}\" is not one of auto, none, strict", text));
}

Runtime::Runtime(const RuntimeOptions& options) : state_(detail::open_devices(options))
{
    if (state_->workers.empty()) {
        return;
    }
    std::vector<std::string> transports = options.transports;
    if (options.one_thread) {
        // The others' kernels wait on one device for those of another, which a single thread has not queued yet.
        if (std::any_of(transports.begin(), transports.end(), [](const auto& name) { return name != "host"; })) {
            throw Error(ErrorCode::usage,
                        fmt::format("one thread for all devices moves data through the host only; transports {} need "
                                    "a thread for each device",
                                    fmt::join(transports, ", ")));
        }
        transports = {"host"};
    }
    state_->connection = runtime::connect(state_->workers, transports, detail::tested_transports(*state_));
    state_->jobs = std::make_unique<runtime::JobQueue>(
        state_->workers, state_->shared_memory(), [s = state_.get()](std::uint64_t job) { s->give_up(job); },
        options.one_thread);
}

Runtime::~Runtime()
{
    if (state_) {
        state_->stop();
    }
}

Runtime::Runtime(Runtime&&) noexcept = default;

Runtime& Runtime::operator=(Runtime&& other) noexcept
{
    if (this != &other) {
        if (state_) {
            state_->stop();
        }
        state_ = std::move(other.state_);
    }
    return *this;
}

const Topology& Runtime::topology() const { return detail::checked(state_)->topology; }

std::vector<DeviceInfo> Runtime::devices() const
{
    const auto& state = detail::checked(state_);
    std::lock_guard lock(state->mutex);
    return state->infos;
}

std::string Runtime::transport() const
{
    const auto& connection = detail::checked(state_)->connection;
    return fmt::format("{} ({})", connection.name, connection.reason);
}

template <class T>
DistributedMatrix<T> Runtime::distribute(const CsrView<T>& a, const DistributeOptions& options)
{
    return DistributedMatrix<T>(distribute_view<T>(state_, a, options));
}

template <class T>
DistributedMatrix<T> Runtime::distribute(const CscView<T>& a, const DistributeOptions& options)
{
    return DistributedMatrix<T>(distribute_view<T>(state_, a, options));
}

template <class T>
DistributedMatrix<T> Runtime::distribute(const CooView<T>& a, const DistributeOptions& options)
{
    return DistributedMatrix<T>(distribute_view<T>(state_, a, options));
}

template <class T>
Plan Runtime::plan(const CsrView<T>& a, const DistributeOptions& options) const
{
    return Prepared<T>(a, options).plan(*detail::checked(state_));
}

template <class T>
Plan Runtime::plan(const CscView<T>& a, const DistributeOptions& options) const
{
    return Prepared<T>(a, options).plan(*detail::checked(state_));
}

template <class T>
Plan Runtime::plan(const CooView<T>& a, const DistributeOptions& options) const
{
    return Prepared<T>(a, options).plan(*detail::checked(state_));
}

void Runtime::synchronize()
{
    detail::checked(state_)->submit([](runtime::Worker&, runtime::Rendezvous&) {}).get();
}

template <class T>
std::int64_t DistributedMatrix<T>::rows() const
{
    return detail::checked(state_)->plan.rows;
}

template <class T>
std::int64_t DistributedMatrix<T>::cols() const
{
    return detail::checked(state_)->plan.cols;
}

template <class T>
std::int64_t DistributedMatrix<T>::nnz() const
{
    return detail::checked(state_)->plan.nnz;
}

template <class T>
const Plan& DistributedMatrix<T>::plan() const
{
    return detail::checked(state_)->plan;
}

template <class T>
void DistributedMatrix<T>::apply(T alpha, const T* x, T beta, T* y)
{
    apply_async(alpha, x, beta, y).get();
}

template <class T>
std::future<void> DistributedMatrix<T>::apply_async(T alpha, const T* x, T beta, T* y)
{
    return submit_apply(detail::checked(state_), false, alpha, x, beta, y);
}

template <class T>
std::future<void> DistributedMatrix<T>::apply(T alpha, const DistributedVector<T>& x, T beta, DistributedVector<T>& y)
{
    return submit_apply(detail::checked(state_), false, alpha, detail::checked(x.state_), beta,
                        detail::checked(y.state_));
}

template <class T>
void DistributedMatrix<T>::apply_transposed(T alpha, const T* x, T beta, T* y)
{
    apply_transposed_async(alpha, x, beta, y).get();
}

template <class T>
std::future<void> DistributedMatrix<T>::apply_transposed_async(T alpha, const T* x, T beta, T* y)
{
    detail::prepare_apply(*detail::checked(state_), true);
    return submit_apply(state_, true, alpha, x, beta, y);
}

template <class T>
std::future<void> DistributedMatrix<T>::apply_transposed(T alpha, const DistributedVector<T>& x, T beta,
                                                         DistributedVector<T>& y)
{
    detail::prepare_apply(*detail::checked(state_), true);
    return submit_apply(state_, true, alpha, detail::checked(x.state_), beta, detail::checked(y.state_));
}

template <class T>
void DistributedMatrix<T>::update_values(const T* values)
{
    detail::require_array("values", values, nnz());
    detail::update_values(state_, values);
}

template <class T>
DistributedVector<T> DistributedMatrix<T>::make_x(Layout layout, Order order) const
{
    const auto& matrix = detail::checked(state_);
    return DistributedVector<T>(detail::make_vector(matrix, detail::x_side(*matrix, false), layout, order));
}

template <class T>
DistributedVector<T> DistributedMatrix<T>::make_y(Order order) const
{
    const auto& matrix = detail::checked(state_);
    return DistributedVector<T>(detail::make_vector(matrix, detail::x_side(*matrix, true), Layout::rows, order));
}

template <class T>
Measurement DistributedMatrix<T>::measure(Vectors vectors, std::int64_t warmup, std::int64_t iterations, T alpha,
                                          const T* x, T beta, const T* y_in, T* y_out, Caches caches)
{
    detail::require_array("x", x, cols());
    detail::require_array("y_in", y_in, beta != T{0} ? rows() : 0);
    return detail::measure_matrix(state_, vectors, warmup, iterations, alpha, x, beta, y_in, y_out,
                                  caches == Caches::cold);
}

template class DistributedMatrix<float>;
template class DistributedMatrix<double>;
#define RMSP_INSTANTIATE(View, T)                                                                \
    template DistributedMatrix<T> Runtime::distribute(const View<T>&, const DistributeOptions&); \
    template Plan Runtime::plan(const View<T>&, const DistributeOptions&) const;
RMSP_INSTANTIATE(CsrView, float)
RMSP_INSTANTIATE(CsrView, double)
RMSP_INSTANTIATE(CscView, float)
RMSP_INSTANTIATE(CscView, double)
RMSP_INSTANTIATE(CooView, float)
RMSP_INSTANTIATE(CooView, double)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
