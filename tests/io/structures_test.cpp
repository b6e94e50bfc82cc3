#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <rmsp/preconditioner.hpp>

#include "tests/io/helpers.hpp"

namespace {

using namespace rmsp;
using namespace rmsp::test;

const GenerateOptions ones{.values = ValueKind::ones};

CsrMatrix<double> made(const std::string& description) { return generate<double>(description, ones); }

std::int64_t length(const CsrMatrix<double>& a, std::int64_t row)
{
    return a.row_ptr[static_cast<std::size_t>(row) + 1] - a.row_ptr[static_cast<std::size_t>(row)];
}

void expect_symmetric_with_diagonal(const CsrMatrix<double>& a)
{
    expect_canonical(a);
    const std::vector<double> full = dense(a);
    const auto n = static_cast<std::size_t>(a.rows);
    for (std::size_t i = 0; i < n; ++i) {
        ASSERT_EQ(full[i * n + i], 1) << i;
        for (std::size_t j = 0; j < i; ++j) {
            ASSERT_EQ(full[i * n + j], full[j * n + i]) << i << ' ' << j;
        }
    }
}

TEST(Structures, NineteenPointStencilLacksTheCorners)
{
    const CsrMatrix<double> a = made("stencil19 4 3 5");
    expect_symmetric_with_diagonal(a);
    const std::vector<double> box = dense(made("stencil27 4 3 5"));
    const std::vector<double> full = dense(a);
    for (int i = 0; i < 60; ++i) {
        for (int j = 0; j < 60; ++j) {
            const bool corner = i % 4 != j % 4 && i / 4 % 3 != j / 4 % 3 && i / 12 != j / 12;
            const auto at = static_cast<std::size_t>(60 * i + j);
            ASSERT_EQ(full[at], corner ? 0 : box[at]);
        }
    }
}

TEST(Structures, MeshesHaveOneDiagonalOfEachSquareAndCube)
{
    const CsrMatrix<double> plane = made("triangles 9 7");
    expect_symmetric_with_diagonal(plane);
    const std::int64_t squares = 8 * 6;
    EXPECT_EQ(plane.nnz(), made("stencil7 9 7 1").nnz() + 2 * squares);
    const CsrMatrix<double> space = made("tetrahedra 5 4 3");
    expect_symmetric_with_diagonal(space);
    const std::int64_t faces = 4 * 3 * 3 + 4 * 4 * 2 + 5 * 3 * 2;
    const std::int64_t cubes = 4 * 3 * 2;
    EXPECT_EQ(space.nnz(), made("stencil7 5 4 3").nnz() + 2 * (faces + cubes));
    // Not all of one kind.
    std::set<std::int64_t> lengths;
    for (std::int64_t row = 0; row < space.rows; ++row) {
        lengths.insert(length(space, row));
    }
    EXPECT_GT(lengths.size(), 4U);
}

TEST(Structures, UnstructuredMeshesAreOfTetrahedra)
{
    // One cell: eight corners, the twelve edges of the cube, a diagonal of each square, and either one through the
    // inside or a vertex there with eight edges.
    for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
        const CsrMatrix<double> cell =
            generate<double>("unstructured 1 1 1", {.seed = seed, .values = ValueKind::ones});
        expect_symmetric_with_diagonal(cell);
        EXPECT_EQ(cell.nnz(), cell.rows == 9 ? 9 + 2 * (12 + 6 + 8) : 8 + 2 * (12 + 6 + 1));
    }
    expect_symmetric_with_diagonal(made("unstructured 7 9 8"));
    const CsrMatrix<double> a = made("unstructured 40 30 35");
    expect_canonical(a);
    // There are holes, yet most of the box is there; and the mean of the degrees is that of such meshes.
    EXPECT_GT(a.rows, 40 * 30 * 35);
    EXPECT_LT(a.rows, 41 * 31 * 36 * 3 / 2);
    EXPECT_NEAR(static_cast<double>(a.nnz()) / static_cast<double>(a.rows), 14.5, 1);
    std::set<std::int64_t> lengths;
    for (std::int64_t row = 0; row < a.rows; ++row) {
        lengths.insert(length(a, row));
    }
    EXPECT_GT(lengths.size(), 15U);
}

TEST(Structures, NeighboursOfPoints)
{
    expect_symmetric_with_diagonal(made("neighbours 300 2 6"));
    expect_symmetric_with_diagonal(made("neighbours 300 3 12"));
    expect_symmetric_with_diagonal(made("neighbours 5 3 100"));
    const CsrMatrix<double> a = made("neighbours 40000 2 12");
    EXPECT_NEAR(static_cast<double>(a.nnz()) / 40000, 13, 2);
    // Numbered by cells, so that neighbours are near.
    std::int64_t far = 0;
    for (std::int64_t row = 0; row < a.rows; ++row) {
        far = std::max(far, a.col_idx[a.row_ptr[static_cast<std::size_t>(row) + 1] - 1] - row);
    }
    EXPECT_LT(far, 1500);
}

