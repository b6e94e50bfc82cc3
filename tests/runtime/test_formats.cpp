#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "formats.hpp"
#include "given.hpp"
#include "matrices.hpp"

namespace rmsp::test {
namespace {

TEST_P(Formats, EveryFormatOfHardMatrices)
{
    for (const auto& [name, a] : matrices<double>()) {
        for (const Given given : every_way) {
            const Arrays<double> arrays(a, given);
            DistributeOptions options;
            options.alignment = RowAlignment::exact;
            options.unsorted = Unsorted::split;
            auto matrix = arrays.distribute(*runtime_, options);
            const std::string what = name + ", " + name_of(given);
            EXPECT_EQ(matrix.rows(), a.rows) << what;
            EXPECT_EQ(matrix.cols(), a.cols) << what;
            EXPECT_EQ(matrix.nnz(), a.nnz()) << what;
            check_host_vectors(what, a, matrix);
            check_device_vectors(what, a, matrix);
        }
    }
}

TEST_P(Formats, EveryFormatInFloat)
{
    for (const auto& [name, a] : matrices<float>()) {
        for (const Given given : every_way) {
            DistributeOptions options;
            options.alignment = RowAlignment::row;
            options.unsorted = Unsorted::split;
            auto matrix = Arrays<float>(a, given).distribute(*runtime_, options);
            check_host_vectors(name + ", " + name_of(given), a, matrix);
        }
    }
}

TEST_P(Formats, EveryMerge)
{
    const std::pair<const char*, CsrMatrix<double>> cases[] = {
        {"dense rows and columns", with_row_lengths<double>({3000, 1, 0, 900, 2, 2, 4000, 0, 7}, 5000)},
        {"stencil", stencil27<double>(17, 13, 11)},
        {"whole columns", with_row_lengths<double>(std::vector<std::int64_t>(512, 40), 512)},
    };
    for (const std::string& merge : merges()) {
        for (const auto& [name, a] : cases) {
            for (const Given given : {Given::csr, Given::csc, Given::coo_unsorted}) {
                for (const auto determinism : {Determinism::none, Determinism::run}) {
                    DistributeOptions options;
                    options.merge = merge;
                    options.alignment = RowAlignment::exact;
                    options.determinism = determinism;
                    options.unsorted = Unsorted::split;
                    auto matrix = Arrays<double>(a, given).distribute(*runtime_, options);
                    const std::string what = std::string(name) + ", " + name_of(given) + ", merge " + merge;
                    check_host_vectors(what, a, matrix);
                    check_device_vectors(what, a, matrix);
                }
            }
        }
    }
}

TEST_P(Formats, EveryKernelOfTheseDevices)
{
    const auto kind = runtime_->devices().front().kind;
    const auto a = with_row_lengths<double>({3, 0, 900, 5, 5, 1, 0, 77, 4000, 2}, 5000);
    for (const auto& kernel : list_kernels()) {
        if (kernel.family != "spmv" || kernel.device != kind || !kernel.compiled || kernel.format == Format::csr) {
            continue;
        }
        for (const Given given : {Given::csc, Given::coo_by_row, Given::coo_by_column, Given::coo_unsorted}) {
            const bool any_order = kernel.name != "coo-openmp";
            if ((given == Given::csc) != (kernel.format == Format::csc) || (given != Given::coo_by_row && !any_order)) {
                continue;
            }
            DistributeOptions options;
            options.kernel = kernel.name;
            options.unsorted = Unsorted::split;
            auto matrix = Arrays<double>(a, given).distribute(*runtime_, options);
            EXPECT_EQ(matrix.plan().shards.front().kernel, kernel.name);
            check_host_vectors(kernel.name, a, matrix);
        }
    }
}

TEST_P(Formats, RepeatsBitForBitWhereDeterminismIsAsked)
{
    const auto a = with_row_lengths<double>({3000, 0, 1, 700, 700, 2, 3900, 4}, 4000);
    for (const std::string& merge : merges()) {
        for (const Given given : every_way) {
            DistributeOptions options;
            options.determinism = Determinism::run;
            options.alignment = RowAlignment::exact;
            options.unsorted = Unsorted::split;
            options.merge = merge;
            options.transposed = true;
            auto matrix = Arrays<double>(a, given).distribute(*runtime_, options);
            const auto x = random_vector<double>(a.cols, 10);
            for (const bool transposed : {false, true}) {
                std::vector<double> first(static_cast<std::size_t>(transposed ? a.cols : a.rows));
                for (int i = 0; i < 10; ++i) {
                    std::vector<double> again(first.size());
                    if (transposed) {
                        matrix.apply_transposed(1.0, x.data(), 0.0, again.data());
                    } else {
                        matrix.apply(1.0, x.data(), 0.0, again.data());
                    }
                    if (i == 0) {
                        first = again;
                    }
                    EXPECT_EQ(first, again) << name_of(given) << (transposed ? ", transposed" : "") << ", " << merge;
                }
            }
        }
    }
}

TEST_P(Formats, NewValuesKeepTheStructure)
{
    const auto a = with_row_lengths<double>({10, 0, 5000, 20, 3, 1}, 6000);
    const auto x = random_vector<double>(a.cols, 8);
    const auto x_transposed = random_vector<double>(a.rows, 9);
    for (const Given given : every_way) {
        for (const auto determinism : {Determinism::none, Determinism::run}) {
            Arrays<double> arrays(a, given);
            DistributeOptions options;
            options.alignment = RowAlignment::exact;
            options.unsorted = Unsorted::split;
            options.determinism = determinism;
            auto matrix = arrays.distribute(*runtime_, options);
            for (int round = 0; round < 3; ++round) {
                // Twice the values of round 0, three times in the next one: y follows.
                std::vector<double> y(static_cast<std::size_t>(a.rows));
                std::vector<double> y_transposed(static_cast<std::size_t>(a.cols));
                matrix.apply(1.0 / (round + 1), x.data(), 0.0, y.data());
                matrix.apply_transposed(1.0 / (round + 1), x_transposed.data(), 0.0, y_transposed.data());
                const auto csc = to_csc(a.view());
                EXPECT_TRUE(verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed)
                    << name_of(given) << ", round " << round;
                EXPECT_TRUE(verify_spmv<double>(transpose(csc.view()), 1.0, x_transposed.data(), 0.0, nullptr,
                                                y_transposed.data())
                                .passed)
                    << name_of(given) << ", round " << round;
                HostVector<double> values = arrays.values();
                for (double& v : values) {
                    v *= round + 2;
                }
                matrix.update_values(values.data());
            }
        }
    }
}

TEST_P(Formats, ALoopOfAppliesNeedsNoWaiting)
{
    // A A^T A A^T ... x: the order of jobs is all there is.
    const auto a = stencil27<double>(9, 8, 7);
    for (const Given given : {Given::csr, Given::csc, Given::coo_by_column}) {
        auto matrix = Arrays<double>(a, given).distribute(*runtime_, {});
        auto x = matrix.make_x(Layout::rows);
        auto y = matrix.make_y();
        const auto start = random_vector<double>(a.cols, 5);
        x.upload(start.data());
        std::vector<double> expected = start;
        for (int i = 0; i < 10; ++i) {
            const bool transposed = i % 2 == 1;
            if (transposed) {
                static_cast<void>(matrix.apply_transposed_async(0.2, x, 0.0, y));
            } else {
                static_cast<void>(matrix.apply_async(0.2, x, 0.0, y));
            }
            std::swap(x, y);
            std::vector<double> next(expected.size(), 0);
            for (std::int64_t row = 0; row < a.rows; ++row) {
                for (auto k = a.row_ptr[static_cast<std::size_t>(row)];
                     k < a.row_ptr[static_cast<std::size_t>(row) + 1]; ++k) {
                    const auto to = static_cast<std::size_t>(transposed ? a.col_idx[k] : row);
                    const auto from = static_cast<std::size_t>(transposed ? row : a.col_idx[k]);
                    next[to] += 0.2 * a.values[static_cast<std::size_t>(k)] * expected[from];
                }
            }
            expected = next;
        }
        std::vector<double> out(expected.size());
        x.download(out.data());
        for (std::size_t i = 0; i < out.size(); ++i) {
            EXPECT_NEAR(out[i], expected[i], 1e-9 * (1 + std::abs(expected[i]))) << name_of(given);
        }
    }
}

TEST_P(Formats, MeasuresEveryFormat)
{
    // What the devices' memory delivers is given: to read it until it is known takes longer than all that is below.
    RuntimeOptions machine = options_for(GetParam());
    machine.limit_gbs = 100;
    Runtime runtime(machine);
    const auto a = stencil27<double>(8, 7, 6);
    const auto x = random_vector<double>(a.cols, 1);
    const auto y_in = random_vector<double>(a.rows, 2);
    for (const Given given : every_way) {
        DistributeOptions options;
        options.unsorted = Unsorted::split;
        auto matrix = Arrays<double>(a, given).distribute(runtime, options);
        using Vectors = DistributedMatrix<double>::Vectors;
        for (const auto vectors : {Vectors::host, Vectors::replicated, Vectors::rows}) {
            std::vector<double> y(static_cast<std::size_t>(a.rows));
            const auto m = matrix.measure(vectors, 1, 3, 1.5, x.data(), 0.5, y_in.data(), y.data());
            EXPECT_TRUE(verify_spmv(a.view(), 1.5, x.data(), 0.5, y_in.data(), y.data()).passed) << m.name;
            const char* const format = given == Given::csr ? "csr" : given == Given::csc ? "csc" : "coo";
            EXPECT_EQ(m.name, std::string("spmv/") + format + "/double/resident");
            const bool merges = !matrix.plan().merge.empty() && matrix.plan().merge != "none";
            const bool merged = std::any_of(m.phases.begin(), m.phases.end(),
                                            [](const PhaseTimes& phase) { return phase.name == "merge"; });
            EXPECT_TRUE(merged || !merges) << m.name;
        }
    }
}

TEST_P(Formats, StreamedInEveryFormat)
{
    for (const auto& [name, a] : matrices<double>()) {
        for (const Given given : every_way) {
            // In pieces much smaller than a part, and of one row.
            DistributeOptions options;
            options.mode = Mode::streamed;
            options.chunk_bytes = 4096;
            options.alignment = RowAlignment::exact;
            options.unsorted = Unsorted::sort;
            options.encoding = given == Given::csr ? StreamEncoding::none : StreamEncoding::automatic;
            const Arrays<double> arrays(a, given);
            auto matrix = arrays.distribute(*runtime_, options);
            const std::string what = name + ", streamed, " + name_of(given);
            check_host_vectors(what, a, matrix, {false});
            check_device_vectors(what, a, matrix, {false});
        }
    }
}

TEST_P(Formats, UnsortedEntriesAreRefusedUnlessAskedFor)
{
    const auto a = with_row_lengths<double>({3, 1, 40, 2, 100}, 90);
    const Arrays<double> arrays(a, Given::coo_unsorted);
    try {
        arrays.distribute(*runtime_, {});
        FAIL() << "unsorted entries were taken";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::usage);
        EXPECT_NE(std::string(e.what()).find("sorted neither by row"), std::string::npos) << e.what();
    }
    DistributeOptions options;
    options.unsorted = Unsorted::sort;
    options.borrow = true;
    auto matrix = arrays.distribute(*runtime_, options);
    EXPECT_EQ(matrix.plan().order, CooOrder::by_row);
    EXPECT_EQ(matrix.plan().merge, "none");
    check_host_vectors("sorted", a, matrix);
    EXPECT_THROW(matrix.update_values(a.values.data()), Error);
}

TEST_P(Formats, RefusesWhatItCannotDo)
{
    const auto a = with_row_lengths<double>({3, 1, 40, 2, 100}, 90);
    const auto message = [](const auto& call) -> std::string {
        try {
            call();
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::usage);
            return e.what();
        }
        return "no error";
    };
    const auto distribute = [&](Given given, const DistributeOptions& options) {
        return message([&] { Arrays<double>(a, given).distribute(*runtime_, options); });
    };
    DistributeOptions options;
    options.merge = "pigeon";
    EXPECT_NE(distribute(Given::csc, options).find("merge \"pigeon\""), std::string::npos);
    options = {};
    options.kernel = "csr-reference";
    EXPECT_NE(distribute(Given::csc, options).find("csr-reference"), std::string::npos);
    options = {};
    options.determinism = Determinism::device_count;
    EXPECT_NE(distribute(Given::csc, options).find("device_count"), std::string::npos);

