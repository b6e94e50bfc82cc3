#include "runtime/engine/copy_team.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <rmsp/error.hpp>

namespace rmsp::engine {
namespace {

using Clock = std::chrono::steady_clock;

/// Of a thread that looks at an atomic again and again.
void pause() noexcept
{
#if defined(__x86_64__)
    _mm_pause();
#else
    std::this_thread::yield();
#endif
}

}  // namespace

CopyTeam::CopyTeam(int helpers)
{
    for (int i = 0; i < helpers; ++i) {
        try {
            helpers_.emplace_back([this] { help(); });
        } catch (const std::system_error&) {
            return;
        }
    }
}

CopyTeam::~CopyTeam()
{
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    wake_.notify_all();
    for (auto& helper : helpers_) {
        helper.join();
    }
}

void CopyTeam::run(std::span<const std::size_t> chunk_bytes,
                   const std::function<void(std::size_t, std::size_t, std::size_t)>& work,
                   const std::function<bool()>& lead)
{
    // A helper that is asleep comes too late for less.
    constexpr std::size_t blocks_worth_waking = 8;
    if (leading_) {
        throw Error(ErrorCode::internal, "a copy inside another one of the same device");
    }
    leading_ = true;
    bytes_ = chunk_bytes;
    work_ = &work;
    first_block_.assign(1, 0);
    if (left_.size() < bytes_.size()) {
        left_ = std::vector<std::atomic<std::size_t>>(bytes_.size());
    }
    for (std::size_t c = 0; c < bytes_.size(); ++c) {
        const std::size_t blocks = (bytes_[c] + block_bytes - 1) / block_bytes;
        left_[c].store(blocks, std::memory_order_relaxed);
        first_block_.push_back(first_block_.back() + blocks);
    }
    open_.store(0, std::memory_order_relaxed);
    next_.store(0, std::memory_order_relaxed);
    if (first_block_.back() >= blocks_worth_waking && !helpers_.empty()) {
        {
            const std::lock_guard lock(mutex_);
            ++run_;
            ends_.store(false, std::memory_order_release);
        }
        wake_.notify_all();
    }
    const auto end = [&] {
        std::unique_lock lock(mutex_);
        ends_.store(true, std::memory_order_release);
        left_alone_.wait(lock, [&] { return busy_ == 0; });
        leading_ = false;
    };
    try {
        while (!lead()) {
            if (!work_on_next()) {
                pause();
            }
        }
    } catch (...) {
        end();
        throw;
    }
    end();
}

bool CopyTeam::work_on_next()
{
    std::size_t block = next_.load(std::memory_order_relaxed);
    do {
        if (block >= open_.load(std::memory_order_acquire)) {
            return false;
        }
    } while (!next_.compare_exchange_weak(block, block + 1, std::memory_order_relaxed));
    // The last chunk that begins there: those before it that do are empty.
    const auto chunk = static_cast<std::size_t>(std::upper_bound(first_block_.begin(), first_block_.end(), block) -
                                                first_block_.begin() - 1);
    const std::size_t first = (block - first_block_[chunk]) * block_bytes;
    (*work_)(chunk, first, std::min(block_bytes, bytes_[chunk] - first));
    left_[chunk].fetch_sub(1, std::memory_order_acq_rel);
    return true;
}

void CopyTeam::help()
{
    // Looks for blocks without a break for as long as a link takes for some chunks, then every now and then, since the
    // next one may be far away.
    constexpr std::chrono::microseconds watch{500};
    constexpr std::chrono::microseconds nap{50};
    constexpr int looks_a_time = 64;
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
        wake_.wait(lock, [&] { return stop_ || run_ != seen; });
        if (stop_) {
            return;
        }
        seen = run_;
        while (!stop_ && run_ == seen && !ends_.load(std::memory_order_acquire)) {
            ++busy_;
            lock.unlock();
            auto idle_since = Clock::now();
            for (int look = 0; !ends_.load(std::memory_order_acquire); ++look) {
                if (work_on_next()) {
                    idle_since = Clock::now();
                } else if (look % looks_a_time == 0 && Clock::now() - idle_since > watch) {
                    break;
                } else {
                    pause();
                }
            }
            lock.lock();
            if (--busy_ == 0) {
                left_alone_.notify_one();
            }
            if (!ends_.load(std::memory_order_acquire)) {
                wake_.wait_for(lock, nap);
            }
        }
    }
}

}  // namespace rmsp::engine
