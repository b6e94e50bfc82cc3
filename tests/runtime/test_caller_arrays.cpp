// Matrices and vectors in arrays of the caller's of every kind: in the memory of GPUs, counting from 1, in blocks.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <runtime/matrix/caller_product.hpp>
#include <runtime/matrix/distribute.hpp>

#include "matrices.hpp"

namespace rmsp::test {
namespace {

/// Arrays in the memory of a runtime's last device.
class There {
public:
    explicit There(Runtime& runtime) : runtime_(detail::RuntimeAccess::state(runtime)) {}
    There(const There&) = delete;
    There& operator=(const There&) = delete;
    ~There()
    {
        on_last([&](engine::Worker&) { arrays_.clear(); });
    }
    template <class U>
    U* put(const U* entries, std::int64_t n)
    {
        const auto bytes = static_cast<std::size_t>(n) * sizeof(U);
        void* place = nullptr;
        on_last([&](engine::Worker& worker) {
            place = arrays_.emplace_back(worker.device(), std::max<std::size_t>(bytes, 1)).data();
            worker.device().upload(worker.stream(), place, entries, bytes);
        });
        return static_cast<U*>(place);
    }
    template <class U>
    std::vector<U> get(const U* array, std::int64_t n)
    {
        std::vector<U> entries(static_cast<std::size_t>(n));
        on_last([&](engine::Worker& worker) {
            worker.device().download(worker.stream(), entries.data(), array, entries.size() * sizeof(U));
        });
        return entries;
    }
    IndexView put(IndexView indices, std::int64_t n)
    {
        return indices.visit([&](const auto* from) { return IndexView(put(from, n)); });
    }

private:
    template <class F>
    void on_last(const F& f)
    {
        runtime_
            ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
                if (worker.rank() + 1 == runtime_->devices()) {
                    f(worker);
                    worker.stream().synchronize();
                }
            })
            .get();
    }

    std::shared_ptr<detail::RuntimeState> runtime_;
    std::vector<kernels::DeviceArray<std::byte>> arrays_;
};

/// The indices of a matrix, from 1 on.
template <class I>
std::vector<I> from_one(IndexView indices, std::int64_t n)
{
    std::vector<I> out;
    for (std::int64_t i = 0; i < n; ++i) {
        out.push_back(static_cast<I>(indices[i] + 1));
    }
    return out;
}

template <class T>
void check_product(DistributedMatrix<T>& matrix, const CsrMatrix<T>& a, const char* name)
{
    const auto x = random_vector<T>(a.cols, 1);
    std::vector<T> y(static_cast<std::size_t>(a.rows));
    matrix.apply(T{1}, x.data(), T{0}, y.data());
    EXPECT_TRUE(verify_spmv<T>(a.view(), T{1}, x.data(), T{0}, nullptr, y.data()).passed) << name;
}

class CallerArrays : public RuntimeTest {};

TEST_P(CallerArrays, MatricesWhereTheyAre)
{
    for (const auto& [name, a] : hard_matrices<double>()) {
        There there(*runtime_);
        const std::int64_t nnz = a.nnz();
        const double* values = there.put(a.values.data(), nnz);
        const CsrView<double> csr{
            a.rows, a.cols, nnz, there.put(IndexView(a.row_ptr.data()), a.rows + 1), there.put(a.col_idx.view(), nnz),
            values};
        for (const RowAlignment alignment : {RowAlignment::row, RowAlignment::exact}) {
            auto matrix = runtime_->distribute(csr, {.alignment = alignment});
            check_product(matrix, a, name);
            auto twice = a;
            std::transform(a.values.begin(), a.values.end(), twice.values.begin(), [](double v) { return 2 * v; });
            matrix.update_values(there.put(twice.values.data(), nnz));
            check_product(matrix, twice, name);
        }
        const auto csc = to_csc(a.view());
        auto by_columns = runtime_->distribute(
            CscView<double>{a.rows, a.cols, nnz, there.put(IndexView(csc.col_ptr.data()), a.cols + 1),
                            there.put(csc.row_idx.view(), nnz), there.put(csc.values.data(), nnz)});
        check_product(by_columns, a, name);
        const auto coo = to_coo(a.view());
        auto coordinates = runtime_->distribute(CooView<double>{a.rows, a.cols, nnz, there.put(coo.row_idx.view(), nnz),
                                                                there.put(coo.col_idx.view(), nnz), values});
        check_product(coordinates, a, name);
    }
}

