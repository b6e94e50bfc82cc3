#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rmsp/spgemm.hpp>

#include "matrices.hpp"
#include "spgemm_fixtures.hpp"

/// Factors of products that are on the devices already, and products that become matrices to multiply vectors with.
namespace rmsp::test {
namespace {

DistributeOptions distributed_by(RowAlignment alignment, Exchange exchange)
{
    DistributeOptions options;
    options.alignment = alignment;
    options.exchange = exchange;
    return options;
}

/// Each device has whole rows whose columns keep their numbers, so that nothing is copied.
DistributeOptions as_factor() { return distributed_by(RowAlignment::row, Exchange::ranges); }

/// Those, and all ways in which it does not.
std::vector<DistributeOptions> ways_to_distribute()
{
    return {as_factor(), distributed_by(RowAlignment::row, Exchange::entries),
            distributed_by(RowAlignment::exact, Exchange::ranges),
            distributed_by(RowAlignment::exact, Exchange::entries)};
}

std::vector<std::int64_t> saws(std::int64_t rows, std::int64_t most)
{
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < rows; ++i) {
        lengths.push_back(i * 7 % (most + 1));
    }
    return lengths;
}

/// Gives the matrix, and what is on the devices, new values.
template <class T>
void renew(CsrMatrix<T>& a, DistributedMatrix<T>& there, unsigned seed, bool whole = false)
{
    const auto values = random_vector<T>(a.nnz(), seed);
    a.values.assign(values.begin(), values.end());
    if (whole) {
        to_whole_numbers(a);
    }
    there.update_values(a.values.data());
}

template <class T>
void expect_product(const char* name, const SparseProduct<T>& product, const CsrMatrix<T>& a, const CsrMatrix<T>& b)
{
    test::expect_product(name, product.download(), a, b, T{1});
}

/// y = M x against C x on the host, with vectors on the devices and, after those, on the host.
template <class T>
void expect_applies(const char* name, DistributedMatrix<T>& matrix, const CsrMatrix<T>& c)
{
    const auto x = random_vector<T>(c.cols, 3);
    std::vector<T> y(static_cast<std::size_t>(c.rows));
    auto there_x = matrix.make_x(Layout::rows);
    auto there_y = matrix.make_y();
    there_x.upload(x.data());
    matrix.apply(T{1}, there_x, T{0}, there_y);
    there_y.download(y.data());
    for (const char* const where : {"devices", "host", "host again"}) {
        const Verification v = verify_spmv<T>(c.view(), T{1}, x.data(), T{0}, nullptr, y.data());
        EXPECT_TRUE(v.passed) << name << ", " << where << ": row " << v.worst_row << ", error " << v.error << ", bound "
                              << v.bound;
        matrix.apply(T{1}, x.data(), T{0}, y.data());
    }
}

class SpgemmResident : public testing::TestWithParam<Machine> {
protected:
    void SetUp() override
    {
        if (GetParam().gpus > 0 && !have_gpus(GetParam().gpus)) {
            GTEST_SKIP() << "needs " << GetParam().gpus << " GPU(s)";
        }
        runtime_ = std::make_unique<Runtime>(options_for(GetParam()));
    }

