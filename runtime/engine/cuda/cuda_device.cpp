#include "runtime/engine/cuda/cuda_device.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <numa/binding.hpp>

#include "runtime/engine/cuda/cuda_backend.hpp"
#include "runtime/engine/cuda/device_guard.hpp"
#include "runtime/engine/lost_gpus.hpp"
#include "runtime/engine/refusals.hpp"

namespace rmsp::engine {
namespace {

// Starting a copy costs a small share of the time that a slot's bytes take on a PCIe 5 link. Slots wait for the cores,
// for the link and on it; a vector of 16 MiB has room in all of them, so that nobody waits for what is before it on the
// link.
constexpr std::size_t ring_slot_bytes = std::size_t{4} << 20;
constexpr int ring_slots = 6;
// So many cores copy what a PCIe 5 link carries.
constexpr int max_copy_threads = 12;

/// Cuts what goes through the ring. If they grow, each of the first chunks is at most all before it, so that the link
/// begins soon.
std::vector<std::size_t> chunks_of(std::size_t bytes, bool grow)
{
    const std::size_t least =
        std::clamp(bytes / 8 / CopyTeam::block_bytes, std::size_t{4}, std::size_t{16}) * CopyTeam::block_bytes;
    std::vector<std::size_t> chunks;
    for (std::size_t begin = 0; begin < bytes; begin += chunks.back()) {
        const std::size_t most = grow ? std::clamp(begin, least, ring_slot_bytes) : ring_slot_bytes;
        chunks.push_back(std::min(most, bytes - begin));
    }
    return chunks;
}

bool is_registered(const void* p)
{
    cudaPointerAttributes attributes{};
    if (cudaPointerGetAttributes(&attributes, p) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    return attributes.type != cudaMemoryTypeUnregistered;
}

/// Takes from the device's pool in the order of one stream.
class CudaPool final : public kernels::Memory {
public:
    CudaPool(CudaDevice& device, cudaMemPool_t pool, cudaStream_t stream)
        : device_(device), pool_(pool), stream_(stream)
    {
    }

    void* allocate(std::size_t bytes) override
    {
        void* p = nullptr;
        cudaError_t status = cudaMallocFromPoolAsync(&p, bytes, pool_, stream_);
        if (status == cudaErrorMemoryAllocation) {
            // What the pool keeps may be in pieces: mapped anew they are one.
            (void)cudaGetLastError();
            cuda_check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
            cuda_check(cudaMemPoolTrimTo(pool_, 0), "cudaMemPoolTrimTo");
            status = cudaMallocFromPoolAsync(&p, bytes, pool_, stream_);
        }
        if (status == cudaErrorMemoryAllocation) {
            (void)cudaGetLastError();
            throw Error(ErrorCode::out_of_memory,
                        fmt::format("GPU {} ({}) has no room for {} bytes: {} bytes are free", device_.ordinal(),
                                    device_.info().name, bytes, device_.free_bytes()));
        }
        cuda_check(status, "cudaMallocFromPoolAsync");
        return p;
    }
    void deallocate(void* p, std::size_t) noexcept override
    {
        const DeviceGuard guard(device_.ordinal());
        (void)cudaFreeAsync(p, stream_);
        (void)cudaGetLastError();
    }

private:
    CudaDevice& device_;
    cudaMemPool_t pool_;
    cudaStream_t stream_;
};

}  // namespace

CudaDevice::CudaDevice(DeviceInfo info, int ordinal, int sharers)
    : Device(std::move(info)), ordinal_(ordinal), sharers_(sharers)
{
    make_current();
}

CudaDevice::~CudaDevice()
{
    ring_.clear();
    if (pool_ != nullptr) {
        (void)cudaMemPoolDestroy(pool_);
    }
}

void CudaDevice::make_current() { cuda_check(cudaSetDevice(ordinal_), "cudaSetDevice"); }

int CudaDevice::visit() noexcept
{
    int had = 0;
    (void)cudaGetDevice(&had);
    (void)cudaSetDevice(ordinal_);
    return had;
}

void CudaDevice::leave(int had) noexcept { (void)cudaSetDevice(had); }

std::unique_ptr<Stream> CudaDevice::make_stream(StreamPriority priority)
{
    return std::make_unique<CudaStream>(priority);
}

std::unique_ptr<Event> CudaDevice::make_event(bool timing) { return std::make_unique<CudaEvent>(timing); }

void* CudaDevice::obtain(std::size_t bytes)
{
    void* p = nullptr;
    cudaError_t status = cudaMalloc(&p, bytes);
    if (status == cudaErrorMemoryAllocation && pool_ != nullptr) {
        // What the pool keeps for later is free, too.
        (void)cudaGetLastError();
        cuda_check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        cuda_check(cudaMemPoolTrimTo(pool_, 0), "cudaMemPoolTrimTo");
        status = cudaMalloc(&p, bytes);
    }
    if (status == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        std::size_t free_bytes = 0;
        std::size_t total_bytes = 0;
        (void)cudaMemGetInfo(&free_bytes, &total_bytes);
        throw Error(ErrorCode::out_of_memory,
                    fmt::format("GPU {} ({}) has no room for {} bytes: {} of {} bytes are free", ordinal_, info().name,
                                bytes, free_bytes, total_bytes));
    }
    cuda_check(status, "cudaMalloc");
    return p;
}

void CudaDevice::give_back(void* p, std::size_t) noexcept
{
    // cudaFree waits for the device's work. At process exit the driver may be gone already; then so is the memory.
    const DeviceGuard guard(ordinal_);
    (void)cudaFree(p);
    (void)cudaGetLastError();
}

void CudaDevice::open_pool()
{
    if (pool_ != nullptr) {
        return;
    }
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = ordinal_;
    cuda_check(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
    // Kept when free: mapping memory anew costs milliseconds a gigabyte.
    std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
    cuda_check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep), "cudaMemPoolSetAttribute");
}

void CudaDevice::share_pool(std::span<const int> ordinals)
{
    if (pool_shared_) {
        return;
    }
    open_pool();
    std::vector<cudaMemAccessDesc> access;
    for (const int ordinal : std::set<int>(ordinals.begin(), ordinals.end())) {
        if (ordinal != ordinal_) {
            cudaMemAccessDesc& one = access.emplace_back();
            one.location.type = cudaMemLocationTypeDevice;
            one.location.id = ordinal;
            one.flags = cudaMemAccessFlagsProtReadWrite;
        }
    }
    if (!access.empty()) {
        cuda_check(cudaMemPoolSetAccess(pool_, access.data(), access.size()), "cudaMemPoolSetAccess");
    }
    pool_shared_ = true;
}

std::unique_ptr<kernels::Memory> CudaDevice::make_uncounted_pool(Stream& stream)
{
    open_pool();
    auto pool = std::make_unique<CudaPool>(*this, pool_, static_cast<cudaStream_t>(stream.native()));
    // The first request of a process takes long: here, while devices are opened, nobody waits for it alone.
    pool->deallocate(pool->allocate(1), 1);
    return pool;
}

std::int64_t CudaDevice::free_bytes()
{
    const DeviceGuard guard(ordinal_);
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    cuda_check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    std::uint64_t reserved = 0;
    std::uint64_t used = 0;
    if (pool_ != nullptr) {
        cuda_check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved),
                   "cudaMemPoolGetAttribute");
        cuda_check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used), "cudaMemPoolGetAttribute");
    }
    return static_cast<std::int64_t>(free_bytes / static_cast<std::size_t>(sharers_) + reserved - used);
}

