#include <vector>

#include <gtest/gtest.h>
#include <kernels/spmv/ehyb/device_pool.cuh>

#include "matrices.hpp"
#include "test_device.hpp"

namespace rmsp::kernels::test {
namespace {

/// A path of `rows` vertices, of which every third has an edge to the first one as well, and some vertices by
/// themselves.
HostCsr<double> path_with_hub(std::int64_t rows, std::int64_t alone, bool hub)
{
    std::vector<std::vector<std::int32_t>> columns(static_cast<std::size_t>(rows + alone));
    for (std::int64_t row = 0; row < rows; ++row) {
        auto& of = columns[static_cast<std::size_t>(row)];
        for (const std::int64_t other : {row - 1, row, row + 1}) {
            if (other >= 0 && other < rows) {
                of.push_back(static_cast<std::int32_t>(other));
            }
        }
        if (hub && row > 2 && row % 3 == 0) {
            of.push_back(0);
            columns[0].push_back(static_cast<std::int32_t>(row));
        }
    }
    HostCsr<double> a;
    a.rows = a.cols = rows + alone;
    for (const auto& of : columns) {
        a.col_idx.insert(a.col_idx.end(), of.begin(), of.end());
        a.row_ptr.push_back(static_cast<std::int64_t>(a.col_idx.size()));
    }
    a.values.assign(a.col_idx.size(), 1.0);
    return a;
}

struct Distances {
    std::vector<std::int32_t> of;
    std::int32_t levels = 0;
    bool operator==(const Distances&) const = default;
};

/// One vertex after the other.
Distances search(const HostCsr<double>& a, std::int64_t start, std::int32_t most_levels)
{
    Distances found{std::vector<std::int32_t>(static_cast<std::size_t>(a.rows), -1)};
    std::vector<std::int64_t> queue{start};
    found.of[static_cast<std::size_t>(start)] = 0;
    for (std::size_t at = 0; at < queue.size(); ++at) {
        const auto row = static_cast<std::size_t>(queue[at]);
        found.levels = found.of[row];
        for (auto i = a.row_ptr[row]; found.levels < most_levels && i < a.row_ptr[row + 1]; ++i) {
            const auto other = static_cast<std::size_t>(a.col_idx[static_cast<std::size_t>(i)]);
            if (found.of[other] < 0) {
                found.of[other] = found.levels + 1;
                queue.push_back(static_cast<std::int64_t>(other));
            }
        }
    }
    return found;
}

TEST(EhybSearch, FindsEachDistance)
{
    if (!device_missing().empty()) {
        GTEST_SKIP() << device_missing();
    }
    const auto device = open_device();
    const ehyb::DevicePool on_device(device->context());
    for (const bool hub : {false, true}) {
        // More rows than a search has groups of lanes, and a row that all of them look at together.
        const HostCsr<double> a = path_with_hub(hub ? 300'000 : 3000, 50, hub);
        const auto row_ptr = upload(*device, a.row_ptr);
        const auto col_idx = upload(*device, a.col_idx);
        const auto rows = static_cast<std::size_t>(a.rows);
        const ehyb::Structure there{a.rows, a.cols, 0, row_ptr.data(), true, col_idx.data(), a.nnz()};
        const DeviceArray<std::int32_t> distance(*device->context().memory, rows);
        for (const std::int64_t start : {std::int64_t{0}, std::int64_t{1000}, a.rows - 1}) {
            for (const int most_levels : {1, 100, 2048}) {
                Distances found;
                found.levels = on_device.search(there, start, distance.data(), most_levels);
                found.of = download(*device, distance.data(), rows);
                const Distances expected = search(a, start, most_levels);
                EXPECT_TRUE(found == expected) << "from " << start << ", at most " << most_levels << " levels, found "
                                               << found.levels << " of " << expected.levels;
            }
        }
    }
}

}  // namespace
}  // namespace rmsp::kernels::test
