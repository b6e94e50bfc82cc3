#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <kernels/spmv/ehyb/pool.hpp>

/// Parts of a mesh without its coordinates, by steps that GPUs are good at.
///
/// Distances from a few vertices that lie far from each other stand for coordinates (landmarks, as in V. de Silva, J.
/// B. Tenenbaum, "Sparse multidimensional scaling using landmark points", 2004). By these, parts are halved again and
/// again across the direction in which they extend farthest (recursive inertial bisection: H. D. Simon, "Partitioning
/// of unstructured problems for parallel processing", 1991). Then vertices go to the part that has most of their
/// neighbours, as long as it has room (U. N. Raghavan et al., "Near linear time algorithm to detect community
/// structures in large-scale networks", 2007). The result depends on nothing but the structure.
namespace rmsp::kernels::ehyb {

struct MeshPartsTuning {
    int landmarks = 8;
    int most_levels = 2048;  ///< of a search; what lies behind counts as far away
    /// Levels of all searches, after which there is no other: of long meshes a few landmarks say as much.
    int most_levels_in_all = 8192;
    int rounds = 10;          ///< in which vertices change their part
    int room_per_mille = 30;  ///< by which a part may be larger than the mean
    bool operator==(const MeshPartsTuning&) const = default;
};
inline constexpr MeshPartsTuning mesh_parts_tuning{};

namespace detail {

inline constexpr int most_landmarks = 8;
/// Vertices of a part that its direction is taken from: samples a chunk, and chunks.
inline constexpr int samples = 64;
inline constexpr int chunks = 64;
inline constexpr int power_steps = 24;
/// Parts that a vertex may have neighbours in; others are not looked at.
inline constexpr int looked_at = 12;

/// Mean and mixed moments of distances: of n dimensions n + n (n + 1) / 2.
constexpr int moments_of(int n) { return n + n * (n + 1) / 2; }

struct Distances {
    const std::int32_t* of[most_landmarks] = {};
    std::int32_t unreached[most_landmarks] = {};
    int count = 0;

    RMSP_EHYB_BODY double at(int landmark, std::int64_t row) const
    {
        const std::int32_t d = of[landmark][row];
        return d < 0 ? unreached[landmark] : d;
    }
};

/// In the order of the numbers, but for NaN.
RMSP_EHYB_BODY inline std::uint32_t ordered(float value)
{
    union {
        float number;
        std::uint32_t bits;
    } both{value};
    return (both.bits & 0x80000000u) != 0 ? ~both.bits : both.bits | 0x80000000u;
}

RMSP_EHYB_BODY inline std::uint32_t scattered(std::uint32_t n)
{
    n = (n ^ n >> 16) * 0x7feb352du;
    n = (n ^ n >> 15) * 0x846ca68bu;
    return n ^ n >> 16;
}

/// Directions in which segments extend farthest, from their moments: the largest eigenvector of the covariances.
RMSP_EHYB_BODY inline void find_direction(const double* sums, double count, int n, float* direction)
{
    double covariance[most_landmarks][most_landmarks] = {};
    int longest = 0;
    for (int i = 0, k = n; i < n; ++i) {
        for (int j = 0; j <= i; ++j, ++k) {
            covariance[i][j] = covariance[j][i] = sums[k] / count - sums[i] / count * (sums[j] / count);
        }
        longest = covariance[i][i] > covariance[longest][longest] ? i : longest;
    }
    double v[most_landmarks] = {};
    for (int i = 0; i < n; ++i) {
        v[i] = covariance[i][longest];
    }
    for (int step = 0; step < power_steps; ++step) {
        double next[most_landmarks] = {};
        double largest = 0;
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                next[i] += covariance[i][j] * v[j];
            }
            largest = std::fmax(largest, std::fabs(next[i]));
        }
        if (!(largest > 0)) {
            break;
        }
        for (int i = 0; i < n; ++i) {
            v[i] = next[i] / largest;
        }
    }
    for (int i = 0; i < n; ++i) {
        direction[i] = static_cast<float>(v[i]);
    }
}

