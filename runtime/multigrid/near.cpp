#include "runtime/multigrid/near.hpp"

namespace rmsp::multigrid {

void Near::download(RuntimeState& runtime, std::int64_t rows)
{
    if (on_first_device == nullptr) {
        return;
    }
    host.values.resize(static_cast<std::size_t>(rows));
    runtime
        .submit(
            [&](engine::Worker& worker, engine::Rendezvous&) {
                if (worker.rank() == 0 && rows > 0) {
                    worker.device().download(worker.stream(), host.values.data(), on_first_device,
                                             host.values.size() * sizeof(double));
                    worker.stream().synchronize();
                }
            },
            {}, true)
        .get();
    on_first_device = nullptr;
}

}  // namespace rmsp::multigrid
