#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "apply_fixtures.hpp"
#include "matrices.hpp"
#include "read_little.hpp"

namespace rmsp::test {
namespace {

constexpr std::int64_t small_chunk = 2048;

class Streamed : public RuntimeTest {
protected:
    static DistributeOptions options()
    {
        DistributeOptions options;
        options.mode = Mode::streamed;
        options.chunk_bytes = small_chunk;
        options.alignment = RowAlignment::exact;
        return options;
    }

    template <class T>
    void check_host_apply(const char* name, const CsrView<T>& a, const DistributeOptions& options)
    {
        SCOPED_TRACE(name);
        auto matrix = runtime_->distribute(a, options);
        EXPECT_EQ(matrix.plan().mode, "streamed");
        expect_products<T>(name, std::move(matrix), a);
    }
};

/// The same matrix with wide columns, which host devices stream in pieces as well.
template <class T>
struct Wide {
    explicit Wide(const CsrMatrix<T>& matrix) : a(matrix), columns(static_cast<std::size_t>(matrix.nnz()))
    {
        for (std::int64_t i = 0; i < a.nnz(); ++i) {
            columns[static_cast<std::size_t>(i)] = a.col_idx[i];
        }
    }
    CsrView<T> view() const
    {
        CsrView<T> v = a.view();
        v.col_idx = columns.data();
        return v;
    }
    const CsrMatrix<T>& a;
    std::vector<std::int64_t> columns;
};

TEST_P(Streamed, HardMatricesOfAnyIndexWidth)
{
    for (const auto& [name, a] : hard_matrices<double>()) {
        check_host_apply(name, a.view(), options());
        const std::vector<std::int32_t> row_ptr(a.row_ptr.begin(), a.row_ptr.end());
        const Wide wide(a);
        auto view = wide.view();
        view.row_ptr = row_ptr.data();
        check_host_apply(name, view, options());
    }
}

TEST_P(Streamed, HardMatricesInFloat)
{
    for (const auto& [name, a] : hard_matrices<float>()) {
        check_host_apply(name, Wide(a).view(), options());
    }
}

TEST_P(Streamed, HundredsOfPiecesWithAndWithoutLocking)
{
    // Arrays of many pages, so that GPUs copy from locked pages, and from the ends that share theirs with other data.
    const auto a = stencil27<double>(24, 23, 22);
    for (const bool pin : {true, false}) {
        for (const std::int64_t chunk : {std::int64_t{6000}, std::int64_t{1} << 20}) {
            auto o = options();
            o.pin = pin;
            o.chunk_bytes = chunk;
            check_host_apply("stencil", a.view(), o);
            check_host_apply("stencil, wide", Wide(a).view(), o);
        }
    }
}

TEST_P(Streamed, EveryKernelThatReadsTheMatrixInPlace)
{
    const auto kind = runtime_->devices().front().kind;
    const auto a = with_row_lengths<double>({3, 0, 900, 5, 5, 1, 0, 77, 4000, 2}, 5000);
    const Wide wide(a);
    int used = 0;
    for (const auto& kernel : list_kernels()) {
        if (kernel.family != "spmv" || kernel.format != Format::csr || kernel.device != kind || !kernel.compiled) {
            continue;
        }
        auto o = options();
        o.kernel = kernel.name;
        if (kernel.streams) {
            check_host_apply(kernel.name.c_str(), wide.view(), o);
            ++used;
        } else {
            EXPECT_THROW(static_cast<void>(runtime_->distribute(wide.view(), o)), Error) << kernel.name;
            EXPECT_THROW(runtime_->plan(wide.view(), o), Error) << kernel.name;
        }
    }
    EXPECT_GE(used, 2);
}

TEST_P(Streamed, AutomaticKernelsOfRegularRows)
{
    // Enough rows of one length for every specialised kernel; each level of determinism.
    const auto a = with_row_lengths<float>(std::vector<std::int64_t>(70000, 5), 300);
    for (const auto level : {Determinism::none, Determinism::run, Determinism::device_count}) {
        auto o = options();
        o.chunk_bytes = 100000;
        o.determinism = level;
        check_host_apply("regular", Wide(a).view(), o);
    }
}

TEST_P(Streamed, VectorsOnTheDevices)
{
    for (const auto& [name, a] : hard_matrices<double>()) {
        SCOPED_TRACE(name);
        const Wide wide(a);
        auto matrix = runtime_->distribute(wide.view(), options());
        const auto x_host = random_vector<double>(a.cols, 3);
        const auto y_in = random_vector<double>(a.rows, 4);
        for (const auto layout : {Layout::replicated, Layout::rows}) {
            auto x = matrix.make_x(layout);
            auto y = matrix.make_y();
            x.upload(x_host.data());
            for (const double beta : {0.0, 2.0}) {
                y.upload(y_in.data());
                matrix.apply(-0.5, x, beta, y);
                std::vector<double> out(static_cast<std::size_t>(a.rows), 99);
                y.download(out.data());
                const auto v = verify_spmv(a.view(), -0.5, x_host.data(), beta, y_in.data(), out.data());
                EXPECT_TRUE(v.passed) << "beta " << beta << ", row " << v.worst_row << ", error " << v.error;
            }
        }
    }
}

TEST_P(Streamed, ALoopOfAppliesReusesTheSlotsInOrder)
{
    // Nothing waits between the applies: the copies of each run into the kernels of the one before.
    const auto a = stencil27<double>(9, 8, 7);
    const Wide wide(a);
    auto matrix = runtime_->distribute(wide.view(), options());
    auto resident = runtime_->distribute(a.view());
    const auto start = random_vector<double>(a.cols, 5);
    const auto run = [&](DistributedMatrix<double>& m) {
        auto x = m.make_x(Layout::rows);
        auto y = m.make_x(Layout::rows);
        x.upload(start.data());
        for (int i = 0; i < 25; ++i) {
            static_cast<void>(m.apply_async(0.2, x, 0.0, y));
            std::swap(x, y);
        }
        std::vector<double> out(start.size());
        x.download(out.data());
        return out;
    };
    const auto expected = run(resident);
    const auto out = run(matrix);
    for (std::size_t i = 0; i < out.size(); ++i) {
        EXPECT_NEAR(out[i], expected[i], 1e-9 * (1 + std::fabs(expected[i])));
    }
}

TEST_P(Streamed, RepeatsBitForBitWhereDeterminismIsAsked)
{
    const auto a = with_row_lengths<double>({3000, 0, 1, 700, 700, 2, 9000, 4}, 4000);
    const Wide wide(a);
    auto o = options();
    o.determinism = Determinism::run;
    expect_repeated_bits(runtime_->distribute(wide.view(), o));
}

TEST_P(Streamed, TheSameBitsOnAnyNumberOfDevices)
{
    const auto a = with_row_lengths<double>({3000, 0, 1, 700, 700, 2, 9000, 4}, 4000);
    const Wide wide(a);
    auto o = options();
    o.determinism = Determinism::device_count;
    const auto x = random_vector<double>(a.cols, 10);
    const auto run = [&](Runtime& runtime) {
        std::vector<double> y(static_cast<std::size_t>(a.rows));
        runtime.distribute(wide.view(), o).apply(1.0, x.data(), 0.0, y.data());
        return y;
    };
    RuntimeOptions one;
    one.devices = GetParam().gpus > 0 ? "0" : "host:1";
    Runtime single(one);
    EXPECT_EQ(run(*runtime_), run(single));
}

TEST_P(Streamed, NewValuesAreThoseOfTheSameArray)
{
    auto a = with_row_lengths<double>({10, 0, 5000, 20, 3, 1}, 6000);
    const Wide wide(a);
    const auto x = random_vector<double>(a.cols, 8);
    std::vector<double> y(static_cast<std::size_t>(a.rows));
    for (const auto& view : {a.view(), wide.view()}) {
        auto matrix = runtime_->distribute(view, options());
        for (unsigned round = 0; round < 3; ++round) {
            const auto values = random_vector<double>(a.nnz(), 100 + round);
            std::copy(values.begin(), values.end(), a.values.begin());
            matrix.update_values(a.values.data());
            matrix.apply(1.0, x.data(), 0.0, y.data());
            EXPECT_TRUE(verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed);
        }
        const std::vector<double> others(a.values.begin(), a.values.end());
        EXPECT_THROW(matrix.update_values(others.data()), Error);
    }
}

TEST_P(Streamed, SeveralMatricesMayStreamTheSameArrays)
{
    const auto a = stencil27<double>(20, 20, 20);
    const auto x = random_vector<double>(a.cols, 8);
    std::vector<double> y(static_cast<std::size_t>(a.rows));
    auto first = runtime_->distribute(a.view(), options());
    auto second = runtime_->distribute(a.view(), options());
    for (const std::string& note : second.report().notes) {
        EXPECT_EQ(note.find("refused"), std::string::npos) << note;
    }
    for (auto* matrix : {&first, &second}) {
        matrix->apply(1.0, x.data(), 0.0, y.data());
        EXPECT_TRUE(verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed);
    }
    first = {};
    second.apply(1.0, x.data(), 0.0, y.data());
    EXPECT_TRUE(verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed);
}

TEST_P(Streamed, MeasuresAndReports)
{
    read_little(*runtime_);
    const auto a = with_row_lengths<double>({30, 0, 5000, 20, 3, 1}, 6);
    const Wide wide(a);
    auto matrix = runtime_->distribute(wide.view(), options());
    const auto x = random_vector<double>(a.cols, 11);
    const auto y_in = random_vector<double>(a.rows, 12);
    using Vectors = DistributedMatrix<double>::Vectors;
    std::vector<double> y(static_cast<std::size_t>(a.rows));
    for (const auto vectors : {Vectors::host, Vectors::replicated, Vectors::rows}) {
        const auto m = matrix.measure(vectors, 1, 3, 2.0, x.data(), 0.5, y_in.data(), y.data());
        EXPECT_TRUE(verify_spmv(a.view(), 2.0, x.data(), 0.5, y_in.data(), y.data()).passed);
        EXPECT_EQ(m.name, "spmv/csr/double/streamed");
        EXPECT_GT(m.limit_gbs, 0);
        EXPECT_EQ(m.limit_source, GetParam().gpus > 0 ? "measured host-to-device copies" : "measured read bandwidth");
        EXPECT_GE(m.bytes, 12.0 * static_cast<double>(a.nnz()));
        for (const char* phase : {"stream", "pointers"}) {
            EXPECT_EQ(std::count_if(m.phases.begin(), m.phases.end(), [&](const auto& p) { return p.name == phase; }),
                      1)
                << phase;
        }
        EXPECT_EQ(m.limit_before_gbs > 0 && m.limit_after_gbs > 0, GetParam().gpus > 0);
    }
    auto on_host = options();
    on_host.row_pointers = RowPointers::host;
    const auto m =
        runtime_->distribute(wide.view(), on_host).measure(Vectors::host, 1, 3, 2.0, x.data(), 0.0, nullptr, y.data());
    EXPECT_TRUE(std::any_of(m.phases.begin(), m.phases.end(), [](const auto& p) { return p.name == "pointers"; }));
    const Report report = matrix.report();
    EXPECT_EQ(report.measurements.size(), 3u);
    EXPECT_GT(report.plan.shards.front().limit_gbs, 0);
    EXPECT_NE(report.to_text().find("streamed"), std::string::npos);
}

TEST_P(Streamed, RefusesChunksThatHoldNothingAndStaysUsable)
{
    const auto a = with_row_lengths<double>({1, 2}, 3);
    for (const std::int64_t bytes : {std::int64_t{1023}, std::int64_t{1}, std::int64_t{-1}}) {
        auto o = options();
        o.chunk_bytes = bytes;
        EXPECT_THROW(static_cast<void>(runtime_->distribute(a.view(), o)), Error);
        EXPECT_THROW(runtime_->plan(a.view(), o), Error);
    }
    auto largest = options();
    largest.chunk_bytes = std::numeric_limits<std::int64_t>::max();
    check_host_apply("largest chunks", Wide(a).view(), largest);
    auto automatic = options();
    automatic.chunk_bytes = 0;
    check_host_apply("chunks as chosen", Wide(a).view(), automatic);
}

TEST_P(Streamed, EncodedPiecesOfHardMatrices)
{
    auto o = options();
    o.encoding = StreamEncoding::automatic;
    o.chunk_bytes = 8192;
    for (auto& [name, a] : hard_matrices<double>()) {
        // Pieces of different classes behind each other: integers, few fractions, any values.
        for (std::int64_t i = 0; i < a.nnz(); ++i) {
            const std::int64_t stretch = i / 700 % 3;
            if (stretch < 2) {
                a.values[static_cast<std::size_t>(i)] = static_cast<double>(i % 50 - 25) / (stretch == 0 ? 1 : 7);
            }
        }
        check_host_apply(name, Wide(a).view(), o);
        check_host_apply(name, a.view(), o);
    }
    for (auto& [name, a] : hard_matrices<float>()) {
        std::fill(a.values.begin(), a.values.end(), 0.25F);
        check_host_apply(name, Wide(a).view(), o);
    }
}

TEST_P(Streamed, AnEncodedLoopGivesTheBitsOfTheRawOne)
{
    auto a = stencil27<double>(24, 23, 22);
    std::fill(a.values.begin(), a.values.end(), 0.03);
    const Wide wide(a);
    const auto x = random_vector<double>(a.cols, 3);
    const auto run = [&](StreamEncoding encoding, std::int64_t chunk) {
        auto o = options();
        o.determinism = Determinism::run;
        o.encoding = encoding;
        o.chunk_bytes = chunk;
        auto matrix = runtime_->distribute(wide.view(), o);
        auto from = matrix.make_x(Layout::rows);
        auto to = matrix.make_x(Layout::rows);
        from.upload(x.data());
        for (int i = 0; i < 10; ++i) {
            static_cast<void>(matrix.apply_async(1.0, from, 0.0, to));
            std::swap(from, to);
        }
        std::vector<double> out(x.size());
        from.download(out.data());
        return out;
    };
    for (const std::int64_t chunk : {std::int64_t{6000}, std::int64_t{300000}, std::int64_t{1} << 30}) {
        EXPECT_EQ(run(StreamEncoding::automatic, chunk), run(StreamEncoding::none, chunk));
    }
}

TEST_P(Streamed, PacketsOfManyRowsAreMultipliedAsTheyAre)
{
    // Short rows: of one or two devices the first piece, of 4 MiB, has the 32768 rows that this takes, and the last has
    // fewer, which are decoded.
    auto a = stencil7<double>(45, 44, 43);
    auto o = options();
    o.chunk_bytes = 0;
    o.encoding = StreamEncoding::automatic;
    for (const double unit : {1.0, 0.25, 1.0 / 3}) {
        for (std::int64_t i = 0; i < a.nnz(); ++i) {
            a.values[static_cast<std::size_t>(i)] = static_cast<double>(i % 7 - 3) * unit;
        }
        check_host_apply("stencil", Wide(a).view(), o);
    }
    o.determinism = Determinism::device_count;
    check_host_apply("stencil, the same bits everywhere", a.view(), o);
}

TEST_P(Streamed, NewValuesAreEncodedAnew)
{
    auto a = stencil27<double>(13, 12, 11);
    const Wide wide(a);
    auto o = options();
    o.encoding = StreamEncoding::automatic;
    o.chunk_bytes = 20000;
    std::fill(a.values.begin(), a.values.end(), 1.0);
    auto matrix = runtime_->distribute(wide.view(), o);
    const auto x = random_vector<double>(a.cols, 8);
    std::vector<double> y(static_cast<std::size_t>(a.rows));
    // Packets that grow and shrink.
    for (int round = 0; round < 5; ++round) {
        for (std::int64_t i = 0; i < a.nnz(); ++i) {
            a.values[static_cast<std::size_t>(i)] =
                round % 2 == 0 ? std::sin(static_cast<double>(i)) : static_cast<double>(i % (1000 * round));
        }
        matrix.update_values(a.values.data());
        matrix.apply(1.0, x.data(), 0.0, y.data());
        EXPECT_TRUE(verify_spmv<double>(a.view(), 1.0, x.data(), 0.0, nullptr, y.data()).passed);
    }
}

TEST_P(Streamed, TheReportSaysWhatAnEncodedMatrixCosts)
{
    if (GetParam().gpus == 0) {
        GTEST_SKIP() << "nothing crosses a link";
    }
    auto a = stencil27<double>(24, 23, 22);
    std::fill(a.values.begin(), a.values.end(), -1.0);
    auto o = options();
    o.encoding = StreamEncoding::automatic;
    o.chunk_bytes = std::int64_t{1} << 20;
    auto matrix = runtime_->distribute(a.view(), o);
    const auto x = random_vector<double>(a.cols, 11);
    const auto m =
        matrix.measure(DistributedMatrix<double>::Vectors::replicated, 1, 3, 1.0, x.data(), 0.0, nullptr, nullptr);
    EXPECT_GE(m.raw_bytes, 12.0 * static_cast<double>(a.nnz()));
    EXPECT_LT(10 * m.bytes, m.raw_bytes);
    const Report report = matrix.report();
    EXPECT_TRUE(
        std::any_of(report.setup.begin(), report.setup.end(), [](const auto& p) { return p.name == "encode"; }));
    EXPECT_NE(report.to_text().find("bytes a nonzero over the links"), std::string::npos);
}

TEST_P(Streamed, AMatrixLargerThanAllDeviceMemory)
{
    // Memory for x, y and a fraction of the matrix.
    const auto a = stencil27<double>(24, 23, 22);
    const Wide wide(a);
    for (const auto encoding : {StreamEncoding::none, StreamEncoding::automatic}) {
        auto o = options();
        o.encoding = encoding;
        o.chunk_bytes = std::int64_t{16} << 20;
        o.device_bytes = a.rows * 16 + a.nnz() * 12 / 40;
        check_host_apply("a cap on device memory", wide.view(), o);
    }
}

TEST_P(Streamed, SaysThatNotEvenTheSmallestPiecesFit)
{
    const auto a = stencil27<double>(24, 23, 22);
    const Wide wide(a);
    auto o = options();
    for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{2000}}) {
        o.device_bytes = bytes;
        try {
            static_cast<void>(runtime_->distribute(wide.view(), o));
            ADD_FAILURE() << "no error with " << bytes << " bytes";
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::out_of_memory);
            EXPECT_NE(std::string(e.what()).find("a streamed matrix on "), std::string::npos) << e.what();
        }
    }
    o.device_bytes = -1;
    EXPECT_THROW(static_cast<void>(runtime_->distribute(wide.view(), o)), Error);
    EXPECT_THROW(runtime_->plan(wide.view(), o), Error);
    o.device_bytes = 0;
    check_host_apply("without a cap", wide.view(), o);
}

INSTANTIATE_TEST_SUITE_P(Machines, Streamed, testing::ValuesIn(machines()), machine_name);

}  // namespace
}  // namespace rmsp::test
