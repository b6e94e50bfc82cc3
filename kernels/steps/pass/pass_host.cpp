#include <algorithm>
#include <cstdint>

#include <kernels/steps/pass/exact_sum.hpp>
#include <kernels/steps/pass/pass.hpp>

#include "core/parallel.hpp"
#include "core/team.hpp"

namespace rmsp::kernels {
namespace host {
namespace {

// Entries that are worked on at a time: what a pass has of them stays in the first cache.
constexpr std::int64_t chunk = 512;

/// The sum of a[i] b[i], in chains that the processor works on at the same time.
template <class T>
double dot_chunk(const T* a, const T* b, std::int64_t n)
{
    constexpr int chains = 8;
    double sums[chains] = {};
    std::int64_t i = 0;
    for (; i + chains <= n; i += chains) {
        for (int k = 0; k < chains; ++k) {
            sums[k] += static_cast<double>(a[i + k]) * static_cast<double>(b[i + k]);
        }
    }
    for (; i < n; ++i) {
        sums[0] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    }
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

template <class T>
void add_term(T scalar, const T* v, const T* times, bool first, T* to, std::int64_t n)
{
    if (times == nullptr) {
        for (std::int64_t i = 0; i < n; ++i) {
            to[i] = (first ? T{0} : to[i]) + scalar * v[i];
        }
    } else {
        for (std::int64_t i = 0; i < n; ++i) {
            to[i] = (first ? T{0} : to[i]) + scalar * v[i] * times[i];
        }
    }
}

/// Where the sums of an inner product are, of the first one's.
std::int64_t* exact_sum(std::int64_t* sums, std::int64_t which) { return sums + which * exact::words; }

/// Updates and inner products of the entries [begin, end) of the slices. \param exact_sums  null: rounded ones, in sums
template <class T>
void pass_range(const Pass<T>& pass, const double* bank, std::int64_t begin, std::int64_t end, double* sums,
                std::int64_t* exact_sums)
{
    T result[most_pass_updates][chunk];
    for (std::int64_t at = begin; at < end; at += chunk) {
        const std::int64_t n = std::min(chunk, end - at);
        const auto place = [&](const T* v, std::int8_t from) { return from >= 0 ? result[from] : v + at; };
        for (int u = 0; u < pass.updates; ++u) {
            const PassUpdate<T>& update = pass.update[u];
            bool first = true;
            for (int t = update.first; t < update.end; ++t) {
                const PassTerm<T>& term = pass.term[t];
                const T scalar = static_cast<T>(term.sign * bank[term.scalar]);
                if (scalar != T{0}) {
                    add_term(scalar, place(term.v, term.from), term.times == nullptr ? nullptr : term.times + at, first,
                             result[u], n);
                    first = false;
                }
            }
            if (first) {
                std::fill_n(result[u], n, T{0});
            }
            std::copy_n(result[u], n, update.out + at);
        }
        for (int d = 0; d < pass.dots; ++d) {
            const PassDot<T>& dot = pass.dot[d];
            if (dot.parts != nullptr) {
                continue;
            }
            const T* const a = place(dot.a, dot.a_from);
            const T* const b = place(dot.b, dot.b_from);
            if (exact_sums == nullptr) {
                sums[d] += dot_chunk(a, b, n);
                continue;
            }
            std::int64_t* const sum = exact_sum(exact_sums, d);
            for (std::int64_t i = 0; i < n; ++i) {
                exact::add(sum, static_cast<double>(a[i]) * static_cast<double>(b[i]));
            }
            if ((at - begin) / chunk % (exact::most_between_carries / chunk) == 0) {
                exact::carry(sum);
            }
        }
    }
}

template <class T>
bool wakes_team(const Pass<T>& pass)
{
    return pass.n >= core::least_parallel;
}

/// A pass whose inner products are summed without rounding: by parts, then those of all devices, in any order.
template <class T>
void run_exact_pass(const Pass<T>& pass, const PassPlace& place, std::int64_t most_parts)
{
    constexpr std::int64_t room = (pass_workspace_bytes - 128) / std::int64_t{8} / pass_words;
    const std::int64_t parts = std::min(most_parts, room);
    auto* const partial = reinterpret_cast<std::int64_t*>(static_cast<char*>(place.workspace) + 128);
    std::fill_n(partial, parts * pass_words, std::int64_t{0});
    const auto cut = [&](std::int64_t p) { return pass.n / parts * p + std::min(p, pass.n % parts); };
    core::share(static_cast<int>(parts), wakes_team(pass),
                [&](int p) { pass_range(pass, place.bank, cut(p), cut(p + 1), nullptr, partial + p * pass_words); });
    std::int64_t* const own = place.exact + place.device * pass_words;
    std::fill_n(own, pass_words, std::int64_t{0});
    for (int d = 0; d < pass.dots; ++d) {
        for (std::int64_t p = 0; p < parts; ++p) {
            std::int64_t* const sum = exact_sum(partial + p * pass_words, d);
            exact::carry(sum);
            exact::merge(exact_sum(own, d), sum);
        }
    }
}

template <class T>
void add_sums_and_run(const Pass<T>& pass, const PassPlace& place, const double* sums, int devices)
{
    for (int d = 0; d < pass.dots; ++d) {
        double sum = 0;
        for (int first = 0; first < devices; first += place.group) {
            double of_group = 0;
            for (int device = first; device < first + place.group; ++device) {
                of_group += sums[device * most_pass_dots + d];
            }
            sum += of_group;
        }
        place.bank[pass.dot[d].into] = sum;
    }
    run_program(place.bank, place.progress, place.program, place.ops);
}

/// Of the devices' exact sums.
template <class T>
void round_sums_and_run(const Pass<T>& pass, const PassPlace& place, int devices)
{
    double sums[most_pass_dots] = {};
    for (int d = 0; d < pass.dots; ++d) {
        std::int64_t sum[exact::words] = {};
        for (int device = 0; device < devices; ++device) {
            exact::merge(sum, exact_sum(place.exact, std::int64_t{device} * most_pass_dots + d));
        }
        sums[d] = exact::value(sum);
    }
    add_sums_and_run(pass, place, sums, 1);
}

template <class T>
void run_pass(const Pass<T>& pass, const PassPlace& place, const Context& context)
{
    if (place.bank[scalar_stopped] != 0 && !pass.always) {
        return;
    }
    // A part for each thread, and the parts in order: sums do not depend on which thread comes first.
    const std::int64_t least = 4 * chunk;
    const std::int64_t parts = std::clamp<std::int64_t>(pass.n / least, 1, std::clamp(context.threads, 1, 2048));
    if (place.exact != nullptr && pass.dots > 0) {
        run_exact_pass(pass, place, parts);
        if (place.sums == PassSums::left) {
            std::fill_n(place.left + place.device * most_pass_dots, most_pass_dots, 0.0);
        } else {
            round_sums_and_run(pass, place, 1);
        }
        return;
    }
    auto* const partial = reinterpret_cast<double*>(static_cast<char*>(place.workspace) + 128);
    std::fill_n(partial, parts * most_pass_dots, 0.0);
    const auto cut = [&](std::int64_t p) { return pass.n / parts * p + std::min(p, pass.n % parts); };
    core::share(static_cast<int>(parts), wakes_team(pass), [&](int p) {
        pass_range(pass, place.bank, cut(p), cut(p + 1), partial + p * most_pass_dots, nullptr);
    });
    double sums[most_pass_dots] = {};
    for (int d = 0; d < pass.dots; ++d) {
        for (std::int64_t p = 0; p < parts; ++p) {
            sums[d] += partial[p * most_pass_dots + d];
        }
    }
    for (int d = 0; d < pass.dots; ++d) {
        for (std::int64_t i = 0; pass.dot[d].parts != nullptr && i < pass.dot[d].count; ++i) {
            sums[d] += pass.dot[d].parts[i];
        }
    }
    if (place.sums == PassSums::left) {
        std::copy_n(sums, most_pass_dots, place.left + place.device * most_pass_dots);
    } else {
        add_sums_and_run(pass, place, sums, 1);
    }
}

template <class T>
void finish_pass(const Pass<T>& pass, const PassPlace& place, const Context& /*context*/)
{
    if (place.bank[scalar_stopped] != 0 && !pass.always) {
        return;
    }
    if (place.exact != nullptr && pass.dots > 0) {
        round_sums_and_run(pass, place, place.devices);
    } else {
        add_sums_and_run(pass, place, place.left, place.devices);
    }
}

void load_passes(bool /*exact*/, const Context& /*context*/) {}

}  // namespace
}  // namespace host

RMSP_VALUE_ROW(Passes, host, .run_pass = host::run_pass<T>, .finish_pass = host::finish_pass<T>)
RMSP_ROW(PassLoading, host, .load_passes = host::load_passes)

}  // namespace rmsp::kernels
