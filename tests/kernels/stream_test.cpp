#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include <kernels/steps/stream/stream.hpp>

#include "matrices.hpp"
#include "test_device.hpp"

namespace rmsp::kernels::test {
namespace {

constexpr double any_share = 1e9;

template <class T>
CsrPiece<T> whole(const HostCsr<T>& a)
{
    return {a.row_ptr.data(), a.col_idx.data(), a.values.data(), 0, a.rows, 0, a.nnz()};
}

/// The same rows with other columns or values.
template <class T>
HostCsr<T> rows_of(const std::vector<std::int64_t>& lengths,
                   const std::function<std::int32_t(std::int64_t, std::int64_t)>& column,
                   const std::function<T(std::int64_t)>& value)
{
    HostCsr<T> a;
    a.rows = static_cast<std::int64_t>(lengths.size());
    a.cols = std::numeric_limits<std::int32_t>::max();
    for (std::int64_t row = 0; row < a.rows; ++row) {
        for (std::int64_t k = 0; k < lengths[static_cast<std::size_t>(row)]; ++k) {
            a.col_idx.push_back(column(row, k));
            a.values.push_back(value(a.nnz()));
        }
        a.row_ptr.push_back(a.nnz());
    }
    return a;
}

template <class T>
HostCsr<T> stencil(int nx, int ny, const std::function<T(std::int64_t)>& value)
{
    HostCsr<T> a;
    a.rows = a.cols = std::int64_t{nx} * ny;
    for (int y = 0; y < ny; ++y) {
        for (int x = 0; x < nx; ++x) {
            for (int dy = -1; dy <= 1; ++dy) {
                for (int dx = -1; dx <= 1; ++dx) {
                    if (x + dx >= 0 && x + dx < nx && y + dy >= 0 && y + dy < ny) {
                        a.col_idx.push_back((y + dy) * nx + x + dx);
                        a.values.push_back(value(a.nnz()));
                    }
                }
            }
            a.row_ptr.push_back(a.nnz());
        }
    }
    return a;
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& v)
{
    std::vector<std::byte> bytes(v.size() * sizeof(T));
    if (!v.empty()) {
        std::memcpy(bytes.data(), v.data(), bytes.size());
    }
    return bytes;
}

class Encoding : public testing::Test {
protected:
    void SetUp() override
    {
        if (!device_missing().empty()) {
            GTEST_SKIP() << device_missing();
        }
        device_ = open_device();
    }

    /// Multiplies the packet as it is, with each kind of beta.
    template <class T>
    void check_product(const CsrPiece<T>& piece, const PacketLayout& layout, const std::byte* packet)
    {
        std::int64_t cols = 1;
        for (std::int64_t i = piece.first; i < piece.first + piece.nnz; ++i) {
            cols = std::max(cols, piece.col_idx[i] + 1);
            if (cols > (1 << 24) || !std::isfinite(piece.values[i])) {
                return;
            }
        }
        std::vector<T> x(static_cast<std::size_t>(cols));
        for (std::size_t i = 0; i < x.size(); ++i) {
            x[i] = static_cast<T>(static_cast<int>(i % 17) - 8);
        }
        const auto rows = static_cast<std::size_t>(piece.rows);
        const DeviceArray<T> device_x = upload(*device_, x);
        for (const T beta : {T{0}, T{1}, T(-2)}) {
            const DeviceArray<T> device_y =
                upload(*device_, std::vector<T>(rows + 1, beta == T{0} ? std::numeric_limits<T>::quiet_NaN() : T{3}));
            multiply_packet(layout, packet, T(0.5), device_x.data(), beta, device_y.data(), device_->context());
            const std::vector<T> y = download(*device_, device_y.data(), rows + 1);
            for (std::size_t row = 0; row < rows; ++row) {
                const auto at = piece.first_row + static_cast<std::int64_t>(row);
                double sum = 0;
                double size = 0;
                const std::int64_t end = std::min(piece.row_ptr[at + 1], piece.first + piece.nnz);
                for (std::int64_t i = std::max(piece.row_ptr[at], piece.first); i < end; ++i) {
                    const double product = static_cast<double>(piece.values[i]) *
                                           static_cast<double>(x[static_cast<std::size_t>(piece.col_idx[i])]);
                    sum += product;
                    size += std::abs(product);
                }
                const double bound = static_cast<double>(end - piece.row_ptr[at] + 8) *
                                     static_cast<double>(std::numeric_limits<T>::epsilon()) * (size + 10);
                EXPECT_NEAR(static_cast<double>(y[row]), 0.5 * sum + static_cast<double>(beta) * 3, bound) << row;
            }
            EXPECT_EQ(y[rows] == T{3}, beta != T{0});
        }
    }

