#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "given.hpp"
#include "matrices.hpp"

// The diagonal of distributed matrices.
namespace rmsp::test {
namespace {

class Diagonals : public RuntimeTest {
protected:
    /// Square matrices with values whose sums do not round.
    template <class T>
    static std::vector<std::pair<std::string, CsrMatrix<T>>> square_matrices()
    {
        std::vector<std::pair<std::string, CsrMatrix<T>>> all;
        for (auto& [name, a] : hard_matrices<T>()) {
            if (a.rows == a.cols) {
                all.emplace_back(name, std::move(a));
            }
        }
        // Many entries at one place, and rows that are cut several times.
        all.emplace_back("repeated", with_row_lengths<T>({3, 0, 4000, 0, 2, 3, 9}, 7));
        all.emplace_back("one long row", with_row_lengths<T>({1, 1, 9000}, 3));
        all.emplace_back("long row first", with_row_lengths<T>({9000, 1, 0, 1}, 4));
        all.emplace_back("scattered", with_row_lengths<T>(std::vector<std::int64_t>(4000, 5), 4000));
        for (auto& [name, a] : all) {
            make_exact(a.values);
        }
        return all;
    }
    template <class T>
    static void make_exact(HostVector<T>& values)
    {
        for (T& v : values) {
            v = std::nearbyint(64 * v) / 64;
        }
    }
    template <class T>
    static std::vector<T> expected(const CsrMatrix<T>& a)
    {
        std::vector<T> out(static_cast<std::size_t>(a.rows), T{0});
        for (std::size_t row = 0; row < out.size(); ++row) {
            for (std::int64_t k = a.row_ptr[row]; k < a.row_ptr[row + 1]; ++k) {
                out[row] +=
                    a.col_idx[k] == static_cast<std::int64_t>(row) ? a.values[static_cast<std::size_t>(k)] : T{0};
            }
        }
        return out;
    }
    template <class T>
    static void check(const DistributedMatrix<T>& matrix, const CsrMatrix<T>& a, const std::string& name)
    {
        const DistributedVector<T> diagonal = matrix.diagonal();
        EXPECT_EQ(diagonal.layout(), Layout::rows);
        EXPECT_EQ(diagonal.size(), a.rows);
        const auto as = matrix.make_y();
        EXPECT_TRUE(std::equal(diagonal.offsets().begin(), diagonal.offsets().end(), as.offsets().begin())) << name;
        std::vector<T> got(static_cast<std::size_t>(a.rows), T{-1});
        diagonal.download(got.data());
        EXPECT_EQ(got, expected(a)) << name;
    }
};

TEST_P(Diagonals, OfEveryFormatAndOfNewValues)
{
    for (const auto& [name, a] : square_matrices<double>()) {
        for (const Given given : every_way) {
            Arrays<double> arrays(a, given);
            DistributeOptions options;
            options.unsorted = Unsorted::split;
            for (const RowAlignment alignment : {RowAlignment::exact, RowAlignment::row}) {
                options.alignment = alignment;
                auto matrix = arrays.distribute(*runtime_, options);
                const std::string what = name + ", " + name_of(given);
                check(matrix, a, what);
                HostVector<double> values = arrays.values();
                for (double& v : values) {
                    v *= -2;
                }
                matrix.update_values(values.data());
                auto renewed = a;
                for (double& v : renewed.values) {
                    v *= -2;
                }
                check(matrix, renewed, what + ", renewed");
            }
        }
    }
}

TEST_P(Diagonals, OfFloatsBorrowedStreamedAndExchangedByEntries)
{
    for (const auto& [name, a] : square_matrices<float>()) {
        DistributeOptions options;
        options.alignment = RowAlignment::exact;
        options.borrow = true;
        check(runtime_->distribute(a.view(), options), a, name + ", borrowed");
        options.borrow = false;
        options.exchange = Exchange::entries;
        check(runtime_->distribute(a.view(), options), a, name + ", by entries");
        options.exchange = Exchange::automatic;
        options.devices = 1;
        check(runtime_->distribute(a.view(), options), a, name + ", on one device");
        options.devices = 0;
        options.mode = Mode::streamed;
        options.chunk_bytes = 1024;
        for (const Given given : {Given::csr, Given::csc, Given::coo_by_row, Given::coo_by_column}) {
            const Arrays<float> arrays(a, given);
            check(arrays.distribute(*runtime_, options), a, name + ", streamed, " + name_of(given));
        }
    }
}

TEST_P(Diagonals, OfWideIndicesAndSortedCopies)
{
    for (const auto& [name, a] : square_matrices<double>()) {
        HostVector<std::int64_t> columns(static_cast<std::size_t>(a.nnz()));
        for (std::int64_t k = 0; k < a.nnz(); ++k) {
            columns[static_cast<std::size_t>(k)] = a.col_idx[k];
        }
        CsrView<double> wide = a.view();
        wide.col_idx = IndexView(columns.data());
        check(runtime_->distribute(wide, {.alignment = RowAlignment::exact}), a, name + ", 64-bit columns");
        check(Arrays<double>(a, Given::coo_unsorted).distribute(*runtime_, {.unsorted = Unsorted::sort}), a,
              name + ", sorted");
    }
}

TEST_P(Diagonals, OfMatricesThatAreNotSquareAreRefused)
{
    const auto a = with_row_lengths<double>({2, 1}, 3);
    const auto matrix = runtime_->distribute(a.view());
    try {
        static_cast<void>(matrix.diagonal());
        ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::usage);
        EXPECT_STREQ(e.what(), "the diagonal of a 2 x 3 matrix: it has to be square");
    }
    EXPECT_THROW(static_cast<void>(DistributedMatrix<double>().diagonal()), Error);
}

INSTANTIATE_TEST_SUITE_P(Machines, Diagonals,
                         testing::Values(Machine{"host:1", "", 0}, Machine{"host:2", "", 0}, Machine{"host:3x1", "", 0},
                                         Machine{"host:5x1", "", 0}, Machine{"0", "", 1}, Machine{"0,1", "", 2},
                                         Machine{"0,1,2,3", "", 4}, Machine{"shared:0,0,0", "", 1}),
                         machine_name);

}  // namespace
}  // namespace rmsp::test
