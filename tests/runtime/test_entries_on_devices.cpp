#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/spgemm.hpp>

#include "matrices.hpp"
#include "runtime/matrix/distribute.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/node/node.hpp"
#include "runtime/spgemm/entries_on_devices.hpp"
#include "runtime/spgemm/product.hpp"
#include "runtime/spgemm/product_factor.hpp"

/// Matrices of which the host has neither columns nor row pointers while they are distributed.
namespace rmsp::test {
namespace {

class EntriesOnDevices : public RuntimeTest {
protected:
    /// Where parts of rows may begin: even ones, all rows on the last device, and on the first.
    std::vector<std::vector<std::int64_t>> cuts(std::int64_t rows) const
    {
        const auto devices = static_cast<std::int64_t>(runtime_->devices().size());
        std::vector<std::vector<std::int64_t>> cuts(3);
        for (std::int64_t i = 0; i <= devices; ++i) {
            cuts[0].push_back(rows / devices * i + rows % devices * i / devices);
            cuts[1].push_back(i < devices ? 0 : rows);
            cuts[2].push_back(i > 0 ? rows : 0);
        }
        return cuts;
    }
};

TEST_P(EntriesOnDevices, AreCutAnywhere)
{
    const auto a = with_row_lengths<double>({3, 0, 5, 1, 0, 0, 7, 2, 2, 4, 1, 0, 6, 3, 1, 2, 0}, 17, 5);
    SparseProduct<double> product(*runtime_, a.view(), a.view());
    product.compute();
    const CsrMatrix<double> c = product.download();
    const auto runtime = detail::RuntimeAccess::state(*runtime_);
    const auto there = spgemm::product_factor(*runtime, detail::ProductAccess::state(product), "C");
    for (const auto& cut : cuts(c.rows)) {
        spgemm::EntriesOnDevices<double> entries(*runtime, there->parts, there->slices, there->first_rows);
        plan::Stored<double> stored = plan::stored(CsrView<double>{c.rows, c.cols, c.nnz(), {}, {}, nullptr});
        stored.resident = &entries;
        stored.columns_on_devices = true;
        stored.by_lengths = true;
        stored.first_rows = cut;
        for (const std::int64_t row : cut) {
            stored.first_entries.push_back(c.row_ptr[static_cast<std::size_t>(row)]);
        }
        DistributeOptions options;
        options.alignment = RowAlignment::row;
        auto matrix = detail::MatrixAccess::handle(distributed::distribute(runtime, stored, options));
        for (std::size_t i = 0; i + 1 < cut.size(); ++i) {
            const PartialCsr& part = matrix.plan().partition.parts[i];
            EXPECT_EQ(part.start_row, cut[i]);
            EXPECT_EQ(part.end_row, cut[i + 1]);
            EXPECT_EQ(part.nnz(), stored.first_entries[i + 1] - stored.first_entries[i]);
        }
        const auto x = random_vector<double>(c.cols, 3);
        std::vector<double> y(static_cast<std::size_t>(c.rows));
        for (int round = 0; round < 2; ++round) {
            matrix.apply(1.0, x.data(), 0.0, y.data());
            const Verification v = verify_spmv<double>(c.view(), 1.0, x.data(), 0.0, nullptr, y.data());
            EXPECT_TRUE(v.passed) << "row " << v.worst_row << ", error " << v.error << ", bound " << v.bound;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, EntriesOnDevices, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
