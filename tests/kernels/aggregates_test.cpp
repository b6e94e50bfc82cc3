#include <algorithm>
#include <barrier>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <kernels/steps/coarsening/coarsening.hpp>
#include <kernels/steps/support/support.hpp>
#include <rmsp/io.hpp>

#include "all_rows.hpp"
#include "device_csr.hpp"
#include "matrices.hpp"
#include "matrix/coarsening.hpp"
#include "matrix/strength.hpp"

namespace rmsp::kernels::test {
namespace {

using AggregateSteps = DeviceTest<>;

TEST_F(AggregateSteps, LeaveALongLineToTheHost)
{
    const auto a = stencil7<double>(100000, 1, 1, {.values = ValueKind::poisson});
    const DeviceCsr<double> there(*device_, host_csr(a), Offsets::i64);
    const Context& context = device_->context();
    const auto strong = matrix::strong_entries(a.view(), matrix::Strength::symmetric, 0.08);
    const DeviceArray<std::uint8_t> marks = upload(*device_, std::vector<std::uint8_t>(strong.begin(), strong.end()));
    const DeviceArray<std::int32_t> number(*context.memory, static_cast<std::size_t>(a.rows));
    const AllRows all(there.shard, marks, number, context);
    ASSERT_TRUE(symmetrise(all.parts, context));
    EXPECT_EQ(aggregates(all.parts, context), -1);
}

/// Rows of a matrix in parts, each with a stream of its own, as devices have them. On one GPU, so that a test needs no
/// more of them.
class PartsOfRows {
public:
    PartsOfRows(const CsrMatrix<double>& a, const std::vector<std::int64_t>& first_rows, const Context& context)
        : first_rows_(first_rows),
          parts_(first_rows.size() - 1),
          said_(parts_.size()),
          meeting_(size()),
          given_up_(*context.memory, 1)
    {
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            Part& part = parts_[i];
            part.device = open_device();
            part.a.emplace(*part.device, host_csr(a), Offsets::i64, first_rows[i], first_rows[i + 1]);
        }
        fill(reinterpret_cast<double*>(given_up_.data()), 1, 0.0, context);
    }
    /// Of all rows; empty: none were found. \param marks  of the entries
    std::vector<std::int32_t> find(const HostVector<std::uint8_t>& marks, std::int64_t& count)
    {
        std::vector<std::int64_t> found(parts_.size());
        std::vector<std::thread> threads;
        auto first = marks.begin();
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            const auto end = first + parts_[i].a->shard.nnz;
            parts_[i].strong = upload(*parts_[i].device, std::vector<std::uint8_t>(first, end));
            first = end;
        }
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            threads.emplace_back([&, i] { found[i] = find_own(i); });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        count = found.front();
        EXPECT_EQ(found, std::vector<std::int64_t>(found.size(), count));
        std::vector<std::int32_t> all;
        for (const Part& part : parts_) {
            const auto own = download(*part.device, part.number.data(), part.number.size());
            all.insert(all.end(), own.begin(), own.end());
        }
        return all;
    }

private:
    struct Part {
        std::unique_ptr<TestDevice> device;
        std::optional<DeviceCsr<double>> a;
        DeviceArray<std::uint8_t> strong;
        DeviceArray<std::int32_t> number;
        AggregateRoom room;
        AggregatePart lent;
    };
    std::ptrdiff_t size() const { return static_cast<std::ptrdiff_t>(parts_.size()); }
    std::int64_t find_own(std::size_t i)
    {
        Part& own = parts_[i];
        Context context = own.device->context();
        context.compute_units = std::max(1, context.compute_units / static_cast<int>(parts_.size()));
        const CsrShard<double>& a = own.a->shard;
        own.room = AggregateRoom(*context.memory, a.rows, a.nnz);
        own.number = DeviceArray<std::int32_t>(*context.memory, static_cast<std::size_t>(a.rows));
        own.lent = aggregate_part(a, first_rows_[i], own.strong.data(), own.number.data());
        own.room.lend(own.lent);
        AggregateParts parts;
        parts.count = static_cast<int>(parts_.size());
        parts.own = static_cast<int>(i);
        parts.given_up = given_up_.data();
        parts.epoch = 1;
        parts.meet = [&] {
            meeting_.arrive_and_wait();
            std::uint64_t word = 0;
            own.device->copy_out(&word, given_up_.data(), sizeof word);
            meeting_.arrive_and_wait();
        };
        const auto sum_of = [&](std::int64_t says, std::size_t n) {
            parts.meet();
            said_[i] = says;
            meeting_.arrive_and_wait();
            return std::accumulate(said_.begin(), said_.begin() + static_cast<std::ptrdiff_t>(n), std::int64_t{0});
        };
        parts.total = [&](std::int64_t says) { return sum_of(says, said_.size()); };
        parts.before = [&](std::int64_t says) { return sum_of(says, i); };
        parts.meet();
        for (std::size_t other = 0; other < parts_.size(); ++other) {
            parts.part[other] = parts_[other].lent;
        }
        return symmetrise(parts, context) ? aggregates(parts, context) : -2;
    }

