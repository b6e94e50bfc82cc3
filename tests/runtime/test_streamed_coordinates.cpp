#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "formats.hpp"
#include "given.hpp"
#include "matrices.hpp"

namespace rmsp::test {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

class StreamedCoordinatesTest : public Formats {};

/// Wide indices, of which host devices stream pieces as well.
template <class T>
struct WideCoo {
    explicit WideCoo(CooMatrix<T> matrix) : coo(std::move(matrix))
    {
        for (std::int64_t i = 0; i < coo.nnz(); ++i) {
            rows.push_back(coo.row_idx[i]);
            columns.push_back(coo.col_idx[i]);
        }
    }
    CooView<T> view() const { return {coo.rows, coo.cols, coo.nnz(), rows.data(), columns.data(), coo.values.data()}; }
    CooMatrix<T> coo;
    std::vector<std::int64_t> rows;
    std::vector<std::int64_t> columns;
};

TEST_P(StreamedCoordinatesTest, CoordinatesStreamedWithTheirRowIndices)
{
    DistributeOptions options;
    options.mode = Mode::streamed;
    options.chunk_bytes = 4096;
    options.alignment = RowAlignment::exact;
    options.coordinates = StreamCoordinates::indices;
    options.unsorted = Unsorted::split;
    options.encoding = StreamEncoding::automatic;  // of CSR only: nothing is encoded
    for (const auto& [name, a] : matrices<double>()) {
        const CooMatrix<double> by_row = to_coo(a.view());
        const CooMatrix<double> by_column = to_coo(to_csc(a.view()).view());
        for (const CooMatrix<double>* given : {&by_row, &by_column}) {
            const WideCoo<double> sorted(*given);
            const WideCoo<double> unsorted(shuffled(*given));
            for (const CooView<double>& view : {given->view(), sorted.view(), unsorted.coo.view(), unsorted.view()}) {
                auto matrix = runtime_->distribute(view, options);
                const std::string what = name + ", order " + std::to_string(static_cast<int>(matrix.plan().order));
                EXPECT_EQ(matrix.plan().format, Format::coo);
                check_host_vectors(what, a, matrix, {false});
                check_device_vectors(what, a, matrix, {false});
            }
        }
    }
}

TEST_P(StreamedCoordinatesTest, StreamedCoordinatesGiveTheirDiagonal)
{
    const auto a = stencil27<float>(7, 6, 5);
    DistributeOptions options;
    options.mode = Mode::streamed;
    options.coordinates = StreamCoordinates::indices;
    options.unsorted = Unsorted::split;
    for (const auto& coo : {to_coo(a.view()), shuffled(to_coo(a.view()))}) {
        auto matrix = runtime_->distribute(coo.view(), options);
        std::vector<float> diagonal(static_cast<std::size_t>(a.rows));
        matrix.diagonal().download(diagonal.data());
        for (std::int64_t row = 0; row < a.rows; ++row) {
            for (std::int64_t i = a.row_ptr[at(row)]; i < a.row_ptr[at(row) + 1]; ++i) {
                if (a.col_idx[i] == row) {
                    EXPECT_EQ(diagonal[at(row)], a.values[at(i)]);
                }
            }
        }
    }
}

TEST_P(StreamedCoordinatesTest, StreamedCoordinatesRefuseKernelsThatSort)
{
    const auto a = stencil27<double>(7, 6, 5);
    const WideCoo<double> wide(shuffled(to_coo(a.view())));
    DistributeOptions options;
    options.mode = Mode::streamed;
    options.unsorted = Unsorted::split;
    options.kernel = runtime_->devices().front().kind == DeviceKind::host ? "coo-openmp-scatter" : "coo-to-csr";
    try {
        static_cast<void>(runtime_->distribute(wide.view(), options));
        FAIL() << "taken";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::usage);
        EXPECT_NE(std::string(e.what()).find("without having them on the device"), std::string::npos) << e.what();
    }
}

INSTANTIATE_TEST_SUITE_P(Machines, StreamedCoordinatesTest,
                         testing::Values(Machine{"host:1", "", 0}, Machine{"host:2", "", 0}, Machine{"host:3x1", "", 0},
                                         Machine{"host:5x1", "", 0}, Machine{"0", "", 1}, Machine{"0,1", "", 2},
                                         Machine{"0,1,2,3", "", 4}, Machine{"shared:0,0,0", "", 1},
                                         Machine{"shared:0,1,0,1", "", 2}),
                         machine_name);

}  // namespace
}  // namespace rmsp::test
