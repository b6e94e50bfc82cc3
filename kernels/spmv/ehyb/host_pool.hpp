#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <kernels/spmv/ehyb/pool.hpp>
#include <rmsp/host_vector.hpp>

namespace rmsp::kernels::ehyb {

/// A pool of cores.
class HostPool {
public:
    template <class T>
    using Array = HostVector<T>;

    explicit HostPool(int threads) : threads_(std::max(threads, 1)) {}

    template <class T>
    HostVector<T> array(std::int64_t n) const
    {
        return HostVector<T>(static_cast<std::size_t>(n));
    }
    template <class T>
    HostVector<T> copy(const std::vector<T>& host) const
    {
        return HostVector<T>(host.begin(), host.end());
    }
    template <class T>
    std::vector<T> read(const T* from, std::int64_t n) const
    {
        return std::vector<T>(from, from + n);
    }
    /// f(i) for i from 0 to n - 1, in any order and at once.
    template <class F>
    void each(std::int64_t n, const F& f) const
    {
#pragma omp parallel for num_threads(threads_) schedule(static)
        for (std::int64_t i = 0; i < n; ++i) {
            f(i);
        }
    }
    /// f(row, entry) for all entries.
    template <class F>
    void each_entry(const Structure& a, const F& f) const
    {
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 1024)
        for (std::int64_t row = 0; row < a.rows; ++row) {
            for (std::int64_t i = a.first(row), end = a.first(row + 1); i < end; ++i) {
                f(row, i);
            }
        }
    }
    /// Each of n numbers becomes the sum of those before it.
    template <class I>
    void sum_before(I* numbers, std::int64_t n) const
    {
        I sum = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            sum += std::exchange(numbers[i], sum);
        }
    }
    std::uint64_t most(const std::uint64_t* numbers, std::int64_t n) const
    {
        return n > 0 ? *std::max_element(numbers, numbers + n) : 0;
    }
    /// By the lower `bits` of the keys, those that are equal as they came: radix sort, a byte at a time.
    void sort(HostVector<std::uint64_t>& keys, HostVector<std::int32_t>& values, std::int64_t n, int bits) const
    {
        HostVector<std::uint64_t> other_keys(keys.size());
        HostVector<std::int32_t> other_values(values.size());
        std::vector<std::array<std::int64_t, 256>> next(static_cast<std::size_t>(threads_));
        for (int shift = 0; shift < bits; shift += 8) {
            // Each thread has the same stretch in both loops.
#pragma omp parallel num_threads(threads_)
            {
                const auto [begin, end, thread] = stretch(n);
                auto& count = next[static_cast<std::size_t>(thread)];
                count.fill(0);
                for (std::int64_t i = begin; i < end; ++i) {
                    ++count[keys[static_cast<std::size_t>(i)] >> shift & 255];
                }
#pragma omp barrier
#pragma omp single
                {
                    std::int64_t sum = 0;
                    for (std::size_t digit = 0; digit < 256; ++digit) {
                        for (auto& of_thread : next) {
                            sum += std::exchange(of_thread[digit], sum);
                        }
                    }
                }
                for (std::int64_t i = begin; i < end; ++i) {
                    const auto from = static_cast<std::size_t>(i);
                    const auto to = static_cast<std::size_t>(count[keys[from] >> shift & 255]++);
                    other_keys[to] = keys[from];
                    other_values[to] = values[from];
                }
            }
            keys.swap(other_keys);
            values.swap(other_values);
        }
    }
    /// Until all that was asked for is done.
    void wait() const {}
    /// Levels of a search from `start`, in distance[a.rows]; -1 for what it did not reach, or what lies more than
    /// `most_levels` away. Returns the largest. By one core, which is faster than several in steps.
    std::int32_t search(const Structure& a, std::int64_t start, std::int32_t* distance, std::int32_t most_levels) const
    {
        std::fill(distance, distance + a.rows, -1);
        HostVector<std::int32_t> queue(static_cast<std::size_t>(a.rows));
        std::size_t end = 0;
        const auto reach = [&](std::int64_t row, std::int32_t level) {
            distance[row] = level;
            queue[end++] = static_cast<std::int32_t>(row);
        };
        reach(start, 0);
        for (std::size_t at = 0; at < end && distance[queue[at]] < most_levels; ++at) {
            const std::int64_t row = queue[at];
            for (std::int64_t i = a.first(row), last = a.first(row + 1); i < last; ++i) {
                const std::int64_t other = a.row_of(a.col_idx[i]);
                if (other >= 0 && distance[other] < 0) {
                    reach(other, distance[row] + 1);
                }
            }
        }
        return distance[queue[end - 1]];
    }

private:
    struct Stretch {
        std::int64_t begin;
        std::int64_t end;
        int thread;
    };
    static Stretch stretch(std::int64_t n)
    {
#ifdef _OPENMP
        const int thread = omp_get_thread_num();
        const int threads = omp_get_num_threads();
#else
        const int thread = 0;
        const int threads = 1;
#endif
        return {n * thread / threads, n * (thread + 1) / threads, thread};
    }

    int threads_;
};

}  // namespace rmsp::kernels::ehyb
