#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The pages that show what a command found, all in one style: one file, no scripts, nothing loaded.
namespace rmsp::mspmv::html {

/// What a drawing in a file of its own needs of the style: the colours of paper, and the classes of page/svg.hpp.
std::string_view drawing_style();

/// A whole document; `lines` stand below the heading, `body` is HTML.
std::string document(std::string_view title, const std::vector<std::string>& lines, std::string_view body);

/// Figures that a reader looks for first, each with its meaning.
using Facts = std::vector<std::pair<std::string, std::string>>;
std::string facts(const Facts& facts);

/// Sections side by side where there is room.
std::string columns(std::string_view sections);

/// A part of a page with its heading; "" where `content`, which is HTML, is empty.
std::string section(std::string_view title, std::string_view content);

std::string list(const std::vector<std::string>& items);

/// Cells are text; the first column is aligned left, the others right. No heads: `head` is empty.
std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows);

/// 26463592 -> "26,463,592".
std::string grouped(double count);

/// Which build measured, and when: "librmsp 0.1.0, commit 1288e28, 2026-11-22 on node7"; `host` may be empty.
std::string source_line(std::string_view version, std::string_view commit, std::string_view date,
                        std::string_view host);

}  // namespace rmsp::mspmv::html
