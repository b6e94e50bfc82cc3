#include "runtime/multigrid/linked_galerkin.hpp"

#include <algorithm>
#include <iterator>

#include "core/value_types.hpp"
#include "runtime/spgemm/product.hpp"

namespace rmsp::multigrid {

template <class T>
LinkedGalerkin<T>::LinkedGalerkin(const Links& links, const std::shared_ptr<detail::RuntimeState>& runtime,
                                  const std::vector<std::int64_t>& first_rows,
                                  const std::vector<std::int64_t>& coarse_first_rows, const WholeColumns<T>& rows,
                                  const WholeColumns<T>& p, Determinism determinism)
    : links_(links)
{
    const std::int64_t first = first_rows[links.rank()];
    known_ = ask(links, first_rows, others(rows, first, first + rows.rows()));
    const WholeColumns<T> far = rows_of(links, known_, p);
    const std::vector<std::int64_t> coarse = others(p, 0, 0);
    const std::vector<std::int64_t> of_far = others(far, 0, 0);
    std::vector<std::int64_t> all;
    std::set_union(coarse.begin(), coarse.end(), of_far.begin(), of_far.end(), std::back_inserter(all));
    WholeColumns<T> p_here = p;
    for (std::int64_t row = 0; row < far.rows(); ++row) {
        for (std::int64_t k = far.begin(row); k < far.end(row); ++k) {
            p_here.add(far.columns[static_cast<std::size_t>(k)], far.values[static_cast<std::size_t>(k)]);
        }
        p_here.close();
    }
    a_ = numbered(rows, first, rows.rows(), known_.numbers);
    p_ = numbered(p_here, 0, 0, all);
    own_p_ = numbered(p, 0, 0, coarse);
    r_ = transposed<T>(own_p_.view());
    SpgemmOptions options;
    options.determinism = determinism;
    ap_ = detail::ProductAccess::product<T>(runtime, a_.view(), p_.view(), options);
    ap_.compute();
    rap_ = detail::ProductAccess::product<T>(runtime, r_.view(), ap_, options);
    rap_.compute();
    const CsrMatrix<T> part = rap_.download();
    WholeColumns<T> to_add;
    to_add.row_ptr.assign(part.row_ptr.begin(), part.row_ptr.end());
    to_add.values.assign(part.values.begin(), part.values.end());
    for (std::int64_t k = 0; k < part.nnz(); ++k) {
        to_add.columns.push_back(all[static_cast<std::size_t>(part.col_idx[k])]);
    }
    sums_.emplace(links, coarse_first_rows, coarse, to_add);
}

template <class T>
void LinkedGalerkin<T>::renew(const WholeColumns<T>& rows, const WholeColumns<T>& p)
{
    std::copy(rows.values.begin(), rows.values.end(), a_.values.begin());
    const std::vector<T> far = values_of_rows(links_, known_, p);
    std::copy(far.begin(), far.end(), std::copy(p.values.begin(), p.values.end(), p_.values.begin()));
    std::copy(p.values.begin(), p.values.end(), own_p_.values.begin());
    const CsrMatrix<T> r = transposed<T>(own_p_.view());
    std::copy(r.values.begin(), r.values.end(), r_.values.begin());
    ap_.update_values(a_.values.data(), p_.values.data());
    ap_.compute();
    rap_.update_values(r_.values.data(), nullptr);
    rap_.compute();
    const CsrMatrix<T> part = rap_.download();
    sums_->add({part.values.begin(), part.values.end()});
}

template <class T>
std::int64_t LinkedGalerkin<T>::host_bytes() const
{
    std::int64_t bytes = 0;
    for (const CsrMatrix<T>* const a : {&a_, &p_, &own_p_, &r_}) {
        bytes += static_cast<std::int64_t>(a->row_ptr.size() * sizeof(std::int64_t) +
                                           a->values.size() * (sizeof(T) + sizeof(std::int32_t)));
    }
    return bytes;
}

#define RMSP_INSTANTIATE(T) template class LinkedGalerkin<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::multigrid
