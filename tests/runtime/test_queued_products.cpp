#include <algorithm>
#include <future>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/vector_operations.hpp>

#include "matrices.hpp"

/// Small products that are queued without a wait: a device may be given several of them at once.
namespace rmsp::test {
namespace {

class QueuedProducts : public RuntimeTest {
protected:
    static DeviceKind kind() { return GetParam().gpus > 0 ? DeviceKind::cuda : DeviceKind::host; }
};

/// Matrices of one shape, each for another kernel that gives the same bits again.
std::vector<DistributedMatrix<double>> with_kernels(Runtime& runtime, DeviceKind kind)
{
    std::vector<DistributedMatrix<double>> matrices;
    for (const KernelInfo& kernel : list_kernels()) {
        if (kernel.family != "spmv" || kernel.device != kind || !kernel.compiled || kernel.format != Format::csr ||
            kernel.determinism == Determinism::none) {
            continue;
        }
        auto a = stencil7<double>(9, 7, 5);
        const auto values = random_vector<double>(a.nnz(), matrices.size());
        std::copy(values.begin(), values.end(), a.values.begin());
        DistributeOptions options;
        options.kernel = kernel.name;
        try {
            matrices.push_back(runtime.distribute(a.view(), options));
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::usage) << kernel.name << ": " << e.what();
        }
    }
    return matrices;
}

/// What 200 products leave that each read what the one before wrote.
std::vector<double> chain(std::vector<DistributedMatrix<double>>& matrices, bool waits)
{
    std::vector<double> host = random_vector<double>(matrices.front().cols(), 77);
    auto first = matrices.front().make_y();
    auto second = matrices.front().make_y();
    first.upload(host.data());
    second.fill(0.25);
    std::vector<std::future<void>> ends;
    for (int i = 0; i < 200; ++i) {
        auto& matrix = matrices[static_cast<std::size_t>(i) * 5 % matrices.size()];
        const double beta = i % 3 == 0 ? 0.0 : 0.125;
        ends.push_back(matrix.apply_async(0.25, first, beta, second));
        if (waits) {
            ends.back().get();
            ends.pop_back();
        }
        if (i % 17 == 16) {
            axpy(0.5, second, first);
            scal(0.75, first);
        }
        if (i % 29 == 28) {
            copy(second, first);
            second.fill(0.5);
        }
        std::swap(first, second);
    }
    for (auto& end : ends) {
        end.get();
    }
    first.download(host.data());
    return host;
}

TEST_P(QueuedProducts, GiveTheBitsOfThoseThatAreWaitedFor)
{
    auto matrices = with_kernels(*runtime_, kind());
    ASSERT_GE(matrices.size(), std::size_t{2});
    const auto expected = chain(matrices, true);
    for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(chain(matrices, false), expected);
    }
}

TEST_P(QueuedProducts, ReadTheValuesOfTheirTime)
{
    auto a = stencil7<double>(9, 7, 5);
    auto matrix = runtime_->distribute(a.view());
    auto x = matrix.make_x(Layout::rows);
    x.fill(1);
    std::vector<DistributedVector<double>> results;
    std::vector<std::future<void>> ends;
    for (int i = 0; i < 30; ++i) {
        const std::vector<double> values(static_cast<std::size_t>(a.nnz()), i);
        for (int k = 0; k < 4; ++k) {
            results.push_back(matrix.make_y());
            ends.push_back(matrix.apply_async(1.0, x, 0.0, results.back()));
        }
        matrix.update_values(values.data());
    }
    for (auto& end : ends) {
        end.get();
    }
    for (std::size_t i = 4; i < results.size(); ++i) {
        std::vector<double> y(static_cast<std::size_t>(a.rows));
        results[i].download(y.data());
        const double value = static_cast<double>(i / 4) - 1;
        for (std::int64_t row = 0; row < a.rows; ++row) {
            const auto r = static_cast<std::size_t>(row);
            ASSERT_EQ(y[r], value * static_cast<double>(a.row_ptr[r + 1] - a.row_ptr[r])) << "product " << i;
        }
    }
}

TEST_P(QueuedProducts, KeepVectorsAndMatricesThatNobodyElseHas)
{
    const auto a = stencil7<double>(9, 7, 5);
    std::vector<std::future<void>> ends;
    for (int i = 0; i < 20; ++i) {
        auto matrix = runtime_->distribute(a.view());
        for (int k = 0; k < 20; ++k) {
            auto x = matrix.make_x(Layout::rows);
            auto y = matrix.make_y();
            x.fill(k);
            ends.push_back(matrix.apply_async(1.0, x, 0.0, y));
        }
    }
    for (auto& end : ends) {
        EXPECT_NO_THROW(end.get());
    }
}

INSTANTIATE_TEST_SUITE_P(Machines, QueuedProducts, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