TEST(Structures, RaggedBlocksAreFull)
{
    const CsrMatrix<double> a = made("ragged 5 4 3 4");
    expect_symmetric_with_diagonal(a);
    EXPECT_GT(a.rows, 60);
    EXPECT_LT(a.rows, 240);
    EXPECT_EQ(made("ragged 5 4 3 1").col_idx.size(), made("stencil7 5 4 3").col_idx.size());
}

TEST(Structures, DiagonalsAreWhole)
{
    const CsrMatrix<double> a = made("multidiagonal 50 4");
    expect_canonical(a);
    std::set<std::int64_t> distances;
    for (std::int64_t row = 0; row < 50; ++row) {
        for (std::int64_t k = a.row_ptr[static_cast<std::size_t>(row)];
             k < a.row_ptr[static_cast<std::size_t>(row) + 1]; ++k) {
            distances.insert(a.col_idx[k] - row);
        }
    }
    EXPECT_EQ(distances.size(), 4U);
    EXPECT_TRUE(distances.contains(0));
    std::int64_t entries = 0;
    for (const std::int64_t d : distances) {
        entries += 50 - std::abs(d);
    }
    EXPECT_EQ(a.nnz(), entries);
    EXPECT_EQ(made("multidiagonal 5 100").nnz(), 25);
    EXPECT_EQ(made("multidiagonal 1 3").nnz(), 1);
}

TEST(Structures, ThinnedBandsAndGaps)
{
    const CsrMatrix<double> band = made("thinned 100 7 5");
    expect_canonical(band);
    EXPECT_EQ(band.nnz(), 500);
    for (std::int64_t row = 0; row < 100; ++row) {
        for (std::int64_t k = 5 * row; k < 5 * row + 5; ++k) {
            ASSERT_LE(std::abs(band.col_idx[k] - row), 7);
        }
    }
    EXPECT_EQ(dense(made("thinned 20 3 100")), dense(made("banded 20 3")));
    const CsrMatrix<double> rare = made("gaps 10000 6 8");
    expect_canonical(rare);
    std::int64_t filled = 0;
    for (std::int64_t row = 0; row < rare.rows; ++row) {
        ASSERT_TRUE(length(rare, row) == 0 || length(rare, row) == 6);
        filled += length(rare, row) > 0 ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(filled), 1250, 150);
}

TEST(Structures, ArrowsAndHubs)
{
    const CsrMatrix<double> a = made("arrow 40 3");
    expect_symmetric_with_diagonal(a);
    EXPECT_EQ(a.nnz(), 3 * 40 + 37 * 4);
    const CsrMatrix<double> hubs = made("hubs 4000 4 5 7");
    expect_canonical(hubs);
    std::vector<std::int64_t> of_column(4000, 0);
    std::int64_t long_rows = 0;
    for (std::int64_t row = 0; row < 4000; ++row) {
        long_rows += length(hubs, row) == 250 ? 1 : 0;
        for (std::int64_t k = hubs.row_ptr[static_cast<std::size_t>(row)];
             k < hubs.row_ptr[static_cast<std::size_t>(row) + 1]; ++k) {
            ++of_column[static_cast<std::size_t>(hubs.col_idx[k])];
        }
    }
    EXPECT_EQ(long_rows, 5);
    EXPECT_EQ(std::count_if(of_column.begin(), of_column.end(), [](auto n) { return n > 150; }), 7);
}

TEST(Structures, LinearProgrammes)
{
    const CsrMatrix<double> a = made("program 300 2000 6 3");
    expect_canonical(a);
    EXPECT_EQ(a.cols, 2000);
    EXPECT_EQ(a.nnz(), 297 * 6 + 3 * 500);
    EXPECT_LT(a.col_idx[a.row_ptr[1] - 1], 48);
    expect_canonical(made("program 2000 30 50 0"));
    EXPECT_EQ(made("program 2000 30 50 0").nnz(), 60000);
}

TEST(Structures, EveryGeneratorTakesSizesOfNoneAndOne)
{
    for (const std::string& usage : list_generators()) {
        SCOPED_TRACE(usage);
        const std::string name = usage.substr(0, usage.find(' '));
        const auto parameters = std::count(usage.begin(), usage.end(), ' ');
        for (const char* const size : {" 0", " 1"}) {
            std::string description = name;
            for (std::int64_t i = 0; i < parameters; ++i) {
                description += name == "neighbours" && i == 1 ? " 3" : i == 0 ? size : " 1";
            }
            expect_canonical(made(description));
        }
    }
}

