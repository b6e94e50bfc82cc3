// A solver of one's own: steepest descent, written with the operations of <rmsp/sequence.hpp>. Scalars live on the
// devices and the steps are recorded once, so that iterations never wait for the host.
#include <cmath>
#include <cstdio>
#include <vector>

#include <rmsp/rmsp.hpp>

int main()
{
    const auto laplacian = rmsp::stencil7<double>(20, 20, 20, {.values = rmsp::ValueKind::laplace});
    const rmsp::CsrMatrix<double> a = rmsp::plus_identity(laplacian.view());
    std::vector<double> expected(static_cast<std::size_t>(a.rows));
    for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] = std::sin(static_cast<double>(i));
    }

    rmsp::Runtime runtime(rmsp::RuntimeOptions::from_environment({}));
    auto matrix = runtime.distribute(a.view());

    // Vectors, all sliced as the matrix is, and scalars.
    using Vec = rmsp::Vec<double>;
    auto x_vector = matrix.make_x(rmsp::Layout::rows);
    auto b_vector = matrix.make_y();
    x_vector.upload(expected.data());
    matrix.apply(1.0, x_vector, 0.0, b_vector);  // b = A x of the x that is to be found
    x_vector.fill(0.0);
    const Vec x(x_vector);
    const Vec b(b_vector);
    const Vec r(matrix.make_x(rmsp::Layout::rows));
    const Vec q(matrix.make_y());
    rmsp::Scalars scalars(runtime);
    const rmsp::Scalar rr = scalars.make();
    const rmsp::Scalar rq = scalars.make();
    const rmsp::Scalar alpha = scalars.make();
    const rmsp::Scalar target = scalars.make();
    constexpr int converged = 1;  // any number above 0

    // r = b - A x, with x = 0
    rmsp::Sequence start(scalars);
    start.pass(r = b, rr = dot(r, r), target = 1e-10 * sqrt(rr));

    // Each iteration goes along the residual as far as that shortens the error.
    rmsp::Sequence step(scalars);
    step.multiply(matrix, r, q);
    step.pass(rq = dot(r, q), alpha = rr / rq);
    step.pass(x += alpha * r, r -= alpha * q, rr = dot(r, r), record(sqrt(rr)), stop_if(sqrt(rr) <= target, converged));

    start.run();
    for (int block = 0; block < 100 && scalars.outcome() != converged; ++block) {
        step.run(50);  // once stopped, the rest of a block does nothing
    }
    std::printf("%s after %lld iterations, residual %.3g\n", scalars.outcome() == converged ? "converged" : "stopped",
                static_cast<long long>(scalars.iterations()), std::sqrt(scalars.get(rr)));

    std::vector<double> solution(expected.size());
    x_vector.download(solution.data());
    double worst = 0;
    for (std::size_t i = 0; i < solution.size(); ++i) {
        worst = std::fmax(worst, std::fabs(solution[i] - expected[i]));
    }
    std::printf("largest error %.3g\n", worst);
    return scalars.outcome() == converged && worst < 1e-8 ? 0 : 1;
}
