#include "cluster/shares.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace rmsp::cluster {

std::int64_t Shares::before(std::int64_t n, int process) const
{
    const auto size = static_cast<std::int64_t>(weights.size());
    if (process == size) {
        return n;
    }
    if (std::all_of(weights.begin(), weights.end(), [&](double w) { return w == weights.front(); })) {
        return n / size * process + n % size * process / size;
    }
    // As partition_csr() cuts by weights.
    const auto sum = [&](std::size_t count) {
        return std::accumulate(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(count), 0.0L);
    };
    const long double cut =
        std::floor(static_cast<long double>(n) * sum(static_cast<std::size_t>(process)) / sum(weights.size()));
    return cut < static_cast<long double>(n) ? static_cast<std::int64_t>(cut) : n;
}

Shares find_shares(Communicator& processes, Runtime& runtime, double weight, Balance balance, std::size_t value_bytes)
{
    const bool by_time = balance == Balance::time;
    // Before anything is measured, which takes a while.
    const auto own_balance = static_cast<std::int64_t>(balance);
    const std::vector<std::int64_t> all = processes.numbers_of_all({&own_balance, 1});
    for (std::size_t i = 8; i < all.size(); i += 8) {
        if (all[i] != all[0]) {
            throw Agreed(ErrorCode::usage,
                         fmt::format("processes 0 and {} share rows by another balance: Balance {} and {}", i / 8,
                                     all[0], all[i]));
        }
    }
    double own = weight;
    if (by_time) {
        const std::vector<double> limits = runtime.measure_limits();
        own = std::accumulate(limits.begin(), limits.end(), 0.0);
    }
    const auto bits = std::bit_cast<std::int64_t>(own);
    Shares shares;
    const std::vector<std::int64_t> of_all = processes.numbers_of_all({&bits, 1});
    for (std::size_t i = 0; i < of_all.size(); i += 8) {
        shares.weights.push_back(std::bit_cast<double>(of_all[i]));
    }
    if (by_time) {
        // What a product reads and writes at least: an entry with its column, a row with its pointer, x and y.
        const auto bytes = static_cast<std::int64_t>(value_bytes);
        shares.of_entry = bytes + 4;
        shares.of_row = 4 + 2 * bytes;
    }
    return shares;
}

}  // namespace rmsp::cluster
