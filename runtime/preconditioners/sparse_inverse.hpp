#pragma once

#include "runtime/preconditioners/inverse_matrix.hpp"
#include "runtime/preconditioners/inverse_values.hpp"

namespace rmsp::preconditioners {

/// z = M r with a sparse M about A^-1 on a fixed pattern: matrix::SparseInverse::spai or isai.
template <class T>
class SparseInverse final : public Base<T> {
public:
    SparseInverse(const DistributedMatrix<T>& matrix, std::string name, matrix::SparseInverse kind,
                  const matrix::InversePattern& pattern)
        : Base<T>(matrix, std::move(name)), values_(this->state_, kind, this->slices())
    {
        const auto began = core::Clock::now();
        const CsrMatrix<T> a = distributed::download_matrix(*this->state_);
        m_ = matrix::inverse_pattern(a.view(), kind, pattern);
        values_.prepare(a, m_);
        const matrix::InverseStatus status = values_.compute(&a, &m_);
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
        matrix::InverseStatus status;
        if (values_.reads_host()) {
            const CsrMatrix<T> a = distributed::download_matrix(*this->state_);
            status = values_.compute(&a, &m_);
            update_inverse(there_, m_);
        } else {
            status = values_.compute(nullptr, nullptr);
            distributed::update_values(detail::MatrixAccess::state(there_), values_.resident());
            values_.release();
        }
        describe(status, began);
    }

private:
    void describe(const matrix::InverseStatus& status, core::Clock::time_point began)
    {
        PreconditionerReport& report = this->report_;
        report.notes = notes_of(status, m_.rows);
        report.notes.insert(report.notes.end(), values_.notes().begin(), values_.notes().end());
        report.device_bytes = device_bytes(there_) + values_.device_bytes();
        report.host_bytes = bytes_of(m_);
        report.seconds = core::seconds_since(began);
    }

    InverseValues<T> values_;
    CsrMatrix<T> m_;
    DistributedMatrix<T> there_;
};

}  // namespace rmsp::preconditioners
