#include <rmsp/runtime.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kernels/support/support.hpp>

#include "runtime/cuda/cuda_backend.hpp"
#include "runtime/doctor_cache.hpp"
#include "runtime/host/host_device.hpp"
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
        fmt::format("devices \"{}\": {}; write \"auto\", GPU numbers such as \"0,1\", or \"host:4\" or \"host:4x2\"",
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
    DeviceChoice choice;
    const auto add_gpu = [&](int ordinal) {
        if (ordinal >= static_cast<int>(gpus)) {
            throw Error(ErrorCode::device,
                        fmt::format("devices \"{}\": there is no GPU {}; this machine offers {} GPU{}", text, ordinal,
                                    gpus, gpus == 1 ? "" : "s"));
        }
        if (std::find(choice.ordinals.begin(), choice.ordinals.end(), ordinal) != choice.ordinals.end()) {
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
    const std::string_view view = text;
    if (view.starts_with("host:")) {
        const std::string_view counts = view.substr(5);
        const auto cross = counts.find('x');
        choice.host_devices = parse_number(text, counts.substr(0, cross), 1);
        if (cross != std::string_view::npos) {
            choice.threads_each = parse_number(text, counts.substr(cross + 1), 1);
        }
        constexpr int most = 1024;
        if (choice.host_devices > most || choice.threads_each > most) {
            throw_bad_devices(text, fmt::format("more than {} devices or threads", most));
        }
        return choice;
    }
    choice.kind = DeviceKind::cuda;
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

template <class T>
const std::shared_ptr<detail::MatrixState<T>>& checked(const std::shared_ptr<detail::MatrixState<T>>& state)
{
    if (!state) {
        throw Error(ErrorCode::usage, "this DistributedMatrix is empty; make one with Runtime::distribute()");
    }
    return state;
}

void check_length(const char* what, std::int64_t has, std::int64_t wants)
{
    if (has != wants) {
        throw Error(ErrorCode::usage, fmt::format("{} has {} entries; the matrix needs {}", what, has, wants));
    }
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
        throw Error(ErrorCode::usage, fmt::format("{} weights for {} devices", options.weights.size(), count));
    }

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
        state->workers.push_back(
            std::make_unique<runtime::Worker>(static_cast<int>(i), placements[i], [info = state->infos[i]] {
                return info.kind == DeviceKind::cuda ? runtime::make_cuda_device(info, info.index)
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

RuntimeOptions RuntimeOptions::from_environment(RuntimeOptions base)
{
    if (const char* devices = std::getenv("RMSP_DEVICES")) {
        base.devices = devices;
    }
    if (const char* bind = std::getenv("RMSP_BIND")) {
        try {
            base.bind = parse_bind_policy(bind);
        } catch (const Error& e) {
            throw Error(ErrorCode::usage, std::string("RMSP_BIND: ") + e.what());
        }
    }
    if (const char* cache = std::getenv("RMSP_CACHE_DIR"); cache != nullptr && *cache != '\0') {
        base.cache = cache;
    }
    if (const char* transports = std::getenv("RMSP_TRANSPORT")) {
        base.transports.clear();
        std::string_view rest = transports;
        while (!rest.empty()) {
            const std::size_t end = std::min(rest.find(','), rest.size());
            const auto name = rest.substr(0, end);
            const auto known = runtime::transport_names();
            if (std::find(known.begin(), known.end(), name) == known.end()) {
                throw Error(ErrorCode::usage, fmt::format("RMSP_TRANSPORT: unknown transport \"{}\"; known: {}", name,
                                                          fmt::join(known, ", ")));
            }
            base.transports.emplace_back(name);
            rest.remove_prefix(std::min(rest.size(), end + 1));
        }
    }
    return base;
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
        state_->workers, state_->shared_memory(),
        [transport = state_->connection.transport.get()](std::uint64_t job) {
            if (transport != nullptr) {
                transport->give_up(job);
            }
        },
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

const Topology& Runtime::topology() const { return state_->topology; }

std::vector<DeviceInfo> Runtime::devices() const
{
    std::lock_guard lock(state_->mutex);
    return state_->infos;
}

std::string Runtime::transport() const
{
    return fmt::format("{} ({})", state_->connection.name, state_->connection.reason);
}

template <class T>
DistributedMatrix<T> Runtime::distribute(const CsrView<T>& a, const DistributeOptions& options)
{
    return DistributedMatrix<T>(detail::distribute(state_, a, options));
}

template <class T>
Plan Runtime::plan(const CsrView<T>& a, const DistributeOptions& options) const
{
    validate(a);
    return detail::make_plan(*state_, a, options);
}

void Runtime::synchronize()
{
    state_->submit([](runtime::Worker&, runtime::Rendezvous&) {}).get();
}

template <class T>
std::int64_t DistributedMatrix<T>::rows() const
{
    return checked(state_)->plan.rows;
}

template <class T>
std::int64_t DistributedMatrix<T>::cols() const
{
    return checked(state_)->plan.cols;
}

template <class T>
std::int64_t DistributedMatrix<T>::nnz() const
{
    return checked(state_)->plan.nnz;
}

template <class T>
const Plan& DistributedMatrix<T>::plan() const
{
    return checked(state_)->plan;
}

template <class T>
void DistributedMatrix<T>::apply(T alpha, const T* x, T beta, T* y)
{
    apply_async(alpha, x, beta, y).get();
}

template <class T>
std::future<void> DistributedMatrix<T>::apply_async(T alpha, const T* x, T beta, T* y)
{
    const auto matrix = checked(state_);
    return matrix->runtime->submit(
        [matrix, alpha, beta, source = detail::Source<T>{x, nullptr}, target = detail::Target<T>{y, nullptr}](
            runtime::Worker& worker, runtime::Rendezvous& meeting) {
            detail::apply_on(*matrix, worker, meeting, alpha, source, beta, target, nullptr);
        },
        [matrix, y] { detail::finish_host_y(*matrix, y); }, true);
}

template <class T>
std::future<void> DistributedMatrix<T>::apply(T alpha, const DistributedVector<T>& x, T beta, DistributedVector<T>& y)
{
    const auto matrix = checked(state_);
    check_length("x", x.size(), matrix->plan.cols);
    check_length("y", y.size(), matrix->plan.rows);
    if (x.state_->runtime != matrix->runtime || y.state_->runtime != matrix->runtime) {
        throw Error(ErrorCode::usage, "the matrix and its vectors belong to different runtimes");
    }
    if (y.layout() != Layout::rows || !std::equal(y.offsets().begin(), y.offsets().end(), matrix->row_slices.begin())) {
        throw Error(ErrorCode::usage, "y is not sliced as the matrix's rows are; make it with make_y()");
    }
    if (x.state_ == y.state_) {
        throw Error(ErrorCode::usage, "x and y are the same vector");
    }
    return matrix->runtime->submit(
        [matrix, alpha, beta, source = detail::Source<T>{nullptr, x.state_},
         target = detail::Target<T>{nullptr, y.state_}](runtime::Worker& worker, runtime::Rendezvous& meeting) {
            detail::apply_on(*matrix, worker, meeting, alpha, source, beta, target, nullptr);
        });
}

template <class T>
void DistributedMatrix<T>::update_values(const T* values)
{
    detail::update_values(checked(state_), values);
}

template <class T>
DistributedVector<T> DistributedMatrix<T>::make_x(Layout layout) const
{
    const auto& matrix = checked(state_);
    return DistributedVector<T>(detail::make_vector<T>(matrix->runtime, layout, matrix->plan.cols,
                                                       layout == Layout::rows ? matrix->x_slices : matrix->x_even,
                                                       matrix->x_needed));
}

template <class T>
DistributedVector<T> DistributedMatrix<T>::make_y() const
{
    const auto& matrix = checked(state_);
    // The y of a square matrix is often the next x.
    const bool square = matrix->plan.rows == matrix->plan.cols;
    return DistributedVector<T>(detail::make_vector<T>(matrix->runtime, Layout::rows, matrix->plan.rows,
                                                       matrix->row_slices,
                                                       square ? matrix->x_needed : std::vector<runtime::Range>{}));
}

template <class T>
Measurement DistributedMatrix<T>::measure(Vectors vectors, std::int64_t warmup, std::int64_t iterations, T alpha,
                                          const T* x, T beta, const T* y_in, T* y_out, Caches caches)
{
    return detail::measure_matrix(checked(state_), vectors, warmup, iterations, alpha, x, beta, y_in, y_out,
                                  caches == Caches::cold);
}

template class DistributedMatrix<float>;
template class DistributedMatrix<double>;
template DistributedMatrix<float> Runtime::distribute(const CsrView<float>&, const DistributeOptions&);
template DistributedMatrix<double> Runtime::distribute(const CsrView<double>&, const DistributeOptions&);
template Plan Runtime::plan(const CsrView<float>&, const DistributeOptions&) const;
template Plan Runtime::plan(const CsrView<double>&, const DistributeOptions&) const;

}  // namespace rmsp