/// Distances from vertices each of which is as far as can be from those before it.
template <class Pool>
Distances find_landmarks(const Pool& pool, const Structure& a, std::int32_t* distances, const MeshPartsTuning& tuning)
{
    constexpr std::uint32_t far = 0x7fffffff;
    auto nearest = pool.template array<std::uint64_t>(a.rows);
    std::uint64_t* const keys = nearest.data();
    Distances result;
    // The first search finds where to begin.
    std::int64_t levels_in_all = 0;
    for (int i = 0; i <= std::min(tuning.landmarks, most_landmarks); ++i) {
        if (i > 1 && levels_in_all >= tuning.most_levels_in_all) {
            break;
        }
        const std::uint64_t farthest = i == 0 ? 0xffffffffu : pool.most(keys, a.rows);
        if (farthest >> 32 == 0 && i > 0) {
            break;
        }
        std::int32_t* const distance = distances + (i == 0 ? 0 : result.count) * a.rows;
        const std::int32_t levels = pool.search(a, static_cast<std::int64_t>(0xffffffffu - (farthest & 0xffffffffu)),
                                                distance, tuning.most_levels);
        levels_in_all += levels;
        const bool anew = i <= 1;
        pool.each(a.rows, [=] RMSP_EHYB_STEP(std::int64_t row) {
            const std::uint32_t d = distance[row] < 0 ? far : static_cast<std::uint32_t>(distance[row]);
            const std::uint32_t before = anew ? far : static_cast<std::uint32_t>(keys[row] >> 32);
            keys[row] = static_cast<std::uint64_t>(d < before ? d : before) << 32 |
                        (0xffffffffu - static_cast<std::uint32_t>(row));
        });
        if (i > 0) {
            result.of[result.count] = distance;
            result.unreached[result.count++] = levels + 2;
        }
    }
    return result;
}

