#include "apps/mspmv/cluster_steps.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rmsp/ghosted.hpp>
#include <rmsp/io.hpp>
#include <rmsp/sequence.hpp>
#include <rmsp/solver.hpp>

#include "apps/mspmv/precision.hpp"

namespace rmsp::mspmv {
namespace {

struct Counters : Processes {
    void sum(std::span<double> /*numbers*/) override { ++sums; }
    void begin_sum(std::span<double> /*numbers*/) override { ++sums_beside; }
    double of_first(double value) override { return value; }
    std::int64_t sums = 0;
    std::int64_t sums_beside = 0;
};

/// Of one entry, which its own process is asked for.
template <class T>
struct Echo : GhostExchange {
    void begin(const void* send, void* receive, bool /*backwards*/) override
    {
        ++products;
        std::memcpy(receive, send, sizeof(T));
    }
    void end() override {}
    std::int64_t products = 0;
};

template <class T>
StepCounts count(const Config& config, const std::string& method, double nonzeros_a_row)
{
    constexpr double between_stencils = 14;
    GenerateOptions spd;
    spd.values = ValueKind::poisson;
    const CsrMatrix<T> stencil =
        nonzeros_a_row > between_stencils ? stencil27<T>(8, 8, 8, spd) : stencil7<T>(8, 8, 8, spd);
    // And a column of zeros, which makes it one of several processes.
    const auto counters = std::make_shared<Counters>();
    const auto echo = std::make_shared<Echo<T>>();
    GhostedRows<T> rows;
    CsrMatrix<T> with_ghost;
    with_ghost.rows = stencil.rows;
    with_ghost.cols = stencil.cols + 1;
    HostVector<std::int64_t> columns;
    stencil.view().col_idx.visit([&](const auto* from) { columns.assign(from, from + stencil.nnz()); });
    columns.push_back(stencil.cols);
    with_ghost.row_ptr = stencil.row_ptr;
    with_ghost.row_ptr.back() += 1;
    with_ghost.col_idx = std::move(columns);
    with_ghost.values = stencil.values;
    with_ghost.values.push_back(T{0});
    rows.rows = with_ghost.view();
    rows.own_cols = stencil.cols;
    rows.sent = {0};
    rows.exchange = echo;
    rows.processes = counters;
    Runtime runtime({.devices = "host:1x1"});
    const GhostedMatrix<T> matrix(runtime, rows);
    Sequence product{Scalars(runtime)};
    product.multiply(matrix.own(), Vec<T>(matrix.own().make_x(Layout::rows)), Vec<T>(matrix.own().make_y()));

    struct Run {
        std::int64_t iterations = 0;
        std::int64_t products = 0;
        std::int64_t sums = 0;
        std::int64_t sums_beside = 0;
        double bytes = 0;
    };
    const auto run = [&](const auto& of, std::int64_t iterations) {
        SolverOptions options = solver_options(config);
        options.method = method;
        options.tolerance = 0;
        options.absolute_tolerance = 0;
        options.normal_tolerance = 0;
        options.stagnation_window = 0;
        options.divergence = std::numeric_limits<double>::max();
        options.max_iterations = iterations;
        Solver<T> solver(of, options);
        std::vector<T> b(static_cast<std::size_t>(stencil.rows));
        for (std::size_t i = 0; i < b.size(); ++i) {
            b[i] = static_cast<T>(static_cast<double>(i * 7919 % 2001) / 1000.0 - 1.0);
        }
        std::vector<T> x(b.size());
        const Run before{0, echo->products, counters->sums, counters->sums_beside};
        const SolveResult result = solver.solve(b.data(), x.data());
        return Run{result.iterations, echo->products - before.products, counters->sums - before.sums,
                   counters->sums_beside - before.sums_beside, result.iteration_bytes};
    };
    // What comes before and after the iterations cancels out; methods whose iterations differ do whole turns.
    const auto infos = list_solvers();
    const auto info =
        std::find_if(infos.begin(), infos.end(), [&](const SolverInfo& row) { return row.name == method; });
    const std::int64_t turn = method == "gmres" ? std::max<std::int64_t>(4, config.solver.restart)
                                                : std::max<std::int64_t>(12, info == infos.end() ? 1 : info->turn);
    const Run few = run(matrix, 0);
    const Run more = run(matrix, turn);
    if (few.iterations == more.iterations) {
        throw Error(ErrorCode::usage,
                    fmt::format("{} with {}: an iteration cannot be counted, since it ended after {} on a stencil",
                                method, config.solver.preconditioner, more.iterations));
    }
    const auto iterations = static_cast<double>(more.iterations - few.iterations);
    StepCounts counts;
    counts.products = static_cast<double>(more.products - few.products) / iterations;
    counts.sums_beside = static_cast<double>(more.sums_beside - few.sums_beside) / iterations;
    counts.sums = static_cast<double>(more.sums - few.sums) / iterations + counts.sums_beside;
    // Without what the added column moves.
    counts.vector_bytes =
        std::max(0.0, run(matrix.own(), turn).bytes - counts.products * static_cast<double>(product.bytes())) /
        static_cast<double>(stencil.rows);
    return counts;
}

}  // namespace

StepCounts count_steps(const Config& config, const std::string& method, double nonzeros_a_row)
{
    return with_precision(config.matrix.precision, [&]<class T>() { return count<T>(config, method, nonzeros_a_row); });
}

}  // namespace rmsp::mspmv
