#include <cstddef>
#include <utility>

#include <rmsp/spgemm.hpp>

#include "core/value_types.hpp"
#include "matrix/coarsening.hpp"
#include "matrix/interpolation.hpp"
#include "matrix/strength.hpp"
#include "runtime/matrix/download.hpp"
#include "runtime/matrix/update.hpp"
#include "runtime/multigrid/transfer.hpp"

namespace rmsp::multigrid {
namespace {

template <class X>
std::int64_t bytes_of(const HostVector<X>& array)
{
    return static_cast<std::int64_t>(array.size() * sizeof(X));
}

template <class T>
std::int64_t bytes_of(const CsrMatrix<T>& a)
{
    return bytes_of(a.row_ptr) + bytes_of(a.values) +
           static_cast<std::int64_t>(a.col_idx.size() * sizeof(std::int32_t));
}

template <class T>
class HostTransfer final : public Transfer<T> {
public:
    HostTransfer(std::shared_ptr<MatrixState<T>> a, const Coarsener& coarsener)
        : state_(std::move(a)), coarsener_(coarsener)
    {
    }

    void read() override { a_ = download_canonical(*state_); }
    std::int64_t coarsen(Near& near) override
    {
        if (coarsener_.method == Method::classical) {
            strong_ = matrix::strong_entries(a_.view(), matrix::Strength::classical, coarsener_.threshold);
            const matrix::Graph depends = matrix::strong_graph(a_.view(), strong_);
            coarse_ = matrix::pmis(depends);
            if (coarsener_.aggressive) {
                first_ = std::move(coarse_);
                coarse_ = matrix::coarser_pmis(depends, first_);
            }
            return coarse_.count;
        }
        matrix::Coarsening nodes;
        if (coarsener_.unknowns == 1) {
            strong_ = matrix::strong_entries(a_.view(), matrix::Strength::symmetric, coarsener_.threshold);
            nodes = matrix::aggregates(matrix::symmetrised(matrix::strong_graph(a_.view(), strong_)));
        } else {
            const CsrMatrix<double> norms = matrix::block_norms(a_.view(), coarsener_.unknowns);
            const auto strong = matrix::strong_entries(norms.view(), matrix::Strength::symmetric, coarsener_.threshold);
            nodes = matrix::aggregates(matrix::symmetrised(matrix::strong_graph(norms.view(), strong)));
            strong_ = matrix::of_blocks(a_.view(), coarsener_.unknowns, norms.view(), strong);
        }
        near.download(*state_->runtime, a_.rows);
        tentative_ =
            matrix::tentative(std::move(nodes), coarsener_.unknowns,
                              near.constant() && a_.rows > 0 ? matrix::constants(a_.rows, near.host.count) : near.host);
        return tentative_.columns();
    }
    bool interpolate(Near& near) override
    {
        const matrix::InterpolationOptions options{kind(), coarsener_.truncation, coarsener_.interpolation_entries};
        if (coarsener_.aggressive) {
            stages_ = matrix::interpolation_in_stages(a_.view(), strong_, first_, coarse_, options);
        } else if (coarsener_.method == Method::classical) {
            stages_.p = matrix::interpolation(a_.view(), strong_, coarse_, options);
        } else {
            stages_.p = aggregated();
            near.host = tentative_.coarse;
        }
        r_ = transposed<T>(stages_.p.view());
        return true;
    }
    plan::Stored<T> p() override { return plan::stored(stages_.p.view()); }
    plan::Stored<T> r() override { return plan::stored(r_.view()); }
    void keep_distributed() override
    {
        a_ = {};
        r_ = {};
    }
    void renew(const std::shared_ptr<MatrixState<T>>& /*p*/) override
    {
        if (coarsener_.aggressive) {
            matrix::renew_interpolation(a_.view(), strong_, first_, coarse_, kind(), stages_);
        } else if (coarsener_.method == Method::classical) {
            matrix::renew_interpolation(a_.view(), strong_, coarse_, kind(), stages_.p);
        } else {
            stages_.p = aggregated();
        }
        r_ = transposed<T>(stages_.p.view());
    }
    void write(const std::shared_ptr<MatrixState<T>>& p, const std::shared_ptr<MatrixState<T>>& r) override
    {
        distributed::update_values<T>(p, stages_.p.values.data());
        distributed::update_values<T>(r, r_.values.data());
        keep_distributed();
    }
    std::int64_t device_bytes() const override { return 0; }
    std::int64_t host_bytes() const override
    {
        return bytes_of(strong_) + bytes_of(coarse_.number) + bytes_of(tentative_.values) +
               bytes_of(tentative_.nodes.number) + bytes_of(vector_) + bytes_of(first_.number) +
               bytes_of(stages_.to_all) + bytes_of(stages_.to_first) + bytes_of(stages_.p);
    }

private:
    matrix::Interpolation kind() const
    {
        return coarsener_.direct ? matrix::Interpolation::direct : matrix::Interpolation::extended;
    }
    CsrMatrix<T> aggregated()
    {
        // An estimate that goes on from the last one depends on what values there were before.
        HostVector<double>* const last = state_->options.determinism == Determinism::none ? &vector_ : nullptr;
        return matrix::smoothed_prolongator(a_.view(), strong_, tentative_, coarsener_.smooth, {}, last);
    }

    std::shared_ptr<MatrixState<T>> state_;
    Coarsener coarsener_;
    HostVector<std::uint8_t> strong_;  ///< marks of the entries of A
    matrix::Coarsening first_;         ///< classical, aggressive: what coarse_ was chosen from
    matrix::Coarsening coarse_;        ///< classical
    matrix::Tentative tentative_;      ///< aggregation
    HostVector<double> vector_;        ///< aggregation: where the power method came to
    matrix::TwoStages<T> stages_;      ///< P; the stages are of aggressive coarsening alone
    CsrMatrix<T> a_;                   ///< while P is made
    CsrMatrix<T> r_;                   ///< until it is on the devices
};

}  // namespace

template <class T>
std::unique_ptr<Transfer<T>> host_transfer(std::shared_ptr<MatrixState<T>> a, const Coarsener& coarsener)
{
    return std::make_unique<HostTransfer<T>>(std::move(a), coarsener);
}

template <class T>
CsrMatrix<T> download_canonical(const MatrixState<T>& matrix)
{
    CsrMatrix<T> a = distributed::download_matrix(matrix);
    return matrix::is_canonical(a.view()) ? std::move(a) : add<T>(T{1}, a.view(), T{0}, a.view());
}

#define RMSP_INSTANTIATE(T)                                                                                 \
    template std::unique_ptr<Transfer<T>> host_transfer(std::shared_ptr<MatrixState<T>>, const Coarsener&); \
    template CsrMatrix<T> download_canonical(const MatrixState<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::multigrid