/// Halves the rows again and again.
template <class Pool>
void bisect(const Pool& pool, std::int64_t rows, std::int64_t parts, const Distances& distances, std::int32_t* part)
{
    const int n = distances.count;
    const int moments = moments_of(n);
    auto keys = pool.template array<std::uint64_t>(rows);
    auto order = pool.template array<std::int32_t>(rows);
    pool.each(rows, [order = order.data()] RMSP_EHYB_STEP(std::int64_t i) { order[i] = static_cast<std::int32_t>(i); });
    // Where segments of the order begin, and how many parts each becomes: that does not depend on what is found.
    std::vector<std::int64_t> first{0};
    std::vector<std::int64_t> of_segment{parts};
    while (n > 0 && *std::max_element(of_segment.begin(), of_segment.end()) > 1) {
        const auto segments = static_cast<std::int64_t>(first.size());
        auto begin = pool.copy(first);
        auto sums = pool.template array<double>(segments * chunks * moments);
        auto directions = pool.template array<float>(segments * n);
        const std::int64_t* const begins = begin.data();
        const std::int32_t* const rows_of = order.data();
        double* const sum = sums.data();
        float* const direction = directions.data();
        pool.each(segments * chunks, [=] RMSP_EHYB_STEP(std::int64_t i) {
            const std::int64_t s = i / chunks;
            const std::int64_t length = (s + 1 < segments ? begins[s + 1] : rows) - begins[s];
            const std::int64_t end = length * (i % chunks + 1) / chunks;
            const std::int64_t start = length * (i % chunks) / chunks;
            const std::int64_t step = (end - start) / samples > 1 ? (end - start) / samples : 1;
            double own[moments_of(most_landmarks)] = {};
            for (std::int64_t k = start; k < end; k += step) {
                double at[most_landmarks];
                for (int d = 0; d < n; ++d) {
                    at[d] = distances.at(d, rows_of[begins[s] + k]);
                    own[d] += at[d];
                }
                for (int d = 0, m = n; d < n; ++d) {
                    for (int e = 0; e <= d; ++e, ++m) {
                        own[m] += at[d] * at[e];
                    }
                }
            }
            for (int m = 0; m < moments; ++m) {
                sum[i * moments + m] = own[m];
            }
        });
        pool.each(segments, [=] RMSP_EHYB_STEP(std::int64_t s) {
            const std::int64_t length = (s + 1 < segments ? begins[s + 1] : rows) - begins[s];
            double all[moments_of(most_landmarks)] = {};
            double count = 0;
            for (std::int64_t c = 0; c < chunks; ++c) {
                const std::int64_t in_chunk = length * (c + 1) / chunks - length * c / chunks;
                const std::int64_t step = in_chunk / samples > 1 ? in_chunk / samples : 1;
                count += static_cast<double>((in_chunk + step - 1) / step);
                for (int m = 0; m < moments; ++m) {
                    all[m] += sum[(s * chunks + c) * moments + m];
                }
            }
            find_direction(all, count > 0 ? count : 1, n, direction + s * n);
        });
        std::uint64_t* const key = keys.data();
        pool.each(rows, [=] RMSP_EHYB_STEP(std::int64_t i) {
            const std::int64_t s = not_above(begins, segments, i) - 1;
            float along = 0;
            for (int d = 0; d < n; ++d) {
                along += direction[s * n + d] * static_cast<float>(distances.at(d, rows_of[i]));
            }
            key[i] = static_cast<std::uint64_t>(s) << 32 | ordered(along);
        });
        pool.sort(keys, order, rows, 32 + bits_for(segments));
        std::vector<std::int64_t> next_first;
        std::vector<std::int64_t> next_of_segment;
        for (std::size_t s = 0; s < first.size(); ++s) {
            const std::int64_t end = s + 1 < first.size() ? first[s + 1] : rows;
            const std::int64_t left = of_segment[s] / 2;
            if (left > 0) {
                next_first.push_back(first[s]);
                next_of_segment.push_back(left);
            }
            next_first.push_back(first[s] + (end - first[s]) * left / of_segment[s]);
            next_of_segment.push_back(of_segment[s] - left);
        }
        first.swap(next_first);
        of_segment.swap(next_of_segment);
    }
    auto begin = pool.copy(first);
    const std::int64_t* const begins = begin.data();
    const std::int32_t* const rows_of = order.data();
    const auto segments = static_cast<std::int64_t>(first.size());
    pool.each(rows, [=] RMSP_EHYB_STEP(std::int64_t i) {
        part[rows_of[i]] = static_cast<std::int32_t>(not_above(begins, segments, i) - 1);
    });
}

