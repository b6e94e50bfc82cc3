#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <kernels/spmv/common/blocks.hpp>
#include <rmsp/matrix.hpp>
#include <rmsp/partition.hpp>

/// What the automatic choice knows of a shard. Plain data and pure functions of the host's arrays.
namespace rmsp::kernels {

/// Rows and entries that are looked at: enough for shares of a few per cent, and less work than the kernels' own first
/// look.
struct FeatureSample {
    /// Runs of sort_rows rows, of each of which one slice is looked at, and stretches of entries, at most.
    int slices = 32;
    int entries = 1 << 13;  ///< whose columns are counted, to find the hubs
    int values = 1 << 10;   ///< that are compared
    bool operator==(const FeatureSample&) const = default;
};
inline constexpr FeatureSample feature_sample{};
/// Of columns that are brought to the host for it, of matrices whose distribution takes a few milliseconds.
inline constexpr FeatureSample sample_beside_devices{.slices = 8, .entries = 1 << 12};

/// Structure of a shard; shares are estimates from a sample of it that is spread evenly and always the same.
struct Features {
    RowStatistics rows;
    std::int64_t cols = 0;
    std::int64_t x_entries = 0;     ///< from the first to the last column that the shard touches
    double code_bytes = 4;          ///< of sliced rows: codes, a nonzero
    double padding = 0;             ///< of sliced rows: entries that are stored beyond the nonzeros, a nonzero
    double stored_value_bytes = 8;  ///< of sliced rows: values, an entry that is stored
    bool floats = false;            ///< all values are exactly floats, so that formats that keep them alike can
    bool constant = false;          ///< all values are one
    BlockShape block{1, 1};  ///< of slices with dense blocks: the one that takes the fewest bytes; 1 x 1: none does
    double block_fill = 1;   ///< entries of these blocks, a nonzero
    double hub_share = 0;    ///< of the entries in columns that a small sample meets more than once
    double narrow = 0;       ///< share of the tiles of consecutive entries whose columns take 16 bits
    double sectors = 1;      ///< 32-byte sectors of x that a few thousand neighbouring entries touch, a nonzero
    double two_step_columns = 0;  ///< as two_step_columns() found; 0: it has too few, or was not asked
};

/// Value i of the matrix, as the devices will have it; of the precision that `value_bytes` says.
using ValueAt = std::function<double(std::int64_t i)>;

/// Neighbouring entries of a matrix.
struct EntryRange {
    std::int64_t first = 0;
    std::int64_t count = 0;
};

/// Indices from the least that there is to one past the largest; 0 and 0: there are none.
struct IndexRange {
    std::int64_t first = 0;
    std::int64_t end = 0;
};

/// The columns of a matrix's entries, wherever they are.
class ColumnReader {
public:
    virtual ~ColumnReader() = default;
    /// Where those of these entries lie. Looks at all of them.
    virtual IndexRange extent(const EntryRange& entries) = 0;
    /// Where those of each range are, all of one type; valid until the reader goes or is asked again.
    virtual std::vector<IndexView> ranges(std::span<const EntryRange> ranges) = 0;
    /// Those of `count` entries from `first` on, `step` apart.
    virtual std::vector<std::int64_t> spread(std::int64_t first, std::int64_t step, std::int64_t count) = 0;
    /// How many are worth looking at.
    virtual FeatureSample sample() const { return feature_sample; }
};

/// Of an array of indices on the host.
class HostColumns final : public ColumnReader {
public:
    explicit HostColumns(IndexView col_idx) : col_idx_(col_idx) {}
    IndexRange extent(const EntryRange& entries) override;
    std::vector<IndexView> ranges(std::span<const EntryRange> ranges) override;
    std::vector<std::int64_t> spread(std::int64_t first, std::int64_t step, std::int64_t count) override;

private:
    IndexView col_idx_;
};

/// \param rows  of these rows; `row_ptr` begins at the first of them, and its entries count from the start of the
/// columns \param value_bytes  of a value: blocks weigh it against an index \param value_at  empty: values that cannot
/// be kept in fewer bytes
Features spmv_features(const RowStatistics& rows, IndexView row_ptr, std::int64_t cols, std::int64_t x_entries,
                       ColumnReader& columns, int value_bytes, const ValueAt& value_at = {},
                       const FeatureSample& sample = feature_sample);
Features spmv_features(const RowStatistics& rows, IndexView row_ptr, std::int64_t cols, std::int64_t x_entries,
                       IndexView col_idx, int value_bytes, const ValueAt& value_at = {},
                       const FeatureSample& sample = feature_sample);

}  // namespace rmsp::kernels