    std::vector<std::int64_t> first_rows_;
    std::vector<Part> parts_;
    std::vector<std::int64_t> said_;
    std::barrier<> meeting_;
    DeviceArray<std::uint64_t> given_up_;
};

TEST_F(AggregateSteps, AggregatesOfRowsInPartsAreThoseOfAllRows)
{
    for (const auto& [a, threshold] : {std::pair{stencil7<double>(21, 17, 23, {.values = ValueKind::poisson}), 0.08},
                                       std::pair{stencil7<double>(40, 31, 1, {.values = ValueKind::random}), 0.25},
                                       std::pair{stencil27<double>(15, 16, 17, {.values = ValueKind::poisson}), 0.0}}) {
        const auto strong = matrix::strong_entries(a.view(), matrix::Strength::symmetric, threshold);
        const matrix::Coarsening groups =
            matrix::aggregates(matrix::symmetrised(matrix::strong_graph(a.view(), strong)));
        for (const std::vector<std::int64_t>& first_rows :
             {std::vector<std::int64_t>{0, a.rows / 3, a.rows / 3, a.rows - 1, a.rows},
              std::vector<std::int64_t>{0, 7, a.rows / 2, a.rows}}) {
            PartsOfRows parts(a, first_rows, device_->context());
            std::int64_t count = 0;
            EXPECT_EQ(parts.find(strong, count), std::vector<std::int32_t>(groups.number.begin(), groups.number.end()));
            EXPECT_EQ(count, groups.count);
        }
    }
}

TEST_F(AggregateSteps, RowsInPartsAlsoLeaveALongLineToTheHost)
{
    const auto a = stencil7<double>(60000, 1, 1, {.values = ValueKind::poisson});
    PartsOfRows parts(a, {0, 20000, 60000}, device_->context());
    std::int64_t count = 0;
    static_cast<void>(parts.find(matrix::strong_entries(a.view(), matrix::Strength::symmetric, 0.08), count));
    EXPECT_EQ(count, -1);
}

TEST_F(AggregateSteps, AggregatesAroundAHubAreThoseOfTheHost)
{
    CsrMatrix<double> a;
    a.rows = a.cols = 5000;
    HostVector<std::int64_t> row_ptr{0};
    HostVector<std::int32_t> col_idx;
    for (std::int64_t row = 0; row < a.rows; ++row) {
        std::set<std::int64_t> columns;
        for (const std::int64_t distance : {1, 40, 2500}) {
            columns.insert((row + distance) % a.rows);
            columns.insert((row + a.rows - distance) % a.rows);
        }
        for (std::int64_t other = 0; row == 1234 && other < a.rows; other += 3) {
            columns.insert(other);
        }
        if (row % 3 == 0) {
            columns.insert(1234);
        }
        columns.erase(row);
        for (const std::int64_t column : columns) {
            col_idx.push_back(static_cast<std::int32_t>(column));
        }
        row_ptr.push_back(static_cast<std::int64_t>(col_idx.size()));
    }
    a.row_ptr = row_ptr;
    a.col_idx = col_idx;
    a.values.assign(col_idx.size(), -1.0);
    const Context& context = device_->context();
    const DeviceCsr<double> there(*device_, host_csr(a), Offsets::i64);
    const DeviceArray<std::uint8_t> marks =
        upload(*device_, std::vector<std::uint8_t>(a.col_idx.size(), matrix::mark::strong));
    const DeviceArray<std::int32_t> number(*context.memory, static_cast<std::size_t>(a.rows));
    const matrix::Coarsening groups =
        matrix::aggregates(matrix::strong_graph(a.view(), download(*device_, marks.data(), marks.size())));
    const AllRows all(there.shard, marks, number, context);
    ASSERT_TRUE(symmetrise(all.parts, context));
    EXPECT_EQ(aggregates(all.parts, context), groups.count);
    EXPECT_EQ(download(*device_, number.data(), number.size()),
              std::vector<std::int32_t>(groups.number.begin(), groups.number.end()));
}

TEST_F(AggregateSteps, NamesEdgesWithoutACounterpart)
{
    CsrMatrix<double> a;
    a.rows = a.cols = 3;
    a.row_ptr = HostVector<std::int64_t>{0, 1, 2, 3};
    a.col_idx = HostVector<std::int32_t>{1, 2, 1};
    a.values.assign(3, -1.0);
    const Context& context = device_->context();
    const DeviceCsr<double> there(*device_, host_csr(a), Offsets::i32);
    const DeviceArray<std::uint8_t> marks = upload(*device_, std::vector<std::uint8_t>(3, matrix::mark::strong));
    EXPECT_FALSE(symmetrise(AllRows(there.shard, marks, DeviceArray<std::int32_t>(), context).parts, context));
}

}  // namespace
}  // namespace rmsp::kernels::test
