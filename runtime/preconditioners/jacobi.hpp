#pragma once

#include "runtime/preconditioners/diagonal_scale.hpp"

namespace rmsp::preconditioners {

/// z_i = r_i / a_ii, in a pass, which joins those around it.
template <class T>
class Jacobi final : public Base<T> {
public:
    Jacobi(const DistributedMatrix<T>& matrix, const PreconditionerOptions&) : Base<T>(matrix, "jacobi"), scale_(matrix)
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
        scale_.read();
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
    DiagonalScale<T> scale_;
};

}  // namespace rmsp::preconditioners
