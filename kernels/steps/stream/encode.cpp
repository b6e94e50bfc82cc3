#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <vector>

#include <kernels/steps/stream/stream.hpp>
#include <kernels/values.hpp>

namespace rmsp::kernels {
namespace {

// Words of codes are counted in 32 bits.
constexpr std::int64_t most_entries = std::int64_t{1} << 30;
constexpr std::size_t most_dictionary = std::size_t{1} << 16;
// Longer rows are few for a warp that writes 32 of them, and seldom alike.
constexpr std::int64_t longest_pattern_row = 1024;
// Sections of a packet begin at multiples of what the widest load takes.
constexpr std::size_t section_alignment = 16;

/// An array of integers in blocks, as it goes into a packet.
struct Packed {
    std::vector<PackedBlock> blocks;
    std::vector<std::uint32_t> words;

    std::size_t bytes() const { return blocks.size() * sizeof(PackedBlock) + words.size() * sizeof(std::uint32_t); }
};

/// The narrowest of the lines that a block may have: a constant, or the one from its first integer to its last.
PackedBlock fit(const std::int64_t* v, int n)
{
    PackedBlock best;
    best.width = std::numeric_limits<std::uint32_t>::max();
    const std::int64_t average = n > 1 ? (v[n - 1] - v[0]) / (n - 1) : 0;
    for (const std::int64_t slope : {std::int64_t{0}, average}) {
        std::int64_t low = std::numeric_limits<std::int64_t>::max();
        std::int64_t high = std::numeric_limits<std::int64_t>::min();
        for (int i = 0; i < n; ++i) {
            low = std::min(low, v[i] - slope * i);
            high = std::max(high, v[i] - slope * i);
        }
        const auto width = static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(high - low)));
        if (width < best.width) {
            best = {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(slope), 0, width};
        }
        if (average == 0) {
            break;
        }
    }
    return best;
}

/// Packs n integers of at most 32 bits, signed or not; get(i) is integer i. Gives up, with an empty result, above
/// most_bytes.
template <class Get>
Packed pack_blocks(std::int64_t n, std::size_t most_bytes, const Get& get)
{
    Packed packed;
    packed.blocks.reserve(static_cast<std::size_t>(packed_blocks(n)));
    std::array<std::int64_t, packed_block> v;
    for (std::int64_t begin = 0; begin < n; begin += packed_block) {
        const int count = static_cast<int>(std::min<std::int64_t>(packed_block, n - begin));
        for (int i = 0; i < count; ++i) {
            v[static_cast<std::size_t>(i)] = get(begin + i);
        }
        PackedBlock block = fit(v.data(), count);
        block.word = static_cast<std::uint32_t>(packed.words.size());
        packed.blocks.push_back(block);
        packed.words.resize(packed.words.size() + (static_cast<std::size_t>(count) * block.width + 31) / 32);
        if (packed.bytes() > most_bytes) {
            return {};
        }
        std::uint64_t left = 0;  // bits that do not fill a word yet
        std::uint32_t filled = 0;
        std::uint32_t* out = packed.words.data() + block.word;
        for (int i = 0; block.width > 0 && i < count; ++i) {
            const std::uint32_t line = block.base + block.slope * static_cast<std::uint32_t>(i);
            left |= std::uint64_t{static_cast<std::uint32_t>(v[static_cast<std::size_t>(i)]) - line} << filled;
            filled += block.width;
            if (filled >= 32) {
                *out++ = static_cast<std::uint32_t>(left);
                left >>= 32;
                filled -= 32;
            }
        }
        if (filled > 0) {
            *out = static_cast<std::uint32_t>(left);
        }
    }
    return packed;
}

/// Which list of offsets each row has.
struct Patterns {
    std::vector<std::int32_t> of_row;
    std::vector<std::uint32_t> start{0};
    std::vector<std::uint32_t> offsets;

    std::size_t table_bytes() const { return (start.size() + offsets.size()) * sizeof(std::uint32_t); }
};

/// Local row pointer i.
template <class T>
std::int64_t pointer(const CsrPiece<T>& piece, std::int64_t i)
{
    return std::clamp<std::int64_t>(piece.row_ptr[piece.first_row + i] - piece.first, 0, piece.nnz);
}

