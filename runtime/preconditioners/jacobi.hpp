#pragma once

#include <cmath>
#include <string>
#include <utility>

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
        if (divisor_ == JacobiDivisor::diagonal) {
            scale_.read();
        } else {
            scale_.take(row_norms(distributed::download_matrix(*this->state_).view()));
        }
        scale_.write(1.0);
        PreconditionerReport& report = this->report_;
        report.notes.clear();
        if (const std::string note = scale_.note(); !note.empty()) {
            report.notes.push_back(note);
        }
        report.device_bytes = report.host_bytes = scale_.bytes();
        report.seconds = core::seconds_since(began);
    }
    bool takes_kernel_order() const override { return true; }

private:
    static HostVector<T> row_norms(const CsrView<T>& a)
    {
        HostVector<T> norms(static_cast<std::size_t>(a.rows));
#pragma omp parallel for schedule(static)
        for (std::int64_t row = 0; row < a.rows; ++row) {
            double sum = 0;
            double diagonal = 0;
            for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
                sum += std::fabs(double{a.values[k]});
                diagonal += a.col_idx[k] == row ? double{a.values[k]} : 0.0;
            }
            norms[static_cast<std::size_t>(row)] = static_cast<T>(diagonal < 0 ? -sum : sum);
        }
        return norms;
    }

    JacobiDivisor divisor_;
    DiagonalScale<T> scale_;
};

}  // namespace rmsp::preconditioners