    std::unique_ptr<Runtime> runtime_;
};

TEST_P(SpgemmResident, DistributedMatricesAreFactors)
{
    auto a = with_row_lengths<double>(saws(190, 11), 150, 1);
    auto b = with_row_lengths<double>(saws(150, 8), 170, 2);
    auto there_a = runtime_->distribute<double>(a.view(), as_factor());
    auto there_b = runtime_->distribute<double>(b.view(), as_factor());
    SparseProduct<double> left(*runtime_, there_a, b.view());
    SparseProduct<double> right(*runtime_, a.view(), there_b);
    SparseProduct<double> both(*runtime_, there_a, there_b);
    // A's rows are multiplied where they are.
    for (std::size_t i = 0; i < left.plan().shards.size(); ++i) {
        EXPECT_EQ(left.plan().shards[i].first_row, there_a.plan().partition.parts[i].start_row);
        EXPECT_EQ(left.plan().shards[i].a_bytes, 0);
    }
    for (unsigned round = 0; round < 3; ++round) {
        if (round > 0) {
            renew(a, there_a, round);
            right.update_values(a.values.data(), nullptr);
        }
        if (round > 1) {
            renew(b, there_b, 10);
            left.update_values(nullptr, b.values.data());
        }
        for (SparseProduct<double>* product : {&left, &right, &both}) {
            product->compute();
            expect_product(product == &left ? "left" : product == &right ? "right" : "both", *product, a, b);
        }
    }
    EXPECT_THROW(left.update_values(a.values.data(), nullptr), Error);
    EXPECT_THROW(both.update_values(nullptr, b.values.data()), Error);
}

TEST_P(SpgemmResident, SquaresAndHardMatrices)
{
    for (const DistributeOptions& options : ways_to_distribute()) {
        for (const auto& [name, a] : hard_matrices<float>()) {
            const auto there = runtime_->distribute<float>(a.view(), options);
            const auto b = with_row_lengths<float>(saws(a.cols, 3), 90, 3);
            SparseProduct<float> product(*runtime_, there, b.view());
            product.compute();
            expect_product(name, product, a, b);
            const auto left = with_row_lengths<float>(saws(40, std::min<std::int64_t>(a.rows, 9)), a.rows, 4);
            SparseProduct<float> from_left(*runtime_, left.view(), there);
            from_left.compute();
            expect_product(name, from_left, left, a);
        }
        auto a = stencil27<double>(9, 8, 7);
        auto there = runtime_->distribute<double>(a.view(), options);
        SparseProduct<double> square(*runtime_, there, there);
        for (unsigned round = 0; round < 3; ++round) {
            square.compute();
            expect_product("square", square, a, a);
            renew(a, there, round);
        }
    }
}

/// Products of a matrix share what is copied of its rows; one that is made later has the values of its own time.
TEST_P(SpgemmResident, ProductsMadeAfterNewValues)
{
    for (const DistributeOptions& options : ways_to_distribute()) {
        auto a = stencil27<double>(5, 4, 3);
        auto there = runtime_->distribute<double>(a.view(), options);
        SparseProduct<double> before(*runtime_, there, there);
        for (unsigned round = 0; round < 2; ++round) {
            renew(a, there, round);
            SparseProduct<double> after(*runtime_, there, there);
            after.compute();
            expect_product("after", after, a, a);
        }
        before.compute();
        expect_product("before", before, a, a);
    }
}

/// A row on many devices, some of which have nothing else, between rows without entries.
TEST_P(SpgemmResident, LongRowsOnSeveralDevices)
{
    for (const std::int64_t before : {0, 1, 40}) {
        std::vector<std::int64_t> lengths(static_cast<std::size_t>(before), 1);
        lengths.insert(lengths.end(), {0, 390, 0, 3});
        auto a = with_row_lengths<double>(lengths, 400, 1);
        const auto b = with_row_lengths<double>(saws(400, 6), 70, 2);
        for (const DistributeOptions& options : ways_to_distribute()) {
            auto there = runtime_->distribute<double>(a.view(), options);
            SparseProduct<double> product(*runtime_, there, b.view());
            const auto left = with_row_lengths<double>(saws(30, 4), a.rows, 4);
            SparseProduct<double> from_left(*runtime_, left.view(), there);
            for (unsigned round = 0; round < 2; ++round) {
                product.compute();
                expect_product("long rows", product, a, b);
                from_left.compute();
                expect_product("by long rows", from_left, left, a);
                renew(a, there, round);
            }
            // The matrix itself stays what it was.
            std::vector<double> y(static_cast<std::size_t>(a.rows));
            const auto x = random_vector<double>(a.cols, 3);
            there.apply(1.0, x.data(), 0.0, y.data());
            const Verification v = verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data());
            EXPECT_TRUE(v.passed) << v.error;
        }
    }
}