/// Vertices go to the part that has most of their neighbours, as long as it has room. In each round half of them may,
/// those with the same neighbours alike, so that they do not change places with each other forever.
template <class Pool>
void smooth(const Pool& pool, const Structure& a, std::int64_t parts, std::int32_t* part, const MeshPartsTuning& tuning)
{
    const std::int64_t rows = a.rows;
    const std::int64_t most = (rows + parts - 1) / parts * (1000 + tuning.room_per_mille) / 1000;
    auto sizes = pool.template array<std::int32_t>(parts);
    auto changes = pool.template array<std::int32_t>(parts);
    auto wanted = pool.template array<std::int32_t>(rows);
    auto gains = pool.template array<std::int32_t>(rows);
    auto places = pool.template array<std::int32_t>(rows + 1);
    std::int32_t* const size = sizes.data();
    std::int32_t* const change = changes.data();
    std::int32_t* const want = wanted.data();
    std::int32_t* const gain = gains.data();
    std::int32_t* const place = places.data();
    pool.each(parts, [=] RMSP_EHYB_STEP(std::int64_t p) { size[p] = change[p] = 0; });
    pool.each(rows, [=] RMSP_EHYB_STEP(std::int64_t row) { add_shared(size + part[row], 1); });
    for (int round = 0; round < tuning.rounds; ++round) {
        pool.each(rows + 1, [=] RMSP_EHYB_STEP(std::int64_t row) {
            place[row] = 0;
            if (row == rows || a.first(row) == a.first(row + 1)) {
                return;
            }
            const auto twin = static_cast<std::uint32_t>(a.col_idx[a.first(row)]);
            if ((scattered(twin + 0x9e3779b9u * static_cast<std::uint32_t>(round / 2)) & 1) !=
                static_cast<std::uint32_t>(round % 2)) {
                return;
            }
            std::int32_t others[looked_at];
            std::int32_t counts[looked_at];
            int met = 0;
            std::int32_t own = 0;
            for (std::int64_t i = a.first(row), end = a.first(row + 1); i < end; ++i) {
                const std::int64_t other = a.row_of(a.col_idx[i]);
                if (other < 0 || other == row) {
                    continue;
                }
                if (part[other] == part[row]) {
                    ++own;
                    continue;
                }
                int k = 0;
                while (k < met && others[k] != part[other]) {
                    ++k;
                }
                if (k < looked_at) {
                    others[k] = part[other];
                    counts[k] = k == met ? 1 : counts[k] + 1;
                    met = k == met ? met + 1 : met;
                }
            }
            int best = 0;
            for (int k = 1; k < met; ++k) {
                best = counts[k] > counts[best] || (counts[k] == counts[best] && others[k] < others[best]) ? k : best;
            }
            if (met > 0 && counts[best] > own) {
                want[row] = others[best];
                gain[row] = counts[best] - own;
                place[row] = 1;
            }
        });
        pool.sum_before(place, rows + 1);
        const std::int64_t movers = pool.read(place + rows, 1)[0];
        if (movers == 0) {
            continue;
        }
        auto keys = pool.template array<std::uint64_t>(movers);
        auto who = pool.template array<std::int32_t>(movers);
        pool.each(rows, [=, keys = keys.data(), who = who.data()] RMSP_EHYB_STEP(std::int64_t row) {
            if (place[row + 1] != place[row]) {
                keys[place[row]] =
                    static_cast<std::uint64_t>(want[row]) << 32 | (0xffffffffu - static_cast<std::uint32_t>(gain[row]));
                who[place[row]] = static_cast<std::int32_t>(row);
            }
        });
        pool.sort(keys, who, movers, 32 + bits_for(parts));
        // Those that gain most have the room.
        pool.each(movers, [=, keys = keys.data(), who = who.data()] RMSP_EHYB_STEP(std::int64_t i) {
            const std::uint64_t to = keys[i] >> 32;
            const std::int64_t before = to == 0 ? 0 : not_above(keys, movers, (to << 32) - 1);
            if (i - before < most - size[to]) {
                add_shared(change + to, 1);
                add_shared(change + part[who[i]], -1);
                part[who[i]] = static_cast<std::int32_t>(to);
            }
        });
        pool.each(parts, [=] RMSP_EHYB_STEP(std::int64_t p) {
            size[p] += change[p];
            change[p] = 0;
        });
    }
}

}  // namespace detail

/// As many rows as they come for each.
template <class Pool>
void natural_parts(const Pool& pool, std::int64_t rows, std::int64_t parts, std::int32_t* part)
{
    const std::int64_t each = std::max<std::int64_t>((rows + parts - 1) / parts, 1);
    pool.each(rows, [=] RMSP_EHYB_STEP(std::int64_t row) { part[row] = static_cast<std::int32_t>(row / each); });
}

/// Cuts the rows into `parts`; part[rows] is the part of each. \param done  called with the name of each step behind it
template <class Pool, class Done>
void mesh_parts(const Pool& pool, const Structure& a, std::int64_t parts, std::int32_t* part,
                const MeshPartsTuning& tuning, const Done& done)
{
    if (parts <= 1 || a.rows == 0) {
        natural_parts(pool, a.rows, 1, part);
        return;
    }
    auto of_landmarks = pool.template array<std::int32_t>(a.rows * detail::most_landmarks);
    const detail::Distances distances = detail::find_landmarks(pool, a, of_landmarks.data(), tuning);
    done("distances");
    detail::bisect(pool, a.rows, parts, distances, part);
    done("bisection");
    detail::smooth(pool, a, parts, part, tuning);
}

}  // namespace rmsp::kernels::ehyb
