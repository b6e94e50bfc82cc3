#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "given.hpp"
#include "matrices.hpp"
#include "runtime/matrix/download.hpp"

// Matrices back from the devices.
namespace rmsp::test {
namespace {

class Downloads : public RuntimeTest {
protected:
    template <class T>
    static void check(const DistributedMatrix<T>& matrix, const CsrMatrix<T>& a, const std::string& name)
    {
        expect_same_entries(distributed::download_matrix(*detail::MatrixAccess::state(matrix)), a, name);
    }
};

TEST_P(Downloads, EveryFormat)
{
    for (const auto& [name, a] : matrices<double>()) {
        for (const Given given : every_way) {
            const Arrays<double> arrays(a, given);
            DistributeOptions options;
            options.unsorted = Unsorted::split;
            for (const RowAlignment alignment : {RowAlignment::exact, RowAlignment::row}) {
                options.alignment = alignment;
                check(arrays.distribute(*runtime_, options), a, name + ", " + name_of(given));
            }
        }
    }
}

TEST_P(Downloads, BorrowedStreamedWideAndExchangedByEntries)
{
    for (const auto& [name, a] : matrices<float>()) {
        DistributeOptions options;
        options.alignment = RowAlignment::exact;
        options.borrow = true;
        check(runtime_->distribute(a.view(), options), a, name + ", borrowed");
        options.borrow = false;
        options.exchange = Exchange::entries;
        check(runtime_->distribute(a.view(), options), a, name + ", by entries");
        options.exchange = Exchange::automatic;
        HostVector<std::int64_t> columns(static_cast<std::size_t>(a.nnz()));
        for (std::int64_t k = 0; k < a.nnz(); ++k) {
            columns[static_cast<std::size_t>(k)] = a.col_idx[k];
        }
        CsrView<float> wide = a.view();
        wide.col_idx = IndexView(columns.data());
        check(runtime_->distribute(wide, options), a, name + ", 64-bit columns");
        options.mode = Mode::streamed;
        for (const Given given : {Given::csr, Given::csc, Given::coo_by_row, Given::coo_by_column}) {
            const Arrays<float> arrays(a, given);
            check(arrays.distribute(*runtime_, options), a, name + ", streamed, " + name_of(given));
        }
        options.coordinates = StreamCoordinates::indices;
        options.unsorted = Unsorted::split;
        for (const Given given : {Given::coo_by_row, Given::coo_by_column, Given::coo_unsorted}) {
            const Arrays<float> arrays(a, given);
            check(arrays.distribute(*runtime_, options), a, name + ", row indices streamed, " + name_of(given));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Machines, Downloads,
                         testing::Values(Machine{"host:1", "", 0}, Machine{"host:3x1", "", 0}, Machine{"0", "", 1},
                                         Machine{"0,1", "", 2}),
                         machine_name);

}  // namespace
}  // namespace rmsp::test
