#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <kernels/steps/blas1/blas1.hpp>
#include <kernels/steps/coarsening/aggregates.hpp>
#include <kernels/steps/coarsening/coarsening.hpp>
#include <rmsp/io.hpp>

#include "all_rows.hpp"
#include "device_csr.hpp"
#include "matrices.hpp"
#include "matrix/aggregation.hpp"
#include "matrix/coarsening.hpp"
#include "matrix/interpolation.hpp"
#include "matrix/strength.hpp"
#include "test_device.hpp"

/// The steps of coarsening against the plain code for the host.
namespace rmsp::kernels::test {
namespace {

class CoarseningSteps : public DeviceTest<> {};

/// strong_entries() of all rows.
void mark_strong(const CsrShard<double>& a, bool symmetric, double threshold, std::uint8_t* marks,
                 const Context& context)
{
    const DeviceArray<double> diagonal(*context.memory, static_cast<std::size_t>(a.rows));
    const DeviceArray<double> largest(*context.memory, static_cast<std::size_t>(a.rows));
    weigh_rows(a, 0, symmetric, diagonal.data(), largest.data(), context);
    strong_entries(a, 0, symmetric, threshold, diagonal.data(), largest.data(), marks, context);
}

template <class Steps>
void expect_all_steps()
{
    const Steps* const row = steps_on<Steps>(DeviceKind::cuda);
    ASSERT_NE(row, nullptr);
    const auto bodies = std::bit_cast<std::array<const void*, sizeof(Steps) / sizeof(void*)>>(*row);
    EXPECT_EQ(std::count(bodies.begin(), bodies.end(), nullptr), 0);
}

/// Needs no GPU.
TEST(CoarseningTables, HaveABodyForEachStep)
{
    if (steps_on<Coarsenings>(DeviceKind::cuda) == nullptr) {
        GTEST_SKIP() << "needs a build with CUDA";
    }
    expect_all_steps<Coarsenings>();
    expect_all_steps<Aggregations>();
    expect_all_steps<Strengths<float>>();
    expect_all_steps<Strengths<double>>();
    expect_all_steps<Prolongations<float>>();
    expect_all_steps<Prolongations<double>>();
}

TEST_F(CoarseningSteps, AreThoseOfTheHost)
{
    for (const ValueKind kind : {ValueKind::poisson, ValueKind::random}) {
        const auto a = stencil7<double>(13, 9, 11, {.values = kind});
        for (const bool symmetric : {false, true}) {
            const auto strong = matrix::strong_entries(
                a.view(), symmetric ? matrix::Strength::symmetric : matrix::Strength::classical, 0.25);
            const matrix::Graph graph = matrix::strong_graph(a.view(), strong);
            for (const Offsets offsets : {Offsets::i32, Offsets::i64}) {
                const Context& context = device_->context();
                const DeviceCsr<double> there(*device_, host_csr(a), offsets);
                const auto n = static_cast<std::size_t>(a.rows);
                ASSERT_TRUE(is_canonical(there.shard, context));
                const DeviceArray<std::uint8_t> marks(*context.memory, strong.size());
                mark_strong(there.shard, symmetric, 0.25, marks.data(), context);
                ASSERT_EQ(download(*device_, marks.data(), marks.size()),
                          std::vector<std::uint8_t>(strong.begin(), strong.end()));
                const DeviceArray<std::int32_t> number(*context.memory, n);
                const matrix::Coarsening points = matrix::pmis(graph);
                EXPECT_EQ(pmis(a.rows, there.shard.row_ptr, there.shard.col_idx, marks.data(), number.data(), context),
                          points.count);
                EXPECT_EQ(download(*device_, number.data(), n),
                          std::vector<std::int32_t>(points.number.begin(), points.number.end()));
                const AllRows all(there.shard, marks, number, context);
                ASSERT_TRUE(symmetrise(all.parts, context));
                const matrix::Coarsening groups = matrix::aggregates(matrix::symmetrised(graph));
                EXPECT_EQ(aggregates(all.parts, context), groups.count);
                EXPECT_EQ(download(*device_, number.data(), n),
                          std::vector<std::int32_t>(groups.number.begin(), groups.number.end()));
                const auto t = matrix::tentative(groups, 1, matrix::constants(a.rows, 1));
                const DeviceArray<double> values = upload(*device_, std::vector<double>(n, 1.0));
                const DeviceArray<double> coarse(*context.memory, static_cast<std::size_t>(groups.count));
                normalise(a.rows, number.data(), groups.count, values.data(), coarse.data(), context);
                EXPECT_EQ(download(*device_, values.data(), n), std::vector<double>(t.values.begin(), t.values.end()));
                EXPECT_EQ(download(*device_, coarse.data(), coarse.size()),
                          std::vector<double>(t.coarse.values.begin(), t.coarse.values.end()));
                const DeviceArray<double> ones(*context.memory, n);
                const DeviceArray<double> lengths(*context.memory, static_cast<std::size_t>(groups.count));
                lengths_of_ones(a.rows, number.data(), groups.count, lengths.data(), context);
                normalised_ones(a.rows, number.data(), lengths.data(), ones.data(), context);
                EXPECT_EQ(download(*device_, ones.data(), n), std::vector<double>(t.values.begin(), t.values.end()));
                EXPECT_EQ(download(*device_, lengths.data(), lengths.size()),
                          std::vector<double>(t.coarse.values.begin(), t.coarse.values.end()));
            }
        }
    }
}

TEST_F(CoarseningSteps, StatisticsOfRowsAreThoseOfTheHost)
{
    for (const std::int64_t rows : {1, 31, 5000, 700'000}) {
        std::vector<std::int64_t> wide{0};
        for (std::int64_t row = 0; row < rows; ++row) {
            wide.push_back(wide.back() + row * row % 7);
        }
        const std::vector<std::int32_t> narrow(wide.begin(), wide.end());
        const RowStatistics host = row_statistics(rows, IndexView(wide.data()));
        const DeviceArray<std::int64_t> there = upload(*device_, wide);
        const DeviceArray<std::int32_t> narrow_there = upload(*device_, narrow);
        for (const IndexView row_ptr : {IndexView(there.data()), IndexView(narrow_there.data())}) {
            const RowStatistics found = statistics_of_rows(rows, row_ptr, device_->context());
            EXPECT_EQ(found.rows, host.rows);
            EXPECT_EQ(found.nnz, host.nnz);
            EXPECT_EQ(found.empty_rows, host.empty_rows);
            EXPECT_EQ(found.longest_row, host.longest_row);
            EXPECT_EQ(found.mean, host.mean);
            EXPECT_NEAR(found.deviation, host.deviation, 1e-9);
        }
    }
    EXPECT_EQ(statistics_of_rows(0, IndexView(), device_->context()).rows, 0);
}

/// What the host found of a matrix, on the device.
struct Found {
    DeviceCsr<double> a;
    DeviceArray<std::uint8_t> strong;
    DeviceArray<std::int32_t> number;

    Found(TestDevice& device, const CsrMatrix<double>& host, const HostVector<std::uint8_t>& marks,
          const matrix::Coarsening& coarse)
        : a(device, host_csr(host), Offsets::i64),
          strong(upload(device, std::vector<std::uint8_t>(marks.begin(), marks.end()))),
          number(upload(device, std::vector<std::int32_t>(coarse.number.begin(), coarse.number.end())))
    {
    }
};

void expect_structure(TestDevice& device, const CsrArrays<double>& made, const CsrMatrix<double>& p)
{
    const HostCsr<double> expected = host_csr(p);
    ASSERT_EQ(download(device, made.row_ptr.data(), made.row_ptr.size()), expected.row_ptr);
    ASSERT_EQ(download(device, made.col_idx.data(), made.col_idx.size()), expected.col_idx);
}

TEST_F(CoarseningSteps, InterpolateAsTheHost)
{
    using Values = std::pair<bool, ValueKind>;
    for (const auto& [many, kind] : {Values{false, ValueKind::poisson}, Values{false, ValueKind::random},
                                     Values{true, ValueKind::poisson}, Values{true, ValueKind::random}}) {
        const auto generate = many ? stencil27<double> : stencil7<double>;
        const auto a = generate(12, 7, 9, {.values = kind});
        const auto b = generate(12, 7, 9, {.seed = 9, .values = kind});
        const auto strong = matrix::strong_entries(a.view(), matrix::Strength::classical, 0.25);
        const matrix::Coarsening points = matrix::pmis(matrix::strong_graph(a.view(), strong));
        const Found there(*device_, a, strong, points);
        const Found renewed(*device_, b, strong, points);
        for (const auto interpolation_kind : {matrix::Interpolation::direct, matrix::Interpolation::extended}) {
            const bool direct = interpolation_kind == matrix::Interpolation::direct;
            for (const std::int64_t most : {0, 1, 4, 12}) {
                for (const double truncation : {0.0, 0.2}) {
                    auto p = matrix::interpolation(a.view(), strong, points, {interpolation_kind, truncation, most});
                    const auto made = interpolation(there.a.shard, there.strong.data(), there.number.data(), direct,
                                                    truncation, most, device_->context());
                    ASSERT_TRUE(made);
                    expect_structure(*device_, *made, p);
                    EXPECT_EQ(download(*device_, made->values.data(), made->values.size()),
                              std::vector<double>(p.values.begin(), p.values.end()));
                    matrix::renew_interpolation(b.view(), strong, points, interpolation_kind, p);
                    const CsrShard<double> shard{p.rows,
                                                 p.cols,
                                                 p.nnz(),
                                                 IndexView(made->row_ptr.data()),
                                                 made->col_idx.data(),
                                                 made->values.data()};
                    renew_interpolation(renewed.a.shard, there.strong.data(), there.number.data(), direct, shard,
                                        made->values.data(), device_->context());
                    EXPECT_EQ(download(*device_, made->values.data(), made->values.size()),
                              std::vector<double>(p.values.begin(), p.values.end()));
                }
            }
        }
    }
}

/// By which P is smoothed. \param vector  of the power method; empty: a new one
double omega_of(TestDevice& device, const AggregatedRows<double>& rows, const double* inverse,
                DeviceArray<double>& vector)
{
    const Context& context = device.context();
    const auto n = static_cast<std::size_t>(rows.a.rows);
    const int steps = vector.size() > 0 ? matrix::power_steps_again : matrix::power_steps;
    if (vector.size() == 0) {
        vector = DeviceArray<double>(*context.memory, n);
        rough_vector(0, rows.a.rows, vector.data(), context);
    }
    DeviceArray<double> next(*context.memory, n);
    const DeviceArray<double> squares(*context.memory, static_cast<std::size_t>(most_sums(context)));
    double before = 0;
    double largest = 0;
    for (int step = 0; step < steps; ++step) {
        const int sums = filtered_product(rows, inverse, matrix::power_step(step, steps), vector.data(), next.data(),
                                          squares.data(), context);
        const std::vector<double> parts = download(device, squares.data(), static_cast<std::size_t>(sums));
        const double after = std::accumulate(parts.begin(), parts.end(), 0.0);
        largest = before > 0 ? std::sqrt(after / before) : 0.0;
        before = after;
        std::swap(vector, next);
    }
    scal(1 / std::sqrt(before), vector.data(), rows.a.rows, context);
    return 4.0 / 3.0 / largest;
}

TEST_F(CoarseningSteps, SmoothAsTheHost)
{
    auto a = stencil7<double>(12, 7, 9, {.values = ValueKind::poisson});
    // Some rows are not smoothed: their other entries are far larger than the diagonal.
    for (std::int64_t row = 0; row < a.rows; row += 7) {
        for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
            a.values[static_cast<std::size_t>(k)] = a.col_idx[k] == row ? 0.2 : a.values[static_cast<std::size_t>(k)];
        }
    }
    const auto strong = matrix::strong_entries(a.view(), matrix::Strength::symmetric, 0.08);
    const auto t = matrix::tentative(matrix::aggregates(matrix::symmetrised(matrix::strong_graph(a.view(), strong))), 1,
                                     matrix::constants(a.rows, 1));
    const Context& context = device_->context();
    const Found there(*device_, a, strong, t.nodes);
    const auto values = upload(*device_, std::vector<double>(t.values.begin(), t.values.end()));
    const auto coarse = upload(*device_, std::vector<double>(t.coarse.values.begin(), t.coarse.values.end()));
    const AggregatedRows<double> rows{there.a.shard, 0, there.strong.data(), there.number.data(), values.data(),
                                      coarse.data()};
    const DeviceArray<double> inverse(*context.memory, static_cast<std::size_t>(a.rows));
    filtered_inverse(rows, inverse.data(), context);
    for (const bool smooth : {false, true}) {
        const auto p = matrix::smoothed_prolongator(a.view(), strong, t, smooth);
        DeviceArray<double> vector;
        const auto made = smoothed_rows(
            rows, inverse.data(), smooth ? omega_of(*device_, rows, inverse.data(), vector) : 0.0, smooth, context);
        ASSERT_TRUE(made);
        expect_structure(*device_, *made, p);
        const auto found = download(*device_, made->values.data(), made->values.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            ASSERT_NEAR(found[i], p.values[i], 1e-13) << i;
        }
        // From the vector that it came to, and where there is none from the start.
        for (const bool again : {true, false}) {
            HostVector<double> host_vector;
            matrix::smoothed_prolongator(a.view(), strong, t, smooth, {}, &host_vector);
            if (!again) {
                host_vector.clear();
                vector.reset();
            }
            const auto renewed = matrix::smoothed_prolongator(a.view(), strong, t, smooth, {}, &host_vector);
            const DeviceArray<double> there_renewed(*context.memory, found.size());
            renew_smoothed_rows(rows, inverse.data(), smooth ? omega_of(*device_, rows, inverse.data(), vector) : 0.0,
                                smooth, IndexView(static_cast<const std::int64_t*>(made->row_ptr.data())),
                                there_renewed.data(), context);
            const auto found_renewed = download(*device_, there_renewed.data(), found.size());
            for (std::size_t i = 0; i < found.size(); ++i) {
                ASSERT_NEAR(found_renewed[i], renewed.values[i], 1e-13) << i;
            }
        }
    }
}

/// Rows [first, end) of a matrix.
CsrMatrix<double> some_rows(const CsrMatrix<double>& a, std::int64_t first, std::int64_t end)
{
    CsrMatrix<double> out;
    out.rows = end - first;
    out.cols = a.cols;
    HostVector<std::int64_t> row_ptr;
    for (std::int64_t row = first; row <= end; ++row) {
        row_ptr.push_back(a.row_ptr[row] - a.row_ptr[first]);
    }
    HostVector<std::int64_t> columns;
    for (std::int64_t k = a.row_ptr[first]; k < a.row_ptr[end]; ++k) {
        columns.push_back(a.col_idx[k]);
    }
    out.row_ptr = row_ptr;
    out.col_idx = columns;
    out.values.assign(a.values.begin() + a.row_ptr[first], a.values.begin() + a.row_ptr[end]);
    return out;
}

TEST_F(CoarseningSteps, OfSomeRowsAreThoseOfAll)
{
    const auto a = stencil27<double>(9, 8, 7, {.values = ValueKind::poisson});
    const auto strong = matrix::strong_entries(a.view(), matrix::Strength::symmetric, 0.08);
    const auto t = matrix::tentative(matrix::aggregates(matrix::symmetrised(matrix::strong_graph(a.view(), strong))), 1,
                                     matrix::constants(a.rows, 1));
    const Context& context = device_->context();
    const auto n = static_cast<std::size_t>(a.rows);
    const auto number = upload(*device_, std::vector<std::int32_t>(t.nodes.number.begin(), t.nodes.number.end()));
    const auto values = upload(*device_, std::vector<double>(t.values.begin(), t.values.end()));
    const auto coarse = upload(*device_, std::vector<double>(t.coarse.values.begin(), t.coarse.values.end()));
    const DeviceArray<double> diagonal(*context.memory, n);
    const DeviceArray<double> largest(*context.memory, n);
    const DeviceArray<double> vector(*context.memory, n);
    const DeviceArray<double> product(*context.memory, n);
    const auto p = matrix::smoothed_prolongator(a.view(), strong, t, true);
    std::vector<double> of_all;  // D^-1 A_F v
    for (const std::vector<std::int64_t>& cuts :
         {std::vector<std::int64_t>{0, a.rows}, std::vector<std::int64_t>{0, 1, 200, 200, 357, a.rows}}) {
        std::vector<DeviceCsr<double>> parts;
        for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
            parts.emplace_back(*device_, host_csr(some_rows(a, cuts[i], cuts[i + 1])), Offsets::i32);
            weigh_rows(parts.back().shard, cuts[i], true, diagonal.data(), largest.data(), context);
            rough_vector(cuts[i], cuts[i + 1] - cuts[i], vector.data(), context);
        }
        std::vector<std::uint8_t> marks;
        std::vector<std::int32_t> columns;
        for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
            const CsrShard<double>& part = parts[i].shard;
            const DeviceArray<std::uint8_t> own(*context.memory, static_cast<std::size_t>(part.nnz));
            strong_entries(part, cuts[i], true, 0.08, diagonal.data(), largest.data(), own.data(), context);
            const auto found = download(*device_, own.data(), own.size());
            marks.insert(marks.end(), found.begin(), found.end());
            const AggregatedRows<double> rows{part, cuts[i], own.data(), number.data(), values.data(), coarse.data()};
            const DeviceArray<double> inverse(*context.memory, static_cast<std::size_t>(part.rows));
            filtered_inverse(rows, inverse.data(), context);
            const DeviceArray<double> squares(*context.memory, static_cast<std::size_t>(most_sums(context)));
            filtered_product(rows, inverse.data(), matrix::PowerStep{1, 0, 0}, vector.data(), product.data(),
                             squares.data(), context);
            const auto made = smoothed_rows(rows, inverse.data(), 0.5, true, context);
            ASSERT_TRUE(made);
            const auto of_rows = download(*device_, made->col_idx.data(), made->col_idx.size());
            columns.insert(columns.end(), of_rows.begin(), of_rows.end());
        }
        EXPECT_EQ(marks, std::vector<std::uint8_t>(strong.begin(), strong.end()));
        EXPECT_EQ(columns, host_csr(p).col_idx);
        const auto found = download(*device_, product.data(), n);
        of_all = of_all.empty() ? found : of_all;
        for (std::size_t i = 0; i < n; ++i) {
            ASSERT_NEAR(found[i], of_all[i], 1e-13) << i;
        }
    }
}