TEST(Structures, SameOnAnyNumberOfThreadsAndDifferentBySeed)
{
    for (const char* what : {"triangles 90 80", "tetrahedra 20 21 22", "unstructured 20 21 22", "neighbours 9000 3 12",
                             "ragged 15 15 15 4", "multidiagonal 9000 6", "thinned 9000 40 7", "hubs 9000 4 3 3",
                             "gaps 9000 5 3", "program 9000 20000 5 3"}) {
        SCOPED_TRACE(what);
        const CsrMatrix<double> a = generate<double>(what);
#ifdef _OPENMP
        const int before = omp_get_max_threads();
        for (const int threads : {1, 3}) {
            omp_set_num_threads(threads);
            expect_equal(generate<double>(what), a);
        }
        omp_set_num_threads(before);
#endif
        const CsrMatrix<double> other = generate<double>(what, {.seed = 2});
        bool same = other.nnz() == a.nnz();
        for (std::int64_t k = 0; same && k < a.nnz(); ++k) {
            same = a.col_idx[k] == other.col_idx[k];
        }
        EXPECT_FALSE(same);
    }
}

TEST(Structures, BadSizesAreNamed)
{
    const auto message = [](const std::string& what) { return message_of(ErrorCode::usage, [&] { made(what); }); };
    EXPECT_EQ(message("neighbours 10 4 3"), "neighbours: dimensions is 4, it must be 2 or 3");
    EXPECT_EQ(message("neighbours 10 2 0"), "neighbours: per_row is 0, it must be at least 1");
    EXPECT_EQ(message("ragged 2 2 2 0"), "ragged: most is 0, it must be at least 1");
    EXPECT_EQ(message("gaps 5 2 0"), "gaps: nth is 0, it must be at least 1");
    EXPECT_EQ(message("multidiagonal 5 0"), "multidiagonal: count is 0, it must be at least 1");
    EXPECT_EQ(
        message("hubs 5 2 1"),
        "generated matrix \"hubs 5 2 1\": hub_columns is missing (usage: hubs rows per_row hub_rows hub_columns)");
    message("triangles 9000000000000000000 9000000000000000000");
    message("arrow 9000000000000000000 9000000000000000000");
    for (const char* what : {"arrow 1000000000000 1000000", "thinned 1000000000000000 5 5", "gaps 1000000000000000 1 9",
                             "program 1000000000000000 5 1 1", "ragged 1000000 1000000 1000 2",
                             "neighbours 1000000000000000 3 9", "multidiagonal 9000000000000000000 9"}) {
        SCOPED_TRACE(what);
        EXPECT_THROW(made(what), Error);
    }
    message_of(ErrorCode::usage, [] { generate<double>("arrow 5 1", {.values = ValueKind::poisson}); });
    EXPECT_THROW(made("elasticity 9000000000000000000 2 2"), Error);
}

TEST(Structures, ElasticityOfOneCubeByHand)
{
    // Of a corner's displacement along x: lambda / 9 + 4 mu / 9; with that along y of the same corner: (lambda + mu)
    // / 12.
    const double lame = 0.3 / (1.3 * 0.4);
    const double shear = 1 / 2.6;
    const CsrMatrix<double> a = generate<double>("elasticity 1 1 1");
    ASSERT_EQ(a.rows, 12);
    ASSERT_EQ(a.nnz(), 144);
    EXPECT_NEAR(a.values[0], lame / 9 + 4 * shear / 9, 1e-15);
    // The corner is at the end of x, and at the begin of y: functions rise along x and fall along y.
    EXPECT_NEAR(a.values[1], -(lame + shear) / 12, 1e-15);
    EXPECT_EQ(generate<double>("elasticity 1 1 1", ones).values[5], 1);
}

TEST(Structures, ElasticityIsSymmetricAndMapsRigidMotionsToZeroAwayFromWhereItIsHeld)
{
    const std::string text = "elasticity 4 2 1";
    const CsrMatrix<double> a = generate<double>(text);
    expect_canonical(a);
    const std::vector<double> coordinates = generated_coordinates(text);
    ASSERT_EQ(a.rows, 72);
    ASSERT_EQ(coordinates.size(), 72U);
    const std::vector<double> full = dense(a);
    const auto at = [&](std::size_t i, std::size_t j) { return full[72 * i + j]; };
    for (std::size_t i = 0; i < 72; ++i) {
        EXPECT_GT(at(i, i), 0);
        for (std::size_t j = 0; j < i; ++j) {
            ASSERT_NEAR(at(i, j), at(j, i), 1e-15);
        }
    }
    const std::vector<double> modes = rigid_body_modes(3, coordinates);
    for (std::size_t mode = 0; mode < 6; ++mode) {
        double held = 0;
        for (std::size_t i = 0; i < 72; ++i) {
            double sum = 0;
            for (std::size_t j = 0; j < 72; ++j) {
                sum += at(i, j) * modes[6 * j + mode];
            }
            if (coordinates[i / 3 * 3] > 0) {
                ASSERT_NEAR(sum, 0, 1e-14) << mode << ' ' << i;
            } else {
                held += std::abs(sum);
            }
        }
        EXPECT_GT(held, 0.1) << mode;
    }
    message_of(ErrorCode::usage, [] { (void)generated_coordinates("stencil7 2 2 2"); });
}

}  // namespace
