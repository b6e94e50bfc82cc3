// Matrices and vectors in arrays of the caller's that are in the memory of GPUs.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <runtime/matrix/caller_product.hpp>
#include <runtime/matrix/distribute.hpp>

#include "caller_arrays.hpp"

namespace rmsp::test {
namespace {

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

TEST_P(CallerArrays, BlocksWhereTheyAre)
{
    const Blocks blocks;
    for (const BlockOrder order : {BlockOrder::by_row, BlockOrder::by_column}) {
        There there(*runtime_);
        const BsrView<double> view = blocks.view(order);
        BsrView<double> given = view;
        given.row_ptr = there.put(view.row_ptr, 4);
        given.col_idx = there.put(view.col_idx, 3);
        given.values = there.put(view.values, 18);
        EXPECT_EQ(runtime_->plan(given).nnz, 18);
        auto matrix = runtime_->distribute(given, {.after = StreamRef{}});
        auto a = to_csr(view);
        check_product(matrix, a, "blocks");
        std::vector<double> twice(view.values, view.values + 18);
        for (double& value : twice) {
            value *= 2;
        }
        matrix.update_values(there.put(twice.data(), 18));
        for (double& value : a.values) {
            value *= 2;
        }
        check_product(matrix, a, "new values of blocks");
        // Structure in host memory, values there.
        given.row_ptr = view.row_ptr;
        given.col_idx = view.col_idx;
        auto mixed = runtime_->distribute(given);
        mixed.update_values(twice.data());
        check_product(mixed, a, "blocks whose values are there");
    }
}

/// What a download into the caller's arrays finds, of a product that has been computed.
template <class T>
CsrMatrix<T> downloaded_there(There& there, const SparseProduct<T>& product)
{
    const std::int64_t nnz = product.nnz();
    std::vector<std::int64_t> row_ptr(static_cast<std::size_t>(product.rows()) + 1, -1);
    std::vector<std::int32_t> col_idx(static_cast<std::size_t>(nnz), -1);
    std::vector<T> values(static_cast<std::size_t>(nnz), T{-1});
    std::int64_t* const p = there.put(row_ptr.data(), product.rows() + 1);
    std::int32_t* const c = there.put(col_idx.data(), nnz);
    T* const v = there.put(values.data(), nnz);
    product.download(p, c, v);
    row_ptr = there.get(p, product.rows() + 1);
    col_idx = there.get(c, nnz);
    values = there.get(v, nnz);
    CsrMatrix<T> out;
    out.rows = product.rows();
    out.cols = product.cols();
    out.row_ptr.assign(row_ptr.begin(), row_ptr.end());
    out.col_idx = HostVector<std::int32_t>(col_idx.begin(), col_idx.end());
    out.values.assign(values.begin(), values.end());
    return out;
}

template <class T>
void expect_entries(const CsrMatrix<T>& found, const CsrMatrix<T>& expected, const char* name)
{
    EXPECT_TRUE(
        std::equal(found.row_ptr.begin(), found.row_ptr.end(), expected.row_ptr.begin(), expected.row_ptr.end()))
        << name;
    ASSERT_EQ(found.nnz(), expected.nnz()) << name;
    for (std::int64_t i = 0; i < found.nnz(); ++i) {
        ASSERT_EQ(found.col_idx[i], expected.col_idx[i]) << name << " " << i;
        ASSERT_EQ(found.values[static_cast<std::size_t>(i)], expected.values[static_cast<std::size_t>(i)]) << name;
    }
}

TEST_P(CallerArrays, ProductsAreDownloadedThere)
{
    const auto a = stencil27<double>(12, 11, 10);
    int in_runs = 0;
    // All of C on the devices, and, where memory is short, in runs of rows that are on the host.
    for (const double limit : {0.9, 1e6, 6e5, 4e5, 2e5}) {
        There there(*runtime_);
        SparseProduct<double> product;
        try {
            product = SparseProduct<double>(*runtime_, a.view(), a.view(), {.memory_limit = limit});
            EXPECT_NE(usage_message([&] { product.download(nullptr, nullptr, nullptr); }).find("before compute()"),
                      std::string::npos);
            product.compute(2.0);
        } catch (const Error& e) {
            ASSERT_EQ(e.code(), ErrorCode::out_of_memory) << e.what();  // a kernel may need more for itself
            continue;
        }
        in_runs += product.plan().chunked() ? 1 : 0;
        const CsrMatrix<double> expected = product.download();
        EXPECT_TRUE(verify_spgemm<double>(a.view(), a.view(), 2.0, expected.view()).passed);
        expect_entries(downloaded_there(there, product), expected, "there");
        // Into host memory, and not all of it.
        std::vector<std::int64_t> row_ptr(static_cast<std::size_t>(a.rows) + 1, -1);
        std::vector<double> values(static_cast<std::size_t>(product.nnz()));
        product.download(row_ptr.data(), nullptr, nullptr);
        product.download(nullptr, nullptr, values.data());
        EXPECT_TRUE(std::equal(row_ptr.begin(), row_ptr.end(), expected.row_ptr.begin(), expected.row_ptr.end()));
        EXPECT_TRUE(std::equal(values.begin(), values.end(), expected.values.begin(), expected.values.end()));
    }
    EXPECT_GE(in_runs, 1);
    There there(*runtime_);
    const CsrMatrix<double> without_rows{0, a.rows, HostVector<std::int64_t>{0}, IndexArray(IndexType::i32, 0), {}};
    SparseProduct<double> empty(*runtime_, without_rows.view(), a.view());
    empty.compute();
    EXPECT_EQ(downloaded_there(there, empty).row_ptr, HostVector<std::int64_t>{0});
    SparseProduct<double> pruned_product(*runtime_, a.view(), a.view(), {.prune_below = 1e300});
    pruned_product.compute();
    EXPECT_EQ(pruned_product.download().nnz(), 0);
    EXPECT_EQ(downloaded_there(there, pruned_product).nnz(), pruned_product.nnz());
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

}  // namespace
}  // namespace rmsp::test