TEST_P(CallerArrays, VectorsWhereTheyAre)
{
    for (const auto& [name, a] : hard_matrices<float>()) {
        There there(*runtime_);
        auto matrix = runtime_->distribute(a.view(), {.transposed = true});
        const auto& state = detail::MatrixAccess::state(matrix);
        for (const bool of_transpose : {false, true}) {
            const auto m = of_transpose ? transposed(a.view()) : a;
            const auto x = random_vector<float>(m.cols, 1);
            const auto y_in = random_vector<float>(m.rows, 2);
            const float* const x_there = there.put(x.data(), m.cols);
            for (const float beta : {0.0F, -0.5F}) {
                float* const y_there = there.put(y_in.data(), m.rows);
                of_transpose ? matrix.apply_transposed(1.5F, x_there, beta, y_there)
                             : matrix.apply(1.5F, x_there, beta, y_there);
                const auto y = there.get(y_there, m.rows);
                EXPECT_TRUE(verify_spmv<float>(m.view(), 1.5F, x.data(), beta, y_in.data(), y.data()).passed) << name;
                // The way of arrays on GPUs, of host devices too.
                std::vector<float> again = y_in;
                distributed::apply_through_vectors<float>(state, of_transpose, 1.5F, x.data(), beta, again.data(),
                                                          nullptr)
                    .get();
                EXPECT_TRUE(verify_spmv<float>(m.view(), 1.5F, x.data(), beta, y_in.data(), again.data()).passed)
                    << name;
            }
        }
    }
}

TEST_P(CallerArrays, ProductsInTheOrderOfAStream)
{
    const auto a = stencil7<double>(9, 8, 7);
    auto matrix = runtime_->distribute(a.view());
    There there(*runtime_);
    const auto x = random_vector<double>(a.cols, 1);
    double* const x_there = there.put(x.data(), a.cols);
    double* const y_there = there.put(x.data(), a.rows);
    double* const z_there = there.put(x.data(), a.rows);
    if (GetParam().gpus == 0) {
        const std::string message =
            usage_message([&] { matrix.apply_async(1.0, x_there, 0.0, y_there, StreamRef{}).get(); });
        EXPECT_NE(message.find("x is in host memory: streams order products"), std::string::npos) << message;
        const CsrMatrix<double> nothing = banded<double>(0, 0);
        auto empty = runtime_->distribute(nothing.view());
        EXPECT_NE(usage_message([&] { empty.apply_async(1.0, x_there, 0.0, y_there, StreamRef{}).get(); }), "");
        EXPECT_NE(usage_message([&] { matrix.update_values(a.values.data(), StreamRef{}); }), "");
        Solver<double> solver(matrix, {.method = "cg", .max_iterations = 3});
        EXPECT_NE(
            usage_message([&] { solver.solve(x_there, y_there, StreamRef{}); }).find("b is not in the memory of a GPU"),
            std::string::npos);
        SparseProduct<double> product(*runtime_, a.view(), a.view());
        EXPECT_NE(usage_message([&] {
                      product.update_values(nullptr, a.values.data(), StreamRef{});
                  }).find("B's values is not in the memory of a GPU"),
                  std::string::npos);
        return;
    }
    // z = A (A x), of which only the stream knows the order.
    std::vector<double> y(static_cast<std::size_t>(a.rows));
    std::vector<double> z(y.size());
    for (int round = 0; round < 20; ++round) {
        auto first = matrix.apply_async(1.0, x_there, 0.0, y_there, StreamRef{});
        auto second = matrix.apply_async(1.0, y_there, 0.0, z_there, StreamRef{});
        first.get();
        second.get();
        y = there.get(y_there, a.rows);
        z = there.get(z_there, a.rows);
        ASSERT_TRUE(verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed);
        ASSERT_TRUE(verify_spmv<double>(a.view(), 1.0, y.data(), 0.0, nullptr, z.data()).passed);
    }
}

