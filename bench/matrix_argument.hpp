#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <rmsp/rmsp.hpp>

/// A matrix as the benchmarks take it on their command line.
struct NamedMatrix {
    std::string name;
    rmsp::Config::Matrix config;
    std::int64_t top_left = 0;  ///< rows and columns that are kept, the first ones; 0: all
    std::int64_t permute = 0;   ///< seed of a random symmetric permutation; 0: none
    std::int64_t scatter = 0;   ///< seed of a permutation of nodes, whose unknowns ([matrix] kron) stay together
    std::int64_t deal = 0;      ///< rows and columns are dealt in turns to so many hands, one after the other; 0: not
    bool renumber = false;      ///< Cuthill and McKee's order, after that
};

inline constexpr const char* matrix_argument_help =
    "file, generator (\"rmat 22 16\"), or NAME,key=value,... with keys of [matrix], top_left=N (the first rows and "
    "columns "
    "only), deal=N (rows and columns dealt in turns to N hands), permute=SEED (in random order), scatter=SEED (the "
    "same, "
    "unknowns of a node together) and renumber=true (in Cuthill and McKee's, after that): "
    "wave3,file=wave.mtx.xz,plus_identity=true,kron=3,values=random";

/// "NAME,key=value,...", or just a file or a generator's words. `defaults` are settings of [matrix] that the text may
/// replace. \throws Error(usage)
inline NamedMatrix parse_matrix(const std::string& text, std::vector<std::string> defaults = {})
{
    std::vector<std::string> words;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        words.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    NamedMatrix matrix;
    std::vector<std::string>& overrides = defaults;
    if (words.size() == 1) {
        const std::string file = text.substr(text.rfind('/') + 1);
        const bool generated = text.find(' ') != std::string::npos;
        matrix.name = generated ? text : file.substr(0, file.find('.'));
        overrides.push_back((generated ? "matrix.generate=" : "matrix.file=") + text);
    } else {
        matrix.name = words[0];
        for (std::size_t i = 1; i < words.size(); ++i) {
            if (words[i].starts_with("top_left=")) {
                matrix.top_left = std::stoll(words[i].substr(9));
            } else if (words[i].starts_with("permute=")) {
                matrix.permute = std::stoll(words[i].substr(8));
            } else if (words[i].starts_with("scatter=")) {
                matrix.scatter = std::stoll(words[i].substr(8));
            } else if (words[i].starts_with("deal=")) {
                matrix.deal = std::stoll(words[i].substr(5));
            } else if (words[i] == "renumber=true") {
                matrix.renumber = true;
            } else {
                overrides.push_back("matrix." + words[i]);
            }
        }
    }
    matrix.config = rmsp::parse_config("", "MATRIX", overrides).matrix;
    return matrix;
}

/// The matrix in words.
inline std::string describe(const NamedMatrix& matrix)
{
    return rmsp::describe(matrix.config) +
           (matrix.top_left > 0 ? ", the first " + std::to_string(matrix.top_left) + " rows and columns" : "") +
           (matrix.deal > 0 ? ", dealt to " + std::to_string(matrix.deal) : "") +
           (matrix.permute > 0 ? ", in random order, seed " + std::to_string(matrix.permute) : "") +
           (matrix.scatter > 0 ? ", nodes in random order, seed " + std::to_string(matrix.scatter) : "") +
           (matrix.renumber ? ", numbered anew" : "");
}

