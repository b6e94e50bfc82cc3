#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>

#include <runtime/matrix/streamed.hpp>

#include "matrices.hpp"

namespace rmsp::test {
namespace {

using distributed::cut_coordinates;
using distributed::cut_stream;
using distributed::StreamPiece;

template <class T>
PartialCsr whole(const CsrMatrix<T>& a)
{
    return {0, a.nnz(), 0, a.rows, false};
}

std::int64_t carry_of(IndexView row_ptr, const PartialCsr& part)
{
    return part.start_flag ? std::min(part.end_idx, row_ptr[part.start_row + 1]) - part.start_idx : 0;
}

TEST(CutStream, ByHand)
{
    // 1024 bytes at 16 a nonzero (to keep the numbers round) and 8 a row pointer: a row of up to 63 is not cut.
    const auto a = with_row_lengths<double>({30, 20, 0, 63, 64, 1, 130}, 200);
    const auto pieces = cut_stream(a.row_ptr.data(), whole(a), 0, 1024, 16);
    const std::vector<StreamPiece> expected{
        {0, 3, 0, 50, false, false},  {3, 1, 50, 63, false, false}, {4, 1, 113, 63, false, false},
        {4, 1, 176, 1, false, true},  {5, 1, 177, 1, false, false}, {6, 1, 178, 63, false, false},
        {6, 1, 241, 63, false, true}, {6, 1, 304, 4, false, true},
    };
    EXPECT_EQ(pieces, expected);
}

TEST(CutStream, ASharedFirstRowComesFirst)
{
    const auto a = with_row_lengths<double>({100, 5}, 200);
    const PartialCsr part{20, 105, 0, 2, true};
    const std::vector<StreamPiece> expected{
        {0, 1, 20, 63, true, false}, {0, 1, 83, 17, true, true}, {1, 1, 100, 5, false, false}};
    EXPECT_EQ(cut_stream(a.row_ptr.data(), part, 80, 1024, 16), expected);
}

TEST(CutCoordinates, AsTheirRowPointersAre)
{
    const auto a = with_row_lengths<double>({30, 20, 0, 63, 64, 1, 130}, 200);
    const CooMatrix<double> coo = to_coo(a.view());
    // 64 entries of 16 bytes: no row pointer takes room.
    const auto pieces = cut_coordinates(coo.row_idx.view(), CooOrder::by_row, whole(a), 0, 1024, 16);
    const std::vector<StreamPiece> expected{
        {0, 3, 0, 50, false, false},  {3, 1, 50, 63, false, false},  {4, 1, 113, 64, false, false},
        {5, 1, 177, 1, false, false}, {6, 1, 178, 64, false, false}, {6, 1, 242, 64, false, true},
        {6, 1, 306, 2, false, true},
    };
    EXPECT_EQ(pieces, expected);
}

TEST(CutCoordinates, UnsortedAnywhere)
{
    const PartialCsr part{10, 160, 0, 7, false};
    const std::vector<StreamPiece> expected{
        {0, 1, 10, 64, false, false}, {0, 1, 74, 64, false, true}, {0, 1, 138, 22, false, true}};
    EXPECT_EQ(cut_coordinates({}, CooOrder::unsorted, part, 0, 1024, 16), expected);
}

TEST(CutStream, AnEmptyPartHasNoPieces)
{
    const std::vector<std::int64_t> none{0};
    EXPECT_TRUE(cut_stream(none.data(), PartialCsr{}, 0, 1024, 12).empty());
}

TEST(CutStream, TheFirstAndTheLastPiecesAreSmaller)
{
    // 16 bytes a row of one nonzero, and 8 for one row pointer more.
    const auto a = with_row_lengths<double>(std::vector<std::int64_t>(256, 1), 10);
    std::vector<std::int64_t> rows;
    for (const StreamPiece& piece : cut_stream(a.row_ptr.data(), whole(a), 0, 1024, 8, {200, 400})) {
        rows.push_back(piece.rows);
    }
    // At most 400 bytes, 400, the 768 so far, 1024, 1024, 7/8 of the 568 that are left, and the rest, as 200 are
    // allowed.
    const std::vector<std::int64_t> expected{24, 24, 47, 63, 63, 30, 5};
    EXPECT_EQ(rows, expected);
    // A row that is longer than a small piece stays whole.
    const auto b = with_row_lengths<double>({1, 1, 60}, 100);
    const std::vector<StreamPiece> last{{0, 3, 0, 62, false, false}};
    EXPECT_EQ(cut_stream(b.row_ptr.data(), whole(b), 0, 1024, 8, {1024, 1024}), last);
    EXPECT_EQ(cut_stream(b.row_ptr.data(), whole(b), 0, 1024, 8, {64, 64}).back(),
              (StreamPiece{2, 1, 2, 60, false, false}));
}

/// Every nonzero and every owned row once, in order; no piece above the limit.
void check_cover(IndexView row_ptr, const PartialCsr& part, std::int64_t chunk_bytes, std::int64_t entry_bytes,
                 const distributed::StreamEnds& ends = {})
{
    const std::int64_t carry = carry_of(row_ptr, part);
    std::int64_t nonzero = part.start_idx;
    std::int64_t row = part.first_owned_row();
    for (const StreamPiece& piece : cut_stream(row_ptr, part, carry, chunk_bytes, entry_bytes, ends)) {
        EXPECT_EQ(piece.first, nonzero);
        nonzero += piece.nnz;
        EXPECT_EQ(piece.carry, nonzero <= part.start_idx + carry && piece.nnz > 0 && carry > 0);
        EXPECT_LE(piece.nnz * entry_bytes + (piece.rows + 1) * 8, chunk_bytes);
        if (piece.carry) {
            EXPECT_EQ(piece.first_row, part.start_row);
            continue;
        }
        EXPECT_EQ(piece.first_row, piece.continues ? row - 1 : row);
        row = piece.first_row + piece.rows;
    }
    EXPECT_EQ(nonzero, part.end_idx);
    EXPECT_EQ(row, part.end_row);
}

TEST(CutStream, CoversEveryPartOfEveryHardMatrix)
{
    for (const auto& [name, a] : hard_matrices<double>()) {
        SCOPED_TRACE(name);
        for (const int parts : {1, 2, 5, 17}) {
            for (const auto alignment : {RowAlignment::exact, RowAlignment::row}) {
                PartitionOptions options;
                options.alignment = alignment;
                for (const auto& part : partition_csr(a.rows, a.cols, a.row_ptr.data(), parts, options).parts) {
                    check_cover(a.row_ptr.data(), part, 1024, 12);
                    check_cover(a.row_ptr.data(), part, 5000, 8);
                    check_cover(a.row_ptr.data(), part, 5000, 8, {100, 700});
                    check_cover(a.row_ptr.data(), part, std::int64_t{1} << 40, 8);
                }
            }
        }
    }
}

TEST(CutStream, WhereARowIsCutDoesNotDependOnThePart)
{
    const auto a = with_row_lengths<double>({10, 3000, 10}, 3000);
    const auto all = cut_stream(a.row_ptr.data(), whole(a), 0, 1024, 12);
    const auto one = cut_stream(a.row_ptr.data(), {10, 3010, 1, 2, false}, 0, 1024, 12);
    const auto found = std::search(all.begin(), all.end(), one.begin(), one.end());
    EXPECT_NE(found, all.end());
}

using Bytes = std::pair<const std::byte*, const std::byte*>;  // begin, end

/// A device that says what it was asked to lock and how data reach it.
class ObservedDevice final : public engine::Device {
public:
    class ObservedStream final : public engine::Stream {
    public:
        void copy(void* dst, const void* src, std::size_t bytes) override
        {
            std::memcpy(dst, src, bytes);
            direct += bytes;
            const auto* const from = static_cast<const std::byte*>(src);
            sources.emplace_back(from, from + bytes);
        }
        void record(engine::Event&) override {}
        void wait(const engine::Event&) override {}
        void synchronize() override {}
        void* native() const override { return nullptr; }
        std::size_t direct = 0;
        std::vector<Bytes> sources;
    };

