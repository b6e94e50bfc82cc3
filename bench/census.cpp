/// Counts, before anything is built for them, what windows of rows and encodings of values would find in matrices: how
/// many columns the rows of a window share, in natural order and after reordering, and how few different values slices
/// have. Two tables of comma-separated values.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#ifdef RMSP_HAVE_METIS
#include <metis.h>
#endif
#include <CLI/CLI.hpp>

#include <rmsp/rmsp.hpp>

#include "matrix_argument.hpp"
#include "program.hpp"

namespace {

struct Options {
    std::vector<std::string> matrices;
    std::vector<std::int64_t> columns{4'000, 14'000, 28'000};
    std::string windows = "windows.csv";
    std::string values = "values.csv";
};

using Matrix = rmsp::CsrMatrix<double>;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class F>
void each_entry(const Matrix& a, std::int64_t row, F&& f)
{
    for (std::int64_t i = a.row_ptr[row]; i < a.row_ptr[row + 1]; ++i) {
        f(a.col_idx[i]);
    }
}

/// A + A^T without its diagonal.
struct Graph {
    std::vector<std::int64_t> first{0};
    std::vector<std::int32_t> neighbours;

    std::int64_t vertices() const { return static_cast<std::int64_t>(first.size()) - 1; }
};

Graph symmetrised(const Matrix& a)
{
    std::vector<std::vector<std::int32_t>> neighbours(at(a.rows));
    for (std::int64_t row = 0; row < a.rows; ++row) {
        each_entry(a, row, [&](std::int64_t column) {
            if (column != row) {
                neighbours[at(row)].push_back(static_cast<std::int32_t>(column));
                neighbours[at(column)].push_back(static_cast<std::int32_t>(row));
            }
        });
    }
    Graph g;
    for (auto& own : neighbours) {
        std::sort(own.begin(), own.end());
        own.erase(std::unique(own.begin(), own.end()), own.end());
        g.neighbours.insert(g.neighbours.end(), own.begin(), own.end());
        g.first.push_back(static_cast<std::int64_t>(g.neighbours.size()));
        own = {};
    }
    return g;
}

/// Reverse Cuthill-McKee.
std::vector<std::int32_t> rcm_order(const Graph& g)
{
    const std::vector<float> values(g.neighbours.size(), 1);
    const rmsp::CsrView<float> view{g.vertices(),   g.vertices(),        static_cast<std::int64_t>(g.neighbours.size()),
                                    g.first.data(), g.neighbours.data(), values.data()};
    const auto order = rmsp::mesh_order(view);
    return {order.rbegin(), order.rend()};
}

/// Rows of windows: those from first[i] to first[i + 1] in `order`.
struct Windows {
    std::vector<std::int32_t> order;
    std::vector<std::int64_t> first{0};
};

#ifdef RMSP_HAVE_METIS
constexpr bool has_metis = true;

/// Parts of about `size` vertices with few edges between them.
Windows metis_windows(const Graph& g, std::int64_t size)
{
    const auto parts = static_cast<idx_t>((g.vertices() + size - 1) / size);
    std::vector<idx_t> part(at(g.vertices()), 0);
    if (parts > 1) {
        std::vector<idx_t> xadj(g.first.begin(), g.first.end());
        std::vector<idx_t> adjncy(g.neighbours.begin(), g.neighbours.end());
        idx_t vertices = static_cast<idx_t>(g.vertices());
        idx_t constraints = 1;
        idx_t count = parts;
        idx_t cut = 0;
        idx_t options[METIS_NOPTIONS];
        METIS_SetDefaultOptions(options);
        options[METIS_OPTION_SEED] = 1;
        if (METIS_PartGraphKway(&vertices, &constraints, xadj.data(), adjncy.data(), nullptr, nullptr, nullptr, &count,
                                nullptr, nullptr, options, &cut, part.data()) != METIS_OK) {
            throw rmsp::Error(rmsp::ErrorCode::internal,
                              fmt::format("METIS failed on {} vertices and {} edges", vertices, adjncy.size()));
        }
    }
    Windows windows;
    windows.first.assign(at(parts) + 1, 0);
    for (const idx_t p : part) {
        ++windows.first[at(p) + 1];
    }
    std::partial_sum(windows.first.begin(), windows.first.end(), windows.first.begin());
    windows.order.resize(part.size());
    std::vector<std::int64_t> next = windows.first;
    for (std::size_t v = 0; v < part.size(); ++v) {
        windows.order[at(next[at(part[v])]++)] = static_cast<std::int32_t>(v);
    }
    return windows;
}
#else
constexpr bool has_metis = false;

Windows metis_windows(const Graph& /*g*/, std::int64_t /*size*/) { return {}; }
#endif

/// Windows of `size` rows each.
Windows equal_windows(const std::vector<std::int32_t>& order, std::int64_t size)
{
    Windows windows{order, {0}};
    const auto rows = static_cast<std::int64_t>(order.size());
    while (windows.first.back() < rows) {
        windows.first.push_back(std::min(rows, windows.first.back() + size));
    }
    return windows;
}

/// Columns that have been met in the window of now.
class Met {
public:
    explicit Met(std::int64_t cols) : window_(at(cols), -1) {}
    bool add(std::int64_t column, std::int64_t window)
    {
        const bool fresh = window_[at(column)] != window;
        window_[at(column)] = window;
        return fresh;
    }

private:
    std::vector<std::int64_t> window_;
};

/// Windows of as many rows as meet at most `columns` columns.
Windows filled_windows(const Matrix& a, const std::vector<std::int32_t>& order, std::int64_t columns)
{
    Windows windows{order, {0}};
    Met met(a.cols);
    std::int64_t count = 0;
    std::int64_t window = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        std::int64_t fresh = 0;
        each_entry(a, order[i], [&](std::int64_t column) { fresh += met.add(column, window) ? 1 : 0; });
        if (count + fresh > columns && static_cast<std::int64_t>(i) > windows.first.back()) {
            windows.first.push_back(static_cast<std::int64_t>(i));
            ++window;
            fresh = 0;
            count = 0;
            each_entry(a, order[i], [&](std::int64_t column) { fresh += met.add(column, window) ? 1 : 0; });
        }
        count += fresh;
    }
    if (!order.empty()) {
        windows.first.push_back(static_cast<std::int64_t>(order.size()));
    }
    return windows;
}

/// What the windows load. A row's own column has the row's number.
struct Loads {
    std::int64_t windows = 0;
    std::int64_t own = 0;     ///< columns of the window's rows, in all windows together
    std::int64_t ghosts = 0;  ///< other columns, once for each window that meets them
    std::int64_t own_entries = 0;
};

Loads count_loads(const Matrix& a, const Windows& windows)
{
    Loads loads;
    std::vector<std::int64_t> window_of(at(std::max(a.rows, a.cols)), -1);
    loads.windows = static_cast<std::int64_t>(windows.first.size()) - 1;
    for (std::int64_t w = 0; w < loads.windows; ++w) {
        for (std::int64_t i = windows.first[at(w)]; i < windows.first[at(w + 1)]; ++i) {
            window_of[at(windows.order[at(i)])] = w;
        }
    }
    Met met(a.cols);
    for (std::int64_t w = 0; w < loads.windows; ++w) {
        for (std::int64_t i = windows.first[at(w)]; i < windows.first[at(w + 1)]; ++i) {
            each_entry(a, windows.order[at(i)], [&](std::int64_t column) {
                const bool own = window_of[at(column)] == w;
                loads.own_entries += own ? 1 : 0;
                if (met.add(column, w)) {
                    ++(own ? loads.own : loads.ghosts);
                }
            });
        }
    }
    return loads;
}

void write_windows(std::ofstream& file, const NamedMatrix& matrix, const Matrix& a, const Options& options)
{
    const auto write = [&](const char* order, const char* kind, std::int64_t columns, const Windows& windows) {
        const Loads loads = count_loads(a, windows);
        const std::int64_t loaded = loads.own + loads.ghosts;
        const auto ratio = [](std::int64_t part, std::int64_t whole) {
            return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
        };
        file << fmt::format("{},{},{},{},{},{},{},{},{},{:.2f},{:.3f},{:.2f},{:.2f}\n", matrix.name, a.rows, a.cols,
                            a.nnz(), order, kind, columns, loads.windows, loaded, ratio(loads.ghosts, loads.own),
                            ratio(loads.own_entries, a.nnz()), ratio(loaded, a.cols), ratio(a.nnz(), loaded));
    };
    std::vector<std::int32_t> natural(at(a.rows));
    std::iota(natural.begin(), natural.end(), 0);
    const auto write_order = [&](const char* name, const std::vector<std::int32_t>& order) {
        for (const std::int64_t columns : options.columns) {
            write(name, "rows", columns, equal_windows(order, columns));
            write(name, "met", columns, filled_windows(a, order, columns));
        }
    };
    write_order("natural", natural);
    if (a.rows == a.cols) {
        const Graph g = symmetrised(a);
        write_order("rcm", rcm_order(g));
        for (const std::int64_t columns : options.columns) {
            if (has_metis) {
                write("metis", "rows", columns, metis_windows(g, columns));
            }
        }
    }
}

/// Rows whose values are looked at together, as the sliced kernels store them.
constexpr std::int64_t slice_rows = 32;

/// Entries in slices of each class; a slice is of the first that it belongs to.
struct ValueClasses {
    std::int64_t constant = 0;     ///< one value
    std::int64_t few_16 = 0;       ///< at most 16 different ones
    std::int64_t few_256 = 0;      ///< at most 256
    std::int64_t exact_float = 0;  ///< all are floats exactly
    std::int64_t other = 0;
};

void write_values(std::ofstream& file, const NamedMatrix& matrix, const Matrix& a)
{
    ValueClasses classes;
    std::vector<std::uint64_t> bits;
    std::vector<std::uint64_t> all;
    constexpr std::size_t most_listed = 1 << 16;
    for (std::int64_t row = 0; row < a.rows; row += slice_rows) {
        const std::int64_t first = a.row_ptr[row];
        const std::int64_t end = a.row_ptr[std::min(row + slice_rows, a.rows)];
        bits.clear();
        bool floats = true;
        for (std::int64_t i = first; i < end; ++i) {
            const double value = a.values[at(i)];
            bits.push_back(std::bit_cast<std::uint64_t>(value));
            floats = floats && static_cast<double>(static_cast<float>(value)) == value;
        }
        std::sort(bits.begin(), bits.end());
        bits.erase(std::unique(bits.begin(), bits.end()), bits.end());
        (bits.size() <= 1     ? classes.constant
         : bits.size() <= 16  ? classes.few_16
         : bits.size() <= 256 ? classes.few_256
         : floats             ? classes.exact_float
                              : classes.other) += end - first;
        if (all.size() < most_listed) {
            all.insert(all.end(), bits.begin(), bits.end());
            std::sort(all.begin(), all.end());
            all.erase(std::unique(all.begin(), all.end()), all.end());
        }
    }
    const auto share = [&](std::int64_t entries) {
        return a.nnz() > 0 ? static_cast<double>(entries) / static_cast<double>(a.nnz()) : 0.0;
    };
    file << fmt::format("{},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f}\n", matrix.name, a.rows, a.nnz(),
                        all.size() < most_listed ? std::to_string(all.size()) : fmt::format(">={}", most_listed),
                        share(classes.constant), share(classes.few_16), share(classes.few_256),
                        share(classes.exact_float), share(classes.other));
}

int run(const Options& options)
{
    std::ofstream windows(options.windows);
    std::ofstream values(options.values);
    windows << "matrix,rows,cols,nonzeros,order,window_of,columns,windows,columns_loaded,ghosts_per_own_column,"
               "share_of_entries_in_own_columns,loaded_per_column,nonzeros_per_loaded\n";
    values << "matrix,rows,nonzeros,distinct_values,constant,at_most_16,at_most_256,exactly_float,other\n";
    for (const std::string& text : options.matrices) {
        const NamedMatrix matrix = parse_matrix(text);
        const Matrix a = load<double>(matrix);
        fmt::print("{}: {} x {}, {} nonzeros\n", matrix.name, a.rows, a.cols, a.nnz());
        std::fflush(stdout);
        write_windows(windows, matrix, a, options);
        write_values(values, matrix, a);
    }
    if (!windows.flush() || !values.flush()) {
        fmt::print(stderr, "bench_census: cannot write {} or {}\n", options.windows, options.values);
        return 3;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    Options options;
    CLI::App app("Counts what windows of rows and encodings of values would find in matrices.");
    app.add_option("MATRIX", options.matrices, matrix_argument_help)->required();
    app.add_option("--columns", options.columns, "columns of a window")
        ->delimiter(',')
        ->check(CLI::PositiveNumber)
        ->allow_extra_args(false);
    app.add_option("--windows", options.windows, "file for the table of windows");
    app.add_option("--values", options.values, "file for the table of values");
    CLI11_PARSE(app, argc, argv);
    return report_errors([&] { return run(options); });
}
