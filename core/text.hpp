#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Text that people read: numbers with units, aligned tables, wrapped lines. What reports and plans are printed with.
namespace rmsp::text {

inline constexpr std::size_t width = 120;

/// 26463592 -> "26,463,592".
std::string grouped(std::int64_t n);
/// 1.5e-3 -> "1.500 ms"; four significant digits from ns to s.
std::string seconds(double s);
/// 1536 -> "1.50 KiB"; binary units.
std::string bytes(std::int64_t n);
/// 0.0123 -> "1.23 %".
std::string percent(double share);
/// {0, 1, 2, 3, 8} -> "0-3,8"; "-" if there are none.
std::string ranges(const std::vector<int>& numbers);
/// At most `limit` bytes of text; what is cut off shows as "...".
std::string shortened(std::string_view text, std::size_t limit);
/// `text` after `label`, broken between words at `width`, later lines indented as far as the label is long.
std::string wrapped(std::string_view label, std::string_view text);

/// A table whose columns are as wide as what they hold.
class Table {
public:
    enum class Align { left, right };
    struct Column {
        std::string title;
        Align align;
    };
    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
    /// One cell for each column.
    void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
    /// Title line and rows, each after `indent` spaces.
    std::string to_text(std::size_t indent) const;

private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace rmsp::text
