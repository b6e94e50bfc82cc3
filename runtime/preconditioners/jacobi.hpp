#pragma once

#include <string>
#include <utility>

#include "runtime/matrix/diagonal.hpp"
#include "runtime/preconditioners/diagonal_scale.hpp"

namespace rmsp::preconditioners {

/// What a row is divided by.
enum class JacobiDivisor : std::uint8_t {
    diagonal,
    /// The sum of the magnitudes of the row, with the diagonal's sign. x += M (b - A x) then converges for every
    /// symmetric positive definite A. (Baker, Falgout, Kolev, Yang: Multigrid smoothers for ultraparallel computing,
    /// SIAM J. Sci. Comput. 33, 2011)
    row_norm
};

/// z_i = r_i / d_i, in a pass, which joins those around it.
template <class T>
class Jacobi final : public Base<T> {
public:
    Jacobi(const DistributedMatrix<T>& matrix, std::string name, JacobiDivisor divisor)
        : Base<T>(matrix, std::move(name)), divisor_(divisor), scale_(matrix)
    {
        renew();
    }
    void append(Sequence& sequence, const Vec<T>& z, const Vec<T>& r) override
    {
        this->check_vectors(z, r);
        sequence.pass(z = scale_.like(r) * r);
    }
    void append_transposed(Sequence& sequence, const Vec<T>& z, const Vec<T>& r) override { append(sequence, z, r); }
    void renew() override
    {
        const auto began = core::Clock::now();
        scale_.take(1.0, divisor_ == JacobiDivisor::diagonal
                             ? this->matrix_.diagonal()
                             : detail::VectorAccess::handle(distributed::row_norms(this->state_)));
        PreconditionerReport& report = this->report_;
        report.notes.clear();
        if (const std::string note = scale_.note(); !note.empty()) {
            report.notes.push_back(note);
        }
        report.device_bytes = scale_.bytes();
        report.seconds = core::seconds_since(began);
    }
    bool takes_kernel_order() const override { return true; }

private:
    JacobiDivisor divisor_;
    DiagonalScale<T> scale_;
};

}  // namespace rmsp::preconditioners
