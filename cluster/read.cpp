#include "cluster/read.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rmsp/matrix_part.hpp>
#include <rmsp/value_types.hpp>

#include "cluster/scatter.hpp"

namespace rmsp::cluster {
namespace {

/// The first of n things that a process has, n for the one behind the last.
std::int64_t first_of(std::int64_t n, std::int64_t process, std::int64_t processes)
{
    return n / processes * process + n % processes * process / processes;
}

/// The process that has thing number `at`; `offsets` as first things of each, and n.
std::size_t owner_of(const std::vector<std::int64_t>& offsets, std::int64_t at)
{
    return static_cast<std::size_t>(std::upper_bound(offsets.begin(), offsets.end(), at) - offsets.begin() - 1);
}

/// f() on each process, however long it takes: nobody waits for another for longer than ClusterOptions::timeout_seconds
/// as long as all are there. f() speaks no MPI. \throws what f() throws on one of them
void patiently(Communicator& processes, const std::function<void()>& f)
{
    constexpr auto often = std::chrono::milliseconds(50);
    std::future<void> work = std::async(std::launch::async, f);
    for (bool all_done = false; !all_done;) {
        const bool done = !work.valid() || work.wait_for(often) == std::future_status::ready;
        if (done && work.valid()) {
            work.get();
        }
        const std::int64_t own = done ? 1 : 0;
        const std::vector<std::int64_t> all = processes.numbers_of_all({&own, 1});
        all_done = true;
        for (std::size_t i = 0; i < all.size(); i += 8) {
            all_done = all_done && all[i] == 1;
        }
    }
}

/// Numbers of each process, as many each, one process after the other.
std::vector<std::int64_t> gather(Communicator& processes, const std::vector<std::int64_t>& own)
{
    std::vector<std::int64_t> all;
    for (const auto& came : bring(processes, std::vector(static_cast<std::size_t>(processes.size()), own))) {
        all.insert(all.end(), came.begin(), came.end());
    }
    return all;
}

/// Runs of entries of one row, as they stand in the file.
struct RowCount {
    std::int64_t row;
    std::int64_t entries;
};

/// How many entries each of this process's even share of the rows has, over all processes.
template <class T>
std::vector<std::int64_t> count_rows(Communicator& processes, const std::vector<HostVector<MatrixEntry<T>>>& runs,
                                     const std::vector<std::int64_t>& even)
{
    std::vector<std::vector<RowCount>> to(static_cast<std::size_t>(processes.size()));
    RowCount count{-1, 0};
    const auto flush = [&] {
        if (count.entries > 0) {
            to[owner_of(even, count.row)].push_back(count);
        }
    };
    for (const auto& run : runs) {
        for (const MatrixEntry<T>& entry : run) {
            if (entry.row != count.row) {
                flush();
                count = {entry.row, 0};
            }
            ++count.entries;
        }
    }
    flush();
    const auto rank = static_cast<std::size_t>(processes.rank());
    std::vector<std::int64_t> counts(static_cast<std::size_t>(even[rank + 1] - even[rank]));
    for (const auto& came : bring(processes, to)) {
        for (const RowCount& of : came) {
            counts[static_cast<std::size_t>(of.row - even[rank])] += of.entries;
        }
    }
    return counts;
}

/// The first row of each process, and their number: where partition_csr() cuts at whole rows, by the entries of the
/// file. Each process knows what the rows of its even share cost.
/// \param counts  entries of these rows
std::vector<std::int64_t> cut_rows(Communicator& processes, const std::vector<std::int64_t>& even,
                                   const std::vector<std::int64_t>& counts, const Shares& shares)
{
    const auto cost = [&](std::int64_t count) { return shares.of_entry * count + shares.of_row; };
    const int size = processes.size();
    const auto rank = static_cast<std::size_t>(processes.rank());
    std::int64_t base = 0;
    std::int64_t costs = 0;
    std::int64_t own = 0;
    for (const std::int64_t count : counts) {
        own += cost(count);
    }
    const std::vector<std::int64_t> all = processes.numbers_of_all({&own, 1});
    for (std::size_t p = 0; p < static_cast<std::size_t>(size); ++p) {
        base += p < rank ? all[8 * p] : 0;
        costs += all[8 * p];
    }
    std::vector<std::int64_t> starts{base};
    for (const std::int64_t count : counts) {
        starts.push_back(starts.back() + cost(count));
    }
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    const auto least_of_all = [&](const std::vector<std::int64_t>& numbers) {
        std::vector<std::int64_t> least(numbers.size(), none);
        const std::vector<std::int64_t> of_all = gather(processes, numbers);
        for (std::size_t i = 0; i < of_all.size(); ++i) {
            least[i % least.size()] = std::min(least[i % least.size()], of_all[i]);
        }
        return least;
    };
    // The boundary of rows that is nearest to each exact cut; one process has the row around it.
    std::vector<std::int64_t> boundaries(static_cast<std::size_t>(size) + 1, none);
    for (int p = 0; p <= size; ++p) {
        const std::int64_t cut = shares.before(costs, p);
        const auto above = std::lower_bound(starts.begin(), starts.end(), cut);
        if (cut == 0) {
            boundaries[static_cast<std::size_t>(p)] = 0;
        } else if (above != starts.end() && above != starts.begin()) {
            boundaries[static_cast<std::size_t>(p)] =
                cut - *(above - 1) <= *above - cut && *above != cut ? *(above - 1) : *above;
        }
    }
    boundaries = least_of_all(boundaries);
    // The first row that begins there.
    std::vector<std::int64_t> rows;
    for (std::size_t p = 0; p < boundaries.size(); ++p) {
        const auto at = std::lower_bound(starts.begin(), starts.end() - 1, boundaries[p]);
        rows.push_back(at == starts.end() - 1 ? even.back() : even[rank] + (at - starts.begin()));
    }
    rows = least_of_all(rows);
    rows.front() = 0;
    rows.back() = even.back();
    return costs == 0 ? even : rows;  // without entries there is nothing but rows to share
}

/// Entries to the processes that have their rows, those of each process in the order of the file.
template <class T>
std::vector<HostVector<MatrixEntry<T>>> bring_entries(Communicator& processes,
                                                      std::vector<HostVector<MatrixEntry<T>>> runs,
                                                      const std::vector<std::int64_t>& cuts, ReadReport& report)
{
    const auto size = static_cast<std::size_t>(processes.size());
    std::vector<std::size_t> counts(size);
    for (const auto& run : runs) {
        for (const MatrixEntry<T>& entry : run) {
            ++counts[owner_of(cuts, entry.row)];
        }
    }
    std::vector<std::vector<std::byte>> to(size);
    for (std::size_t p = 0; p < size; ++p) {
        to[p].reserve(counts[p] * sizeof(MatrixEntry<T>));
        report.entries += static_cast<std::int64_t>(counts[p]);
        report.sent += static_cast<int>(p) != processes.rank() ? static_cast<std::int64_t>(counts[p]) : 0;
    }
    for (auto& run : runs) {
        for (const MatrixEntry<T>& entry : run) {
            std::vector<std::byte>& bytes = to[owner_of(cuts, entry.row)];
            const auto* const from = reinterpret_cast<const std::byte*>(&entry);
            bytes.insert(bytes.end(), from, from + sizeof entry);
        }
        HostVector<MatrixEntry<T>>().swap(run);
    }
    std::vector<std::vector<std::byte>> came = processes.bring(std::move(to));
    std::vector<HostVector<MatrixEntry<T>>> own(size);
    for (std::size_t p = 0; p < size; ++p) {
        own[p].resize(came[p].size() / sizeof(MatrixEntry<T>));
        if (!came[p].empty()) {
            std::memcpy(own[p].data(), came[p].data(), came[p].size());
        }
        std::vector<std::byte>().swap(came[p]);
    }
    return own;
}

/// Why the file is not read in parts, the same on all processes; empty: it is. \throws Agreed(usage) for other options
std::string why_not(Communicator& processes, const MatrixFile& file, const ReadOptions& options)
{
    const std::int64_t numbers[] = {file.in_parts ? 1 : 0,
                                    file.bytes,
                                    file.rows,
                                    file.cols,
                                    file.entries,
                                    options.sum_duplicates ? 1 : 0,
                                    std::bit_cast<std::int64_t>(options.pattern_value)};
    const std::vector<std::int64_t> all = processes.numbers_of_all(numbers);
    for (std::size_t i = 8; i < all.size(); i += 8) {
        if (all[i + 5] != all[5] || all[i + 6] != all[6]) {
            throw Agreed(ErrorCode::usage, fmt::format("processes 0 and {} read with other options: {} differs", i / 8,
                                                       all[i + 5] != all[5] ? "sum_duplicates" : "pattern_value"));
        }
    }
    for (std::size_t i = 8; i < all.size(); i += 8) {
        if (!std::equal(all.begin(), all.begin() + 5, all.begin() + static_cast<std::ptrdiff_t>(i))) {
            return fmt::format("process {} does not see the same file as process 0", i / 8);
        }
    }
    return file.reason;
}

}  // namespace

template <class T>
ClusterRows<T> read_rows(Communicator& processes, const std::string& path, const ReadOptions& options,
                         const Shares& shares, ReadReport& report)
{
    const int size = processes.size();
    std::optional<MatrixPart<T>> part;
    MatrixFile file;
    if (size > 1) {
        part.emplace(path, processes.rank(), size, options);
        file = part->file();
    } else {
        file.reason = "there is one process";
    }
    report = {};
    report.reason = why_not(processes, file, options);
    report.in_parts = report.reason.empty();
    if (!report.in_parts) {
        CsrMatrix<T> whole;
        patiently(processes, [&] {
            if (processes.rank() == 0) {
                whole = read_matrix<T>(path, options);
            }
        });
        report.entries = whole.nnz();
        ClusterRows<T> own = scatter_rows(processes, whole, shares);
        report.sent = processes.rank() == 0 ? whole.nnz() - own.rows.nnz() : 0;
        return own;
    }
    std::vector<std::int64_t> numbers;
    patiently(processes, [&] { numbers = part->read(); });
    const std::vector<std::int64_t> of_all = gather(processes, numbers);
    std::vector<HostVector<MatrixEntry<T>>> runs;
    patiently(processes, [&] { runs = part->finish(of_all); });
    part.reset();

    std::vector<std::int64_t> even;
    for (int p = 0; p <= size; ++p) {
        even.push_back(first_of(file.rows, p, size));
    }
    const std::vector<std::int64_t> cuts = cut_rows(processes, even, count_rows(processes, runs, even), shares);
    runs = bring_entries(processes, std::move(runs), cuts, report);
    const auto rank = static_cast<std::size_t>(processes.rank());
    ClusterRows<T> own;
    own.first_row = cuts[rank];
    patiently(processes,
              [&] { own.rows = rows_of_entries(runs, cuts[rank], cuts[rank + 1] - cuts[rank], file.cols, options); });
    return own;
}

#define RMSP_INSTANTIATE(T)                                                                                 \
    template ClusterRows<T> read_rows(Communicator&, const std::string&, const ReadOptions&, const Shares&, \
                                      ReadReport&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::cluster
