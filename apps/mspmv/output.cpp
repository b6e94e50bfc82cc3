#include "apps/mspmv/output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <unistd.h>

#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/value_types.hpp>

#include "apps/mspmv/print.hpp"
#include "apps/mspmv/progress.hpp"
#include "apps/mspmv/signals.hpp"
#include "apps/mspmv/terminal.hpp"

namespace rmsp::mspmv {

void require_writable(const std::string& path)
{
    if (path.empty() || path == "-") {
        return;
    }
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::path target = fs::weakly_canonical(fs::absolute(path, ignored), ignored);
    const bool folder = fs::is_directory(target, ignored);
    const bool replaced = folder || !fs::exists(target, ignored) || fs::is_regular_file(target, ignored);
    // A regular file is replaced by a new one in its folder.
    if (folder || ::access((replaced ? target.parent_path() : target).c_str(), W_OK) != 0) {
        throw Error(ErrorCode::io, fmt::format("{}: cannot create: {}", path, std::strerror(folder ? EISDIR : errno)));
    }
}

void write_text(const std::string& path, std::string_view text)
{
    std::string name;
    bool temporary = false;
    const auto fail = [&](const char* action) {
        const int error = errno;
        if (temporary) {
            ::unlink(name.c_str());
        }
        throw Error(ErrorCode::io, fmt::format("{}: cannot {}: {}", path, action, std::strerror(error)));
    };
    std::error_code ignored;
    const bool replaces_device =
        std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored);
    const PendingOutput pending(path);
    name = replaces_device ? path : pending.temporary_name();
    std::FILE* file = std::fopen(name.c_str(), "wb");
    if (file == nullptr) {
        fail("create");
    }
    temporary = !replaces_device;
    const bool complete = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (std::fclose(file) != 0 || !complete) {
        fail("write");
    }
    if (!replaces_device && std::rename(name.c_str(), pending.final_name().c_str()) != 0) {
        fail("rename the finished file");
    }
}

namespace {

std::string& printed_plan()
{
    static std::string plan;
    return plan;
}

/// Where the next part of a report begins: behind an empty line.
std::size_t next_part(std::string_view text, std::size_t from)
{
    const std::size_t end = text.find("\n\n", from);
    return end == std::string_view::npos ? text.size() : end + 2;
}

/// For the terminal of the user, or what stands in its place.
std::string dressed(std::string_view text, int stream)
{
    const std::string shown = fitted(text, terminal_width(stream));
    return coloured(stream) ? painted(shown) : shown;
}

}  // namespace

void print_plan(const std::string& text, const std::string& json)
{
    if (appearance().quiet || json == "-" || ::isatty(STDOUT_FILENO) == 0) {
        return;
    }
    const std::size_t plan = next_part(text, 0);
    const std::size_t end = next_part(text, plan);
    printed_plan() = text.substr(plan, end - plan);
    clear_progress_line();
    print(dressed(std::string_view(text).substr(0, end), STDOUT_FILENO));
}

void write_report(const std::string& text, const std::string& json_text, const std::string& json)
{
    const int stream = json == "-" ? STDERR_FILENO : STDOUT_FILENO;
    std::string_view left = text;
    if (!printed_plan().empty()) {
        left.remove_prefix(next_part(left, 0));
        left.remove_prefix(left.starts_with(printed_plan()) ? printed_plan().size() : 0);
    }
    const std::string shown = appearance().quiet ? "" : dressed(left, stream);
    if (json == "-") {
        print_error(shown);
        print(json_text);
        return;
    }
    print(shown);
    if (!json.empty()) {
        write_text(json, json_text);
    }
}

std::string table_cell(std::string_view text)
{
    std::string out;
    for (const char c : text) {
        out += c == '|' ? "\\|" : std::string(1, c);
    }
    return out;
}

template <class T>
std::string size_text(const CsrMatrix<T>& a)
{
    return fmt::format("{} x {}, {} nonzeros", a.rows, a.cols, a.nnz());
}

template <class T>
void write_loaded(const Config::Matrix& from, const std::string& path, const std::string& comment)
{
    const ProgressBar bar;
    const CsrMatrix<T> matrix = load_matrix<T>(from, bar.callback());
    const PendingOutput pending(path);
    WriteOptions options;
    options.comment = comment;
    options.progress = bar.callback();
    write_matrix<T>(path, matrix.view(), options);
    clear_progress_line();
    print(fmt::format("wrote {}: {}\n", path, size_text(matrix)));
}

#define RMSP_INSTANTIATE(T)                              \
    template std::string size_text(const CsrMatrix<T>&); \
    template void write_loaded<T>(const Config::Matrix&, const std::string&, const std::string&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::mspmv