/// The rows' patterns; none if their table would take more than most_bytes, or a row is too long.
template <class T, class Column>
Patterns find_patterns(const CsrPiece<T>& piece, const Column* col, std::size_t most_bytes)
{
    Patterns found;
    found.of_row.reserve(static_cast<std::size_t>(piece.rows));
    std::unordered_multimap<std::uint64_t, std::int32_t> by_hash;
    const auto offset = [&](std::int64_t row, std::int64_t i) {
        return static_cast<std::uint32_t>(col[i]) - static_cast<std::uint32_t>(piece.first_row + row);
    };
    std::int64_t begin = 0;
    std::int32_t last = -1;
    for (std::int64_t row = 0; row < piece.rows; ++row) {
        const std::int64_t end = pointer(piece, row + 1);
        if (end - begin > longest_pattern_row) {
            return {};
        }
        const auto is = [&](std::int32_t pattern) {
            const std::uint32_t first = found.start[static_cast<std::size_t>(pattern)];
            if (found.start[static_cast<std::size_t>(pattern) + 1] - first != static_cast<std::uint64_t>(end - begin)) {
                return false;
            }
            std::uint32_t different = 0;
            for (std::int64_t i = begin; i < end; ++i) {
                different |= found.offsets[first + static_cast<std::size_t>(i - begin)] ^ offset(row, i);
            }
            return different == 0;
        };
        if (last < 0 || !is(last)) {
            std::uint64_t hash = static_cast<std::uint64_t>(end - begin);
            for (std::int64_t i = begin; i < end; ++i) {
                hash = (hash ^ offset(row, i)) * 0x9e3779b97f4a7c15U;
                hash ^= hash >> 32;
            }
            const auto [from, to] = by_hash.equal_range(hash);
            const auto same = std::find_if(from, to, [&](const auto& entry) { return is(entry.second); });
            if (same != to) {
                last = same->second;
            } else {
                last = static_cast<std::int32_t>(found.start.size() - 1);
                for (std::int64_t i = begin; i < end; ++i) {
                    found.offsets.push_back(offset(row, i));
                }
                found.start.push_back(static_cast<std::uint32_t>(found.offsets.size()));
                by_hash.emplace(hash, last);
                if (found.table_bytes() > most_bytes) {
                    return {};
                }
            }
        }
        found.of_row.push_back(last);
        begin = end;
    }
    return found;
}

template <class T>
bool is_integer(T v)
{
    // Not NaN, and inside the range of the conversion; -0 differs from the 0 that would come back.
    return v >= T(-0x1p30) && v <= T(0x1p30) && bits_of(v) == bits_of(static_cast<T>(static_cast<std::int32_t>(v)));
}

/// Values by first occurrence, in a table with open addressing.
template <class T>
class Dictionary {
public:
    using Bits = BitsOf<T>;
    /// Of at most n values.
    explicit Dictionary(std::size_t n)
        : bits_(std::bit_width(2 * std::clamp<std::size_t>(n, 1, most_dictionary))),
          places_(std::size_t{1} << bits_, -1)
    {
    }

    /// Its index, or -1 if it is new and there is no room.
    std::int32_t index_of(T value)
    {
        const Bits bits = bits_of(value);
        std::size_t place = (std::uint64_t{bits} * 0x9e3779b97f4a7c15U) >> (64 - bits_);
        while (places_[place] >= 0) {
            if (entries_[static_cast<std::size_t>(places_[place])] == bits) {
                return places_[place];
            }
            place = (place + 1) % places_.size();
        }
        if (entries_.size() == most_dictionary) {
            return -1;
        }
        places_[place] = static_cast<std::int32_t>(entries_.size());
        entries_.push_back(bits);
        return places_[place];
    }
    const std::vector<Bits>& entries() const { return entries_; }

private:
    int bits_;
    std::vector<std::int32_t> places_;
    std::vector<Bits> entries_;
};

struct Columns {
    ColumnCode code = ColumnCode::raw;
    Packed packed;
    Patterns patterns;

    std::size_t bytes() const { return packed.bytes() + patterns.table_bytes(); }
};

template <class T, class Column>
Columns encode_columns(const CsrPiece<T>& piece, const Column* col, std::size_t most_bytes)
{
    Columns patterns;
    patterns.patterns = find_patterns(piece, col, most_bytes);
    if (const auto& of_row = patterns.patterns.of_row; !of_row.empty()) {
        patterns.code = ColumnCode::patterns;
        patterns.packed = pack_blocks(
            piece.rows, most_bytes, [&](std::int64_t i) { return std::int64_t{of_row[static_cast<std::size_t>(i)]}; });
        if (patterns.bytes() <= most_bytes) {
            most_bytes = patterns.bytes();
        } else {
            patterns = {};
        }
    } else {
        patterns = {};
    }
    Columns columns;
    columns.packed = pack_blocks(piece.nnz, most_bytes, [&](std::int64_t i) { return std::int64_t{col[i]}; });
    columns.code = ColumnCode::packed;
    return columns.packed.blocks.empty() ? std::move(patterns) : std::move(columns);
}

template <class T>
struct Values {
    ValueCode code = ValueCode::raw;
    Packed packed;
    std::vector<BitsOf<T>> dictionary;

    std::size_t bytes() const { return packed.bytes() + dictionary.size() * sizeof(T); }
};