TEST_P(CallerArrays, SolvesAndProductsInTheOrderOfAStream)
{
    if (GetParam().gpus == 0) {
        GTEST_SKIP() << "no GPU, whose streams these are";
    }
    const auto a = stencil7<double>(6, 5, 4, {.values = ValueKind::poisson});
    auto matrix = runtime_->distribute(a.view());
    There there(*runtime_);
    const auto expected = random_vector<double>(a.cols, 1);
    const std::vector<double> zeros(expected.size());
    double* const expected_there = there.put(expected.data(), a.cols);
    double* const b = there.put(zeros.data(), a.rows);
    double* const x = there.put(zeros.data(), a.cols);
    // b = A x is not there yet when the solve begins.
    Solver<double> solver(matrix, {.method = "cg", .tolerance = 1e-12});
    auto product = matrix.apply_async(1.0, expected_there, 0.0, b, StreamRef{});
    EXPECT_TRUE(solver.solve(b, x, StreamRef{}).converged());
    product.get();
    const auto found = there.get(x, a.cols);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(found[i], expected[i], 1e-8);
    }
    const CsrView<double> view{a.rows,           a.cols,           a.nnz(),
                               a.row_ptr.data(), a.col_idx.view(), there.put(a.values.data(), a.nnz())};
    SparseProduct<double> square(*runtime_, view, a.view(), {.after = StreamRef{}});
    square.compute();
    EXPECT_TRUE(verify_spgemm<double>(a.view(), a.view(), 1.0, square.download().view()).passed);
    square.update_values(view.values, nullptr, StreamRef{});
    square.compute();
    EXPECT_TRUE(verify_spgemm<double>(a.view(), a.view(), 1.0, square.download().view()).passed);
}

TEST_P(CallerArrays, FactorsOfProductsWhereTheyAre)
{
    const auto a = with_row_lengths<double>({3, 0, 5, 1, 7, 2, 2, 9, 1, 4}, 10);
    There there(*runtime_);
    const std::int64_t nnz = a.nnz();
    const CsrView<double> view{a.rows,
                               a.cols,
                               nnz,
                               there.put(IndexView(a.row_ptr.data()), a.rows + 1),
                               there.put(a.col_idx.view(), nnz),
                               there.put(a.values.data(), nnz)};
    const auto row_ptr = from_one<std::int64_t>(IndexView(a.row_ptr.data()), a.rows + 1);
    const auto col_idx = from_one<std::int32_t>(a.col_idx.view(), nnz);
    const CsrView<double> one{a.rows, a.cols, nnz, row_ptr.data(), col_idx.data(), a.values.data(), 1};
    SparseProduct<double> product(*runtime_, view, one);
    product.compute();
    EXPECT_TRUE(verify_spgemm<double>(a.view(), a.view(), 1.0, product.download().view()).passed);
    auto twice = a;
    std::transform(a.values.begin(), a.values.end(), twice.values.begin(), [](double v) { return 2 * v; });
    product.update_values(there.put(twice.values.data(), nnz), nullptr);
    product.compute();
    EXPECT_TRUE(verify_spgemm<double>(twice.view(), a.view(), 1.0, product.download().view()).passed);
}

TEST_P(CallerArrays, ValuesThatOnlyDevicesRead)
{
    // What a matrix in GPU memory is once its structure is on the host; host devices reach these values as well.
    for (const auto& [name, a] : hard_matrices<double>()) {
        There there(*runtime_);
        plan::Stored<double> stored = plan::stored(a.view());
        stored.device_values = there.put(a.values.data(), a.nnz());
        stored.device_col_idx = there.put(a.col_idx.view(), a.nnz());
        stored.values = nullptr;
        auto matrix = detail::MatrixAccess::handle(distributed::distribute(detail::RuntimeAccess::state(*runtime_),
                                                                           stored, DistributeOptions{.borrow = true}));
        check_product(matrix, a, name);
    }
}

