#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>
#include <kernels/spmv/choose/distinct.hpp>
#include <kernels/spmv/choose/features.hpp>
#include <kernels/spmv/choose/meshes.hpp>
#include <kernels/spmv/choose/model.hpp>
#include <rmsp/io.hpp>
#include <rmsp/renumber.hpp>

#include "matrices.hpp"

namespace rmsp::kernels::test {
namespace {

template <class T>
Features features(const CsrMatrix<T>& a)
{
    const IndexView row_ptr(a.row_ptr.data());
    HostColumns columns(a.col_idx.view());
    const RowStatistics rows = row_statistics(a.rows, row_ptr);
    Features f = spmv_features(rows, row_ptr, a.cols, a.cols, columns, sizeof(T),
                               [&](std::int64_t i) { return double{a.values[static_cast<std::size_t>(i)]}; });
    if (numbered_badly(f) || blocks_numbered_badly(f, sizeof(T))) {
        f.two_step_columns = two_step_columns(rows, row_ptr, 0, columns);
    }
    return f;
}

/// The kernel of that name, for GPUs where there is one for both.
const SpmvKernel<double>& kernel_named(std::string_view name)
{
    const SpmvKernel<double>* found = nullptr;
    for (const auto& kernel : spmv_kernels<double>()) {
        found = kernel.info.name == name ? &kernel : found;
    }
    EXPECT_NE(found, nullptr) << name;
    return *found;
}

Prediction predict_spmv(std::string_view name, const Features& f, int value_bytes, const DeviceModel& device = {})
{
    return predict(kernel_named(name).work(f, value_bytes), f, value_bytes, device);
}

bool suits(std::string_view name, const Features& f) { return kernel_named(name).suits(f); }

/// What the automatic choice can take at all.
std::vector<std::string> modelled()
{
    std::vector<std::string> names;
    for (const auto& kernel : spmv_kernels<double>()) {
        if (kernel.work != nullptr) {
            names.push_back(kernel.info.name);
        }
    }
    return names;
}

/// The GPUs' candidate with the least predicted time; of so many products, which repay what is made for them.
std::string best(const Features& f, int value_bytes, int products = 0)
{
    std::string name;
    double seconds = 1e9;
    for (const std::string& kernel : modelled()) {
        if (kernel_named(kernel).info.device == DeviceKind::host || !suits(kernel, f)) {
            continue;
        }
        const Prediction one = predict_spmv(kernel, f, value_bytes);
        const double predicted = one.seconds + (products > 0 ? one.prepare_seconds / products : 0);
        if (predicted < seconds) {
            seconds = predicted;
            name = kernel;
        }
    }
    return name;
}

TEST(Distinct, CountsNumbersNearAndFar)
{
    Distinct numbers;
    EXPECT_EQ(numbers.count(), 0);
    const auto count = [&](std::vector<std::int64_t> added) {
        numbers.clear();
        for (const std::int64_t number : added) {
            numbers.add(number);
        }
        return numbers.count();
    };
    EXPECT_EQ(count({7}), 1);
    EXPECT_EQ(count({3, 3, 4, 3, 4, 4}), 2);
    EXPECT_EQ(count({0, 63, 64, 127, 0, 64}), 4);                            // at the ends of words of marks
    EXPECT_EQ(count({std::int64_t{1} << 40, 5, std::int64_t{1} << 40}), 2);  // too far apart to be marked
    EXPECT_EQ(count({-2, 5, -2}), 2);
}

TEST(SpmvFeatures, StencilsAreDiagonalsWithoutHubs)
{
    const Features f = features(generate<double>("stencil27 64 64 64"));
    EXPECT_LT(f.code_bytes, 0.1);  // lines end, but all of a slice is in few diagonals
    EXPECT_LT(f.padding, 0.15);
    EXPECT_LT(f.hub_share, 0.1);
    EXPECT_LT(f.sectors, 0.7);  // runs of three columns
    EXPECT_EQ(best(f, 8), "sell");
    // A band is diagonals but for its ends.
    const Features band = features(generate<float>("banded 100000 5"));
    EXPECT_LT(band.code_bytes, 0.2);
    EXPECT_EQ(band.narrow, 1);
}

TEST(SpmvFeatures, ValuesThatTakeFewerBytes)
{
    const Features random = features(generate<double>("stencil27 64 64 64"));
    EXPECT_EQ(random.stored_value_bytes, 8);
    EXPECT_EQ(features(generate<float>("stencil27 64 64 64")).stored_value_bytes, 4);
    GenerateOptions options;
    options.values = ValueKind::laplace;
    const Features laplace = features(generate<double>("stencil27 64 64 64", options));
    EXPECT_LT(laplace.stored_value_bytes, 1);
    EXPECT_LT(predict_spmv("sell", laplace, 8).bytes, predict_spmv("sell", random, 8).bytes / 2);
    EXPECT_EQ(predict_spmv("csr-row-vector", laplace, 8).bytes, predict_spmv("csr-row-vector", random, 8).bytes);
    auto rounded = generate<double>("stencil27 64 64 64");
    for (double& v : rounded.values) {
        v = static_cast<double>(static_cast<float>(v));
    }
    EXPECT_EQ(features(rounded).stored_value_bytes, 4);
}

TEST(SpmvFeatures, ValuesThatAreAllFloatsOrAllOne)
{
    const Features random = features(generate<double>("rmat 14 16"));
    EXPECT_FALSE(random.floats || random.constant);
    GenerateOptions options;
    options.values = ValueKind::ones;
    const auto matrix = generate<double>("rmat 14 16", options);
    const Features ones = features(matrix);
    EXPECT_TRUE(ones.floats && ones.constant);
    const auto saved = [&](const char* kernel, const Features& f) {
        return (predict_spmv(kernel, random, 8).bytes - predict_spmv(kernel, f, 8).bytes) /
               static_cast<double>(matrix.nnz());
    };
    EXPECT_NEAR(saved("column-blocks", ones), 8, 1e-6);
    EXPECT_GT(saved("packed-tiles", ones), 8);  // entries of empty rows too
    EXPECT_GE(saved("sell-blocks", ones), 4);
    auto a = matrix;
    for (std::size_t i = 0; i < a.values.size(); i += 2) {
        a.values[i] = 3;
    }
    const Features integers = features(a);
    EXPECT_TRUE(integers.floats && !integers.constant);
    EXPECT_NEAR(saved("column-blocks", integers), 4, 1e-6);
    std::fill(a.values.begin(), a.values.end(), 0.1);
    const Features tenths = features(a);
    EXPECT_TRUE(!tenths.floats && tenths.constant);
    EXPECT_NEAR(saved("column-blocks", tenths), 8, 1e-6);
    EXPECT_EQ(saved("sell-blocks", tenths), 0);
}

TEST(SpmvFeatures, DiagonalsPayOnHosts)
{
    const auto seconds = [](const char* kernel, const char* matrix) {
        return predict_spmv(kernel, features(generate<double>(matrix)), 8).seconds;
    };
    EXPECT_LT(seconds("diagonals", "banded 100000 5"), seconds("csr-openmp", "banded 100000 5"));
    EXPECT_GE(predict_spmv("diagonals", features(generate<double>("random 100000 1000000 16")), 8).bytes,
              predict_spmv("csr-openmp", features(generate<double>("random 100000 1000000 16")), 8).bytes);
}

TEST(SpmvFeatures, ScatteredColumnsCostFourBytesAndASectorEach)
{
    const Features f = features(generate<double>("random 100000 1000000 16"));
    EXPECT_EQ(f.code_bytes, 4);
    EXPECT_EQ(f.padding, 0);
    EXPECT_GT(f.sectors, 0.9);
    EXPECT_LT(f.hub_share, 0.05);
    EXPECT_EQ(f.narrow, 0);
    EXPECT_EQ(f.block, (BlockShape{1, 1}));
}

TEST(SpmvFeatures, PowerLawsHaveHubs)
{
    const Features f = features(generate<double>("rmat 16 16"));
    EXPECT_GT(f.hub_share, 0.3);
    EXPECT_GT(f.sectors, 0.4);
    EXPECT_LT(predict_spmv("column-blocks", f, 8).bytes, predict_spmv("sell", f, 8).bytes * 2);
}

TEST(SpmvFeatures, SectorsAreThoseOfTheEntriesNotOfTheRows)
{
    // One row has nearly all entries, and they begin with a dense run, as those of a graph's hubs do.
    constexpr std::int64_t rows = 40'000;
    std::vector<std::int64_t> row_ptr(rows + 1);
    std::vector<std::int32_t> columns;
    for (std::int32_t i = 0; i < 8192; ++i) {
        columns.push_back(i);
    }
    for (std::int32_t i = 0; i < 400'000; ++i) {
        columns.push_back(8192 + 400 * i);
    }
    row_ptr[0] = 0;
    for (std::int64_t r = 1; r <= rows; ++r) {
        columns.push_back(static_cast<std::int32_t>(r));
        row_ptr[static_cast<std::size_t>(r)] = static_cast<std::int64_t>(columns.size());
    }
    const Features f = spmv_features(row_statistics(rows, IndexView(row_ptr.data())), IndexView(row_ptr.data()),
                                     200'000'000, 200'000'000, IndexView(columns.data()), 8);
    EXPECT_GT(f.sectors, 0.8);
    EXPECT_LT(f.narrow, 0.3);
}

TEST(SpmvFeatures, LargePowerLawsGoToColumnBlocks)
{
    // R-MAT 22, edge factor 16, on an H200: column-blocks 368 us (float 258), packed-tiles 512 (474), csr-nnz-split 586
    // (541).
    Features f;
    f.rows = {4'194'304, 65'242'491, 1'900'000, 50'000, 15.6, 130};
    f.cols = f.x_entries = f.rows.rows;
    f.hub_share = 0.11;
    for (const auto& [value_bytes, sectors] : {std::pair{8, 0.88}, std::pair{4, 0.83}}) {
        f.sectors = sectors;
        EXPECT_EQ(best(f, value_bytes), "column-blocks");
        EXPECT_LT(predict_spmv("packed-tiles", f, value_bytes).seconds,
                  predict_spmv("csr-nnz-split", f, value_bytes).seconds);
        EXPECT_NEAR(predict_spmv("packed-tiles", f, value_bytes).seconds, 500e-6, 50e-6);
    }
}

TEST(SpmvFeatures, FewBytesAnEntryDoNotMakeTilesFaster)
{
    // (wave + I) (x) dense 3 x 3, all ones, on an H200: packed-tiles 52 us, sell-blocks with floats 35.
    Features f;
    f.rows = {468'951, 20'474'811, 0, 132, 43.7, 18};
    f.cols = f.x_entries = f.rows.rows;
    f.block = {3, 3};
    f.block_fill = 1.03;
    f.sectors = 0.05;
    f.narrow = 1;
    f.floats = f.constant = true;
    EXPECT_LT(predict_spmv("sell-blocks", f, 8).seconds, predict_spmv("packed-tiles", f, 8).seconds);
    // "sell" 49 us.
    f.code_bytes = 3.6;
    f.stored_value_bytes = 0.25;
    EXPECT_NEAR(predict_spmv("sell", f, 8).seconds, 49e-6, 3e-6);
    f.floats = f.constant = false;
    EXPECT_LT(predict_spmv("sell-blocks", f, 8).seconds, predict_spmv("packed-tiles", f, 8).seconds);
}

TEST(SpmvFeatures, BadlyNumberedMeshesAreReordered)
{
    // 27-point stencil 100^3 in random order, on an H200: csr-nnz-split 203 us.
    Features f;
    f.rows = {1'000'000, 26'463'592, 0, 27, 26.5, 1.9};
    f.cols = f.x_entries = f.rows.rows;
    f.sectors = 0.97;
    f.padding = 0.02;
    EXPECT_EQ(best(f, 8, 1000), "sell-reordered");
    Features in_float = f;
    in_float.stored_value_bytes = 4;
    EXPECT_EQ(best(in_float, 4, 1000), "sell-reordered");
    EXPECT_NEAR(predict_spmv("csr-nnz-split", f, 8).seconds, 203e-6, 80e-6);
    Features graph = f;
    graph.hub_share = 0.3;
    EXPECT_FALSE(suits("sell-reordered", graph));
    Features numbered = f;
    numbered.sectors = 0.1;
    EXPECT_FALSE(suits("sell-reordered", numbered));
    EXPECT_TRUE(suits("sell", numbered));
    // 60,000 points with 105 neighbours each: an order has few levels.
    Features thick = f;
    thick.rows = {60'000, 6'300'000, 0, 120, 105, 9};
    thick.cols = thick.x_entries = thick.rows.rows;
    EXPECT_FALSE(suits("sell-reordered", thick));
    // So are parts, as long as their rows are worth the copies of x.
    Features part = f;
    part.rows.rows /= 2;
    part.rows.nnz /= 2;
    EXPECT_EQ(best(part, 8, 1000), "sell-reordered");
    part.rows.rows /= 8;
    part.rows.nnz /= 8;
    EXPECT_NE(best(part, 8, 1000), "sell-reordered");
}

TEST(SpmvFeatures, BadlyNumberedBlocksAreReorderedWhereXIsLarge)
{
    // Tetrahedra with 3 unknowns a node, whose nodes are in random order, on an H100: of 10 million rows sell-blocks
    // takes 2.79 ms and sell-reordered 1.80, of 2 million 0.32 and 0.36.
    Features f;
    f.rows = {10'000'000, 472'000'000, 0, 90, 47, 9};
    f.cols = f.x_entries = f.rows.rows;
    f.block = {3, 3};
    f.sectors = 0.165;
    f.code_bytes = 4.07;
    f.hub_share = 0.01;
    EXPECT_TRUE(suits("sell-reordered", f));
    EXPECT_FALSE(suits("ehyb-ghosts", f));
    // Near enough for a race.
    EXPECT_LT(predict_spmv("sell-reordered", f, 8).seconds, 1.5 * predict_spmv("sell-blocks", f, 8).seconds);
    Features numbered = f;
    numbered.code_bytes = 2.03;
    numbered.sectors = 0.05;
    EXPECT_FALSE(suits("sell-reordered", numbered));
    Features smaller = f;
    smaller.rows.rows /= 5;
    smaller.rows.nnz /= 5;
    smaller.cols = smaller.x_entries = smaller.rows.rows;
    EXPECT_FALSE(suits("sell-reordered", smaller));
}

TEST(SpmvFeatures, WaysOfTwoStepsTellMeshesFromRandomColumns)
{
    const auto shuffled = [](const char* mesh) {
        const CsrMatrix<double> a = generate<double>(mesh);
        std::vector<std::int64_t> order(static_cast<std::size_t>(a.rows));
        std::iota(order.begin(), order.end(), std::int64_t{0});
        std::shuffle(order.begin(), order.end(), std::mt19937_64(3));  // NOLINT(cert-msc51-cpp)
        return features(renumbered(a.view(), order));
    };
    for (const char* const mesh : {"stencil7 500 400 1", "stencil7 60 60 60", "stencil27 60 60 60",
                                   "unstructured 55 55 55", "triangles 400 400", "neighbours 200000 3 15"}) {
        const Features f = shuffled(mesh);
        EXPECT_GT(f.two_step_columns, 0.1) << mesh;
        EXPECT_LT(f.two_step_columns, 0.6) << mesh;
        EXPECT_TRUE(numbered_badly(f)) << mesh;
    }
    for (const char* const random : {"random 300000 300000 20", "random 300000 300000 6"}) {
        const Features f = features(generate<double>(random));
        EXPECT_GT(f.two_step_columns, 0.9) << random;
        EXPECT_FALSE(numbered_badly(f)) << random;
        EXPECT_FALSE(suits("sell-reordered", f)) << random;
    }
    // Not looked at where it does not matter.
    EXPECT_EQ(features(generate<double>("stencil7 30 30 30")).two_step_columns, 0);
}

TEST(SpmvFeatures, ThousandsOfProductsRepayPartsWithGhosts)
{
    // Tetrahedra in random order, on an H100: of a million rows in float ehyb-ghosts takes 58 us and sell-reordered 69.
    Features f;
    f.rows = {1'070'000, 15'700'000, 0, 40, 14.7, 4};
    f.cols = f.x_entries = f.rows.rows;
    f.sectors = 0.93;
    f.code_bytes = 4;
    f.padding = 0.05;
    f.stored_value_bytes = 4;
    EXPECT_TRUE(suits("ehyb-ghosts", f));
    // Near enough for a race, which thousands of products repay.
    EXPECT_LT(predict_spmv("ehyb-ghosts", f, 4).seconds, 1.1 * predict_spmv("sell-reordered", f, 4).seconds);
    EXPECT_GT(predict_spmv("ehyb-ghosts", f, 4).prepare_seconds,
              3 * predict_spmv("sell-reordered", f, 4).prepare_seconds);
}

TEST(SpmvFeatures, FindsDenseBlocks)
{
    for (const int side : {2, 3, 4}) {
        const auto grid = generate<double>("random 5000 5000 6");
        const Features f = features(kronecker_ones(grid.view(), side));
        EXPECT_EQ(f.block, side == 3 ? (BlockShape{3, 3}) : (BlockShape{2, 2}));
        EXPECT_NEAR(f.block_fill, 1, 1e-12);
        EXPECT_LT(predict_spmv("sell-blocks", f, 8).bytes, predict_spmv("csr-row-vector", f, 8).bytes);
    }
}

/// Gives what is asked for and nothing beside it, as from another memory.
class CopiedColumns final : public ColumnReader {
public:
    explicit CopiedColumns(IndexView columns) : all_(columns), columns_(columns) {}
    IndexRange extent(const EntryRange& entries) override { return all_.extent(entries); }
    std::vector<IndexView> ranges(std::span<const EntryRange> ranges) override
    {
        copies_.clear();
        std::vector<IndexView> out;
        for (const EntryRange& range : ranges) {
            std::vector<std::int32_t>& copy = copies_.emplace_back();
            for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
                copy.push_back(static_cast<std::int32_t>(columns_[i]));
            }
            given += range.count;
        }
        std::transform(copies_.begin(), copies_.end(), std::back_inserter(out),
                       [](const auto& copy) { return IndexView(copy.data()); });
        return out;
    }
    std::vector<std::int64_t> spread(std::int64_t first, std::int64_t step, std::int64_t count) override
    {
        return all_.spread(first, step, count);
    }

    std::int64_t given = 0;

private:
    HostColumns all_;
    IndexView columns_;
    std::vector<std::vector<std::int32_t>> copies_;
};

TEST(SpmvFeatures, OfColumnsThatAreBroughtAreThoseOfAll)
{
    for (const char* const made : {"stencil7 30 30 30", "stencil27 20 20 20", "rmat 12 8", "ragged 20 20 20 4",
                                   "random 5000 5000 6", "random 40 9 3", "banded 3000 40"}) {
        SCOPED_TRACE(made);
        const auto a = generate<double>(made);
        const IndexView row_ptr(a.row_ptr.data());
        const RowStatistics rows = row_statistics(a.rows, row_ptr);
        HostColumns there(a.col_idx.view());
        CopiedColumns brought(a.col_idx.view());
        const Features f = spmv_features(rows, row_ptr, a.cols, a.cols, there, 8);
        const Features g = spmv_features(rows, row_ptr, a.cols, a.cols, brought, 8);
        EXPECT_EQ(g.code_bytes, f.code_bytes);
        EXPECT_EQ(g.padding, f.padding);
        EXPECT_EQ(g.block, f.block);
        EXPECT_EQ(g.block_fill, f.block_fill);
        EXPECT_EQ(g.narrow, f.narrow);
        EXPECT_EQ(g.sectors, f.sectors);
    }
}

TEST(SpmvFeatures, OfRegularRowsFewColumnsAreBrought)
{
    const auto a = generate<double>("stencil27 60 60 60");
    const IndexView row_ptr(a.row_ptr.data());
    CopiedColumns brought(a.col_idx.view());
    spmv_features(row_statistics(a.rows, row_ptr), row_ptr, a.cols, a.cols, brought, 8, {}, sample_beside_devices);
    // Of each of eight places 32 rows and 4,096 entries.
    EXPECT_LE(brought.given, 8 * (32 * 27 + 4096));
}

TEST(SpmvFeatures, OfMatricesWithoutRowsOrEntries)
{
    EXPECT_EQ(features(generate<double>("random 0 5 1")).rows.nnz, 0);
    EXPECT_EQ(features(generate<float>("random 50 5 0")).block, (BlockShape{1, 1}));
    const Features one = features(generate<double>("random 1 1 1"));
    EXPECT_EQ(one.rows.nnz, 1);
    EXPECT_GT(predict_spmv("csr-nnz-split", one, 8).seconds, 0);
    for (const Shape& shape : shapes()) {
        SCOPED_TRACE(shape.name);
        const HostCsr<float> a = make_matrix<float>(shape, 3);
        const Features f = spmv_features(statistics(a.row_ptr), IndexView(a.row_ptr.data()), a.cols, a.cols,
                                         IndexView(a.col_idx.data()), 4);
        EXPECT_GE(f.padding, 0);
        EXPECT_GE(f.code_bytes, 0);
        EXPECT_GE(f.block_fill, 1);
        for (const std::string& kernel : modelled()) {
            const Prediction p = predict_spmv(kernel, f, 4);
            EXPECT_GT(p.seconds, 0);
            EXPECT_GE(p.bytes, 0);
        }
    }
}

TEST(SpmvModel, MoreBandwidthIsProportionallyFaster)
{
    const Features f = features(generate<double>("stencil7 50 50 50"));
    DeviceModel slow;
    slow.launch_seconds = 0;
    DeviceModel fast = slow;
    fast.bytes_per_second = 2 * slow.bytes_per_second;
    DeviceModel boundless = slow;
    boundless.bytes_per_second = 1e300;
    for (const std::string& kernel : modelled()) {
        const double start = predict_spmv(kernel, f, 8, boundless).seconds;
        EXPECT_NEAR(predict_spmv(kernel, f, 8, slow).seconds - start,
                    2 * (predict_spmv(kernel, f, 8, fast).seconds - start), 1e-12);
    }
}

TEST(SpmvModel, OneWarpTakesLongForALongRow)
{
    // 39 us on an H200, where kernels that cut the row take 7.
    const Features arrow = features(generate<double>("arrow 5000 5"));
    EXPECT_GT(predict_spmv("csr-row-warp", arrow, 8).seconds, 30e-6);
    EXPECT_LT(predict_spmv("csr-nnz-split", arrow, 8).seconds, 10e-6);
}

TEST(SpmvModel, CoversWhatTheAutomaticChoiceWeighs)
{
    for (const RowStatistics& rows : {RowStatistics{}, RowStatistics{1 << 20, 27 << 20, 0, 27, 27, 0}}) {
        for (const DeviceKind kind : {DeviceKind::host, DeviceKind::cuda}) {
            for (const auto* kernel : automatic_spmv<double>(kind, Determinism::none, rows, rows.rows)) {
                EXPECT_NE(kernel->work, nullptr) << kernel->info.name;
            }
        }
    }
}

TEST(SpmvModel, KnowsWhatGoesOnBesideAnExchange)
{
    EXPECT_EQ(beside_exchange(DeviceKind::cuda, "sell"), Beside::rows);
    EXPECT_EQ(beside_exchange(DeviceKind::cuda, "column-blocks"), Beside::columns);
    EXPECT_EQ(beside_exchange(DeviceKind::cuda, "csr-nnz-split"), Beside::nothing);
    EXPECT_EQ(beside_exchange(DeviceKind::cuda, "no such kernel"), Beside::nothing);
}

}  // namespace
}  // namespace rmsp::kernels::test
