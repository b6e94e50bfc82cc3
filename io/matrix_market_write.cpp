#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "core/parallel.hpp"
#include "core/value_types.hpp"
#include "io/matrix_market.hpp"

namespace rmsp::io {
namespace {

// Entries formatted as one piece: about 8 MB of text, past which compression gains little.
constexpr std::int64_t piece_entries = std::int64_t{1} << 18;

std::string comment_lines(const std::string& comment)
{
    std::string out;
    for (std::size_t at = 0; at < comment.size();) {
        const std::size_t end = std::min(comment.find('\n', at), comment.size());
        out += "% " + comment.substr(at, end - at) + "\n";
        at = end + 1;
    }
    return out;
}

template <class P, class C, class T>
std::string format_entries(const CsrView<T>& a, const P* row_ptr, const C* col_idx, std::int64_t begin,
                           std::int64_t end)
{
    // Two indices of at most 19 digits, a value of at most 24 characters, and separators.
    constexpr std::size_t longest_line = 19 + 1 + 19 + 1 + 24 + 1;
    std::string text(static_cast<std::size_t>(end - begin) * longest_line, '\0');
    char* p = text.data();
    char* const last = p + text.size();
    std::int64_t row = std::upper_bound(row_ptr, row_ptr + a.rows + 1, static_cast<P>(begin)) - row_ptr - 1;
    for (std::int64_t k = begin; k < end; ++k) {
        while (k >= static_cast<std::int64_t>(row_ptr[row + 1])) {
            ++row;
        }
        p = std::to_chars(p, last, row + 1).ptr;
        *p++ = ' ';
        p = std::to_chars(p, last, static_cast<std::int64_t>(col_idx[k]) + 1).ptr;
        *p++ = ' ';
        p = std::to_chars(p, last, a.values[k]).ptr;
        *p++ = '\n';
    }
    text.resize(static_cast<std::size_t>(p - text.data()));
    return text;
}

}  // namespace

template <class T>
void write_matrix_market(OutputFile& file, Codec codec, const CsrView<T>& a, const WriteOptions& options)
{
    file.write(compress_member(codec, "%%MatrixMarket matrix coordinate real general\n" +
                                          comment_lines(options.comment) +
                                          fmt::format("{} {} {}\n", a.rows, a.cols, a.nnz)));
    const int threads = core::thread_count(0);
    const std::int64_t pieces = (a.nnz + piece_entries - 1) / piece_entries;
    const std::int64_t batch = threads;
    core::ProgressMeter meter(options.progress, "write", a.nnz);
    std::vector<std::string> texts;
    for (std::int64_t first = 0; first < pieces; first += batch) {
        texts.assign(static_cast<std::size_t>(std::min(batch, pieces - first)), {});
        core::parallel_for(threads, static_cast<std::int64_t>(texts.size()), [&](std::int64_t i) {
            const std::int64_t begin = (first + i) * piece_entries;
            const std::int64_t end = std::min(begin + piece_entries, a.nnz);
            texts[static_cast<std::size_t>(i)] = compress_member(codec, a.row_ptr.visit([&](const auto* row_ptr) {
                return a.col_idx.visit(
                    [&](const auto* col_idx) { return format_entries(a, row_ptr, col_idx, begin, end); });
            }));
        });
        for (const std::string& text : texts) {
            file.write(text);
        }
        meter.advance(std::min(batch * piece_entries, a.nnz - first * piece_entries));
    }
}

#define RMSP_INSTANTIATE(T) \
    template void write_matrix_market(OutputFile&, Codec, const CsrView<T>&, const WriteOptions&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::io
