#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <rmsp/partition.hpp>

/// The split that pCSR, pCSC and pCOO share. A *line* is a row of a matrix sorted by row, a column of one sorted by
/// column.
namespace rmsp::partition {

/// Where the lines of a sorted matrix begin among its nonzeros.
class Lines {
public:
    virtual ~Lines() = default;
    std::int64_t count() const noexcept { return count_; }
    std::int64_t nnz() const noexcept { return nnz_; }
    /// First nonzero of a line, nnz() for line count().
    virtual std::int64_t start(std::int64_t line) const = 0;
    /// First line that starts at nonzero `idx` or later; count() if none does.
    virtual std::int64_t first_from(std::int64_t idx) const = 0;

protected:
    Lines(std::int64_t count, std::int64_t nnz) : count_(count), nnz_(nnz) {}

private:
    std::int64_t count_;
    std::int64_t nnz_;
};

/// Of compressed formats: each search is in the pointers.
class CompressedLines final : public Lines {
public:
    CompressedLines(std::int64_t count, IndexView pointers)
        : Lines(count, count == 0 ? 0 : pointers[count]), pointers_(pointers)
    {
    }
    std::int64_t start(std::int64_t line) const override { return count() == 0 ? 0 : pointers_[line]; }
    std::int64_t first_from(std::int64_t idx) const override
    {
        return pointers_.visit(
            [&](const auto* p) -> std::int64_t { return std::lower_bound(p, p + count(), idx) - p; });
    }

private:
    IndexView pointers_;
};

/// Of sorted coordinates: the indices themselves are searched. (MSREP, Algorithm 6)
class CoordinateLines final : public Lines {
public:
    CoordinateLines(std::int64_t count, std::int64_t nnz, IndexView indices) : Lines(count, nnz), indices_(indices) {}
    std::int64_t start(std::int64_t line) const override
    {
        return indices_.visit([&](const auto* p) -> std::int64_t { return std::lower_bound(p, p + nnz(), line) - p; });
    }
    std::int64_t first_from(std::int64_t idx) const override { return idx == 0 ? 0 : indices_[idx - 1] + 1; }

private:
    IndexView indices_;
};

/// One part of a split.
struct Run {
    std::int64_t start_idx = 0;
    std::int64_t end_idx = 0;
    std::int64_t start_line = 0;
    std::int64_t end_line = 0;
    bool start_flag = false;
};

struct Split {
    std::vector<NodeShare> nodes;
    std::vector<Run> runs;
};

/// A matrix as messages name it.
struct Shape {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t nnz = 0;
};

/// \throws Error(usage) for sizes, numbers of parts, weights or nodes that make no sense
void check_arguments(std::int64_t rows, std::int64_t cols, int parts, const PartitionOptions& options);
/// \throws Error(usage) "cannot split ...: WHAT"
[[noreturn]] void refuse(std::int64_t rows, std::int64_t cols, int parts, const std::string& what);

/// Cuts the nonzeros, or the lines if the strategy says so; arguments have been checked.
Split split_lines(const Lines& lines, int parts, const PartitionOptions& options);
/// Cuts nnz entries without lines; every run has all lines [0, 0).
Split split_entries(std::int64_t nnz, int parts, const PartitionOptions& options);

double imbalance(const std::vector<Run>& runs, std::int64_t nnz, const std::vector<double>& weights);
/// \throws Error(internal) naming the run that breaks the cover of the nonzeros or, unless `line` is null, of `lines`
/// lines
///         called `line` in the message
void check_cover(const Shape& shape, const std::vector<NodeShare>& nodes, const std::vector<Run>& runs,
                 std::int64_t lines, const char* line);

}  // namespace rmsp::partition
