#include <kernels/steps/convert/convert.hpp>

#include <rmsp/error.hpp>

// What stands in for convert.cu in a build without CUDA.
namespace rmsp::kernels {
namespace {

[[noreturn]] void missing() { throw NotCompiled("conversions on GPUs (CUDA)"); }

}  // namespace

template <class Offset>
LineOrder<Offset> sort_by_line(std::int64_t, const std::int32_t*, std::int64_t, std::int64_t, const Context&)
{
    missing();
}
template <class Item, class Offset>
void take_from(std::int64_t, const Offset*, const Item*, Item*, const Context&)
{
    missing();
}
template <class Offset>
void find_lines(std::int64_t, const Offset*, std::int64_t, IndexView, std::int32_t*, const Context&)
{
    missing();
}

#define RMSP_INSTANTIATE(Offset)                                                                              \
    template LineOrder<Offset> sort_by_line(std::int64_t, const std::int32_t*, std::int64_t, std::int64_t,    \
                                            const Context&);                                                  \
    template void take_from(std::int64_t, const Offset*, const std::int32_t*, std::int32_t*, const Context&); \
    template void take_from(std::int64_t, const Offset*, const float*, float*, const Context&);               \
    template void take_from(std::int64_t, const Offset*, const double*, double*, const Context&);             \
    template void find_lines(std::int64_t, const Offset*, std::int64_t, IndexView, std::int32_t*, const Context&);
RMSP_INSTANTIATE(std::int32_t)
RMSP_INSTANTIATE(std::int64_t)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::kernels