void* CudaDevice::obtain_pinned(std::size_t bytes)
{
    void* p = numa::allocate_on_node(bytes, info().numa_node);
    const cudaError_t status = cudaHostRegister(p, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
    if (status != cudaSuccess) {
        numa::free_on_node(p, bytes);
        (void)cudaGetLastError();
        throw Error(ErrorCode::out_of_memory, fmt::format("cannot pin {} bytes of host memory near GPU {}: {}", bytes,
                                                          ordinal_, cudaGetErrorString(status)));
    }
    return p;
}

void CudaDevice::free_pinned(void* p, std::size_t bytes) noexcept
{
    const DeviceGuard guard(ordinal_);
    unpin(p);
    numa::free_on_node(p, bytes);
}

bool CudaDevice::is_pinned(const void* p, std::size_t bytes) const
{
    // Only a part of it may be registered, by this library as well: a copy across the boundary would fail.
    return bytes > 0 && is_registered(p) && is_registered(static_cast<const std::byte*>(p) + bytes - 1);
}

bool CudaDevice::pin(void* p, std::size_t bytes)
{
    if (is_refused(Request::pinned)) {
        return false;
    }
    if (cudaHostRegister(p, bytes, cudaHostRegisterPortable) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    return true;
}

void CudaDevice::unpin(void* p) noexcept
{
    // On a thread without a current device this would make a context on GPU 0.
    const DeviceGuard guard(ordinal_);
    (void)cudaHostUnregister(p);
    (void)cudaGetLastError();
}

void CudaDevice::open_ring()
{
    if (!ring_.empty()) {
        return;
    }
    std::vector<Slot> ring(ring_slots);
    for (auto& slot : ring) {
        slot.memory = PinnedBuffer(*this, ring_slot_bytes);
        slot.free = make_event(false);
    }
    // An unbound worker may use them all.
    const std::size_t cpus =
        info().placement.cpus.empty() ? std::thread::hardware_concurrency() : info().placement.cpus.size();
    team_ = std::make_unique<CopyTeam>(std::clamp(static_cast<int>(cpus), 1, max_copy_threads) - 1);
    ring_ = std::move(ring);
}

void CudaDevice::upload(Stream& stream, void* dst, const void* src, std::size_t bytes, const Between& between)
{
    if (bytes == 0) {
        return;
    }
    if (is_pinned(src, bytes)) {
        stream.copy(dst, src, bytes);
        return;
    }
    const auto* from = static_cast<const std::byte*>(src);
    upload(
        stream, dst, bytes,
        [from](std::byte* out, std::size_t begin, std::size_t n) { std::memcpy(out, from + begin, n); }, between);
}

void CudaDevice::upload(Stream& stream, void* dst, std::size_t bytes, const Filler& fill, const Between& between)
{
    if (bytes == 0) {
        return;
    }
    open_ring();
    auto* const to = static_cast<std::byte*>(dst);
    const std::vector<std::size_t> chunks = chunks_of(bytes, true);
    std::vector<std::size_t> begin(chunks.size());
    std::exclusive_scan(chunks.begin(), chunks.end(), begin.begin(), std::size_t{0});
    // Each call goes on where the one before stopped, so that successive ones do not wait for each other's first slot.
    const std::size_t first_slot = next_;
    const auto slot = [&](std::size_t c) -> Slot& { return ring_[(first_slot + c) % ring_.size()]; };
    std::size_t opened = 0;
    std::size_t queued = 0;
    team_->run(
        chunks,
        [&](std::size_t c, std::size_t first, std::size_t n) {
            fill(static_cast<std::byte*>(slot(c).memory.data()) + first, begin[c] + first, n);
        },
        [&] {
            for (; queued < opened && team_->done(queued); ++queued) {
                stream.copy(to + begin[queued], slot(queued).memory.data(), chunks[queued]);
                stream.record(*slot(queued).free);
                if (between) {
                    between();
                }
            }
            while (opened < chunks.size() && opened < queued + ring_.size() && slot(opened).free->ready()) {
                team_->open(++opened);
            }
            return queued == chunks.size();
        });
    next_ = (first_slot + chunks.size()) % ring_.size();
}

void CudaDevice::download(Stream& stream, std::span<const Download> parts)
{
    const auto is_direct = [&](const Download& part) { return part.bytes == 0 || is_pinned(part.to, part.bytes); };
    if (std::all_of(parts.begin(), parts.end(), is_direct)) {
        for (const Download& part : parts) {
            if (part.after != nullptr) {
                stream.wait(*part.after);
            }
            stream.copy(part.to, part.from, part.bytes);
        }
        return;
    }
    open_ring();
    std::vector<Download> chunks;
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Download& part = parts[i];
        // The last ones are small, since the cores are at them when the link is done.
        std::vector<std::size_t> cuts = chunks_of(part.bytes, i + 1 == parts.size());
        std::reverse(cuts.begin(), cuts.end());
        std::size_t begin = 0;
        for (const std::size_t bytes : cuts) {
            chunks.push_back({static_cast<std::byte*>(part.to) + begin,
                              static_cast<const std::byte*>(part.from) + begin, bytes,
                              begin == 0 ? part.after : nullptr});
            begin += bytes;
        }
        sizes.insert(sizes.end(), cuts.begin(), cuts.end());
    }
    const std::size_t first_slot = next_;
    const auto slot = [&](std::size_t c) -> Slot& { return ring_[(first_slot + c) % ring_.size()]; };
    std::size_t queued = 0;
    std::size_t arrived = 0;
    std::size_t emptied = 0;
    team_->run(
        sizes,
        [&](std::size_t c, std::size_t first, std::size_t n) {
            std::memcpy(static_cast<std::byte*>(chunks[c].to) + first,
                        static_cast<const std::byte*>(slot(c).memory.data()) + first, n);
        },
        [&] {
            while (queued < chunks.size() && queued < emptied + ring_.size() && slot(queued).free->ready()) {
                const Download& chunk = chunks[queued];
                if (chunk.after != nullptr) {
                    stream.wait(*chunk.after);
                }
                stream.copy(slot(queued).memory.data(), chunk.from, chunk.bytes);
                stream.record(*slot(queued).free);
                ++queued;
            }
            while (arrived < queued && slot(arrived).free->ready()) {
                team_->open(++arrived);
            }
            while (emptied < arrived && team_->done(emptied)) {
                ++emptied;
            }
            return emptied == chunks.size();
        });
    next_ = (first_slot + chunks.size()) % ring_.size();
}

void CudaDevice::remember_loss() { remember_lost_gpu(ordinal_); }

std::string CudaDevice::fault()
{
    // An error that ended the GPU's context comes back from every call; others are over once they were told.
    (void)cudaGetLastError();
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    cudaError_t status = cudaSetDevice(ordinal_);
    if (status == cudaSuccess) {
        status = cudaMemGetInfo(&free_bytes, &total_bytes);
    }
    (void)cudaGetLastError();
    return status == cudaSuccess || status == cudaErrorMemoryAllocation
               ? std::string()
               : fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status));
}