    auto by_rows = runtime_->distribute(a.view(), options);
    std::vector<double> x(static_cast<std::size_t>(a.rows));
    std::vector<double> y(static_cast<std::size_t>(a.cols));
    EXPECT_NE(message([&] { by_rows.apply_transposed(1.0, x.data(), 0.0, y.data()); }).find("device_count"),
              std::string::npos);

    options = {};
    options.mode = Mode::streamed;
    auto streamed = runtime_->distribute(a.view(), options);
    EXPECT_NE(message([&] { streamed.apply_transposed(1.0, x.data(), 0.0, y.data()); }).find("streamed"),
              std::string::npos);

    auto matrix = runtime_->distribute(a.view());
    auto wrong = matrix.make_x(Layout::rows);
    auto right = matrix.make_y();
    EXPECT_NE(message([&] { matrix.apply_transposed(1.0, wrong, 0.0, right); }).find("entries"), std::string::npos);
}

TEST_P(Formats, CallersArraysOfAnyIndexWidth)
{
    const auto a = with_row_lengths<double>({3, 1, 0, 4, 100, 2}, 50);
    const CscMatrix<double> csc = to_csc(a.view());
    const CooMatrix<double> coo = to_coo(a.view());
    const auto run = [&](auto index) {
        using Index = decltype(index);
        const auto widened = [](std::int64_t n, const auto& indices) {
            std::vector<Index> out;
            for (std::int64_t i = 0; i < n; ++i) {
                out.push_back(static_cast<Index>(indices[i]));
            }
            return out;
        };
        const auto col_ptr = widened(a.cols + 1, IndexView(csc.col_ptr.data()));
        const auto csc_rows = widened(a.nnz(), csc.row_idx);
        const auto rows = widened(a.nnz(), coo.row_idx);
        const auto cols = widened(a.nnz(), coo.col_idx);
        auto by_columns = runtime_->distribute(
            CscView<double>{a.rows, a.cols, a.nnz(), col_ptr.data(), csc_rows.data(), csc.values.data()});
        check_host_vectors("csc", a, by_columns);
        DistributeOptions options;
        options.borrow = true;
        auto coordinates = runtime_->distribute(
            CooView<double>{a.rows, a.cols, a.nnz(), rows.data(), cols.data(), coo.values.data()}, options);
        check_host_vectors("coo", a, coordinates);
    };
    run(std::int32_t{});
    run(std::int64_t{});
}

