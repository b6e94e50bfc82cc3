#include "runtime/spgemm/product_factor.hpp"

#include <fmt/format.h>

#include "runtime/spgemm/download.hpp"

namespace rmsp::spgemm {
namespace {

template <class T>
class ProductFactor final : public ResidentFactor<T> {
public:
    ProductFactor(const std::shared_ptr<ProductState<T>>& product, const char* name)
        : ResidentFactor<T>(product->plan.rows, product->plan.cols), product_(product), name_(name)
    {
        this->taken = round();
        if (!product->plan.chunked()) {
            take_parts();
        }
        ++product_->borrowers;
    }
    ~ProductFactor() override { --product_->borrowers; }
    ProductFactor(const ProductFactor&) = delete;
    ProductFactor& operator=(const ProductFactor&) = delete;

    void bring_all(RuntimeState& runtime) override
    {
        if (this->in_place()) {
            ResidentFactor<T>::bring_all(runtime);
        } else {
            this->host_ = download(*product_);
        }
    }
    std::int64_t round() const override
    {
        if (!product_->computed) {
            throw Error(ErrorCode::usage,
                        fmt::format("{} is a product that has no values now: compute it first", name_));
        }
        return product_->round;
    }
    /// C is read where it is computed.
    void refresh(engine::Worker& /*worker*/, engine::Rendezvous& /*meeting*/) override {}

    void let_go(engine::Worker& worker) override
    {
        if (goes()) {
            clear(*product_->parts[static_cast<std::size_t>(worker.rank())]);
        }
    }
    bool goes() const override { return product_->once; }

private:
    void take_parts()
    {
        std::int64_t entries = 0;
        for (const auto& part : product_->parts) {
            this->first_rows.push_back(part->first_row);
            this->slices.push_back(entries);
            this->parts.push_back({IndexView(part->product->row_ptr()), part->col_idx.data(), part->values.data()});
            entries += part->product->nnz();
        }
        this->first_rows.push_back(product_->plan.rows);
        this->slices.push_back(entries);
    }

    std::shared_ptr<ProductState<T>> product_;
    const char* name_;
};

}  // namespace

template <class T>
std::unique_ptr<ResidentFactor<T>> product_factor(const RuntimeState& runtime,
                                                  const std::shared_ptr<ProductState<T>>& product, const char* name)
{
    check_runtime(*product->runtime, runtime, name);
    return std::make_unique<ProductFactor<T>>(product, name);
}

#define RMSP_INSTANTIATE(T)                                                         \
    template std::unique_ptr<ResidentFactor<T>> product_factor(const RuntimeState&, \
                                                               const std::shared_ptr<ProductState<T>>&, const char*);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::spgemm