/// The entries that `rename` names anew and does not drop (-1), rows in order of their new names.
template <class T, class Rename>
rmsp::CsrMatrix<T> renamed(const rmsp::CsrMatrix<T>& a, std::int64_t size, const Rename& rename)
{
    std::vector<std::int64_t> row_of(static_cast<std::size_t>(size), -1);
    for (std::int64_t row = 0; row < a.rows; ++row) {
        if (const std::int64_t to = rename(row); to >= 0) {
            row_of[static_cast<std::size_t>(to)] = row;
        }
    }
    rmsp::CsrMatrix<T> out;
    out.rows = size;
    out.cols = size;
    out.row_ptr.push_back(0);
    rmsp::HostVector<std::int32_t> columns;
    std::vector<std::pair<std::int32_t, T>> entries;
    for (const std::int64_t row : row_of) {
        entries.clear();
        const auto begin = row < 0 ? 0 : a.row_ptr[static_cast<std::size_t>(row)];
        const auto end = row < 0 ? 0 : a.row_ptr[static_cast<std::size_t>(row) + 1];
        for (std::int64_t i = begin; i < end; ++i) {
            if (const std::int64_t column = rename(a.col_idx[i]); column >= 0) {
                entries.emplace_back(static_cast<std::int32_t>(column), a.values[static_cast<std::size_t>(i)]);
            }
        }
        std::sort(entries.begin(), entries.end());
        for (const auto& [column, value] : entries) {
            columns.push_back(column);
            out.values.push_back(value);
        }
        out.row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
    }
    out.col_idx = std::move(columns);
    return out;
}

/// Names 0 to size - 1 in random order.
inline rmsp::HostVector<std::int64_t> shuffled(std::int64_t size, std::int64_t seed)
{
    rmsp::HostVector<std::int64_t> name(static_cast<std::size_t>(size));
    std::iota(name.begin(), name.end(), std::int64_t{0});
    std::shuffle(name.begin(), name.end(), std::mt19937_64(static_cast<std::uint64_t>(seed)));
    return name;
}

/// Reads or generates it. \throws what rmsp::load_matrix() throws
template <class T>
rmsp::CsrMatrix<T> load(const NamedMatrix& matrix)
{
    rmsp::CsrMatrix<T> a = rmsp::load_matrix<T>(matrix.config);
    if (matrix.top_left > 0) {
        a = renamed(a, matrix.top_left, [&](std::int64_t i) { return i < matrix.top_left ? i : -1; });
    }
    if (matrix.deal > 0) {
        rmsp::HostVector<std::int64_t> row_at;
        row_at.reserve(static_cast<std::size_t>(a.rows));
        for (std::int64_t hand = 0; hand < matrix.deal; ++hand) {
            for (std::int64_t row = hand; row < a.rows; row += matrix.deal) {
                row_at.push_back(row);
            }
        }
        a = rmsp::renumbered(a.view(), row_at);
    }
    if (matrix.permute > 0 && a.rows == a.cols) {
        // As below, on all cores.
        rmsp::HostVector<std::int64_t> name = shuffled(a.rows, matrix.permute);
        rmsp::HostVector<std::int64_t> row_at(name.size());
        for (std::size_t row = 0; row < name.size(); ++row) {
            row_at[static_cast<std::size_t>(name[row])] = static_cast<std::int64_t>(row);
        }
        a = rmsp::renumbered(a.view(), row_at);
    } else if (matrix.permute > 0) {
        const auto name = shuffled(std::max(a.rows, a.cols), matrix.permute);
        a = renamed(a, static_cast<std::int64_t>(name.size()),
                    [&](std::int64_t i) { return name[static_cast<std::size_t>(i)]; });
    }
    if (matrix.scatter > 0) {
        const std::int64_t unknowns = std::max<std::int64_t>(matrix.config.kron, 1);
        rmsp::HostVector<std::int64_t> row_at;
        row_at.reserve(static_cast<std::size_t>(a.rows));
        for (const std::int64_t node : shuffled(a.rows / unknowns, matrix.scatter)) {
            for (std::int64_t unknown = 0; unknown < unknowns; ++unknown) {
                row_at.push_back(node * unknowns + unknown);
            }
        }
        a = rmsp::renumbered(a.view(), row_at);
    }
    if (matrix.renumber) {
        a = rmsp::renumbered(a.view(), rmsp::mesh_order(a.view()));
    }
    return a;
}
