#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <kernels/spgemm/spgemm.hpp>
#include <kernels/wider.hpp>
#include <rmsp/error.hpp>

namespace rmsp::kernels {
namespace {

/// Writes all products of a row down, sorts their numbers by column and adds neighbours, in the order of A.
template <class T>
class Reference final : public SpgemmOperator<T> {
    using Wide = typename Wider<T>::type;
    struct Products {
        std::vector<std::uint64_t> key;  ///< column, then which one
        std::vector<Wide> value;
        std::vector<std::pair<std::int32_t, Wide>> sums;
    };

public:
    Reference(const CsrShard<T>& a, const CsrShard<T>& b, const Context& context)
        : a_(a), b_(b), row_ptr_(*context.memory, static_cast<std::size_t>(a.rows) + 1)
    {
        row_ptr_.data()[0] = 0;
        Products products;
        for (std::int64_t row = 0; row < a.rows; ++row) {
            add_up(row, nullptr, nullptr, products);
            row_ptr_.data()[row + 1] = row_ptr_.data()[row] + static_cast<std::int64_t>(products.sums.size());
        }
    }

    std::int64_t nnz() const override { return row_ptr_.data()[a_.rows]; }
    std::int64_t products() const override
    {
        std::int64_t sum = 0;
        for (std::int64_t i = 0; i < a_.nnz; ++i) {
            sum += b_.row_ptr[a_.col_idx[i] + std::int64_t{1}] - b_.row_ptr[a_.col_idx[i]];
        }
        return sum;
    }
    const std::int64_t* row_ptr() const override { return row_ptr_.data(); }
    std::int64_t workspace_bytes() const override
    {
        return static_cast<std::int64_t>(row_ptr_.size() * sizeof(std::int64_t));
    }

    void fill(T alpha, const T* a_values, const T* b_values, std::int32_t* col_idx, T* values,
              const Context& /*context*/) override
    {
        Products products;
        for (std::int64_t row = 0; row < a_.rows; ++row) {
            add_up(row, a_values, b_values, products);
            std::int64_t out = row_ptr_.data()[row];
            for (const auto& [column, sum] : products.sums) {
                col_idx[out] = column;
                values[out++] = static_cast<T>(static_cast<Wide>(alpha) * sum);
            }
        }
    }

    void numeric(T alpha, const T* a_values, const T* b_values, const std::int32_t* /*col_idx*/, T* values,
                 const Context& /*context*/) override
    {
        Products products;
        for (std::int64_t row = 0; row < a_.rows; ++row) {
            add_up(row, a_values, b_values, products);
            std::int64_t out = row_ptr_.data()[row];
            for (const auto& [column, sum] : products.sums) {
                values[out++] = static_cast<T>(static_cast<Wide>(alpha) * sum);
            }
        }
    }

private:
    /// The entries of one row of A B, in `sums`; zeros where no values are given.
    void add_up(std::int64_t row, const T* a_values, const T* b_values, Products& p) const
    {
        std::int64_t products = 0;
        for (std::int64_t i = a_.row_ptr[row]; i < a_.row_ptr[row + 1]; ++i) {
            products += b_.row_ptr[a_.col_idx[i] + std::int64_t{1}] - b_.row_ptr[a_.col_idx[i]];
        }
        if (products > std::numeric_limits<std::uint32_t>::max()) {
            throw Error(ErrorCode::usage,
                        fmt::format("SpGEMM kernel \"spgemm-reference\": row {} has {} products, more than 2^32 - 1",
                                    row, products));
        }
        p.key.resize(static_cast<std::size_t>(products));
        p.value.resize(static_cast<std::size_t>(products));
        p.sums.clear();
        // Pointers, which builds that look for errors are much faster with.
        std::uint64_t* const keys = p.key.data();
        Wide* const values = p.value.data();
        std::uint64_t number = 0;
        for (std::int64_t i = a_.row_ptr[row]; i < a_.row_ptr[row + 1]; ++i) {
            const std::int64_t k = a_.col_idx[i];
            for (std::int64_t j = b_.row_ptr[k]; j < b_.row_ptr[k + 1]; ++j, ++number) {
                keys[number] = static_cast<std::uint64_t>(b_.col_idx[j]) << 32 | number;
                values[number] = a_values == nullptr ? Wide{0} : Wide{a_values[i]} * Wide{b_values[j]};
            }
        }
        std::sort(keys, keys + number);
        for (const std::uint64_t key : p.key) {
            const auto column = static_cast<std::int32_t>(key >> 32);
            const Wide product = values[static_cast<std::uint32_t>(key)];
            if (!p.sums.empty() && p.sums.back().first == column) {
                p.sums.back().second += product;
            } else {
                p.sums.emplace_back(column, product);
            }
        }
    }

    CsrShard<T> a_;
    CsrShard<T> b_;
    DeviceArray<std::int64_t> row_ptr_;
};

}  // namespace

template <class T>
std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_reference(const CsrShard<T>& a, const CsrShard<T>& b,
                                                            const SpgemmOptions& options, const Context& context)
{
    if (options.accumulator != "auto") {
        throw Error(ErrorCode::usage,
                    fmt::format("SpGEMM kernel \"spgemm-reference\" has no accumulator \"{}\", only auto",
                                options.accumulator));
    }
    return std::make_unique<Reference<T>>(a, b, context);
}

#define RMSP_INSTANTIATE(T)                                                                                      \
    template std::unique_ptr<SpgemmOperator<T>> prepare_spgemm_reference(const CsrShard<T>&, const CsrShard<T>&, \
                                                                         const SpgemmOptions&, const Context&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
