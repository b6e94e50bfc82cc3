#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <kernels/spmv/sell/layout.hpp>
#include <kernels/values.hpp>

#include "spmv_fixtures.hpp"

// What kernel "sell" does with the structure and the values of a matrix. All numbers are such that results are exact.
namespace rmsp::kernels::test {
namespace {

/// Entry k of a row; `step` counts how often the values were renewed.
template <class T>
using Values = std::function<T(std::int64_t row, std::int64_t k, int step)>;

/// Values of which no slice has few, nor floats.
template <class T>
T varied(std::int64_t row, std::int64_t k, int step)
{
    return wide<T>((row * 613 + k * 89 + step) % 4001 - 2000);
}

template <class T>
T few(std::int64_t row, std::int64_t k, int step)
{
    return static_cast<T>((row * 7 + k + step) % 9 - 4);
}

template <class T>
void renew_values(HostCsr<T>& a, const Values<T>& values, int step)
{
    for (std::int64_t row = 0; row < a.rows; ++row) {
        const std::int64_t begin = a.row_ptr[static_cast<std::size_t>(row)];
        for (std::int64_t i = begin; i < a.row_ptr[static_cast<std::size_t>(row) + 1]; ++i) {
            a.values[static_cast<std::size_t>(i)] = values(row, i - begin, step);
        }
    }
}

/// Multiplies with both widths of row pointers, and `steps` values. Returns the bytes that the operator keeps at each
/// step.
template <class T>
std::vector<std::int64_t> multiply_steps(TestDevice& device, HostCsr<T> a, const Values<T>& entries, int steps)
{
    const std::vector<T> x = small_integers<T>(a.cols);
    std::vector<std::int64_t> bytes(static_cast<std::size_t>(steps));
    for (const Offsets offsets : {Offsets::i32, Offsets::i64}) {
        DeviceCsr<T> d(device, a, offsets);
        std::unique_ptr<SpmvOperator<T>> op;
        for (int step = 0; step < steps; ++step) {
            renew_values(a, entries, step);
            d.renew(device, a);
            if (op) {
                op->update_values(device.context());
            } else {
                op = prepare_named("sell", d.shard, statistics(a.row_ptr), device.context());
            }
            bytes[static_cast<std::size_t>(step)] = op->workspace_bytes();
            EXPECT_TRUE(multiplies_exactly(device, *op, a, x))
                << "step " << step << (offsets == Offsets::i64 ? ", 64-bit row pointers" : "");
            if (testing::Test::HasFailure()) {
                return bytes;
            }
        }
    }
    return bytes;
}

/// With values that are kept as they are, and with such that are not. Returns the bytes of the former.
template <class T>
std::int64_t multiply(TestDevice& device, const HostCsr<T>& a)
{
    multiply_steps<T>(device, a, few<T>, 2);
    return multiply_steps<T>(device, a, varied<T>, 2).back();
}

std::int64_t groups(std::int64_t width) { return (width + slice_group - 1) / slice_group; }

/// Bytes of one slice, and of one that is left in CSR.
constexpr auto header = static_cast<std::int64_t>(sizeof(Slice) + slice_rows * sizeof(Slot));

template <class T>
std::int64_t stored(int width, SliceCode code, SliceValues values = SliceValues::raw, int distinct = 0)
{
    return header + std::int64_t{slice_block_bytes} * value_blocks(values, width, distinct, sizeof(T)) +
           (code != SliceCode::bytes4 ? groups(width) * 16 : 0) + slice_block_bytes * code_blocks(width, code);
}

/// So many slices alike; those of diagonals share their bases.
template <class T>
std::int64_t stored_alike(int slices, int width, SliceCode code, SliceValues values = SliceValues::raw,
                          int distinct = 0)
{
    const bool diagonals = code == SliceCode::diagonal || code == SliceCode::masked;
    return slices * stored<T>(width, code, values, distinct) - (diagonals ? (slices - 1) * groups(width) * 16 : 0);
}

template <class T>
class Sell : public PrecisionTest<T> {
};
TYPED_TEST_SUITE(Sell, Precisions);

TYPED_TEST(Sell, DiagonalsOfAnyWidthTakeNoCodes)
{
    for (int width = 1; width <= 40; ++width) {
        SCOPED_TRACE(width);
        const auto a = matrix_of_rows<TypeParam>(0, 64, 1000, [&](std::int64_t row) {
            std::vector<std::int32_t> columns;
            for (int k = 0; k < width; ++k) {
                columns.push_back(static_cast<std::int32_t>(row) + k * 20);
            }
            return columns;
        });
        EXPECT_EQ(multiply(*this->device_, a), stored_alike<TypeParam>(2, width, SliceCode::diagonal));
    }
}

TYPED_TEST(Sell, RowsThatLackEntriesOfDiagonalsTakeNoCodes)
{
    for (const int width : {2, 3, 7, 27, 31, 32, 33}) {
        // One entry less in a row of each slice, all but one in another, and at the end rows that are not there.
        for (const std::int64_t rows : {64, 1020}) {
            SCOPED_TRACE(std::to_string(width) + " diagonals, " + std::to_string(rows) + " rows");
            const auto a = matrix_of_rows<TypeParam>(0, rows, 3000, [&](std::int64_t row) {
                std::vector<std::int32_t> columns;
                for (int k = 0; k < width; ++k) {
                    if (row % 32 == 3 ? k == width - 1 : row % 32 != 20 || k != row / 32 % width) {
                        columns.push_back(static_cast<std::int32_t>(row) + k * 50);
                    }
                }
                return columns;
            });
            const std::int64_t masked =
                stored_alike<TypeParam>(static_cast<int>(rows + 31) / 32, width, SliceCode::masked);
            const std::int64_t bytes = multiply(*this->device_, a);
            if (width <= slice_rows) {
                EXPECT_EQ(bytes, masked);
            } else {
                EXPECT_GT(bytes, masked);
            }
        }
    }
}

TYPED_TEST(Sell, EntriesKeepTheirOrder)
{
    // Diagonals with holes, but the columns of one row do not ascend, or one of them is there twice.
    for (const bool twice : {false, true}) {
        const auto a = matrix_of_rows<TypeParam>(0, 64, 3000, [&](std::int64_t row) {
            std::vector<std::int32_t> columns;
            for (int k = 0; k < 7; ++k) {
                if (row % 8 != 0 || k != 4) {
                    columns.push_back(static_cast<std::int32_t>(row) + k * 50);
                }
            }
            if (row % 32 == 17) {
                std::swap(columns[2], columns[3]);
                columns[3] = twice ? columns[2] : columns[3];
            }
            return columns;
        });
        EXPECT_EQ(multiply(*this->device_, a), 2 * stored<TypeParam>(7, SliceCode::bytes1));
    }
}

TYPED_TEST(Sell, NeighboursOfTheSameDiagonalsShareTheirBases)
{
    // Diagonals of six slices, of which the fourth has others.
    const auto a = matrix_of_rows<TypeParam>(0, 6 * slice_rows, 3000, [](std::int64_t row) {
        std::vector<std::int32_t> columns;
        for (int k = 0; k < 9; ++k) {
            columns.push_back(static_cast<std::int32_t>(row) + k * (row / slice_rows == 3 ? 60 : 50));
        }
        return columns;
    });
    EXPECT_EQ(multiply(*this->device_, a), 6 * stored<TypeParam>(9, SliceCode::diagonal) - 3 * groups(9) * 16);
}

TYPED_TEST(Sell, CodesAsWideAsTheColumnsAreApart)
{
    for (const int width : {1, 3, 4, 8, 17, 19, 33}) {
        for (const int apart : {0, 1, 255, 256, 65535, 65536, 2'000'000}) {
            SCOPED_TRACE(std::to_string(width) + " wide, " + std::to_string(apart) + " apart");
            const auto a = matrix_of_rows<TypeParam>(0, 32, 2'000'100, [&](std::int64_t row) {
                std::vector<std::int32_t> columns;
                for (int k = 0; k < width; ++k) {
                    columns.push_back(row == 13 ? k : k + apart);
                }
                return columns;
            });
            const SliceCode code = apart <= 255     ? SliceCode::bytes1
                                   : apart <= 65535 ? SliceCode::bytes2
                                                    : SliceCode::bytes4;
            EXPECT_EQ(multiply(*this->device_, a), stored<TypeParam>(width, code));
        }
    }
}

TYPED_TEST(Sell, EachSliceIsStoredInItsOwnWay)
{
    // Slices in turn: diagonals of unequal lengths, empty, nearly empty, far apart, one long row among short ones.
    for (const std::int64_t rows : {1, 31, 32, 33, 159, 160, 161, 255, 256, 257, 1000}) {
        SCOPED_TRACE(rows);
        multiply(*this->device_, matrix_of_rows<TypeParam>(0, rows, 70000, [](std::int64_t row) {
            const auto r = static_cast<std::int32_t>(row);
            std::vector<std::int32_t> columns;
            switch (row / slice_rows % 5) {
                case 0:
                    for (int k = 0; k < 7 + r % 3; ++k) {
                        columns.push_back(r + k);
                    }
                    break;
                case 1:
                    break;
                case 2:
                    columns.resize(r % slice_rows == 5 ? 90 : 0, 69999);
                    break;
                case 3:
                    for (int k = 0; k < 20; ++k) {
                        columns.push_back((r * 7919 + k * 104729) % 70000);
                    }
                    break;
                default:
                    for (int k = 0; k < (r % slice_rows == 9 ? 3000 : 5); ++k) {
                        columns.push_back((r + k * k) % 70000);
                    }
            }
            return columns;
        }));
    }
}

TYPED_TEST(Sell, RowsAroundTheLongestOfASlice)
{
    constexpr int longest = slice_policy.longest_row;
    for (const int length : {longest - 1, longest, longest + 1}) {
        SCOPED_TRACE(length);
        const auto a = matrix_of_rows<TypeParam>(0, 35, 5000, [&](std::int64_t row) {
            std::vector<std::int32_t> columns;
            for (int k = 0; k < length; ++k) {
                columns.push_back(static_cast<std::int32_t>(row) * 3 + k);
            }
            return columns;
        });
        // The second slice has three rows only.
        EXPECT_EQ(multiply(*this->device_, a),
                  2 * (length > longest ? header : stored<TypeParam>(length, SliceCode::bytes1)));
    }
}

TYPED_TEST(Sell, RowsAreSortedInBlocks)
{
    for (const std::int64_t rows : {sort_rows - 1, sort_rows, sort_rows + 1, 3 * sort_rows + 70}) {
        SCOPED_TRACE(rows);
        // Every other block has rows of one length; in the others every third is longer, and a few are very long.
        const auto a = matrix_of_rows<TypeParam>(0, rows, 4000, [](std::int64_t row) {
            const bool mixed = row / sort_rows % 2 == 0;
            const int length = mixed && row % 400 == 7 ? 700 : mixed && row % 3 == 0 ? 12 : 4;
            std::vector<std::int32_t> columns;
            for (int k = 0; k < length; ++k) {
                columns.push_back(static_cast<std::int32_t>((row + k * k) % 4000));
            }
            return columns;
        });
        const auto entries = static_cast<std::int64_t>(a.col_idx.size());
        const std::int64_t bytes = multiply(*this->device_, a);
        if (rows == sort_rows) {
            EXPECT_LT(bytes, entries * (static_cast<std::int64_t>(sizeof(TypeParam)) + 4));
        }
    }
}

TYPED_TEST(Sell, MoreSlicesThanAreCountedInOneStep)
{
    multiply(*this->device_, matrix_of_rows<TypeParam>(0, 4096 * slice_rows + 40, 200'000, [](std::int64_t row) {
        const auto r = static_cast<std::int32_t>(row);
        return r / slice_rows % 3 == 0 ? std::vector<std::int32_t>{r, r + 2, r + 5}
                                       : std::vector<std::int32_t>{r / 2, r * 31 % 900};
    }));
}

/// Entries of a slice in its diagonals, or with columns that take codes of 1, 2 or 4 bytes.
std::vector<std::int32_t> columns_of(std::int64_t row, int width, SliceCode code)
{
    const int step = code == SliceCode::diagonal ? 0
                     : code == SliceCode::bytes1 ? 3
                     : code == SliceCode::bytes2 ? 500
                                                 : 50'000;
    std::vector<std::int32_t> columns;
    for (int k = 0; k < width; ++k) {
        columns.push_back(static_cast<std::int32_t>(row % 64 + k * 20 + (row * 7 + k) % 5 * step));
    }
    return columns;
}

TYPED_TEST(Sell, ValuesInAsFewBytesAsTheyAllow)
{
    using T = TypeParam;
    constexpr bool is_double = sizeof(T) == sizeof(double);
    struct Case {
        SliceValues stored;
        int distinct;
        Values<T> values;
    };
    const auto among = [](int distinct) {
        return [distinct](std::int64_t row, std::int64_t k, int step) {
            return wide<T>((row * 37 + k * 11 + step) % distinct + 1);
        };
    };
    std::vector<Case> cases{
        {SliceValues::raw, 0, varied<T>},
        {SliceValues::uniform, 0, [](std::int64_t, std::int64_t k, int step) { return wide<T>(k % 300 + step); }},
        {SliceValues::uniform, 0, [](std::int64_t, std::int64_t, int) { return T{1}; }},
        {SliceValues::nibbles, 2, among(2)},
        {SliceValues::nibbles, 16, among(16)},
        {SliceValues::bytes, 17, among(17)},
        {SliceValues::bytes, 256, among(256)},
    };
    if (is_double) {
        cases.push_back({SliceValues::floats, 0, [](std::int64_t row, std::int64_t k, int step) {
                             return static_cast<T>((row * 613 + k * 89 + step) % 4001 - 2000);
                         }});
    }
    for (const SliceCode code : {SliceCode::diagonal, SliceCode::bytes1, SliceCode::bytes2, SliceCode::bytes4}) {
        for (const int width : {24, 27, 33}) {
            const auto a =
                matrix_of_rows<T>(0, 64, 300'000, [&](std::int64_t row) { return columns_of(row, width, code); });
            for (const Case& c : cases) {
                SCOPED_TRACE(testing::Message() << width << " wide, column code " << static_cast<int>(code)
                                                << ", stored " << static_cast<int>(c.stored) << ", " << c.distinct);
                EXPECT_EQ(multiply_steps(*this->device_, a, c.values, 2).back(),
                          stored_alike<T>(2, width, code, c.stored, c.distinct));
            }
        }
    }
}

TYPED_TEST(Sell, EachSliceStoresItsValuesInItsOwnWay)
{
    using T = TypeParam;
    for (const int width : {1, 2, 3, 4, 5, 7, 8, 9, 16, 100}) {
        SCOPED_TRACE(width);
        const auto a = matrix_of_rows<T>(0, 1000, 2000, [&](std::int64_t row) {
            std::vector<std::int32_t> columns(static_cast<std::size_t>(width - row % 400 / 300));
            for (std::size_t k = 0; k < columns.size(); ++k) {
                columns[k] = static_cast<std::int32_t>((row + static_cast<std::int64_t>(k * k)) % 2000);
            }
            return columns;
        });
        multiply_steps<T>(
            *this->device_, a,
            [](std::int64_t row, std::int64_t k, int step) {
                switch ((row / slice_rows + step) % 5) {
                    case 0:
                        return varied<T>(row, k, step);
                    case 1:
                        return wide<T>(k + step);
                    case 2:
                        return static_cast<T>(row * 31 + k);
                    case 3:
                        return wide<T>((row + k) % 3 + step);
                    default:
                        return wide<T>((row * 5 + k) % 90 + step);
                }
            },
            5);
    }
}

TYPED_TEST(Sell, NewValuesAreStoredAsTheyAllow)
{
    using T = TypeParam;
    constexpr int width = 27;
    const auto a =
        matrix_of_rows<T>(0, 64, 4000, [](std::int64_t row) { return columns_of(row, width, SliceCode::diagonal); });
    const auto bytes = multiply_steps<T>(
        *this->device_, a,
        [](std::int64_t row, std::int64_t k, int step) {
            return step % 2 == 0 ? varied<T>(row, k, step) : step == 1 ? wide<T>(k) : wide<T>((row + k) % 10);
        },
        5);
    const auto both = [](SliceValues values, int distinct) {
        return stored_alike<T>(2, width, SliceCode::diagonal, values, distinct);
    };
    EXPECT_EQ(bytes, (std::vector<std::int64_t>{both(SliceValues::raw, 0), both(SliceValues::uniform, 0),
                                                both(SliceValues::raw, 0), both(SliceValues::nibbles, 10),
                                                both(SliceValues::raw, 0)}));
}

TYPED_TEST(Sell, ValuesThatAreNotFinite)
{
    using T = TypeParam;
    constexpr int width = 8;
    const T odd = std::bit_cast<T>(~BitsOf<T>{0});  // what marks a free place among the distinct values
    const T infinite = std::numeric_limits<T>::infinity();
    const auto a = matrix_of_rows<T>(0, 64, 64, [](std::int64_t row) {
        return std::vector<std::int32_t>(width, static_cast<std::int32_t>(row / 2 * 2 + 1));
    });
    for (const T special : {odd, infinite, std::numeric_limits<T>::quiet_NaN(), T{-0.0}}) {
        multiply_steps<T>(
            *this->device_, a,
            [&](std::int64_t row, std::int64_t k, int step) {
                return row == 40 && k == 3 ? special : row == 7 && k == 2 ? -infinite : T(k % (2 + step));
            },
            2);
        multiply_steps<T>(
            *this->device_, a, [&](std::int64_t, std::int64_t, int) { return special; }, 1);
    }
}

TYPED_TEST(Sell, WhatIsNotFiniteInXReachesOnlyRowsThatHaveIt)
{
    using T = TypeParam;
    for (const SliceCode code : {SliceCode::diagonal, SliceCode::bytes1, SliceCode::bytes2, SliceCode::bytes4}) {
        for (const int width : {3, 8, 10}) {
            SCOPED_TRACE(testing::Message() << width << " wide, column code " << static_cast<int>(code));
            // Rows without half of their entries, so that slices have padding.
            auto a = matrix_of_rows<T>(0, 128, 4'000'000, [&](std::int64_t row) {
                auto columns = columns_of(row, width, code);
                columns.resize(columns.size() / (row % 3 == 0 ? 2 : 1));
                return columns;
            });
            renew_values<T>(a, varied<T>, 0);
            std::vector<T> x = small_integers<T>(a.cols);
            for (std::int64_t row = 1; row < a.rows; row += 3) {
                const auto first = static_cast<std::size_t>(a.row_ptr[static_cast<std::size_t>(row)]);
                x[static_cast<std::size_t>(a.col_idx[first])] = std::numeric_limits<T>::quiet_NaN();
            }
            const std::vector<T> y(static_cast<std::size_t>(a.rows));
            const std::vector<T> expected = expect(a, T{1}, x, T{0}, y).y;
            const DeviceCsr<T> d(*this->device_, a, Offsets::i32);
            const auto op = prepare_named("sell", d.shard, statistics(a.row_ptr), this->device_->context());
            const std::vector<T> out = apply(*this->device_, *op, T{1}, x, T{0}, y);
            int finite = 0;
            for (std::size_t row = 0; row < out.size(); ++row) {
                EXPECT_EQ(std::isnan(out[row]), std::isnan(expected[row])) << "row " << row;
                finite += std::isnan(out[row]) ? 0 : 1;
            }
            EXPECT_GT(finite, 0);
            EXPECT_LT(finite, a.rows);
        }
    }
}

TYPED_TEST(Sell, AsManyLoadsAtOnceAsSlicesAllow)
{
    // Of four groups of entries, of two and of one, where the device has about 132 multiprocessors.
    for (const std::int64_t rows : {2'000, 100'000, 140'000}) {
        for (const int width : {7, 11, 16, 19}) {
            SCOPED_TRACE(testing::Message() << rows << " rows, " << width << " wide");
            const auto a = matrix_of_rows<TypeParam>(0, rows, rows + 1000, [&](std::int64_t row) {
                std::vector<std::int32_t> columns;
                for (int k = 0; k < width - static_cast<int>(row % 5 == 0); ++k) {
                    columns.push_back(static_cast<std::int32_t>(row + k * 30 + row * k % 13));
                }
                return columns;
            });
            multiply_steps<TypeParam>(*this->device_, a, varied<TypeParam>, 1);
        }
    }
}

TYPED_TEST(Sell, NothingToMultiply)
{
    EXPECT_EQ(multiply(*this->device_,
                       matrix_of_rows<TypeParam>(0, 0, 5, [](std::int64_t) { return std::vector<std::int32_t>{}; })),
              0);
    multiply(*this->device_,
             matrix_of_rows<TypeParam>(0, 100, 0, [](std::int64_t) { return std::vector<std::int32_t>{}; }));
}

}  // namespace
}  // namespace rmsp::kernels::test
