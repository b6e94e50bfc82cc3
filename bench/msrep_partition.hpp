#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <nlohmann/json.hpp>

#include <rmsp/rmsp.hpp>

#include "msrep_matrices.hpp"
#include "program.hpp"

/// What partitioning costs the host in the three versions of MSREP. (Fig. 16)
namespace bench {

using Clock = std::chrono::steady_clock;

inline constexpr const char* versions[] = {"baseline", "pstar", "pstar-opt"};

/// The best of three runs, or of fewer that take long.
inline double best_seconds(const std::function<void()>& f)
{
    constexpr double enough_seconds = 0.05;
    const auto begin = Clock::now();
    double best = 1e300;
    for (int i = 0; i < 3 && (i == 0 || seconds_since(begin) < enough_seconds); ++i) {
        const auto start = Clock::now();
        f();
        best = std::min(best, seconds_since(start));
    }
    return best;
}

inline void use_threads(int threads)
{
#ifdef _OPENMP
    omp_set_num_threads(threads);
#else
    (void)threads;
#endif
}

/// Seconds of the host to cut a matrix into parts and to make what is local to each, in the three formats.
inline nlohmann::ordered_json partition_cost(const Matrix& a, const rmsp::IndexView& rows,
                                             const std::vector<int>& counts)
{
    auto runs = nlohmann::ordered_json::array();
    const auto view = a.view();
    rmsp::HostVector<std::int32_t> local(static_cast<std::size_t>(view.nnz) + a.row_ptr.size() + 1024);
    std::fill(local.begin(), local.end(), 0);
    for (const int parts : counts) {
        for (const char* version : versions) {
            const bool blocks = std::string(version) == "baseline";
            const bool on_host = std::string(version) != "pstar-opt";
            rmsp::PartitionOptions options;
            options.strategy = blocks ? rmsp::PartitionStrategy::rows : rmsp::PartitionStrategy::nonzeros;
            options.alignment = blocks ? rmsp::RowAlignment::row : rmsp::RowAlignment::exact;
            const std::map<std::string, std::function<void()>> formats{
                {"csr",
                 [&] {
                     const auto split = rmsp::partition_csr(a.rows, a.cols, view.row_ptr, parts, options);
                     std::int32_t* out = local.data();
                     for (const auto& part : split.parts) {
                         if (on_host) {
                             rmsp::local_row_ptr(view.row_ptr, part, out);
                             out += part.rows() + 1;
                         }
                     }
                 }},
                {"csc",  // of the transpose
                 [&] {
                     const auto split = rmsp::partition_csc(a.cols, a.rows, view.row_ptr, parts, options);
                     std::int32_t* out = local.data();
                     for (const auto& part : split.parts) {
                         if (on_host) {
                             rmsp::local_col_ptr(view.row_ptr, part, out);
                             out += part.cols() + 1;
                         }
                     }
                 }},
                {"coo", [&] {
                     const auto split =
                         rmsp::partition_coo(a.rows, a.cols, view.nnz, rows, view.col_idx, parts, options);
                     for (const auto& part : split.parts) {
                         if (on_host) {
                             rmsp::local_indices(rows, part, part.start_row, part.rows(),
                                                 local.data() + part.start_idx);
                         }
                     }
                 }}};
            use_threads(blocks ? 1 : parts);
            for (const auto& [format, run] : formats) {
                runs.push_back(
                    {{"version", version}, {"format", format}, {"devices", parts}, {"seconds", best_seconds(run)}});
            }
        }
    }
    use_threads(static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN))));
    return runs;
}

}  // namespace bench