std::vector<int> ordinals_of(std::span<const std::unique_ptr<Worker>> workers)
{
    std::vector<int> ordinals;
    for (const auto& worker : workers) {
        ordinals.push_back(dynamic_cast<CudaDevice&>(worker->device()).ordinal());
    }
    return ordinals;
}

bool share_gpus(std::span<const int> ordinals)
{
    return std::set<int>(ordinals.begin(), ordinals.end()).size() < ordinals.size();
}

std::vector<GpuDescription> cuda_gpus()
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        (void)cudaGetLastError();
        return {};
    }
    // Calls of a thread whose current device is lost fail, whichever they ask of.
    int current = 0;
    if (cudaGetDevice(&current) == cudaSuccess && is_lost_gpu(current)) {
        for (int i = 0; i < count; ++i) {
            if (!is_lost_gpu(i)) {
                (void)cudaSetDevice(i);
                break;
            }
        }
    }
    (void)cudaGetLastError();
    std::vector<GpuDescription> gpus;
    for (int i = 0; i < count; ++i) {
        cudaDeviceProp properties{};
        cuda_check(cudaGetDeviceProperties(&properties, i), "cudaGetDeviceProperties");
        GpuDescription gpu;
        gpu.index = i;
        gpu.name = properties.name;
        gpu.pci_bus_id =
            fmt::format("{:04x}:{:02x}:{:02x}.0", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID);
        gpus.push_back(std::move(gpu));
    }
    return gpus;
}

std::unique_ptr<Device> make_cuda_device(DeviceInfo info, int ordinal, int sharers)
{
    cudaDeviceProp properties{};
    cuda_check(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
    if (info.name.empty()) {
        info.name = properties.name;
    }
    info.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem) / sharers;
    info.compute_units = std::max(1, properties.multiProcessorCount / sharers);
    return std::make_unique<CudaDevice>(std::move(info), ordinal, sharers);
}

bool enable_peer_access(Worker& worker, Worker& other)
{
    const int own = dynamic_cast<CudaDevice&>(worker.device()).ordinal();
    const int peer = dynamic_cast<CudaDevice&>(other.device()).ordinal();
    if (own == peer) {
        return true;
    }
    int can = 0;
    cuda_check(cudaDeviceCanAccessPeer(&can, own, peer), "cudaDeviceCanAccessPeer");
    if (can == 0) {
        return false;
    }
    const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
    if (status == cudaErrorPeerAccessAlreadyEnabled) {
        (void)cudaGetLastError();
    } else {
        cuda_check(status, "cudaDeviceEnablePeerAccess");
    }
    return true;
}

}  // namespace rmsp::engine
