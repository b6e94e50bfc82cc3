#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace rmsp::engine {

/// Threads that help a worker to copy chunks of memory in order and in blocks: whoever is free takes the next block.
/// The worker's thread leads: it says how many chunks may be worked on, hears which are done, and works on blocks
/// itself meanwhile. It waits for no helper to wake up, which may take longer than the copy, but only for those that
/// are at a block.
class CopyTeam {
public:
    /// Bytes of a block: 64 times some number, so that no two threads write to a line.
    static constexpr std::size_t block_bytes = std::size_t{64} << 10;

    /// Starts the helpers, which may run where the calling thread may; as many as the system grants.
    explicit CopyTeam(int helpers);
    ~CopyTeam();
    CopyTeam(const CopyTeam&) = delete;
    CopyTeam& operator=(const CopyTeam&) = delete;

    /// Calls work(chunk, first, bytes), which must not throw, for every block of the chunks, once they are open. The
    /// calling thread calls lead() again and again until that returns true; then all chunks must be done. An exception
    /// of lead() ends it as well. Empty chunks are not worked on. \throws Error(internal) if lead() calls this
    void run(std::span<const std::size_t> chunk_bytes,
             const std::function<void(std::size_t, std::size_t, std::size_t)>& work, const std::function<bool()>& lead);
    /// In lead(): chunks [0, end) may be worked on, as well as those that were.
    void open(std::size_t end) noexcept { open_.store(first_block_[end], std::memory_order_release); }
    /// In lead(): whether all of a chunk has been worked on.
    bool done(std::size_t chunk) const noexcept { return left_[chunk].load(std::memory_order_acquire) == 0; }

private:
    void help();
    bool work_on_next();

    // Of the work under way. Written while no helper is at it.
    const std::function<void(std::size_t, std::size_t, std::size_t)>* work_ = nullptr;
    std::span<const std::size_t> bytes_;
    std::vector<std::size_t> first_block_;
    std::vector<std::atomic<std::size_t>> left_;  // blocks of each chunk
    std::atomic<std::size_t> open_{0};            // blocks
    std::atomic<std::size_t> next_{0};
    std::atomic<bool> ends_{true};

    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable left_alone_;
    std::uint64_t run_ = 0;
    int busy_ = 0;  // helpers that look at the work
    bool stop_ = false;
    bool leading_ = false;  // the leader's
    std::vector<std::thread> helpers_;
};

}  // namespace rmsp::engine