    ObservedDevice() : Device(DeviceInfo{}) {}
    void make_current() override {}
    std::unique_ptr<engine::Stream> make_stream(engine::StreamPriority) override
    {
        return std::make_unique<ObservedStream>();
    }
    std::unique_ptr<engine::Event> make_event(bool) override { return nullptr; }
    std::unique_ptr<kernels::Memory> make_uncounted_pool(engine::Stream&) override { return nullptr; }
    std::int64_t free_bytes() override { return 0; }
    void* obtain(std::size_t) override { return nullptr; }
    void give_back(void*, std::size_t) noexcept override {}
    void* obtain_pinned(std::size_t bytes) override { return ::operator new(bytes); }
    void free_pinned(void* p, std::size_t) noexcept override { ::operator delete(p); }
    bool is_pinned(const void* p, std::size_t bytes) const override
    {
        const auto* const begin = static_cast<const std::byte*>(p);
        return pinned_before || (bytes > 0 && begin >= pinned_pages.first && begin + bytes <= pinned_pages.second);
    }
    bool pin(void* p, std::size_t bytes) override
    {
        const auto* const begin = static_cast<const std::byte*>(p);
        locked = {begin, begin + bytes};
        return !refuses;
    }
    void unpin(void* p) noexcept override { unlocked = static_cast<const std::byte*>(p); }
    void upload(engine::Stream&, void*, const void*, std::size_t, const engine::Between&) override
    {
        FAIL() << "may take any path";
    }
    void upload(engine::Stream&, void* dst, std::size_t bytes, const engine::Filler& fill,
                const engine::Between&) override
    {
        fill(static_cast<std::byte*>(dst), 0, bytes);
        staged += bytes;
    }
    void download(engine::Stream&, std::span<const engine::Download>) override {}

