#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <rmsp/rmsp.hpp>

#include "matrices.hpp"

namespace rmsp::test {
namespace {

/// What a caller may have cast, or left uninitialised.
template <class E>
constexpr E none_of_them = static_cast<E>(77);

template <class E>
void take_none_of_them(E& option)
{
    option = none_of_them<E>;
}

std::string refused(const char* option, int last)
{
    return fmt::format("{} is 77, which is not one of 0 to {}", option, last);
}

TEST(Enumerators, OfDistributionsAreChecked)
{
    Runtime runtime({.devices = "host:2"});
    const auto a = stencil7<double>(3, 3, 3);
    const std::vector<std::pair<std::string, std::function<void(DistributeOptions&)>>> wrong{
        {refused("DistributeOptions::strategy", 1), [](auto& o) { take_none_of_them(o.strategy); }},
        {refused("DistributeOptions::alignment", 2), [](auto& o) { take_none_of_them(o.alignment); }},
        {refused("DistributeOptions::balance", 2), [](auto& o) { take_none_of_them(o.balance); }},
        {refused("DistributeOptions::row_pointers", 1), [](auto& o) { take_none_of_them(o.row_pointers); }},
        {refused("DistributeOptions::values", 1), [](auto& o) { take_none_of_them(o.values); }},
        {refused("DistributeOptions::unsorted", 2), [](auto& o) { take_none_of_them(o.unsorted); }},
        {refused("DistributeOptions::exchange", 2), [](auto& o) { take_none_of_them(o.exchange); }},
        {refused("DistributeOptions::x_layout", 1), [](auto& o) { take_none_of_them(o.x_layout); }},
        {refused("DistributeOptions::determinism", 2), [](auto& o) { take_none_of_them(o.determinism); }},
        {refused("DistributeOptions::mode", 1), [](auto& o) { take_none_of_them(o.mode); }},
        {refused("DistributeOptions::encoding", 1), [](auto& o) { take_none_of_them(o.encoding); }},
        {refused("DistributeOptions::coordinates", 1), [](auto& o) { take_none_of_them(o.coordinates); }},
        {refused("DistributeOptions::placement", 2), [](auto& o) { take_none_of_them(o.placement); }},
    };
    for (const auto& [message, set] : wrong) {
        DistributeOptions options;
        set(options);
        EXPECT_EQ(usage_message([&] { static_cast<void>(runtime.distribute(a.view(), options)); }), message);
        EXPECT_EQ(usage_message([&] { runtime.plan(a.view(), options); }), message);
    }
    const auto matrix = runtime.distribute(a.view());
    EXPECT_EQ(usage_message([&] { static_cast<void>(matrix.make_x(none_of_them<Layout>)); }), refused("layout", 1));
    EXPECT_EQ(usage_message([&] { static_cast<void>(matrix.make_x(Layout::rows, none_of_them<Order>)); }),
              refused("order", 1));
    EXPECT_EQ(usage_message([&] { static_cast<void>(matrix.make_y(none_of_them<Order>)); }), refused("order", 1));
}

TEST(Enumerators, OfARuntimeAndOfJobsAreChecked)
{
    EXPECT_EQ(usage_message([] { Runtime({.devices = "host:2", .bind = none_of_them<BindPolicy>}); }),
              refused("RuntimeOptions::bind", 2));
    Runtime runtime({.devices = "host:2"});
    const auto a = stencil7<double>(3, 3, 3);
    auto matrix = runtime.distribute(a.view());
    const std::vector<double> x(27, 1);
    std::vector<double> y(27);
    const auto submit = [&](const JobOptions& options) {
        return usage_message([&] { matrix.apply_async(1.0, x.data(), 0.0, y.data(), options).get(); });
    };
    EXPECT_EQ(submit({.priority = none_of_them<Priority>}), refused("JobOptions::priority", 2));
    EXPECT_EQ(submit({.when_full = none_of_them<WhenFull>}), refused("JobOptions::when_full", 1));
    EXPECT_EQ(submit({.when_no_memory = none_of_them<WhenFull>}), refused("JobOptions::when_no_memory", 1));
    EXPECT_EQ(JobScope::current(), nullptr);
    matrix.apply(1.0, x.data(), 0.0, y.data());
}

TEST(Enumerators, OfProductsAndEigensolversAreChecked)
{
    Runtime runtime({.devices = "host:2"});
    const auto a = stencil7<double>(3, 3, 3);
    SpgemmOptions product;
    take_none_of_them(product.determinism);
    EXPECT_EQ(usage_message([&] { SparseProduct<double>(runtime, a.view(), a.view(), product); }),
              refused("SpgemmOptions::determinism", 2));
    EXPECT_EQ(usage_message([&] { SparseProduct<double>::plan(runtime, a.view(), a.view(), product); }),
              refused("SpgemmOptions::determinism", 2));
    const auto matrix = runtime.distribute(a.view());
    EigenOptions pairs;
    take_none_of_them(pairs.which);
    EXPECT_EQ(usage_message([&] { EigenSolver<double>(matrix, pairs); }), refused("EigenOptions::which", 1));
    EXPECT_EQ(usage_message([&] {
                  static_cast<void>(choose_method(runtime, matrix.plan(), SolverOptions{}, none_of_them<Determinism>));
              }),
              refused("determinism", 2));
}

TEST(Enumerators, OfGeneratorsPartitionsAndBlocksAreChecked)
{
    const GenerateOptions options{.values = none_of_them<ValueKind>};
    for (const char* text : {"stencil7 2 2 2", "banded 5 1", "rmat 4 2", "random 5 5 2", "powerlaw 9 2 2",
                             "triangles 3 3", "elasticity 2 2 2", "unstructured 2 2 2"}) {
        EXPECT_EQ(usage_message([&] { generate<double>(text, options); }), refused("GenerateOptions::values", 3));
    }
    EXPECT_EQ(usage_message([&] { stencil27<float>(2, 2, 2, options); }), refused("GenerateOptions::values", 3));
    EXPECT_EQ(usage_message([&] { banded<float>(5, 1, options); }), refused("GenerateOptions::values", 3));
    auto a = banded<double>(5, 1);
    EXPECT_EQ(usage_message([&] { set_values(a, none_of_them<ValueKind>); }), refused("kind", 3));

    PartitionOptions split;
    take_none_of_them(split.alignment);
    EXPECT_EQ(usage_message([&] { partition_csr(5, 5, a.row_ptr.data(), 2, split); }),
              refused("PartitionOptions::alignment", 2));
    split = {};
    take_none_of_them(split.strategy);
    EXPECT_EQ(usage_message([&] { partition_csr(5, 5, a.row_ptr.data(), 2, split); }),
              refused("PartitionOptions::strategy", 1));
    const std::vector<int> at{0, 1};
    EXPECT_EQ(usage_message([&] { partition_coo(2, 2, 2, at.data(), at.data(), 1, {}, none_of_them<UnsortedCoo>); }),
              refused("unsorted", 1));
    const std::vector<double> values{1, 2};
    BsrView<double> blocks;
    take_none_of_them(blocks.order);
    EXPECT_EQ(usage_message([&] { to_csr(blocks); }), refused("BsrView::order", 1));
}

}  // namespace
}  // namespace rmsp::test
