#include <kernels/spmv/spmv.hpp>
#include <kernels/wider.hpp>

namespace rmsp::kernels {
namespace {

/// The definition of the product, one row after the other in the next wider type, so that a difference from it is the
/// error of the kernel under test.
template <class T>
class Reference final : public SpmvOperator<T> {
public:
    explicit Reference(const CsrShard<T>& shard) : shard_(shard) {}

    void apply(T alpha, const T* x, T beta, T* y, const Context& /*context*/) override
    {
        using Sum = typename Wider<T>::type;
        for (std::int64_t row = 0; row < shard_.rows; ++row) {
            Sum sum = 0;
            for (std::int64_t i = shard_.row_ptr[row]; i < shard_.row_ptr[row + 1]; ++i) {
                sum += Sum{shard_.values[i]} * Sum{x[shard_.col_idx[i]]};
            }
            sum *= Sum{alpha};
            if (beta != T{0}) {
                sum += Sum{beta} * Sum{y[row]};
            }
            y[row] = static_cast<T>(sum);
        }
    }

private:
    CsrShard<T> shard_;
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_reference(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                   const Context& /*context*/)
{
    return std::make_unique<Reference<T>>(shard);
}

RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_reference)

}  // namespace rmsp::kernels
