#include <array>

#include <kernels/choose.hpp>
#include <kernels/spmv/formats.hpp>

namespace rmsp::kernels {
namespace {

#ifdef RMSP_HAVE_CUDA
constexpr bool have_cuda = true;
#else
constexpr bool have_cuda = false;
#endif

KernelInfo host(const char* name, Determinism level, const char* summary)
{
    return {"spmv", name, DeviceKind::host, level, true, summary};
}

KernelInfo cuda(const char* name, Determinism level, const char* summary)
{
    return {"spmv", name, DeviceKind::cuda, level, have_cuda, summary};
}

}  // namespace

// Serial references keep Determinism::run only: where a device's part ends changes which partial results are added.
template <class T>
std::span<const CscKernel<T>> spmv_csc_kernels()
{
    static const std::array<CscKernel<T>, 4> table{{
        {host("csc-openmp", Determinism::run, "ranges of equal nonzeros, one a thread, with a partial y each"),
         prepare_csc_openmp<T>},
        {host("csc-reference", Determinism::run, "one serial loop in the next wider type, to compare with"),
         prepare_csc_reference<T>},
        {cuda("csc-atomic", Determinism::none, "8 nonzeros a lane, added to y atomically"), prepare_csc_atomic<T>},
        {cuda("csc-to-csr", Determinism::run, "a copy sorted by row, made once, then csr-nnz-split"),
         prepare_csc_to_csr<T>},
    }};
    return table;
}

template <class T>
std::span<const CooKernel<T>> spmv_coo_kernels()
{
    static const std::array<CooKernel<T>, 6> table{{
        {host("coo-openmp", Determinism::run, "ranges of equal nonzeros, one a thread, for entries sorted by row"),
         false, prepare_coo_openmp<T>},
        {host("coo-openmp-scatter", Determinism::run,
              "ranges of equal nonzeros, one a thread, with a partial y each, for any order"),
         true, prepare_coo_scatter<T>},
        {host("coo-reference", Determinism::run, "one serial loop in the next wider type, to compare with"), true,
         prepare_coo_reference<T>},
        {cuda("coo-segmented", Determinism::run,
              "segmented sums of tiles of equal nonzeros, for entries sorted by row"),
         false, prepare_coo_segmented<T>},
        {cuda("coo-atomic", Determinism::none, "8 nonzeros a lane, added to y atomically, for any order"), true,
         prepare_coo_atomic<T>},
        {cuda("coo-to-csr", Determinism::run,
              "row pointers made once (other orders: a copy sorted by row), then csr-nnz-split"),
         true, prepare_coo_to_csr<T>},
    }};
    return table;
}

template <class T>
const CscKernel<T>& choose_spmv_csc(DeviceKind kind, const std::string& name, Determinism determinism)
{
    return choose_kernel(
        spmv_csc_kernels<T>(), "CSC SpMV", kind, name, determinism,
        [](const KernelInfo& info) { return info.name != "csc-reference"; },
        [](const CscKernel<T>&) { return std::string(); });
}

template <class T>
const CooKernel<T>& choose_spmv_coo(DeviceKind kind, const std::string& name, Determinism determinism, CooOrder order)
{
    const bool sorted = order == CooOrder::by_row;
    return choose_kernel(
        spmv_coo_kernels<T>(), "COO SpMV", kind, name, determinism,
        [&](const KernelInfo& info) {
            // Row pointers cost one pass and 8 bytes a row, and spare reading the row indices in every apply.
            return info.name != "coo-reference" && info.name != "coo-segmented" &&
                   !(sorted && info.name == "coo-atomic");
        },
        [&](const CooKernel<T>& kernel) {
            return sorted || kernel.any_order
                       ? std::string()
                       : fmt::format("a shard whose order is \"{}\": its entries must be sorted by row",
                                     to_string(order));
        });
}

#define RMSP_INSTANTIATE(T)                                                                    \
    template std::span<const CscKernel<T>> spmv_csc_kernels();                                 \
    template std::span<const CooKernel<T>> spmv_coo_kernels();                                 \
    template const CscKernel<T>& choose_spmv_csc(DeviceKind, const std::string&, Determinism); \
    template const CooKernel<T>& choose_spmv_coo(DeviceKind, const std::string&, Determinism, CooOrder);
RMSP_INSTANTIATE(float)
RMSP_INSTANTIATE(double)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::kernels