    bool pinned_before = false;
    Bytes pinned_pages{};
    bool refuses = false;
    Bytes locked{};
    const std::byte* unlocked = nullptr;
    std::size_t staged = 0;
};

/// An array that begins and ends inside a page.
struct PagesAndABit {
    static constexpr std::size_t page = 4096;
    PagesAndABit() : memory(6 * page)
    {
        for (std::size_t i = 0; i < memory.size(); ++i) {
            memory[i] = static_cast<std::byte>(i * 7 + i / 251);
        }
        const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
        first_page = memory.data() + ((page - address % page) % page + page);
        begin = first_page - 24;
        end = first_page + 3 * page + 40;
    }
    std::vector<std::byte> memory;
    const std::byte* first_page;  // whole pages: this one and the two behind it
    const std::byte* begin;
    const std::byte* end;
};

void expect_arrives(const engine::LockedArray& array, ObservedDevice& device, ObservedDevice::ObservedStream& stream,
                    const std::byte* from, const std::byte* to)
{
    const auto bytes = static_cast<std::size_t>(to - from);
    std::vector<std::byte> out(bytes + 1, std::byte{0xee});
    array.send(device, stream, out.data(), from, bytes);
    EXPECT_TRUE(std::equal(from, to, out.begin()));
    EXPECT_EQ(out.back(), std::byte{0xee});
}

TEST(LockedArray, LocksWholePagesAndSendsTheRestFromACopy)
{
    if (::sysconf(_SC_PAGESIZE) != static_cast<long>(PagesAndABit::page)) {
        GTEST_SKIP() << "pages of another size";
    }
    PagesAndABit data;
    ObservedDevice device;
    ObservedDevice::ObservedStream stream;
    const Bytes pages{data.first_page, data.first_page + 3 * PagesAndABit::page};
    {
        const auto bytes = static_cast<std::size_t>(data.end - data.begin);
        engine::LockedArray array(device, data.begin, bytes, true);
        EXPECT_FALSE(array.refused());
        EXPECT_EQ(device.locked, pages);
        expect_arrives(array, device, stream, data.begin, data.end);
        EXPECT_EQ(stream.direct, bytes);
        EXPECT_EQ(device.staged, 0u);
        for (const std::ptrdiff_t cut : {0, 1, 23, 24, 25, 5000, 12311, 12312, 12313, 12350}) {
            expect_arrives(array, device, stream, data.begin, data.begin + cut);
            expect_arrives(array, device, stream, data.begin + cut, data.end);
        }
        for (const auto& [from, to] : stream.sources) {
            EXPECT_TRUE((from >= pages.first && to <= pages.second) || to <= data.memory.data() ||
                        from >= data.memory.data() + data.memory.size());
        }
        for (std::byte& b : data.memory) {
            b ^= std::byte{0x55};
        }
        array.refresh();
        expect_arrives(array, device, stream, data.begin, data.end);
        EXPECT_EQ(device.unlocked, nullptr);
    }
    EXPECT_EQ(device.unlocked, pages.first);
}

TEST(LockedArray, UsesTheRingWhereLockingIsRefusedOrNotWanted)
{
    const PagesAndABit data;
    const auto bytes = static_cast<std::size_t>(data.end - data.begin);
    for (const bool lock : {true, false}) {
        ObservedDevice device;
        ObservedDevice::ObservedStream stream;
        device.refuses = true;
        {
            const engine::LockedArray array(device, data.begin, bytes, lock);
            EXPECT_EQ(array.refused(), lock);
            expect_arrives(array, device, stream, data.begin, data.end);
        }
        EXPECT_EQ(stream.direct, 0u);
        EXPECT_EQ(device.staged, bytes);
        EXPECT_EQ(device.unlocked, nullptr);
    }
}

TEST(LockedArray, UsesThePagesThatAnotherHasLocked)
{
    if (::sysconf(_SC_PAGESIZE) != static_cast<long>(PagesAndABit::page)) {
        GTEST_SKIP() << "pages of another size";
    }
    const PagesAndABit data;
    ObservedDevice device;
    ObservedDevice::ObservedStream stream;
    device.refuses = true;
    device.pinned_pages = {data.first_page, data.first_page + 3 * PagesAndABit::page};
    {
        const engine::LockedArray array(device, data.begin, static_cast<std::size_t>(data.end - data.begin), true);
        EXPECT_FALSE(array.refused());
        expect_arrives(array, device, stream, data.begin, data.end);
        EXPECT_EQ(stream.direct, static_cast<std::size_t>(data.end - data.begin));
    }
    EXPECT_EQ(device.unlocked, nullptr);
}

TEST(LockedArray, LeavesWhatIsLockedAlready)
{
    const PagesAndABit data;
    const auto bytes = static_cast<std::size_t>(data.end - data.begin);
    ObservedDevice device;
    ObservedDevice::ObservedStream stream;
    device.pinned_before = true;
    {
        const engine::LockedArray array(device, data.begin, bytes, true);
        const engine::LockedArray nothing(device, nullptr, 0, true);
        EXPECT_FALSE(array.refused() || nothing.refused());
        expect_arrives(array, device, stream, data.begin, data.end);
        expect_arrives(nothing, device, stream, data.begin, data.begin);
    }
    EXPECT_EQ(stream.direct, bytes);
    EXPECT_EQ(device.staged, 0u);
    EXPECT_EQ(device.locked, Bytes{});
    EXPECT_EQ(device.unlocked, nullptr);
}

}  // namespace
}  // namespace rmsp::test
