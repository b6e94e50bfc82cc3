#pragma once

#include <optional>

#include <rmsp/spgemm.hpp>

#include "runtime/preconditioners/inverse_matrix.hpp"

namespace rmsp::preconditioners {

/// z = G^T (G r) with the factor of matrix::SparseInverse::fsai. G^T is distributed as a matrix of its own, so that
/// both products are by rows.
template <class T>
class Fsai final : public Base<T> {
public:
    Fsai(const DistributedMatrix<T>& matrix, const PreconditionerOptions& options) : Base<T>(matrix, "fsai")
    {
        const auto began = core::Clock::now();
        const CsrMatrix<T> a = distributed::download_matrix(*this->state_);
        g_ = matrix::inverse_pattern(a.view(), matrix::SparseInverse::fsai, pattern_of(options));
        const matrix::InverseStatus status = matrix::fill_inverse(a.view(), matrix::SparseInverse::fsai, g_);
        const CsrMatrix<T> transpose = transposed(g_.view());
        there_ = distribute_like(*this->state_, g_.view());
        transpose_there_ = distribute_like(*this->state_, transpose.view());
        between_.emplace(transpose_there_.make_x(Layout::rows));
        describe(status, began);
    }
    void append(Sequence& sequence, const Vec<T>& z, const Vec<T>& r) override
    {
        this->check_vectors(z, r);
        sequence.multiply(there_, r, *between_);
        sequence.multiply(transpose_there_, *between_, z);
    }
    void append_transposed(Sequence& sequence, const Vec<T>& z, const Vec<T>& r) override { append(sequence, z, r); }
    void renew() override
    {
        const auto began = core::Clock::now();
        const matrix::InverseStatus status =
            matrix::fill_inverse(distributed::download_matrix(*this->state_).view(), matrix::SparseInverse::fsai, g_);
        update_inverse(there_, g_);
        update_inverse(transpose_there_, transposed(g_.view()));
        describe(status, began);
    }

private:
    void describe(const matrix::InverseStatus& status, core::Clock::time_point began)
    {
        PreconditionerReport& report = this->report_;
        report.notes = notes_of(status, g_.rows);
        report.device_bytes = device_bytes(there_) + device_bytes(transpose_there_) + g_.rows * std::int64_t{sizeof(T)};
        report.host_bytes = bytes_of(g_);
        report.seconds = core::seconds_since(began);
    }

    CsrMatrix<T> g_;
    DistributedMatrix<T> there_;
    DistributedMatrix<T> transpose_there_;
    std::optional<Vec<T>> between_;  ///< G r
};

}  // namespace rmsp::preconditioners
