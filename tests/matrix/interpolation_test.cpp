#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/error.hpp>
#include <rmsp/io.hpp>

#include "matrix/aggregation.hpp"
#include "matrix/coarse_inverse.hpp"
#include "matrix/interpolation.hpp"
#include "tests/io/helpers.hpp"
#include "tests/matrix/small.hpp"

namespace rmsp::matrix {
namespace {

using test::dense;
using test::sparse;
using testing::ElementsAre;
using testing::Pointwise;

using Numbers = std::vector<double>;
MATCHER(Near, "") { return std::fabs(std::get<0>(arg) - std::get<1>(arg)) <= 1e-12; }

/// -u'' on a line of points, with zeros beyond its ends.
CsrMatrix<double> line(std::int64_t n)
{
    Numbers all(static_cast<std::size_t>(n * n));
    for (std::int64_t i = 0; i < n; ++i) {
        all[static_cast<std::size_t>(i * n + i)] = 2;
        if (i > 0) {
            all[static_cast<std::size_t>(i * n + i - 1)] = all[static_cast<std::size_t>((i - 1) * n + i)] = -1;
        }
    }
    return sparse<double>(n, n, all);
}

HostVector<std::uint8_t> strong(const CsrMatrix<double>& a)
{
    return strong_entries(a.view(), Strength::classical, 0.25);
}

TEST(Interpolation, DirectByHand)
{
    const auto a = line(3);
    EXPECT_THAT(dense(interpolation(a.view(), strong(a), {{0, -1, 1}, 2}, {.kind = Interpolation::direct})),
                Pointwise(Near(), Numbers{1, 0, 0.5, 0.5, 0, 1}));
    EXPECT_THAT(dense(interpolation(a.view(), strong(a), {{-1, 0, -1}, 1}, {.kind = Interpolation::direct})),
                Pointwise(Near(), Numbers{0.5, 1, 0.5}));
    // Row 0: the weak -0.5 is spread over the strong entries, and 0.5 goes to the diagonal: -2.5 / 2 / 4.5 each of -1.
    const auto b = sparse<double>(5, 5, {4,    -1, -1, -0.2, 0.5,  //
                                         -1,   4,  0,  0,    0,    //
                                         -1,   0,  4,  0,    0,    //
                                         -0.2, 0,  0,  4,    0,    //
                                         0.5,  0,  0,  0,    4});
    const auto p = interpolation(b.view(), strong(b), {{-1, 0, 1, 2, 3}, 4}, {.kind = Interpolation::direct});
    const double w = 2.2 / 2 / 4.5;
    EXPECT_THAT(Numbers(p.values.begin(), p.values.begin() + 2), Pointwise(Near(), Numbers{w, w}));
    EXPECT_THAT(Numbers(p.row_ptr.begin(), p.row_ptr.begin() + 2), ElementsAre(0, 2));
}

TEST(Interpolation, InStagesByHand)
{
    // From the ends to the middle, and from there to what is between.
    const auto a = stencil7<double>(5, 1, 1, {.values = ValueKind::laplace});
    const Coarsening first{{0, -1, 1, -1, 2}, 3};
    const Coarsening last{{0, -1, -1, -1, 1}, 2};
    const Numbers expected{1, 0, 0.75, 0.25, 0.5, 0.5, 0.25, 0.75, 0, 1};
    auto stages = interpolation_in_stages(a.view(), strong(a), first, last, {});
    EXPECT_THAT(dense(stages.to_all), Pointwise(Near(), Numbers{1, 0, 0, 0.5, 0.5, 0, 0, 1,  //
                                                                0, 0, 0.5, 0.5, 0, 0, 1}));
    EXPECT_THAT(dense(stages.to_first), Pointwise(Near(), Numbers{1, 0, 0, 0, 0.5, 0.5, 0, 0, 0, 1}));
    EXPECT_THAT(dense(stages.p), Pointwise(Near(), expected));
    std::fill(stages.p.values.begin(), stages.p.values.end(), 7.0);
    renew_interpolation(a.view(), strong(a), first, last, Interpolation::extended, stages);
    EXPECT_THAT(dense(stages.p), Pointwise(Near(), expected));
    // One entry a row stays, with the sum of the row.
    const auto short_rows = interpolation_in_stages(a.view(), strong(a), first, last, {.most_entries = 1});
    EXPECT_EQ(short_rows.p.nnz(), 5);
    for (const double value : short_rows.p.values) {
        EXPECT_NEAR(value, 1, 1e-12);
    }
}

TEST(Interpolation, ExtendedByHand)
{
    // Between coarse points that are three steps apart it is linear; beyond the last one there is a zero.
    const auto a = line(5);
    const Coarsening coarse{{0, -1, -1, 1, -1}, 2};
    auto p = interpolation(a.view(), strong(a), coarse, {});
    EXPECT_THAT(dense(p), Pointwise(Near(), Numbers{1, 0, 2.0 / 3, 1.0 / 3, 1.0 / 3, 2.0 / 3, 0, 1, 0, 0.5}));
    // What stays keeps the sum of the row.
    const auto one = interpolation(a.view(), strong(a), coarse, {.most_entries = 1});
    EXPECT_THAT(dense(one), Pointwise(Near(), Numbers{1, 0, 1, 0, 0, 1, 0, 1, 0, 0.5}));
    EXPECT_THAT(dense(interpolation(a.view(), strong(a), coarse, {.truncation = 0.6})), Pointwise(Near(), dense(one)));
    // Other values, the same places.
    auto renewed = one;
    renew_interpolation(a.view(), strong(a), coarse, Interpolation::extended, renewed);
    EXPECT_THAT(dense(renewed), Pointwise(Near(), dense(one)));
    auto scaled = a;
    for (auto& value : scaled.values) {
        value *= 3;
    }
    renew_interpolation(scaled.view(), strong(a), coarse, Interpolation::extended, p);
    EXPECT_THAT(p.values, Pointwise(Near(), Numbers{1, 2.0 / 3, 1.0 / 3, 1.0 / 3, 2.0 / 3, 1, 0.5}));
}

TEST(Interpolation, KeepsConstantsWhereRowsSumToZero)
{
    const auto a = stencil7<double>(9, 8, 7, {.values = ValueKind::laplace});
    const auto marks = strong(a);
    const Coarsening coarse = pmis(strong_graph(a.view(), marks));
    for (const auto kind : {Interpolation::direct, Interpolation::extended}) {
        const auto p = interpolation(a.view(), marks, coarse, {.kind = kind, .most_entries = 3});
        test::expect_canonical(p);
        for (std::int64_t row = 0; row < p.rows; ++row) {
            double sum = 0;
            const auto begin = p.row_ptr[static_cast<std::size_t>(row)];
            const auto end = p.row_ptr[static_cast<std::size_t>(row) + 1];
            EXPECT_LE(end - begin, 3);
            for (auto k = begin; k < end; ++k) {
                sum += p.values[static_cast<std::size_t>(k)];
            }
            EXPECT_NEAR(sum, 1, 1e-12) << row;
        }
    }
}

TEST(Interpolation, OfRowsWithNothingToTakeFrom)
{
    // A row of zeros, a diagonal of zero, an entry that is not finite.
    const auto a = sparse<double>(4, 4,
                                  {0, 0, 0, 0,   //
                                   0, 0, -1, 0,  //
                                   0, -1, 2, 0,  //
                                   0, 0, std::nan(""), 1});
    for (const auto kind : {Interpolation::direct, Interpolation::extended}) {
        const auto p = interpolation(a.view(), strong(a), {{-1, -1, 0, -1}, 1}, {.kind = kind});
        EXPECT_THAT(dense(p), ElementsAre(0, 0, 1, 0));
    }
}

TEST(Aggregation, TentativeByHand)
{
    const Tentative t = tentative({{0, 0, 1, 1, 1, -1}, 2}, 1, constants(6, 1));
    const double two = 1 / std::sqrt(2.0);
    const double three = 1 / std::sqrt(3.0);
    EXPECT_THAT(t.values, Pointwise(Near(), Numbers{two, two, three, three, three, 0}));
    EXPECT_THAT(t.coarse.values, Pointwise(Near(), Numbers{1 / two, 1 / three}));
    EXPECT_THROW(tentative({{0, 0}, 1}, 1, constants(3, 1)), Error);
}

TEST(Aggregation, TentativeOfSeveralVectors)
{
    // Constants, a line, and a vector that depends on both; the last aggregate has fewer rows than vectors.
    NearNullspace b;
    b.count = 3;
    for (int i = 0; i < 5; ++i) {
        for (const double value : {1.0, double(i), 2.0 - i}) {
            b.values.push_back(value);
        }
    }
    const Tentative t = tentative({{0, 0, 0, 0, 1}, 2}, 1, b);
    EXPECT_EQ(t.columns(), 6);
    for (std::size_t row = 0; row < 5; ++row) {
        const std::size_t first = row < 4 ? 0 : 9;
        for (std::size_t c = 0; c < 3; ++c) {
            double sum = 0;
            for (std::size_t k = 0; k < 3; ++k) {
                sum += t.values[row * 3 + k] * t.coarse.values[first + k * 3 + c];
            }
            EXPECT_NEAR(sum, b.values[row * 3 + c], 1e-12);
        }
        EXPECT_EQ(t.values[row * 3 + 2], 0.0);
    }
    double length = 0;
    double product = 0;
    for (std::size_t row = 0; row < 4; ++row) {
        length += t.values[row * 3 + 1] * t.values[row * 3 + 1];
        product += t.values[row * 3] * t.values[row * 3 + 1];
    }
    EXPECT_NEAR(length, 1, 1e-12);
    EXPECT_NEAR(product, 0, 1e-12);
}

TEST(Aggregation, SmoothedByHand)
{
    const auto a = line(4);
    const auto marks = strong_entries(a.view(), Strength::symmetric, 0.08);
    const Tentative t = tentative({{0, 0, 1, 1}, 2}, 1, constants(4, 1));
    const double entry = 1 / std::sqrt(2.0);
    EXPECT_THAT(dense(smoothed_prolongator(a.view(), marks, t, false)),
                Pointwise(Near(), Numbers{entry, 0, entry, 0, 0, entry, 0, entry}));
    const auto p = dense(smoothed_prolongator(a.view(), marks, t, true));
    // The largest eigenvalue of D^-1 A is 1 + cos(pi / 5).
    const double omega = p[3] / entry * 2;
    EXPECT_NEAR(4.0 / 3 / omega, 1 + std::cos(std::acos(-1.0) / 5), 0.05);
    const double end = entry * (1 - omega / 2);
    EXPECT_THAT(p, Pointwise(Near(), Numbers{end, 0, end, p[3], p[3], end, 0, end}));
}

TEST(Aggregation, WeakEntriesGoToTheDiagonal)
{
    // Between the pairs there are weak entries: P keeps the pairs apart, and constants in the middle rows.
    const auto a = sparse<double>(4, 4,
                                  {1, -1, 0, 0,         //
                                   -1, 1.01, -0.01, 0,  //
                                   0, -0.01, 1.01, -1,  //
                                   0, 0, -1, 1});
    const auto marks = strong_entries(a.view(), Strength::symmetric, 0.08);
    const auto groups = aggregates(symmetrised(strong_graph(a.view(), marks)));
    EXPECT_EQ(groups.count, 2);
    const auto p = smoothed_prolongator(a.view(), marks, tentative(groups, 1, constants(4, 1)), true);
    const double entry = 1 / std::sqrt(2.0);
    EXPECT_THAT(p.values, Pointwise(Near(), Numbers{entry, entry, entry, entry}));
}

TEST(Aggregation, RowsThatCancelAreNotSmoothed)
{
    // The second row's entries are 19 times its diagonal: smoothed it would make the eigenvalue large, and all other
    // rows would hardly be smoothed.
    const auto a = sparse<double>(4, 4,
                                  {1, -1, 0, 0,      //
                                   -1, 0.1, 0.9, 0,  //
                                   0, 0.9, 1.9, -1,  //
                                   0, 0, -1, 1});
    const auto marks = strong_entries(a.view(), Strength::symmetric, 0.08);
    const auto p = dense(smoothed_prolongator(a.view(), marks, tentative({{0, 0, 1, 1}, 2}, 1, constants(4, 1)), true));
    const double entry = 1 / std::sqrt(2.0);
    EXPECT_EQ(p[2], entry);
    EXPECT_EQ(p[3], 0);
    // By w of 4 / 3 over an eigenvalue of at most 2.
    EXPECT_LE(p[4], -0.9 / 1.9 * entry * (4.0 / 3 / 2));
}

TEST(Aggregation, RigidBodyModes)
{
    const Numbers square{0, 0, 2, 0, 0, 2, 2, 2};
    const NearNullspace flat = rigid_body_modes(2, square);
    EXPECT_EQ(flat.count, 3);
    // Of the first node, at (-1, -1) from the middle: two translations, and a rotation.
    EXPECT_THAT(Numbers(flat.values.begin(), flat.values.begin() + 6), Pointwise(Near(), Numbers{1, 0, 1, 0, 1, -1}));
    const NearNullspace body = rigid_body_modes(3, Numbers{0, 0, 0, 2, 2, 2});
    EXPECT_EQ(body.count, 6);
    // A rotation moves no point along the line from the middle.
    for (int mode = 3; mode < 6; ++mode) {
        const auto m = static_cast<std::size_t>(mode);
        EXPECT_NEAR(body.values[m] + body.values[6 + m] + body.values[12 + m], 0, 1e-12);
    }
    EXPECT_THROW(rigid_body_modes(4, square), Error);
    EXPECT_THROW(rigid_body_modes(3, square), Error);
    EXPECT_THROW(rigid_body_modes(2, {}), Error);
}

TEST(CoarseInverse, SaysWhatIsIndefinite)
{
    std::string note;
    const NearNullspace none = constants(3, 1);
    coarse_inverse(sparse<double>(3, 3, {2, -1, 0, -1, 2, -1, 0, -1, 2}).view(), none, 0, note);
    EXPECT_EQ(note, "");
    coarse_inverse(sparse<double>(3, 3, {-2, 1, 0, 1, -2, 1, 0, 1, -2}).view(), none, 0, note);
    EXPECT_EQ(note, "");
    // Coarser matrices of an indefinite one may have lost the sign of its diagonal.
    coarse_inverse(sparse<double>(3, 3, {-2, 1, 0, 1, -2, 1, 0, 1, -2}).view(), none, -7, note);
    EXPECT_EQ(note, "");
    coarse_inverse(sparse<double>(3, 3, {-2, 1, 0, 1, -2, 1, 0, 1, -2}).view(), none, 7, note);
    EXPECT_NE(note.find("indefinite"), std::string::npos) << note;
    // Positive on what is symmetric of it.
    coarse_inverse(sparse<double>(3, 3, {2, -1.9, 0, -0.1, 2, -1.9, 0, -0.1, 2}).view(), none, 0, note);
    EXPECT_EQ(note, "");
    coarse_inverse(sparse<double>(3, 3, {1, -1, 0, -1, 1, -1, 0, -1, 1}).view(), none, 0, note);
    EXPECT_NE(note.find("indefinite"), std::string::npos) << note;
}

}  // namespace
}  // namespace rmsp::matrix
