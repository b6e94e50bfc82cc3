#include <utility>

#include <gtest/gtest.h>

#include <rmsp/vector_operations.hpp>

#include "matrices.hpp"
#include "read_little.hpp"

namespace rmsp::test {
namespace {

class Vectors : public MachineTest {};

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

TEST_P(Vectors, GiveOutWhatEachDeviceHolds)
{
    Runtime runtime(options_for(GetParam()));
    const int devices = static_cast<int>(runtime.devices().size());
    const auto a = stencil7<double>(17, 5, 3);
    const auto matrix = runtime.distribute(a.view());
    const auto host = random_vector<double>(a.cols, 1);
    auto by_rows = matrix.make_x(Layout::rows);
    auto replicated = matrix.make_x(Layout::replicated);
    by_rows.upload(host.data());
    replicated.upload(host.data());
    // Memory of a device is where entries may come from, and go to.
    for (int device = 0; device < devices; ++device) {
        ASSERT_EQ(replicated.local(device).size(), host.size());
        auto copy = matrix.make_x(Layout::rows);
        copy.upload(std::as_const(replicated).local(device).data());
        std::vector<double> out(host.size());
        copy.download(out.data());
        EXPECT_EQ(out, host);

        auto whole = matrix.make_x(Layout::replicated);
        by_rows.download(whole.local(device).data());
        copy.fill(0);
        copy.upload(whole.local(device).data());
        copy.download(out.data());
        EXPECT_EQ(out, host);

        const auto slice = by_rows.local(device);
        EXPECT_EQ(static_cast<std::int64_t>(slice.size()), by_rows.offsets()[static_cast<std::size_t>(device) + 1] -
                                                               by_rows.offsets()[static_cast<std::size_t>(device)]);
        if (GetParam().gpus == 0) {
            EXPECT_TRUE(std::equal(slice.begin(), slice.end(),
                                   host.begin() + by_rows.offsets()[static_cast<std::size_t>(device)]));
        }
    }
    EXPECT_THROW(static_cast<void>(by_rows.local(-1)), Error);
    EXPECT_THROW(static_cast<void>(by_rows.local(devices)), Error);
    EXPECT_THROW(static_cast<void>(DistributedVector<double>().local(0)), Error);
}

TEST_P(Vectors, NullArraysAreUsage)
{
    Runtime runtime(options_for(GetParam()));
    const auto a = stencil7<double>(3, 2, 2);
    auto matrix = runtime.distribute(a.view());
    auto v = matrix.make_y();
    std::vector<double> host(static_cast<std::size_t>(a.rows));
    const double* const none = nullptr;
    EXPECT_THROW(matrix.apply(1.0, none, 0.0, host.data()), Error);
    EXPECT_THROW(matrix.apply(1.0, host.data(), 0.0, static_cast<double*>(nullptr)), Error);
    EXPECT_THROW(static_cast<void>(matrix.apply_transposed_async(1.0, none, 0.0, host.data())), Error);
    EXPECT_THROW(matrix.update_values(none), Error);
    EXPECT_THROW(v.upload(none), Error);
    EXPECT_THROW(v.download(nullptr), Error);
    using Where = DistributedMatrix<double>::Vectors;
    EXPECT_THROW(matrix.measure(Where::rows, 0, 1, 1.0, none, 0.0, none, nullptr), Error);
    EXPECT_THROW(matrix.measure(Where::rows, 0, 1, 1.0, host.data(), 1.0, none, nullptr), Error);
    EXPECT_THROW(static_cast<void>(runtime.distribute(CsrView<double>{})), Error);
    // Arrays of no entries may be null.
    auto empty = runtime.distribute(with_row_lengths<double>({}, 0).view());
    empty.apply(1.0, none, 0.0, static_cast<double*>(nullptr));
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
        static_cast<void>(matrix.apply_async(1.0, x, 0.0, y));  // nobody waits: the runtime finishes it
    }
    EXPECT_EQ(y.size(), 64);
    EXPECT_THROW(y.fill(1), Error);
    EXPECT_THROW(matrix.update_values(nullptr), Error);
}

TEST_P(Vectors, InTheOrderOfTheKernel)
{
    Runtime runtime(options_for(GetParam()));
    read_little(runtime);
    const bool reorders = GetParam().gpu_devices() == 1;
    const auto a = stencil7<double>(17, 15, 13);
    DistributeOptions options;
    options.kernel = GetParam().gpus > 0 ? "sell-reordered" : "auto";
    auto matrix = runtime.distribute(a.view(), options);
    const auto other = runtime.distribute(a.view(), options);
    const auto host_x = random_vector<double>(a.cols, 1);
    const auto host_y = random_vector<double>(a.rows, 2);
    auto expected = host_y;
    matrix.apply(2.0, host_x.data(), 0.5, expected.data());
    auto plain_x = matrix.make_x(Layout::rows);
    auto plain_y = matrix.make_y();
    EXPECT_EQ(plain_x.order(), Order::matrix);
    auto x = matrix.make_x(Layout::rows, Order::kernel);
    auto y = matrix.make_y(Order::kernel);
    EXPECT_EQ(x.order(), reorders ? Order::kernel : Order::matrix);
    EXPECT_EQ(y.order(), x.order());
    EXPECT_EQ(matrix.make_x(Layout::replicated, Order::kernel).order(), Order::matrix);
    std::vector<double> out(host_y.size());
    for (auto* const from : {&plain_x, &x}) {
        for (auto* const to : {&plain_y, &y}) {
            from->upload(host_x.data());
            to->upload(host_y.data());
            to->download(out.data());
            EXPECT_EQ(out, host_y);
            matrix.apply(2.0, *from, 0.5, *to);
            to->download(out.data());
            EXPECT_EQ(out, expected);
        }
    }
    EXPECT_NEAR(dot(x, y), dot(plain_x, plain_y), 1e-9);
    axpy(3.0, x, y);
    if (reorders) {
        EXPECT_THROW(axpy(1.0, x, plain_y), Error);
        EXPECT_THROW(static_cast<void>(dot(plain_x, y)), Error);
        EXPECT_THROW(matrix.apply_transposed(1.0, x, 0.0, plain_y), Error);
        auto foreign = other.make_x(Layout::rows, Order::kernel);
        EXPECT_THROW(matrix.apply(1.0, foreign, 0.0, plain_y), Error);
    }
    matrix.measure(DistributedMatrix<double>::Vectors::kernel_order, 1, 3, 2.0, host_x.data(), 0.5, host_y.data(),
                   out.data());
    EXPECT_EQ(out, expected);
    x = {};
    matrix = {};
    y.fill(1);
    y.download(out.data());
    EXPECT_EQ(out, std::vector<double>(out.size(), 1));
}

INSTANTIATE_TEST_SUITE_P(Machines, Vectors, testing::ValuesIn(machines()), machine_name);

// The lines of include/rmsp/renumber.hpp.
TEST(Renumbered, TheCallerBringsVectorsIntoTheNewOrderAndBack)
{
    Runtime runtime({.devices = "host:2"});
    const auto matrix_in = shuffled(stencil7<double>(6, 5, 4), 5);
    const auto a = matrix_in.view();
    const auto x = random_vector<double>(a.cols, 1);
    std::vector<double> y(x.size());
    auto new_x = x;
    auto new_y = y;
    const auto row_at = rmsp::mesh_order(a);
    const auto b = rmsp::renumbered(a, row_at);  // may be given up once it is distributed
    auto matrix = runtime.distribute(b.view());
    rmsp::renumber(row_at, x.data(), new_x.data());
    matrix.apply(1.0, new_x.data(), 0.0, new_y.data());
    rmsp::restore(row_at, new_y.data(), y.data());
    EXPECT_TRUE(verify_spmv<double>(a, 1.0, x.data(), 0.0, nullptr, y.data()).passed);
}

}  // namespace
}  // namespace rmsp::test