TEST_P(SpgemmResident, ProductsAreFactorsOnEitherSide)
{
    const auto a = with_row_lengths<double>(saws(120, 9), 100, 1);
    const auto b = with_row_lengths<double>(saws(100, 6), 80, 2);
    const auto d = with_row_lengths<double>(saws(80, 7), 60, 3);
    SparseProduct<double> ab(*runtime_, a.view(), b.view());
    EXPECT_THROW(SparseProduct<double>(*runtime_, ab, d.view()), Error) << "no entries yet";
    ab.compute();
    SparseProduct<double> abd(*runtime_, ab, d.view());
    EXPECT_THROW(ab.measure(0, 1), Error);
    for (int round = 0; round < 2; ++round) {
        abd.compute();
        expect_product("(A B) D", abd, ab.download(), d);
        ab.compute(0.5);
    }
}

TEST_P(SpgemmResident, CoarseOperatorsAreMatrices)
{
    // As multigrid uses them: the fine operator is there, the coarse one is made and applied there.
    auto a = stencil7<double>(12, 11, 10);
    to_whole_numbers(a);
    auto p = with_row_lengths<double>(std::vector<std::int64_t>(static_cast<std::size_t>(a.rows), 2), 330, 2);
    to_whole_numbers(p);
    const auto r = transposed<double>(p.view());
    auto fine = runtime_->distribute<double>(a.view(), as_factor());
    TripleProduct<double> galerkin(*runtime_, r.view(), fine, p.view());
    EXPECT_THROW(static_cast<void>(galerkin.product().distribute()), Error) << "no values yet";
    galerkin.renew();
    auto coarse = galerkin.product().distribute(as_factor());
    for (unsigned round = 0; round < 3; ++round) {
        if (round > 0) {
            renew(a, fine, round, true);
            galerkin.renew();
            galerkin.product().renew(coarse);
        }
        const CsrMatrix<double> expected = galerkin.product().download();
        const CsrMatrix<double> ap = multiply<double>(*runtime_, a.view(), p.view());
        expect_product("R A P", galerkin.product(), r, ap);
        expect_applies("coarse", coarse, expected);
    }
    // A coarse operator is the fine one of the next level.
    auto p2 = with_row_lengths<double>(std::vector<std::int64_t>(330, 1), 40, 2);
    to_whole_numbers(p2);
    const auto r2 = transposed<double>(p2.view());
    TripleProduct<double> next(*runtime_, r2.view(), coarse, p2.view());
    const CsrMatrix<double> cp = multiply<double>(*runtime_, galerkin.product().download().view(), p2.view());
    next.renew();
    expect_product("next level", next.product(), r2, cp);
}

TEST_P(SpgemmResident, LargeProductsAreMatricesWhoseColumnsTheHostNeverHad)
{
    auto a = stencil27<double>(23, 22, 24);
    to_whole_numbers(a);
    auto there = runtime_->distribute<double>(a.view(), as_factor());
    SparseProduct<double> product(*runtime_, there, there);
    product.compute();
    ASSERT_GT(product.plan().c_nnz, 1 << 20) << "small ones are copied";
    expect_product("square", product, a, a);
    auto square = product.distribute(as_factor());
    const CsrMatrix<double> expected = product.download();
    expect_applies("square", square, expected);
    if (sanitized) {
        return;  // what follows takes minutes then, and is done with smaller matrices by other tests
    }
    SparseProduct<double> next(*runtime_, square, there);
    next.compute();
    expect_product("cube", next, expected, a);
}

TEST_P(SpgemmResident, ProductsAreMatricesWithAnyOptions)
{
    const auto a = with_row_lengths<float>(saws(700, 13), 700, 1);
    SparseProduct<float> product(*runtime_, a.view(), a.view());
    product.compute();
    const CsrMatrix<float> c = product.download();
    for (const Exchange exchange : {Exchange::automatic, Exchange::entries}) {
        DistributeOptions options;
        options.exchange = exchange;
        auto matrix = product.distribute(options);
        EXPECT_EQ(matrix.nnz(), c.nnz());
        expect_applies("square", matrix, c);
        product.compute(2.0F);
        product.renew(matrix);
        expect_applies("twice", matrix, product.download());
        product.compute();
    }
    for (const auto& [name, hard] : hard_matrices<double>()) {
        const auto b = with_row_lengths<double>(saws(hard.cols, 3), 90, 3);
        SparseProduct<double> of_hard(*runtime_, hard.view(), b.view());
        of_hard.compute();
        auto matrix = of_hard.distribute();
        expect_applies(name, matrix, of_hard.download());
    }
}

