// A coarse operator R A P as algebraic multigrid makes and uses it: pairs of neighbours become one unknown each. The
// fine operator is on the devices, and so is what is made of it. The structure of both products is kept, so that a new
// A costs the values alone. RMSP_DEVICES=0,1 or RMSP_DEVICES=host:4 chooses the devices.
#include <cmath>
#include <cstdio>
#include <vector>

#include <rmsp/rmsp.hpp>

int main()
{
    rmsp::CsrMatrix<double> a = rmsp::stencil7<double>(40, 20, 20, {.values = rmsp::ValueKind::laplace});

    // Unknown i of the fine grid belongs to unknown i / 2 of the coarse one: P has one entry a row.
    rmsp::CsrMatrix<double> p;
    p.rows = a.rows;
    p.cols = a.rows / 2;
    rmsp::HostVector<std::int32_t> columns(static_cast<std::size_t>(a.rows));
    for (std::int64_t i = 0; i <= a.rows; ++i) {
        p.row_ptr.push_back(i);
    }
    for (std::size_t i = 0; i < columns.size(); ++i) {
        columns[i] = static_cast<std::int32_t>(i / 2);
        p.values.push_back(1.0);
    }
    p.col_idx = std::move(columns);
    const rmsp::CsrMatrix<double> r = rmsp::transposed<double>(p.view());

    rmsp::Runtime runtime(rmsp::RuntimeOptions::from_environment({}));
    // On several devices products take it as it lies there, without a copy, if rows are whole.
    auto fine = runtime.distribute<double>(a.view(), {.alignment = rmsp::RowAlignment::row});
    rmsp::TripleProduct<double> galerkin(runtime, r.view(), fine, p.view());
    std::fputs(galerkin.outer_plan().to_text().c_str(), stdout);
    galerkin.renew();
    auto coarse = galerkin.product().distribute();

    const std::vector<double> ones(static_cast<std::size_t>(coarse.cols()), 1.0);
    std::vector<double> sums(static_cast<std::size_t>(coarse.rows()));
    bool good = true;
    for (int step = 1; step <= 3; ++step) {
        // The rows of a graph Laplacian add up to zero, on every grid.
        coarse.apply(1.0, ones.data(), 0.0, sums.data());
        for (const double sum : sums) {
            good = good && std::abs(sum) < 1e-9;
        }
        std::printf("step %d: %lld x %lld, %lld nonzeros\n", step, static_cast<long long>(coarse.rows()),
                    static_cast<long long>(coarse.cols()), static_cast<long long>(coarse.nnz()));
        for (double& value : a.values) {
            value *= 1.5;
        }
        fine.update_values(a.values.data());
        galerkin.renew();
        galerkin.product().renew(coarse);
    }
    return good ? 0 : 1;
}