INSTANTIATE_TEST_SUITE_P(Machines, CallerArrays, testing::ValuesIn(machines()), machine_name);

TEST(Base, IndicesFromOne)
{
    Runtime runtime({.devices = "host:2x1"});
    for (const auto& [name, a] : hard_matrices<double>()) {
        const std::int64_t nnz = a.nnz();
        const auto row_ptr = from_one<std::int32_t>(IndexView(a.row_ptr.data()), a.rows + 1);
        const auto col_idx = from_one<std::int64_t>(a.col_idx.view(), nnz);
        const CsrView<double> csr{a.rows, a.cols, nnz, row_ptr.data(), col_idx.data(), a.values.data(), 1};
        for (const DistributeOptions& options :
             {DistributeOptions{}, DistributeOptions{.borrow = true}, DistributeOptions{.mode = Mode::streamed}}) {
            auto matrix = runtime.distribute(csr, options);
            check_product(matrix, a, name);
        }
        EXPECT_EQ(runtime.plan(csr).nnz, nnz);
        const auto c = to_csc(a.view());
        const auto col_ptr = from_one<std::int64_t>(IndexView(c.col_ptr.data()), a.cols + 1);
        const auto row_idx = from_one<std::int32_t>(c.row_idx.view(), nnz);
        auto csc = runtime.distribute(
            CscView<double>{a.rows, a.cols, nnz, col_ptr.data(), row_idx.data(), c.values.data(), 1});
        check_product(csc, a, name);
        const auto coo = to_coo(a.view());
        const auto rows = from_one<std::int32_t>(coo.row_idx.view(), nnz);
        const auto columns = from_one<std::int32_t>(coo.col_idx.view(), nnz);
        auto coordinates =
            runtime.distribute(CooView<double>{a.rows, a.cols, nnz, rows.data(), columns.data(), coo.values.data(), 1});
        check_product(coordinates, a, name);
    }
}

TEST(Base, WrongOnes)
{
    Runtime runtime({.devices = "host:1"});
    const std::vector<int> row_ptr{1, 2, 3};
    const std::vector<int> col_idx{1, 2};
    const std::vector<double> values{1, 2};
    CsrView<double> a{2, 2, 2, row_ptr.data(), col_idx.data(), values.data(), 2};
    EXPECT_EQ(usage_message([&] { static_cast<void>(runtime.distribute(a)); }),
              "base of a 2 x 2 matrix is 2; indices count from 0 or 1");
    a.base = 1;
    EXPECT_EQ(
        usage_message([&] { static_cast<void>(to_csc(a)); }),
        "invalid 2 x 2 CSR matrix with 2 nonzeros: its indices count from 1 (base); only Runtime and SparseProduct "
        "take those that count from 1");
    EXPECT_EQ(transpose(a).base, 1);
    a.base = 0;
    EXPECT_NE(usage_message([&] { static_cast<void>(runtime.distribute(a)); }).find("row_ptr[0] is 1"),
              std::string::npos);
    const std::vector<int> below{0, 2};
    a = {2, 2, 2, row_ptr.data(), below.data(), values.data(), 1};
    EXPECT_NE(usage_message([&] { static_cast<void>(runtime.distribute(a)); }).find("entry 0"), std::string::npos);
}

/// A matrix of 3 x 2 blocks, of height 2 and width 3, and its values by rows and by columns of blocks.
struct Blocks {
    std::vector<int> row_ptr{1, 3, 3, 4};
    std::vector<std::int64_t> col_idx{2, 1, 2};
    std::vector<double> by_row;
    std::vector<double> by_column;