    /// Encodes, decodes on the device, and compares every bit; nothing else is written.
    template <class T>
    PacketLayout check(const CsrPiece<T>& piece, double share = any_share)
    {
        const Packet packet = encode_piece(piece, share);
        const PacketLayout& layout = packet.layout;
        EXPECT_EQ(static_cast<std::size_t>(layout.bytes), packet.bytes.size());
        if (!layout.encoded()) {
            EXPECT_EQ(layout, PacketLayout{});
            return layout;
        }
        const auto rows = static_cast<std::size_t>(piece.rows);
        const auto nnz = static_cast<std::size_t>(piece.nnz);
        // What must not be written lies behind each array.
        constexpr std::int32_t guard = 0x5aa5a55a;
        std::vector<std::int32_t> row_ptr(rows + 1);
        for (std::size_t i = 0; i <= rows; ++i) {
            row_ptr[i] = static_cast<std::int32_t>(std::clamp<std::int64_t>(
                piece.row_ptr[piece.first_row + static_cast<std::int64_t>(i)] - piece.first, 0, piece.nnz));
        }
        std::vector<std::int32_t> columns(nnz, guard);
        if (layout.columns != ColumnCode::raw) {
            for (std::size_t i = 0; i < nnz; ++i) {
                columns[i] = static_cast<std::int32_t>(piece.col_idx[piece.first + static_cast<std::int64_t>(i)]);
            }
        }
        std::vector<T> values(nnz, T(-77));
        if (layout.values != ValueCode::raw) {
            std::copy_n(piece.values + piece.first, nnz, values.begin());
        }
        row_ptr.push_back(guard);
        columns.push_back(guard);
        values.push_back(T(-77));

        const std::vector<std::byte> sent(packet.bytes.begin(), packet.bytes.end());
        const DeviceArray<std::byte> in = upload(*device_, sent);
        const DeviceArray<std::int32_t> out_row_ptr = upload(*device_, std::vector<std::int32_t>(rows + 2, guard));
        const DeviceArray<std::int32_t> out_columns = upload(*device_, std::vector<std::int32_t>(nnz + 1, guard));
        const DeviceArray<T> out_values = upload(*device_, std::vector<T>(nnz + 1, T(-77)));
        decode_packet(layout, in.data(), out_row_ptr.data(), out_columns.data(), out_values.data(), device_->context());
        EXPECT_EQ(download(*device_, out_row_ptr.data(), rows + 2), row_ptr);
        EXPECT_EQ(download(*device_, out_columns.data(), nnz + 1), columns);
        EXPECT_EQ(bytes_of(download(*device_, out_values.data(), nnz + 1)), bytes_of(values));
        if (multipliable(layout)) {
            check_product(piece, layout, in.data());
        }
        return layout;
    }

