#include <rmsp/transfer.hpp>

#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/value_types.hpp"
#include "runtime/matrix/download.hpp"

namespace rmsp {

template <class T>
CsrMatrix<T> download(const DistributedMatrix<T>& matrix)
{
    return distributed::download_matrix(*detail::checked(detail::MatrixAccess::state(matrix)));
}

template <class T>
DistributedMatrix<T> transfer(const DistributedMatrix<T>& matrix, Runtime& runtime, const DistributeOptions& options)
{
    if (options.mode == Mode::streamed || options.borrow) {
        throw Error(ErrorCode::usage,
                    fmt::format("a matrix that is transferred cannot be {}, since nobody keeps its host arrays: "
                                "download() it, and distribute what that returns",
                                options.borrow ? "borrowed" : "streamed"));
    }
    const CsrMatrix<T> rows = download(matrix);
    return runtime.distribute(rows.view(), options);
}

template <class T>
void transfer(const DistributedVector<T>& x, DistributedVector<T>& y)
{
    if (x.size() != y.size()) {
        throw Error(ErrorCode::usage,
                    fmt::format("a vector of {} entries is transferred to one of {}", x.size(), y.size()));
    }
    std::vector<T> entries(static_cast<std::size_t>(x.size()));
    x.download(entries.data());
    y.upload(entries.data());
}

#define RMSP_INSTANTIATE(T)                                                                                  \
    template CsrMatrix<T> download(const DistributedMatrix<T>&);                                             \
    template DistributedMatrix<T> transfer(const DistributedMatrix<T>&, Runtime&, const DistributeOptions&); \
    template void transfer(const DistributedVector<T>&, DistributedVector<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
