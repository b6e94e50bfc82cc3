// The heat equation by implicit Euler steps whose length grows: (I + dt L) u_new = u. The structure of the matrix
// stays, so each step sends the values alone, renews the solver and solves, with vectors that stay on the devices.
#include <cstdio>
#include <vector>

#include <rmsp/rmsp.hpp>

namespace {

/// The values of I + dt L from those of L.
void set_step(const rmsp::CsrMatrix<double>& laplacian, double dt, rmsp::CsrMatrix<double>& a)
{
    for (std::int64_t row = 0; row < a.rows; ++row) {
        for (auto k = a.row_ptr[static_cast<std::size_t>(row)]; k < a.row_ptr[static_cast<std::size_t>(row) + 1]; ++k) {
            a.values[static_cast<std::size_t>(k)] =
                dt * laplacian.values[static_cast<std::size_t>(k)] + (a.col_idx[k] == row ? 1.0 : 0.0);
        }
    }
}

double sum_of(const std::vector<double>& v)
{
    double sum = 0;
    for (const double entry : v) {
        sum += entry;
    }
    return sum;
}

}  // namespace

int main()
{
    const auto laplacian = rmsp::stencil7<double>(24, 24, 24, {.values = rmsp::ValueKind::laplace});
    rmsp::CsrMatrix<double> a = laplacian;
    double dt = 0.1;
    set_step(laplacian, dt, a);

    rmsp::Runtime runtime(rmsp::RuntimeOptions::from_environment({}));
    auto matrix = runtime.distribute(a.view());
    rmsp::Solver<double> solver(matrix, {.tolerance = 1e-10});

    std::vector<double> u(static_cast<std::size_t>(a.rows), 0.0);
    u[u.size() / 2] = 1000;  // heat in one point
    const double heat = sum_of(u);

    // The old temperatures are the right-hand side, and where the method begins.
    auto old_u = matrix.make_y();
    auto new_u = matrix.make_x(rmsp::Layout::rows);
    new_u.upload(u.data());
    for (int step = 1; step <= 5; ++step) {
        new_u.download(u.data());
        old_u.upload(u.data());
        const rmsp::SolveResult result = solver.solve(old_u, new_u);
        std::printf("step %d, dt %.2f: %s after %lld iterations\n", step, dt, rmsp::to_string(result.outcome),
                    static_cast<long long>(result.iterations));
        if (!result.converged()) {
            return 1;
        }
        dt *= 2;
        set_step(laplacian, dt, a);
        matrix.update_values(a.values.data());
        solver.renew();  // the preconditioner, if there is one; vectors and recorded iterations stay
    }

    // No heat is lost: the Laplacian's columns sum to zero.
    new_u.download(u.data());
    std::printf("heat %.9g, at first %.9g; warmest point %.3g\n", sum_of(u), heat, u[u.size() / 2]);
    return sum_of(u) > heat * (1 - 1e-8) && sum_of(u) < heat * (1 + 1e-8) && u[u.size() / 2] < 500 ? 0 : 1;
}
