#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <rmsp/config.hpp>
#include <rmsp/matrix.hpp>

namespace rmsp::mspmv {

/// What can be known before there is anything to write. "" and "-" are no files.
/// \throws Error(io) if `path` is a folder or in none, or may not be written
void require_writable(const std::string& path);

/// Writes a text file that appears under its name only when it is whole. \throws Error(io)
void write_text(const std::string& path, std::string_view text);

/// On a terminal, prints what is known of a report before what takes long: its first two parts, what is multiplied and
/// the plan. write_report() then begins behind them, but shows a plan that has changed since.
void print_plan(const std::string& text, const std::string& json);

/// Prints a report, and writes its JSON to `json` unless that is empty; "-": to standard output, and the text to
/// standard error.
void write_report(const std::string& text, const std::string& json_text, const std::string& json);

/// A cell of a Markdown table: bars in it are not the table's.
std::string table_cell(std::string_view text);

/// "1000 x 1000, 6400 nonzeros".
template <class T>
std::string size_text(const CsrMatrix<T>& a);

/// Reads or generates a matrix in values of T, writes it with a comment, and prints "wrote PATH: SIZE".
/// \throws as load_matrix() and write_matrix()
template <class T>
void write_loaded(const Config::Matrix& from, const std::string& path, const std::string& comment);

}  // namespace rmsp::mspmv
