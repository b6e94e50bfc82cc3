#include "runtime/transport/transport.hpp"

#include <array>

#include <kernels/steps/ghosts/ghosts.hpp>
#include <kernels/steps/support/support.hpp>

namespace rmsp::transport {

void Gather::pack(engine::Worker& worker, engine::Stream& stream) const
{
    if (halo == nullptr) {
        return;
    }
    const auto context = worker.device().context(stream);
    const std::int64_t n = halo->buffer_entries(worker.rank());
    void* const out = packed[static_cast<std::size_t>(worker.rank())];
    if (entry_bytes == sizeof(float)) {
        kernels::pack(static_cast<const float*>(slice), packed_list, n, static_cast<float*>(out), context);
    } else {
        kernels::pack(static_cast<const double*>(slice), packed_list, n, static_cast<double*>(out), context);
    }
}

void add_sums(engine::Worker& worker, const Reduce& reduce, std::span<const Sums> sums)
{
    const Range slice = reduce.slice(worker.rank());
    const auto add = [&]<class T>(T* y) {
        std::array<kernels::PartialSums<T>, kernels::most_partials> parts;
        int count = 0;
        T beta = static_cast<T>(reduce.beta);
        const auto flush = [&] {
            kernels::add_partials(y, slice.first, slice.end, beta, parts.data(), count, worker.context());
            count = 0;
            beta = T{1};
        };
        for (const Sums& one : sums) {
            if (one.range.empty()) {
                continue;
            }
            if (count == kernels::most_partials) {
                flush();
            }
            parts[static_cast<std::size_t>(count++)] = {static_cast<const T*>(one.entry_zero), one.range.first,
                                                        one.range.end};
        }
        if (count > 0 || beta != T{1}) {
            flush();
        }
    };
    if (reduce.entry_bytes == sizeof(double)) {
        add(static_cast<double*>(reduce.y));
    } else {
        add(static_cast<float*>(reduce.y));
    }
}

}  // namespace rmsp::transport