    std::unique_ptr<TestDevice> device_;
};

TEST(Unpack, ByHand)
{
    // 5-bit codes 1, 31, 0, 2, 3, 4, 30: the last one lies across two words.
    const std::uint32_t words[] = {1u | 31u << 5 | 0u << 10 | 2u << 15 | 3u << 20 | 4u << 25 | 30u << 30, 30u >> 2, 0};
    const std::uint32_t codes[] = {1, 31, 0, 2, 3, 4, 30};
    for (std::uint32_t i = 0; i < 7; ++i) {
        EXPECT_EQ(unpack(words, i, 5), codes[i]);
        EXPECT_EQ(unpack(PackedBlock{100, 7, 0, 5}, words, i), 100 + 7 * i + codes[i]);
        EXPECT_EQ(unpack(PackedBlock{100, static_cast<std::uint32_t>(-7), 0, 0}, words, i), 100u - 7 * i);
    }
    EXPECT_EQ(unpack(words, 0, 32), words[0]);
    EXPECT_EQ(unpack(words, 1, 32), words[1]);
}

TEST_F(Encoding, EveryWidthOfColumnsAndNumberOfRows)
{
    std::mt19937_64 random(3);
    for (int bits = 0; bits <= 31; ++bits) {
        for (const std::int64_t rows : {1, 31, 32, 33, 255, 256, 257}) {
            const std::int64_t low =
                bits == 31
                    ? 0
                    : static_cast<std::int64_t>(random() % ((std::int64_t{1} << 31) - (std::int64_t{1} << bits)));
            const auto column = [&](std::int64_t, std::int64_t) {
                return static_cast<std::int32_t>(low +
                                                 static_cast<std::int64_t>(random() % (std::uint64_t{1} << bits)));
            };
            const auto a = rows_of<double>(std::vector<std::int64_t>(static_cast<std::size_t>(rows), 1 + bits % 4),
                                           column, [&](std::int64_t i) { return static_cast<double>(i % 100) + 0.3; });
            EXPECT_TRUE(check(whole(a)).encoded());
        }
    }
}

TEST_F(Encoding, TheEndsOfTheColumnRange)
{
    const auto last = std::numeric_limits<std::int32_t>::max();
    for (const std::int64_t each : {1, 2, 300}) {
        const auto a = rows_of<float>(
            {each, 0, each, each}, [&](std::int64_t row, std::int64_t k) { return (row + k) % 2 == 0 ? 0 : last; },
            [](std::int64_t i) { return static_cast<float>(i); });
        EXPECT_TRUE(check(whole(a)).encoded());
    }
}

TEST_F(Encoding, HardShapes)
{
    for (const Shape& shape : shapes()) {
        SCOPED_TRACE(shape.name);
        const auto a = make_matrix<double>(shape, 5);
        check(whole(a));
        check(whole(a), 0.9);
        // Pieces that begin and end inside rows, and with wide indices.
        const std::vector<std::int64_t> wide(a.col_idx.begin(), a.col_idx.end());
        for (std::int64_t row = 0; row < a.rows; row += std::max<std::int64_t>(1, a.rows / 3)) {
            CsrPiece<double> piece = whole(a);
            piece.col_idx = wide.data();
            piece.first_row = row;
            piece.rows = std::min<std::int64_t>(a.rows - row, 1 + row % 700);
            const auto begin = a.row_ptr[static_cast<std::size_t>(row)];
            const auto end = a.row_ptr[static_cast<std::size_t>(row + piece.rows)];
            piece.first = begin;
            piece.nnz = end - begin - (end - begin) / 5;
            // Only a single row may begin inside: the others' pieces begin with a row.
            const auto first_end = a.row_ptr[static_cast<std::size_t>(row + 1)];
            if (piece.rows == 1 && first_end - begin > 4) {
                piece.first += 2;
                piece.nnz -= 2;
            }
            // Rows behind the last nonzero are empty here.
            check(piece);
        }
    }
}

TEST_F(Encoding, ColumnsOfAStencilAreOnePatternARow)
{
    std::mt19937_64 random(4);
    const auto a =
        stencil<double>(60, 50, [&](std::int64_t) { return std::ldexp(static_cast<double>(random()), -64); });
    const PacketLayout layout = check(whole(a), 0.9);
    EXPECT_EQ(layout.columns, ColumnCode::patterns);
    EXPECT_EQ(layout.values, ValueCode::raw);
    EXPECT_LT(layout.bytes, a.nnz() / 2);
    // A cut row is a pattern as well, and rows count from the piece's first one.
    CsrPiece<double> piece = whole(a);
    piece.first_row = 7;
    piece.rows = 2900;
    piece.first = a.row_ptr[7];
    piece.nnz = a.row_ptr[2907] - piece.first - 4;
    EXPECT_EQ(check(piece, 0.9).columns, ColumnCode::patterns);
}

TEST_F(Encoding, NeighbouringColumnsTakeNoBits)
{
    const auto a = rows_of<float>(
        std::vector<std::int64_t>(8, 5000),
        [](std::int64_t row, std::int64_t k) { return static_cast<std::int32_t>(1000 * row + k); },
        [](std::int64_t) { return 2.0F; });
    const PacketLayout layout = check(whole(a), 0.9);
    EXPECT_EQ(layout.columns, ColumnCode::packed);
    EXPECT_LT(layout.bytes, a.nnz() / 4);
}

TEST_F(Encoding, ValuesOfEachClass)
{
    const auto with = [&](const std::function<double(std::int64_t)>& value, std::int64_t n = 5000) {
        std::mt19937_64 random(9);
        return rows_of<double>(
            {n / 2, 0, n - n / 2},
            [&](std::int64_t, std::int64_t) { return static_cast<std::int32_t>(random() >> 33); }, value);
    };
    std::mt19937_64 random(8);
    const auto any = [&](std::int64_t) { return std::bit_cast<double>(random()); };
    const auto code = [&](const auto& a) { return check(whole(a), 0.9).values; };
    EXPECT_EQ(code(with([](std::int64_t) { return 1.0; })), ValueCode::integers);
    EXPECT_EQ(code(with([](std::int64_t i) { return static_cast<double>(i % 1000 - 500); })), ValueCode::integers);
    EXPECT_EQ(code(with([](std::int64_t i) { return i % 2 == 0 ? 0x1p30 : -0x1p30; })), ValueCode::dictionary);
    EXPECT_EQ(code(with([](std::int64_t i) { return 0.1 * static_cast<double>(i % 7); })), ValueCode::dictionary);
    EXPECT_EQ(code(with([](std::int64_t i) { return 0.1 * static_cast<double>(i % 600); })), ValueCode::dictionary);
    EXPECT_EQ(code(with([&](std::int64_t) { return static_cast<double>(static_cast<float>(random()) * 0x1p-70F); })),
              ValueCode::floats);
    EXPECT_EQ(code(with(any)), ValueCode::raw);
    // More different ones than a dictionary holds.
    EXPECT_EQ(code(with([](std::int64_t i) { return 0.1 * static_cast<double>(i % 65536); }, 200000)),
              ValueCode::dictionary);
    EXPECT_EQ(code(with([](std::int64_t i) { return 0.1 * static_cast<double>(i % 65537); }, 200000)), ValueCode::raw);
}

template <class T>
std::vector<T> special_values()
{
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    using Limits = std::numeric_limits<T>;
    std::vector<T> v{T{0},
                     -T{0},
                     Limits::infinity(),
                     -Limits::infinity(),
                     Limits::quiet_NaN(),
                     Limits::max(),
                     Limits::lowest(),
                     Limits::min(),
                     Limits::denorm_min(),
                     -Limits::denorm_min(),
                     T(16777216),
                     T(16777217),
                     T(1 << 30),
                     -T(1 << 30),
                     T(0.1F)};
    const auto nan = std::bit_cast<Bits>(Limits::quiet_NaN());
    v.push_back(std::bit_cast<T>(static_cast<Bits>(nan | 12345)));
    v.push_back(std::bit_cast<T>(static_cast<Bits>(nan | Bits{1} << (8 * sizeof(Bits) - 1))));
    v.push_back(static_cast<T>(std::numeric_limits<float>::denorm_min()));
    v.push_back(static_cast<T>(std::numeric_limits<float>::max()));
    return v;
}

TEST_F(Encoding, BitsOfSpecialValuesSurvive)
{
    const auto run = [&](auto type) {
        using T = decltype(type);
        const auto special = special_values<T>();
        // Each one alone among ones that every class takes, and all of them.
        for (std::size_t one = 0; one <= special.size(); ++one) {
            for (const T other : {T{1}, T(0.5)}) {
                const auto a = rows_of<T>(
                    {100, 200, 300}, [](std::int64_t, std::int64_t k) { return static_cast<std::int32_t>(k); },
                    [&](std::int64_t i) {
                        const auto at = static_cast<std::size_t>(i);
                        return one == special.size() ? special[at % one] : i == 317 ? special[one] : other;
                    });
                EXPECT_TRUE(check(whole(a)).encoded());
            }
        }
        // Values that differ too much for a dictionary to be tried first, with a NaN among those that are floats.
        const auto a = rows_of<T>(
            {5000}, [](std::int64_t, std::int64_t k) { return static_cast<std::int32_t>(k); },
            [&](std::int64_t i) {
                return i == 77 ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(static_cast<float>(i) * 0.37F);
            });
        check(whole(a));
    };
    run(float{});
    run(double{});
}

TEST_F(Encoding, NothingIsEncodedThatSavesNothing)
{
    std::mt19937_64 random(12);
    const auto a = rows_of<double>(
        std::vector<std::int64_t>(50, 40),
        [&](std::int64_t, std::int64_t) { return static_cast<std::int32_t>(random() >> 33); },
        [&](std::int64_t) { return std::bit_cast<double>(random()); });
    EXPECT_FALSE(encode_piece(whole(a), 0.9).layout.encoded());
    const auto constant = rows_of<double>(
        std::vector<std::int64_t>(50, 40), [](std::int64_t, std::int64_t) { return 3; },
        [](std::int64_t) { return 1.0; });
    EXPECT_TRUE(encode_piece(whole(constant), 0.9).layout.encoded());
    EXPECT_FALSE(encode_piece(whole(constant), 0.0).layout.encoded());
    const auto empty = rows_of<double>(
        {0, 0, 0}, [](std::int64_t, std::int64_t) { return 3; }, [](std::int64_t) { return 1.0; });
    EXPECT_FALSE(encode_piece(whole(empty), 0.9).layout.encoded());
}

TEST_F(Encoding, EqualMatricesGiveEqualPackets)
{
    const auto a = make_matrix<float>(shapes().back(), 6);
    const Packet one = encode_piece(whole(a), any_share);
    const Packet two = encode_piece(whole(a), any_share);
    EXPECT_EQ(one.layout, two.layout);
    EXPECT_EQ(one.bytes, two.bytes);
}

}  // namespace
}  // namespace rmsp::kernels::test
