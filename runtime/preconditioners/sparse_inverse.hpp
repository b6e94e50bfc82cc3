#pragma once

#include "runtime/preconditioners/inverse_matrix.hpp"

namespace rmsp::preconditioners {

/// z = M r with a sparse M about A^-1 on a fixed pattern: matrix::SparseInverse::spai or isai.
template <class T>
class SparseInverse final : public Base<T> {
public:
    SparseInverse(const DistributedMatrix<T>& matrix, std::string name, matrix::SparseInverse kind,
                  const matrix::InversePattern& pattern)
        : Base<T>(matrix, std::move(name)), kind_(kind)
    {
        const auto began = core::Clock::now();
        const CsrMatrix<T> a = distributed::download_matrix(*this->state_);
        m_ = matrix::inverse_pattern(a.view(), kind, pattern);
        const matrix::InverseStatus status = matrix::fill_inverse(a.view(), kind, m_);
        there_ = distribute_like(*this->state_, m_.view());
        describe(status, began);
    }
    void append(Sequence& sequence, const Vec<T>& z, const Vec<T>& r) override
    {
        this->check_vectors(z, r);
        sequence.multiply(there_, r, z);
    }
    void append_transposed(Sequence& sequence, const Vec<T>& z, const Vec<T>& r) override
    {
        this->check_vectors(z, r);
        // The matrix's vectors may lack room for what the devices have of this product, where M reaches farther.
        const Vec<T> from(there_.make_y());
        const Vec<T> to(there_.make_x(Layout::rows));
        sequence.pass(from = r);
        sequence.multiply_transposed(there_, from, to);
        sequence.pass(z = to);
    }
    void renew() override
    {
        const auto began = core::Clock::now();
        const matrix::InverseStatus status =
            matrix::fill_inverse(distributed::download_matrix(*this->state_).view(), kind_, m_);
        update_inverse(there_, m_);
        describe(status, began);
    }

private:
    void describe(const matrix::InverseStatus& status, core::Clock::time_point began)
    {
        PreconditionerReport& report = this->report_;
        report.notes = notes_of(status, m_.rows);
        report.device_bytes = device_bytes(there_);
        report.host_bytes = bytes_of(m_);
        report.seconds = core::seconds_since(began);
    }

    matrix::SparseInverse kind_;
    CsrMatrix<T> m_;
    DistributedMatrix<T> there_;
};

}  // namespace rmsp::preconditioners