TEST_P(SpgemmResident, WhereMemoryIsShort)
{
    auto a = stencil27<double>(9, 9, 8);
    auto there = runtime_->distribute<double>(a.view(), as_factor());
    int in_runs = 0;
    for (const double limit : {2e6, 1e6, 5e5, 2.5e5, 1.25e5}) {
        SpgemmOptions options;
        options.memory_limit = limit;
        try {
            SparseProduct<double> product(*runtime_, there, there, options);
            SparseProduct<double> of_it;
            for (unsigned round = 0; round < 2; ++round) {
                renew(a, there, round);
                product.compute();
                expect_product("short", product, a, a);
                if (round == 0) {
                    of_it = SparseProduct<double>(*runtime_, product, there);
                }
                of_it.compute();
                expect_product("(A A) A", of_it, product.download(), a);
            }
            in_runs += product.plan().chunked() ? 1 : 0;
            if (product.plan().chunked()) {
                EXPECT_THROW(static_cast<void>(product.distribute()), Error);
            }
        } catch (const Error& e) {
            ASSERT_EQ(e.code(), ErrorCode::out_of_memory) << e.what();
        }
    }
    EXPECT_GE(in_runs, 1);
}

INSTANTIATE_TEST_SUITE_P(All, SpgemmResident, testing::ValuesIn(machines()), machine_name);

TEST(SpgemmResidentApi, RefusesWhatIsNotThereInCsr)
{
    Runtime runtime({.devices = "host:3"});
    const auto a = stencil7<double>(10, 9, 8);
    const auto message = [&](const auto& left, const auto& right) {
        try {
            SparseProduct<double> product(runtime, left, right);
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::usage);
            return std::string(e.what());
        }
        return std::string("no error");
    };
    const auto distributed = [&](const auto& change) {
        DistributeOptions options = as_factor();
        change(options);
        return runtime.distribute<double>(a.view(), options);
    };
    const auto floats = distributed([](auto& o) { o.values = StoredValues::floats; });
    EXPECT_THAT(message(floats, a.view()), testing::HasSubstr("rounded"));
    EXPECT_THAT(message(a.view(), floats), testing::HasSubstr("B is a distributed matrix (720 x 720"));
    const auto streamed = distributed([](auto& o) { o.mode = Mode::streamed; });
    EXPECT_THAT(message(streamed, a.view()), testing::HasSubstr("streamed"));
    const auto good = distributed([](auto&) {});
    const auto other = with_row_lengths<double>({1, 2}, 719);
    EXPECT_THAT(message(other.view(), good), testing::HasSubstr("A is 2 x 719 and B is 720 x 720"));
    Runtime elsewhere({.devices = "host:1"});
    const auto far = elsewhere.distribute<double>(a.view());
    EXPECT_THAT(message(a.view(), far), testing::HasSubstr("another runtime"));
    EXPECT_THAT(message(DistributedMatrix<double>(), a.view()), testing::HasSubstr("is empty"));
    EXPECT_THAT(message(a.view(), SparseProduct<double>()), testing::HasSubstr("is empty"));
    EXPECT_THROW(TripleProduct<double>(runtime, other.view(), good, a.view()), Error);

    SparseProduct<double> product(runtime, good, good);
    EXPECT_THROW(static_cast<void>(product.distribute()), Error);
    product.compute();
    EXPECT_THROW(static_cast<void>(product.distribute({.mode = Mode::streamed})), Error);
    EXPECT_THROW(static_cast<void>(product.distribute({.borrow = true})), Error);
    auto not_of_it = runtime.distribute<double>(a.view());
    EXPECT_THROW(product.renew(not_of_it), Error);
    EXPECT_THROW(static_cast<void>(SparseProduct<double>().distribute()), Error);
}

}  // namespace
}  // namespace rmsp::test
