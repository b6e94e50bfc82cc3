#include "cluster/node.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>

#include <fmt/format.h>

#include <rmsp/error.hpp>

namespace rmsp::cluster {
namespace {

/// What a process says of itself to those on its node.
struct Said {
    std::int64_t rank = 0;
    std::int64_t id = 0;
    std::uint64_t numbering = 0;  ///< of processes: the same only for those that see each other
    std::uint64_t gpus = 0;       ///< that it may use: the same for those that may use the same ones
    cpu_set_t cpus{};
};

std::uint64_t process_numbering()
{
    struct stat space {};
    return stat("/proc/self/ns/pid", &space) == 0 ? static_cast<std::uint64_t>(space.st_ino) : 0;
}

/// GPUs that the environment leaves to this process, by name; null: all.
const char* visible_gpus() { return std::getenv("CUDA_VISIBLE_DEVICES"); }

/// The hardware threads of each core of this process.
std::vector<std::vector<int>> cores_of(const Topology& topology)
{
    std::vector<std::vector<int>> cores;
    for (const NumaNode& node : topology.nodes) {
        std::size_t next = 0;
        for (const int pu : node.pus) {
            if (next < node.cores.size() && node.cores[next] == pu) {
                cores.emplace_back();
                ++next;
            }
            cores.back().push_back(pu);
        }
    }
    return cores;
}

}  // namespace

Node::Node(MPI_Comm communicator)
{
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(communicator, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    int rank = 0;
    int processes = 1;
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_rank(node, &place_);
    MPI_Comm_size(node, &processes);
    const char* const gpus = visible_gpus();
    Said own{rank, getpid(), process_numbering(), gpus == nullptr ? 0 : std::hash<std::string_view>()(gpus), {}};
    // The process's, which its first thread has, whichever one this is.
    sched_getaffinity(getpid(), sizeof(own.cpus), &own.cpus);
    std::vector<Said> all(static_cast<std::size_t>(processes));
    MPI_Allgather(&own, sizeof(Said), MPI_BYTE, all.data(), sizeof(Said), MPI_BYTE, node);
    MPI_Comm_free(&node);
    sharers_of_cores_ = 0;
    for (int place = 0; place < processes; ++place) {
        const Said& other = all[static_cast<std::size_t>(place)];
        const bool seen = own.numbering != 0 && other.numbering == own.numbering;
        processes_.push_back({static_cast<int>(other.rank), seen ? static_cast<pid_t>(other.id) : 0});
        same_gpus_ = same_gpus_ && other.gpus == own.gpus;
        if (CPU_EQUAL(&other.cpus, &own.cpus)) {
            place_on_cores_ += place < place_ ? 1 : 0;
            ++sharers_of_cores_;
        }
    }
}

std::string Node::devices(const RuntimeOptions& options) const
{
    const auto processes = static_cast<int>(processes_.size());
    if (options.devices != "auto" || processes == 1 || !options.topology_file.empty()) {
        return options.devices;
    }
    // Who started the processes may have given each its own.
    if (!same_gpus_) {
        return options.devices;
    }
    auto gpus = static_cast<int>(Topology::detect().gpus.size());
    if (const char* const visible = visible_gpus(); visible != nullptr) {
        const std::string_view names(visible);
        gpus = names.empty() ? 0 : std::min(gpus, 1 + static_cast<int>(std::count(names.begin(), names.end(), ',')));
    }
    if (gpus == 0) {
        return options.devices;
    }
    if (gpus < processes) {
        throw Error(ErrorCode::usage,
                    fmt::format("{} processes on a node of {} GPUs: start at most {} on each node (mpirun "
                                "--map-by ppr:{}:node), or name devices, \"shared:0,0\" if they are to share one",
                                processes, gpus, gpus, gpus));
    }
    std::string devices;
    for (int gpu = gpus * place_ / processes; gpu < gpus * (place_ + 1) / processes; ++gpu) {
        devices += fmt::format("{}{}", devices.empty() ? "" : ",", gpu);
    }
    return devices;
}

Node::OwnCores::OwnCores(const Node& node, const RuntimeOptions& options)
{
    const bool host = options.devices == "auto" || options.devices.starts_with("host");
    if (node.sharers_of_cores_ < 2 || !host || options.bind == BindPolicy::none || !options.topology_file.empty() ||
        sched_getaffinity(getpid(), sizeof(before_), &before_) != 0) {
        return;
    }
    const Topology topology = Topology::detect();
    const std::vector<std::vector<int>> cores = cores_of(topology);
    if (cores.empty() || (options.devices == "auto" && !topology.gpus.empty())) {
        return;
    }
    const std::size_t count = cores.size();
    const auto place = static_cast<std::size_t>(node.place_on_cores_);
    const auto sharers = static_cast<std::size_t>(node.sharers_of_cores_);
    const std::size_t first = count * place / sharers;
    const std::size_t end = std::max(first + 1, count * (place + 1) / sharers);  // more processes than cores share them
    cpu_set_t own;
    CPU_ZERO(&own);
    for (std::size_t core = first; core < end; ++core) {
        for (const int pu : cores[core]) {
            CPU_SET(static_cast<std::size_t>(pu), &own);
        }
    }
    narrowed_ = sched_setaffinity(getpid(), sizeof(own), &own) == 0;
}

Node::OwnCores::~OwnCores()
{
    if (narrowed_) {
        sched_setaffinity(getpid(), sizeof(before_), &before_);
    }
}

}  // namespace rmsp::cluster
