#include <kernels/spmv/ehyb/graph_parts.hpp>

#ifdef RMSP_HAVE_METIS
#include <metis.h>
#endif

#include <limits>
#include <mutex>

#include <fmt/format.h>
#include <rmsp/error.hpp>

namespace rmsp::kernels {

#ifdef RMSP_HAVE_METIS

bool has_metis() noexcept { return true; }

std::vector<std::int32_t> graph_parts(std::span<const std::int64_t> first, std::span<const std::int32_t> neighbours,
                                      std::span<const std::int32_t> weights, std::int64_t parts,
                                      int imbalance_per_mille)
{
    const auto vertices = static_cast<std::int64_t>(first.size()) - 1;
    const auto edges = static_cast<std::int64_t>(neighbours.size());
    constexpr std::int64_t limit = std::numeric_limits<idx_t>::max();
    if (vertices > limit || edges > limit) {
        throw Error(ErrorCode::usage,
                    fmt::format("a graph of {} vertices and {} edges: METIS was built to number {} of them", vertices,
                                edges, limit));
    }
    if (parts <= 1 || vertices == 0) {
        return std::vector<std::int32_t>(static_cast<std::size_t>(vertices), 0);
    }
    std::vector<idx_t> xadj(first.begin(), first.end());
    std::vector<idx_t> adjncy(neighbours.begin(), neighbours.end());
    std::vector<idx_t> vwgt(weights.begin(), weights.end());
    std::vector<idx_t> part(static_cast<std::size_t>(vertices));
    idx_t n = static_cast<idx_t>(vertices);
    idx_t constraints = 1;
    idx_t count = static_cast<idx_t>(parts);
    idx_t cut = 0;
    idx_t options[METIS_NOPTIONS];
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = 1;
    options[METIS_OPTION_UFACTOR] = imbalance_per_mille;
    // METIS draws from rand() and sets signal handlers while it runs, both of the whole process.
    static std::mutex one_at_a_time;
    const std::lock_guard lock(one_at_a_time);
    const int status = METIS_PartGraphKway(&n, &constraints, xadj.data(), adjncy.data(), vwgt.data(), nullptr, nullptr,
                                           &count, nullptr, nullptr, options, &cut, part.data());
    if (status != METIS_OK) {
        throw Error(status == METIS_ERROR_MEMORY ? ErrorCode::out_of_memory : ErrorCode::internal,
                    fmt::format("METIS_PartGraphKway of {} vertices and {} edges into {} parts failed with status {}",
                                vertices, edges, parts, status));
    }
    return {part.begin(), part.end()};
}

#else

bool has_metis() noexcept { return false; }

std::vector<std::int32_t> graph_parts(std::span<const std::int64_t> /*first*/,
                                      std::span<const std::int32_t> /*neighbours*/,
                                      std::span<const std::int32_t> /*weights*/, std::int64_t /*parts*/,
                                      int /*imbalance_per_mille*/)
{
    throw NotCompiled("METIS");
}

#endif

}  // namespace rmsp::kernels