template <class T>
Values<T> encode_values(const T* values, std::int64_t n, std::size_t most_bytes)
{
    Values<T> best;
    const auto consider = [&](ValueCode code, std::vector<BitsOf<T>> dictionary, const auto& get) {
        const std::size_t table = dictionary.size() * sizeof(T);
        if (table > most_bytes) {
            return;
        }
        Packed packed = pack_blocks(n, most_bytes - table, get);
        if (!packed.blocks.empty()) {
            best = {code, std::move(packed), std::move(dictionary)};
            most_bytes = best.bytes() - 1;  // the next one must be smaller
        }
    };
    if (std::all_of(values, values + n, is_integer<T>)) {
        consider(ValueCode::integers, {}, [&](std::int64_t i) { return static_cast<std::int64_t>(values[i]); });
    } else if (std::all_of(values, values + n, is_float<T>)) {
        consider(ValueCode::floats, {}, [&](std::int64_t i) {
            return std::int64_t{std::bit_cast<std::int32_t>(static_cast<float>(values[i]))};
        });
    }
    Dictionary<T> dictionary(static_cast<std::size_t>(n));
    std::vector<std::int32_t> index(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int32_t place = dictionary.index_of(values[i]);
        if (place < 0) {
            return best;
        }
        index[static_cast<std::size_t>(i)] = place;
    }
    consider(ValueCode::dictionary, dictionary.entries(),
             [&](std::int64_t i) { return std::int64_t{index[static_cast<std::size_t>(i)]}; });
    return best;
}

/// Lays the sections of a packet behind each other; words of codes come last.
class PacketWriter {
public:
    template <class Entry>
    std::int64_t section(const std::vector<Entry>& entries)
    {
        return place(entries.data(), entries.size() * sizeof(Entry));
    }
    std::int64_t blocks(const Packed& packed)
    {
        std::vector<PackedBlock> moved = packed.blocks;
        for (PackedBlock& block : moved) {
            block.word += static_cast<std::uint32_t>(words_.size());
        }
        words_.insert(words_.end(), packed.words.begin(), packed.words.end());
        return section(moved);
    }
    std::int64_t words()
    {
        words_.push_back(0);
        return section(words_);
    }
    HostVector<std::byte> take() { return std::move(bytes_); }
    std::size_t size() const { return bytes_.size(); }

private:
    std::int64_t place(const void* data, std::size_t n)
    {
        const std::size_t at = bytes_.size();
        const std::size_t end = at + n;
        bytes_.resize((end + section_alignment - 1) / section_alignment * section_alignment);
        if (n > 0) {
            std::memcpy(bytes_.data() + at, data, n);
        }
        std::memset(bytes_.data() + end, 0, bytes_.size() - end);
        return static_cast<std::int64_t>(at);
    }

    HostVector<std::byte> bytes_;
    std::vector<std::uint32_t> words_;
};

}  // namespace

template <class T>
Packet encode_piece(const CsrPiece<T>& piece, double most_share)
{
    const auto nnz = static_cast<std::size_t>(piece.nnz);
    const auto share_of = [&](std::size_t bytes) {
        return static_cast<std::size_t>(most_share * static_cast<double>(bytes));
    };
    Packet packet;
    if (piece.rows > most_entries || piece.nnz > most_entries) {
        return packet;
    }
    const Columns columns = piece.col_idx.visit([&](const auto* col) {
        return encode_columns(piece, col + piece.first, share_of(nnz * sizeof(std::int32_t)));
    });
    const Values<T> values = encode_values(piece.values + piece.first, piece.nnz, share_of(nnz * sizeof(T)));
    if (columns.code == ColumnCode::raw && values.code == ValueCode::raw) {
        return packet;
    }
    PacketLayout& layout = packet.layout;
    layout.first_row = piece.first_row;
    layout.rows = piece.rows;
    layout.nnz = piece.nnz;
    layout.columns = columns.code;
    layout.values = values.code;
    PacketWriter writer;
    layout.row_ptr_blocks = writer.blocks(pack_blocks(piece.rows + 1, std::numeric_limits<std::size_t>::max(),
                                                      [&](std::int64_t i) { return pointer(piece, i); }));
    layout.column_blocks = writer.blocks(columns.packed);
    layout.value_blocks = writer.blocks(values.packed);
    layout.pattern_start = writer.section(columns.patterns.start);
    layout.pattern_offsets = writer.section(columns.patterns.offsets);
    layout.dictionary = writer.section(values.dictionary);
    layout.words = writer.words();
    layout.bytes = static_cast<std::int64_t>(writer.size());
    packet.bytes = writer.take();
    return packet;
}

#define RMSP_INSTANTIATE(T) template Packet encode_piece(const CsrPiece<T>&, double);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::kernels
