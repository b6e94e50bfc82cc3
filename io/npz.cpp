#include "io/npz.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/parallel.hpp"
#include "core/value_types.hpp"
#include "io/npy.hpp"
#include "io/npz_reader.hpp"
#include "io/zip.hpp"
#include "matrix/csr_build.hpp"

namespace rmsp::io {
namespace {

template <class T>
CsrMatrix<T> read_csr(const NpzReader& reader, const Shape& shape, bool sum_duplicates, int threads)
{
    const NpyArray indices = reader.open("indices");
    const NpyArray data = reader.open("data");
    reader.check_lengths(indices, data);
    CsrMatrix<T> a;
    a.rows = shape.rows;
    a.cols = shape.cols;
    a.row_ptr = reader.read_pointers(shape.rows, indices.size());
    a.col_idx = index_type_for(shape.cols) == IndexType::i32
                    ? IndexArray(reader.read_indices<std::int32_t>(indices, shape.cols))
                    : IndexArray(reader.read_indices<std::int64_t>(indices, shape.cols));
    a.values = reader.read<T>(data);
    // SciPy keeps spare room behind the last entry of a matrix that was pruned.
    a.values.resize(static_cast<std::size_t>(a.row_ptr.back()));
    a.col_idx.visit([&](auto& col) { col.resize(a.values.size()); });
    matrix::finish_rows(a, sum_duplicates, threads, reader.limit());
    return a;
}

template <class I, class T>
CsrMatrix<T> read_triples(const NpzReader& reader, const Shape& shape, bool by_columns, const ReadOptions& options,
                          int threads)
{
    const NpyArray row_array = reader.open(by_columns ? "indices" : "row");
    const NpyArray data = reader.open("data");
    reader.check_lengths(row_array, data);
    const auto rows = reader.read_indices<I>(row_array, shape.rows);
    const auto values = reader.read<T>(data);
    HostVector<I> cols;
    HostVector<std::int64_t> col_ptr;
    std::int64_t nnz = row_array.size();
    if (by_columns) {
        col_ptr = reader.read_pointers(shape.cols, nnz);
        nnz = col_ptr.back();
    } else {
        const NpyArray col_array = reader.open("col");
        reader.check_lengths(col_array, data);
        cols = reader.read_indices<I>(col_array, shape.cols);
    }
    reader.limit().take(static_cast<core::uint128>(nnz) * sizeof(matrix::Entry<I, T>), "its entries");
    std::vector<HostVector<matrix::Entry<I, T>>> chunks(
        static_cast<std::size_t>((nnz + entries_each - 1) / entries_each));
    core::parallel_for(threads, static_cast<std::int64_t>(chunks.size()), [&](std::int64_t b) {
        const std::int64_t begin = b * entries_each;
        const std::int64_t end = std::min(nnz, begin + entries_each);
        auto& chunk = chunks[static_cast<std::size_t>(b)];
        chunk.resize(static_cast<std::size_t>(end - begin));
        std::int64_t col =
            by_columns ? std::upper_bound(col_ptr.begin(), col_ptr.end(), begin) - col_ptr.begin() - 1 : 0;
        for (std::int64_t k = begin; k < end; ++k) {
            const auto at = static_cast<std::size_t>(k);
            while (by_columns && col_ptr[static_cast<std::size_t>(col) + 1] <= k) {
                ++col;
            }
            chunk[static_cast<std::size_t>(k - begin)] = {rows[at], by_columns ? static_cast<I>(col) : cols[at],
                                                          values[at]};
        }
    });
    return matrix::build_csr<I, T>(chunks, shape.rows, shape.cols, options.sum_duplicates, threads, options.progress,
                                   reader.limit());
}

}  // namespace

template <class T>
CsrMatrix<T> read_npz(const InputFile& file, const ReadOptions& options)
{
    const int threads = core::thread_count(options.threads);
    const NpzReader reader(file, threads);
    const std::string format = reader.read_format();
    const Shape shape = read_shape(reader);
    core::ProgressMeter meter(options.progress, "read", 1);
    CsrMatrix<T> a;
    if (format == "csr") {
        a = read_csr<T>(reader, shape, options.sum_duplicates, threads);
    } else if (std::max(shape.rows, shape.cols) <= INT32_MAX) {
        a = read_triples<std::int32_t, T>(reader, shape, format == "csc", options, threads);
    } else {
        a = read_triples<std::int64_t, T>(reader, shape, format == "csc", options, threads);
    }
    meter.advance(1);
    return a;
}

template <class T>
void write_npz(OutputFile& file, const CsrView<T>& a, const WriteOptions& options, bool always_zip64)
{
    core::ProgressMeter meter(options.progress, "write", 4);
    ZipWriter zip(file, always_zip64);
    const auto add = [&](const std::string& name, const std::string& descr, std::int64_t size, const void* data,
                         std::size_t bytes) {
        const std::string header = npy_header(descr, size);
        zip.add(name + ".npy", {{header.data(), header.size()}, {data, bytes}});
    };
    const auto add_indices = [&](const std::string& name, const IndexView& view, std::int64_t size) {
        add(name, view.type() == IndexType::i32 ? "<i4" : "<i8", size, view.data(),
            static_cast<std::size_t>(size) * view.element_bytes());
        meter.advance(1);
    };

    add_indices("indices", a.col_idx, a.nnz);
    if (a.col_idx.type() == IndexType::i32 && a.row_ptr.type() == IndexType::i64 && a.nnz <= INT32_MAX) {
        HostVector<std::int32_t> narrow(static_cast<std::size_t>(a.rows) + 1);
        std::transform(static_cast<const std::int64_t*>(a.row_ptr.data()),
                       static_cast<const std::int64_t*>(a.row_ptr.data()) + a.rows + 1, narrow.begin(),
                       [](std::int64_t p) { return static_cast<std::int32_t>(p); });
        add_indices("indptr", narrow.data(), a.rows + 1);
    } else {
        add_indices("indptr", a.row_ptr, a.rows + 1);
    }
    add("format", "|S3", -1, "csr", 3);
    const std::array<std::int64_t, 2> shape{a.rows, a.cols};
    add("shape", "<i8", 2, shape.data(), sizeof shape);
    meter.advance(1);
    add("data", sizeof(T) == 4 ? "<f4" : "<f8", a.nnz, a.values, static_cast<std::size_t>(a.nnz) * sizeof(T));
    zip.finish();
    meter.advance(1);
}

#define RMSP_INSTANTIATE(T)                                               \
    template CsrMatrix<T> read_npz(const InputFile&, const ReadOptions&); \
    template void write_npz(OutputFile&, const CsrView<T>&, const WriteOptions&, bool);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::io