TEST_P(Formats, PlansSayWhatIsMerged)
{
    const auto a = stencil27<double>(12, 11, 10);
    const Arrays<double> arrays(a, Given::csc);
    const auto matrix = arrays.distribute(*runtime_, {});
    const Plan& plan = matrix.plan();
    EXPECT_EQ(plan.format, Format::csc);
    EXPECT_EQ(plan.order, CooOrder::by_column);
    EXPECT_NE(plan.to_text().find("csc"), std::string::npos);
    const bool several = runtime_->devices().size() > 1;
    EXPECT_EQ(plan.merge != "none", several);
    EXPECT_EQ(plan.to_text().find("merge") != std::string::npos, several);
    // Neighbouring parts share some planes of the grid, not all of y.
    EXPECT_LE(plan.merge_bytes, 4 * 12 * 11 * 8 * 2);
    EXPECT_EQ(plan.merge_bytes > 0, several);
}

INSTANTIATE_TEST_SUITE_P(Machines, Formats,
                         testing::Values(Machine{"host:1", "", 0}, Machine{"host:2", "", 0}, Machine{"host:3x1", "", 0},
                                         Machine{"host:5x1", "", 0}, Machine{"0", "", 1}, Machine{"0,1", "", 2},
                                         Machine{"0,1,2,3", "", 4}, Machine{"shared:0,0,0", "", 1},
                                         Machine{"shared:0,1,0,1", "", 2}),
                         machine_name);

}  // namespace
}  // namespace rmsp::test
