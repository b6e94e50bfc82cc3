#include "runtime/solvers/symmetric_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace rmsp::solvers {

SymmetricEigen symmetric_eigen(std::vector<double> a, std::size_t n)
{
    std::vector<double> v(n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        v[i * n + i] = 1;
    }
    constexpr int most_sweeps = 60;  // some 6 to 10 are enough, since convergence is quadratic in the end
    for (int sweep = 0; sweep < most_sweeps; ++sweep) {
        double off = 0;
        double all = 0;
        for (std::size_t i = 0; i < n; ++i) {
            for (std::size_t j = 0; j < n; ++j) {
                (i == j ? all : off) += a[i * n + j] * a[i * n + j];
            }
        }
        constexpr double eps = std::numeric_limits<double>::epsilon();
        if (!(off > eps * eps * (all + off))) {
            break;
        }
        for (std::size_t p = 0; p < n; ++p) {
            for (std::size_t q = p + 1; q < n; ++q) {
                const double apq = a[p * n + q];
                if (apq == 0) {
                    continue;
                }
                const double theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);
                const double t = (theta < 0 ? -1.0 : 1.0) / (std::abs(theta) + std::hypot(theta, 1.0));
                const double c = 1 / std::hypot(t, 1.0);
                const double s = t * c;
                const auto rotate = [c, s](double& x, double& y) {
                    const double old = x;
                    x = c * old - s * y;
                    y = s * old + c * y;
                };
                for (std::size_t k = 0; k < n; ++k) {
                    rotate(a[k * n + p], a[k * n + q]);
                }
                for (std::size_t k = 0; k < n; ++k) {
                    rotate(a[p * n + k], a[q * n + k]);
                    rotate(v[k * n + p], v[k * n + q]);
                }
                a[p * n + q] = a[q * n + p] = 0;
            }
        }
    }
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return a[i * n + i] < a[j * n + j]; });
    SymmetricEigen out{std::vector<double>(n), std::vector<double>(n * n)};
    for (std::size_t k = 0; k < n; ++k) {
        out.values[k] = a[order[k] * n + order[k]];
        for (std::size_t i = 0; i < n; ++i) {
            out.vectors[i * n + k] = v[i * n + order[k]];
        }
    }
    return out;
}

IndependentCholesky independent_cholesky(const std::vector<double>& a, std::size_t n, double least)
{
    IndependentCholesky out;
    std::vector<double> l(n * n, 0.0);
    for (std::size_t j = 0; j < n; ++j) {
        const std::size_t rank = out.kept.size();
        double* const row = l.data() + rank * n;
        double left = a[j * n + j];
        for (std::size_t k = 0; k < rank; ++k) {
            double sum = a[j * n + out.kept[k]];
            for (std::size_t i = 0; i < k; ++i) {
                sum -= row[i] * l[k * n + i];
            }
            row[k] = sum / l[k * n + k];
            left -= row[k] * row[k];
        }
        if (left > least * std::abs(a[j * n + j])) {
            row[rank] = std::sqrt(left);
            out.kept.push_back(j);
        } else {
            std::fill_n(row, n, 0.0);
        }
    }
    const std::size_t rank = out.kept.size();
    out.l.resize(rank * rank);
    for (std::size_t i = 0; i < rank; ++i) {
        std::copy_n(l.data() + i * n, rank, out.l.data() + i * rank);
    }
    return out;
}

}  // namespace rmsp::solvers
