#include <gtest/gtest.h>

#include "matrices.hpp"

namespace rmsp::test {
namespace {

class Vectors : public testing::TestWithParam<Machine> {
protected:
    void SetUp() override
    {
        if (GetParam().gpus > 0 && !have_gpus(GetParam().gpus)) {
            GTEST_SKIP() << "needs " << GetParam().gpus << " GPU(s)";
        }
    }
};

TEST_P(Vectors, RoundTripAndFill)
{
    Runtime runtime(options_for(GetParam()));
    const auto a = stencil7<float>(17, 5, 3);
    const auto matrix = runtime.distribute(a.view());
    const auto host = random_vector<float>(a.cols, 1);
    for (const auto layout : {Layout::rows, Layout::replicated}) {
        auto v = matrix.make_x(layout);
        EXPECT_EQ(v.size(), a.cols);
        EXPECT_EQ(v.layout(), layout);
        ASSERT_EQ(v.offsets().size(), runtime.devices().size() + 1);
        EXPECT_EQ(v.offsets().front(), 0);
        EXPECT_EQ(v.offsets().back(), a.cols);
        v.upload(host.data());
        std::vector<float> out(host.size());
        v.download(out.data());
        EXPECT_EQ(out, host);
        v.fill(3.5F);
        v.download(out.data());
        EXPECT_EQ(out, std::vector<float>(host.size(), 3.5F));
    }
}

TEST_P(Vectors, MayOutliveMatrixAndRuntime)
{
    DistributedVector<double> y;
    DistributedMatrix<double> matrix;
    {
        Runtime runtime(options_for(GetParam()));
        const auto a = stencil7<double>(4, 4, 4);
        matrix = runtime.distribute(a.view());
        y = matrix.make_y();
        auto x = matrix.make_x(Layout::replicated);
        x.fill(1);
        matrix.apply(1.0, x, 0.0, y);  // nobody waits: the runtime finishes it
    }
    EXPECT_EQ(y.size(), 64);
    EXPECT_THROW(y.fill(1), Error);
    EXPECT_THROW(matrix.update_values(nullptr), Error);
}

INSTANTIATE_TEST_SUITE_P(Machines, Vectors, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
