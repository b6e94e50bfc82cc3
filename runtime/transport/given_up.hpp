#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "runtime/engine/device.hpp"
#include "runtime/transport/transport.hpp"

namespace rmsp::transport {

/// Which jobs failed: in host memory, given_up_words words for kernels to look at; and the last of them.
class GivenUp {
public:
    static constexpr std::size_t bytes = given_up_words * sizeof(std::uint64_t);

    explicit GivenUp(engine::PinnedBuffer words) : words_(std::move(words))
    {
        std::fill_n(word(0), given_up_words, std::uint64_t{0});
    }
    std::uint64_t* word(std::uint64_t epoch) const noexcept
    {
        return static_cast<std::uint64_t*>(words_.data()) + given_up_word(epoch);
    }
    /// The end of the latest job that failed.
    std::uint64_t last() const noexcept { return last_.load(); }
    void note(std::uint64_t job) noexcept
    {
        const std::uint64_t end = epoch_of(job + 1, 0) - 1;
        // Before the word: who has left an exchange of that job finds it in last().
        raise(last_, end);
        raise(std::atomic_ref<std::uint64_t>(*word(end)), end);
    }

private:
    template <class Word>
    static void raise(Word&& word, std::uint64_t to) noexcept
    {
        std::uint64_t before = word.load();
        while (before < to && !word.compare_exchange_weak(before, to)) {
        }
    }

    engine::PinnedBuffer words_;
    std::atomic<std::uint64_t> last_{0};
};

}  // namespace rmsp::transport