/// A row that depends on all others, which are coarse points.
struct Hub {
    explicit Hub(std::int64_t points)
    {
        a.rows = a.cols = points + 1;
        a.row_ptr = {0};
        for (std::int64_t row = 0; row < a.rows; ++row) {
            for (std::int64_t column = row; column < (row == 0 ? a.cols : row + 1); ++column) {
                a.col_idx.push_back(static_cast<std::int32_t>(column));
                a.values.push_back(column == row ? 4 : -1 - static_cast<double>(column % 7));
                strong.push_back(column == row ? 0 : 1);
            }
            a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
            coarse.number.push_back(static_cast<std::int32_t>(row) - 1);
        }
        coarse.count = points;
    }
    HostCsr<double> a;
    std::vector<std::uint8_t> strong;
    matrix::Coarsening coarse;
};

TEST_F(CoarseningSteps, InterpolateWideRows)
{
    for (const std::int64_t points : {47, 48, 49, 300}) {
        const Hub hub(points);
        const DeviceCsr<double> there(*device_, hub.a, Offsets::i32);
        const auto marks = upload(*device_, hub.strong);
        const auto numbers =
            upload(*device_, std::vector<std::int32_t>(hub.coarse.number.begin(), hub.coarse.number.end()));
        const CsrView<double> view{hub.a.rows,
                                   hub.a.cols,
                                   static_cast<std::int64_t>(hub.a.values.size()),
                                   IndexView(hub.a.row_ptr.data()),
                                   IndexView(hub.a.col_idx.data()),
                                   hub.a.values.data()};
        for (const std::int64_t most : {0, 4}) {
            const auto p =
                matrix::interpolation(view, hub.strong, hub.coarse, {matrix::Interpolation::extended, 0.0, most});
            const auto made =
                interpolation(there.shard, marks.data(), numbers.data(), false, 0.0, most, device_->context());
            ASSERT_TRUE(made);
            expect_structure(*device_, *made, p);
            EXPECT_EQ(download(*device_, made->values.data(), made->values.size()),
                      std::vector<double>(p.values.begin(), p.values.end()));
        }
    }
}

TEST_F(CoarseningSteps, RefuseRowsThatAreTooWide)
{
    const Hub hub(widest_row + 1);
    const DeviceCsr<double> there(*device_, hub.a, Offsets::i32);
    const auto marks = upload(*device_, hub.strong);
    const auto numbers =
        upload(*device_, std::vector<std::int32_t>(hub.coarse.number.begin(), hub.coarse.number.end()));
    for (const bool direct : {false, true}) {
        EXPECT_FALSE(
            interpolation(there.shard, marks.data(), numbers.data(), direct, 0.0, std::int64_t{4}, device_->context()));
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
