#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "runtime/preconditioners/diagonal_scale.hpp"
#include "runtime/sequence/sequence_state.hpp"

namespace rmsp::preconditioners {

/// z = p(D^-1 A) D^-1 r with D the diagonal of A and p of the given degree, so that 1 - t p(t) is Chebyshev's
/// polynomial of the interval [l / ratio, l], where l is a bit more than the largest eigenvalue of D^-1 A. (Y. Saad,
/// Iterative Methods for Sparse Linear Systems, section 12.3.2) As many products with A, and no inner products. The
/// scale of l is in the vector that stands for D^-1, so that recorded statements stay valid for new values.
template <class T>
class Polynomial final : public Base<T> {
public:
    Polynomial(const DistributedMatrix<T>& matrix, const PreconditionerOptions& options)
        : Base<T>(matrix, "polynomial"), degree_(options.degree), ratio_(options.eigenvalue_ratio), scale_(matrix)
    {
        require_option(degree_ >= 0 && degree_ <= 64, "degree", degree_, "0 to 64");
        require_option(ratio_ > 1 && std::isfinite(ratio_), "eigenvalue_ratio", ratio_, "above 1, and finite");
        renew();
    }
    void append(Sequence& sequence, const Vec<T>& z, const Vec<T>& r) override { append(sequence, z, r, false); }
    void append_transposed(Sequence& sequence, const Vec<T>& z, const Vec<T>& r) override
    {
        append(sequence, z, r, true);
    }
    void renew() override
    {
        const auto began = core::Clock::now();
        const double largest = largest_eigenvalue();
        scale_.take(1.0 / largest);
        PreconditionerReport& report = this->report_;
        report.notes = {fmt::format("made for eigenvalues of the matrix divided by its diagonal from {:.4g} to {:.4g}",
                                    largest / ratio_, largest)};
        if (const std::string note = scale_.note(); !note.empty()) {
            report.notes.push_back(note);
        }
        report.device_bytes = 3 * scale_.bytes();
        report.seconds = core::seconds_since(began);
    }
    bool takes_kernel_order() const override { return true; }

private:
    /// Vectors of the recurrence, in one order.
    struct Work {
        Vec<T> direction;
        Vec<T> product;
    };

    Work& work_like(const Vec<T>& r)
    {
        const bool kernel = r.state()->order.has_value();
        std::optional<Work>& work = kernel ? by_kernel_ : by_matrix_;
        if (!work) {
            const Order order = kernel ? Order::kernel : Order::matrix;
            work.emplace(Work{Vec<T>(this->matrix_.make_y(order)), Vec<T>(this->matrix_.make_y(order))});
        }
        return *work;
    }

    void append(Sequence& sequence, const Vec<T>& z, const Vec<T>& r, bool of_transpose)
    {
        this->check_vectors(z, r);
        const Vec<T>& s = scale_.like(r);
        const auto& [d, product] = work_like(r);
        const double theta = (1 + 1 / ratio_) / 2;  // the scaled interval is [1 / ratio, 1]
        const double delta = (1 - 1 / ratio_) / 2;
        const double sigma = theta / delta;
        double rho = 1 / sigma;
        sequence.pass(d = (1 / theta) * (s * r), z = d);
        for (int k = 0; k < degree_; ++k) {
            if (of_transpose) {
                sequence.multiply_transposed(this->matrix_, z, product);
            } else {
                sequence.multiply(this->matrix_, z, product);
            }
            const double next = 1 / (2 * sigma - rho);
            const double factor = 2 * next / delta;
            sequence.pass(d = (next * rho) * d + factor * (s * r) - factor * (s * product), z += d);
            rho = next;
        }
    }

    /// Of D^-1 A, by the power method from a fixed vector, and a tenth more, as the method comes from below. The same
    /// bits each time where products give them.
    double largest_eigenvalue()
    {
        constexpr int iterations = 30;
        constexpr double margin = 1.1;
        const DistributedMatrix<T>& a = this->matrix_;
        if (a.rows() == 0) {
            return 1;
        }
        DiagonalScale<T> inverse_diagonal(a);
        inverse_diagonal.take(1.0);
        Scalars scalars = detail::SequenceAccess::handle(
            std::make_shared<detail::ScalarsState>(this->state_->runtime, 64, this->state_->plan.devices));
        Scalar squared = scalars.make();
        Scalar norm = scalars.make();
        Scalar inverse = scalars.make();
        const Vec<T> v(a.make_x(Layout::rows));
        const Vec<T> w(a.make_y());
        const Vec<T>& s = inverse_diagonal.like(v);
        v.vector().upload(start_vector(a.rows()).data());
        Sequence step(scalars);
        step.pass(squared = dot(v, v));
        step.pass(norm = sqrt(squared), inverse = 1.0 / norm);
        step.pass(v = inverse * v);
        step.multiply(a, v, w);
        step.pass(v = s * w);
        step.run(iterations);
        Sequence last(scalars);
        last.pass(squared = dot(v, v));
        last.pass(norm = sqrt(squared));
        last.run();
        const double largest = margin * scalars.get(norm);
        if (!(largest > 0) || !std::isfinite(largest)) {
            throw Error(
                ErrorCode::usage,
                fmt::format("preconditioner \"polynomial\": the power method gives {} as the largest eigenvalue "
                            "of the {} x {} matrix divided by its diagonal: the matrix is zero, or has entries "
                            "that are not finite",
                            largest / margin, a.rows(), a.cols()));
        }
        return largest;
    }

    /// Numbers in [-1, 1) that depend on their place alone.
    static HostVector<T> start_vector(std::int64_t n)
    {
        HostVector<T> v(static_cast<std::size_t>(n));
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < n; ++i) {
            std::uint64_t bits = (static_cast<std::uint64_t>(i) + 1) * 0x9e3779b97f4a7c15U;  // splitmix64
            bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
            bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
            v[static_cast<std::size_t>(i)] = static_cast<T>(static_cast<double>(bits >> 11U) * 0x1p-52 - 1);
        }
        return v;
    }

    int degree_;
    double ratio_;
    DiagonalScale<T> scale_;
    std::optional<Work> by_matrix_;
    std::optional<Work> by_kernel_;
};

}  // namespace rmsp::preconditioners
