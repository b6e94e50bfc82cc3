#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "matrices.hpp"

// How the devices keep the values of a matrix.
namespace rmsp::test {
namespace {

class Values : public RuntimeTest {};

TEST_P(Values, AreRoundedToFloats)
{
    const bool gpus = runtime_->devices().front().kind == DeviceKind::cuda;
    DistributeOptions options;
    options.values = StoredValues::floats;
    for (const char* const kernel : gpus ? std::vector{"auto", "sell", "sell-blocks", "column-blocks", "packed-tiles"}
                                         : std::vector{"auto", "csr-openmp", "diagonals"}) {
        options.kernel = kernel;
        for (const auto& [name, a] : hard_matrices<double>()) {
            auto matrix = runtime_->distribute(a.view(), options);
            const auto x = random_vector<double>(a.cols, 1);
            std::vector<double> y(static_cast<std::size_t>(a.rows));
            const auto check = [&](const CsrMatrix<double>& expected) {
                matrix.apply(1.5, x.data(), 0, y.data());
                EXPECT_TRUE(
                    verify_spmv<double>(expected.view(), 1.5, x.data(), 0, nullptr, y.data(), options.values).passed)
                    << name << ", " << kernel;
            };
            check(a);
            auto renewed = a;
            for (double& v : renewed.values) {
                v = 0.7 * v + 0.1;
            }
            matrix.update_values(renewed.values.data());
            check(renewed);
        }
    }
    // The verification itself: of values that are not rounded it is another matrix.
    const auto third = with_row_lengths<double>({1}, 1);
    const double one = 1;
    double y = static_cast<double>(static_cast<float>(third.values[0]));
    EXPECT_TRUE(verify_spmv<double>(third.view(), 1, &one, 0, nullptr, &y, StoredValues::floats).passed);
    EXPECT_FALSE(verify_spmv<double>(third.view(), 1, &one, 0, nullptr, &y).passed);
    // Of a matrix of floats nothing changes.
    options.kernel = "auto";
    const auto a = with_row_lengths<float>({5, 0, 300, 7}, 400);
    auto matrix = runtime_->distribute(a.view(), options);
    const auto x = random_vector<float>(a.cols, 1);
    std::vector<float> of_floats(static_cast<std::size_t>(a.rows));
    matrix.apply(1.5F, x.data(), 0, of_floats.data());
    EXPECT_TRUE(verify_spmv<float>(a.view(), 1.5F, x.data(), 0, nullptr, of_floats.data()).passed);
}

TEST_P(Values, NewOnesChangeWhatIsReported)
{
    if (runtime_->devices().front().kind != DeviceKind::cuda) {
        GTEST_SKIP() << "values are encoded on GPUs";
    }
    GenerateOptions generated;
    generated.values = ValueKind::laplace;
    const auto laplace = stencil27<double>(40, 40, 40, generated);
    const auto random = stencil27<double>(40, 40, 40);
    for (const std::string kernel : {"sell", "column-blocks", "packed-tiles"}) {
        SCOPED_TRACE(kernel);
        DistributeOptions options;
        options.kernel = kernel;
        auto matrix = runtime_->distribute(laplace.view(), options);
        const auto bytes = [&] {
            std::int64_t sum = 0;
            for (const ShardPlan& shard : matrix.report().plan.shards) {
                sum += shard.apply_bytes;
            }
            return sum;
        };
        const std::int64_t few = bytes();
        const auto x = random_vector<double>(laplace.cols, 3);
        std::vector<double> y(x.size());
        for (const auto* const a : {&random, &laplace}) {
            matrix.update_values(a->values.data());
            matrix.apply(1, x.data(), 0, y.data());
            EXPECT_TRUE(verify_spmv<double>(a->view(), 1, x.data(), 0, nullptr, y.data()).passed);
            if (a == &random) {
                // All are floats, and in slices there are few different ones.
                EXPECT_GT(bytes(), few + (kernel == "sell" ? 6 : 4) * laplace.nnz() - 1);
            }
        }
        EXPECT_EQ(bytes(), few);
    }
}

TEST_P(Values, RoundedOnesAreRefusedWhereNothingRoundsThem)
{
    const auto a = with_row_lengths<double>({3, 4, 5}, 10);
    const auto refused = [&](const DistributeOptions& options, const std::string& word) {
        try {
            static_cast<void>(runtime_->distribute(a.view(), options));
            ADD_FAILURE() << word;
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::usage);
            EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
        }
    };
    DistributeOptions options;
    options.values = StoredValues::floats;
    options.kernel = runtime_->devices().front().kind == DeviceKind::cuda ? "csr-nnz-split" : "csr-reference";
    refused(options, options.kernel);
    options.kernel = "auto";
    options.borrow = true;
    refused(options, "borrowed");
    options.borrow = false;
    options.mode = Mode::streamed;
    refused(options, "streamed");
}

INSTANTIATE_TEST_SUITE_P(Machines, Values, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