    Blocks() : by_row(18), by_column(18)
    {
        for (std::size_t k = 0; k < 3; ++k) {
            for (std::size_t r = 0; r < 2; ++r) {
                for (std::size_t c = 0; c < 3; ++c) {
                    by_row[6 * k + 3 * r + c] = by_column[6 * k + 2 * c + r] =
                        static_cast<double>(100 * k + 10 * r + c);
                }
            }
        }
    }
    BsrView<double> view(BlockOrder order) const
    {
        const auto& values = order == BlockOrder::by_row ? by_row : by_column;
        return {3, 2, 3, row_ptr.data(), col_idx.data(), values.data(), 2, 3, order, 1};
    }
};

TEST(BlockRows, AreAllTheirValues)
{
    const Blocks blocks;
    for (const BlockOrder order : {BlockOrder::by_row, BlockOrder::by_column}) {
        const auto a = to_csr(blocks.view(order));
        EXPECT_EQ(a.rows, 6);
        EXPECT_EQ(a.cols, 6);
        EXPECT_EQ((std::vector<std::int64_t>(a.row_ptr.begin(), a.row_ptr.end())),
                  (std::vector<std::int64_t>{0, 6, 12, 12, 12, 15, 18}));
        const std::vector<std::int64_t> columns{3, 4, 5, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 3, 4, 5};
        const std::vector<double> values{0,   1,   2,   100, 101, 102, 10,  11,  12,
                                         110, 111, 112, 200, 201, 202, 210, 211, 212};
        for (std::size_t i = 0; i < values.size(); ++i) {
            EXPECT_EQ(a.col_idx[static_cast<std::int64_t>(i)], columns[i]) << i;
            EXPECT_EQ(a.values[i], values[i]) << i;
        }
    }
}

TEST(BlockRows, OnDevices)
{
    Runtime runtime({.devices = "host:2x1"});
    const Blocks blocks;
    for (const BlockOrder order : {BlockOrder::by_row, BlockOrder::by_column}) {
        const BsrView<double> view = blocks.view(order);
        auto matrix = runtime.distribute(view, {.borrow = true});
        EXPECT_EQ(runtime.plan(view).rows, 6);
        auto a = to_csr(view);
        check_product(matrix, a, "blocks");
        std::vector<double> twice(view.values, view.values + 18);
        for (double& value : twice) {
            value *= 2;
        }
        matrix.update_values(twice.data());
        for (double& value : a.values) {
            value *= 2;
        }
        check_product(matrix, a, "new values of blocks");
    }
}

TEST(BlockRows, WrongOnes)
{
    Runtime runtime({.devices = "host:1"});
    const Blocks blocks;
    const auto message = [&](auto change) {
        BsrView<double> view = blocks.view(BlockOrder::by_row);
        change(view);
        return usage_message([&] { static_cast<void>(runtime.distribute(view)); });
    };
    const std::string begin = "invalid BSR matrix of 3 x 2 blocks of 2 x 3, 3 stored: ";
    EXPECT_EQ(message([](auto& a) { a.base = -1; }), begin + "base is -1; indices count from 0 or 1");
    EXPECT_EQ(message([](auto& a) { a.base = 0; }), begin + "row_ptr[0] is 1, not 0");
    EXPECT_EQ(message([](auto& a) { a.values = nullptr; }), begin + "the values are null");
    const std::vector<std::int64_t> beyond{2, 3, 2};
    EXPECT_EQ(message([&](auto& a) { a.col_idx = beyond.data(); }), begin + "block 1 has column 3");
    const std::vector<int> falling{1, 3, 2, 4};
    EXPECT_EQ(message([&](auto& a) { a.row_ptr = falling.data(); }),
              begin + "row 1 of blocks starts at block 3 and ends at block 2");
    EXPECT_NE(message([](auto& a) { a.width = 0; }).find("at least one row and column"), std::string::npos);
    EXPECT_NE(message([](auto& a) { a.height = std::int64_t{1} << 62; }).find("too large"), std::string::npos);
    BsrView<double> view = blocks.view(BlockOrder::by_row);
    EXPECT_NE(usage_message([&] {
                  static_cast<void>(runtime.distribute(view, {.mode = Mode::streamed}));
              }).find("not streamed"),
              std::string::npos);
}

}  // namespace
}  // namespace rmsp::test
