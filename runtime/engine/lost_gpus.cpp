#include "runtime/engine/lost_gpus.hpp"

#include <mutex>
#include <set>

namespace rmsp::engine {
namespace {

struct LostGpus {
    std::mutex mutex;
    std::set<int> ordinals;
};

LostGpus& lost_gpus()
{
    static LostGpus gpus;
    return gpus;
}

}  // namespace

bool is_lost_gpu(int ordinal)
{
    LostGpus& gpus = lost_gpus();
    std::lock_guard lock(gpus.mutex);
    return gpus.ordinals.count(ordinal) > 0;
}

void remember_lost_gpu(int ordinal)
{
    LostGpus& gpus = lost_gpus();
    std::lock_guard lock(gpus.mutex);
    gpus.ordinals.insert(ordinal);
}

}  // namespace rmsp::engine
