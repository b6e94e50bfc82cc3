#include <rmsp/convert.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <core/even_cut.hpp>
#include <core/team.hpp>
#include <core/value_types.hpp>

#include "matrix/convert.hpp"

namespace rmsp {
namespace {

// Fewer entries than this are not worth a second thread.
constexpr std::int64_t entries_per_block = 32768;

// Where each of `nnz` entries goes in a stable sort by key, and where the entries of each key begin: the counting sort
// of "ScanTrans" (Wang, Liu, Hou, Feng, "Parallel transposition of sparse matrix data structures", ICS 2016). Each
// block of consecutive entries has a counter for each key; what was counted is summed over the keys and, within one,
// over the blocks.
class CountingSort {
public:
    template <class Key>
    CountingSort(std::int64_t nnz, std::int64_t keys, const Key* key_of) : nnz_(nnz), keys_(keys)
    {
        // As many counters as keys and entries together, at most: a matrix with few entries in a row gets fewer blocks.
        blocks_ =
            std::clamp<std::int64_t>(std::min((nnz + keys) / std::max<std::int64_t>(keys, 1), nnz / entries_per_block),
                                     1, core::threads_of_team());
        counters_.resize(static_cast<std::size_t>(blocks_ * keys));
        pointers_.resize(static_cast<std::size_t>(keys) + 1);
        const int blocks = static_cast<int>(blocks_);
#pragma omp parallel for schedule(static, 1) num_threads(blocks) if (blocks > 1)
        for (int b = 0; b < blocks; ++b) {
            std::int64_t* const count = counters_.data() + b * keys_;
            std::fill(count, count + keys_, 0);
            for (std::int64_t i = core::even_cut(nnz_, blocks_, b); i < core::even_cut(nnz_, blocks_, b + 1); ++i) {
                ++count[key_of[i]];
            }
        }
        scan();
    }

    // Calls place(begin, end, position_of) for each block of entries that has any, on a thread each; place asks
    // position_of(i) once for each entry i of the block, in order.
    template <class Key, class Place>
    void scatter(const Key* key_of, const Place& place)
    {
        const int blocks = static_cast<int>(blocks_);
#pragma omp parallel for schedule(static, 1) num_threads(blocks) if (blocks > 1)
        for (int b = 0; b < blocks; ++b) {
            std::int64_t* const next = counters_.data() + b * keys_;
            if (nnz_ > 0) {
                place(core::even_cut(nnz_, blocks_, b), core::even_cut(nnz_, blocks_, b + 1),
                      [&](std::int64_t i) { return next[key_of[i]]++; });
            }
        }
    }

    HostVector<std::int64_t> take_pointers() { return std::move(pointers_); }

private:
    // Turns counts into positions.
    void scan()
    {
        const int ranges = static_cast<int>(blocks_);
        std::vector<std::int64_t> before(static_cast<std::size_t>(ranges) + 1, 0);
#pragma omp parallel for schedule(static, 1) num_threads(ranges) if (ranges > 1)
        for (int r = 0; r < ranges; ++r) {
            std::int64_t sum = 0;
            for (std::int64_t b = 0; b < blocks_; ++b) {
                const std::int64_t* const count = counters_.data() + b * keys_;
                for (std::int64_t key = core::even_cut(keys_, ranges, r); key < core::even_cut(keys_, ranges, r + 1);
                     ++key) {
                    sum += count[key];
                }
            }
            before[static_cast<std::size_t>(r) + 1] = sum;
        }
        for (std::size_t r = 1; r < before.size(); ++r) {
            before[r] += before[r - 1];
        }
#pragma omp parallel for schedule(static, 1) num_threads(ranges) if (ranges > 1)
        for (int r = 0; r < ranges; ++r) {
            std::int64_t position = before[static_cast<std::size_t>(r)];
            for (std::int64_t key = core::even_cut(keys_, ranges, r); key < core::even_cut(keys_, ranges, r + 1);
                 ++key) {
                pointers_[static_cast<std::size_t>(key)] = position;
                for (std::int64_t b = 0; b < blocks_; ++b) {
                    std::int64_t& counter = counters_[static_cast<std::size_t>(b * keys_ + key)];
                    position += std::exchange(counter, position);
                }
            }
        }
        pointers_.back() = nnz_;
    }

    std::int64_t nnz_;
    std::int64_t keys_;
    std::int64_t blocks_ = 1;
    HostVector<std::int64_t>
        counters_;  // of block b from b * keys_ on; after scan(): where the next entry of a key goes
    HostVector<std::int64_t> pointers_;  // keys_ + 1
};

// The compressed form of CSR or CSC: lines are rows or columns.
template <class T>
struct Compressed {
    HostVector<std::int64_t> pointers;
    IndexArray others;
    HostVector<T> values;
};

// Sorts coordinates by `key`; `others` are the indices in the other direction, below `other_bound`.
template <class T>
Compressed<T> compress(std::int64_t nnz, std::int64_t keys, IndexView key, std::int64_t other_bound, IndexView other,
                       const T* values)
{
    Compressed<T> result{{}, {index_type_for(other_bound), static_cast<std::size_t>(nnz)}, {}};
    result.values.resize(static_cast<std::size_t>(nnz));
    key.visit([&](const auto* key_of) {
        CountingSort sort(nnz, keys, key_of);
        other.visit([&](const auto* other_of) {
            result.others.visit([&](auto& out) {
                using Out = typename std::decay_t<decltype(out)>::value_type;
                sort.scatter(key_of, [&](std::int64_t begin, std::int64_t end, const auto& position_of) {
                    for (std::int64_t i = begin; i < end; ++i) {
                        const auto to = static_cast<std::size_t>(position_of(i));
                        out[to] = static_cast<Out>(other_of[i]);
                        result.values[to] = values[i];
                    }
                });
            });
        });
        result.pointers = sort.take_pointers();
    });
    return result;
}

// Compresses along the other direction what is compressed along `lines` lines.
template <class T>
Compressed<T> recompress(std::int64_t lines, std::int64_t keys, std::int64_t nnz, IndexView pointers, IndexView key,
                         const T* values)
{
    Compressed<T> result{{}, {index_type_for(lines), static_cast<std::size_t>(nnz)}, {}};
    result.values.resize(static_cast<std::size_t>(nnz));
    key.visit([&](const auto* key_of) {
        CountingSort sort(nnz, keys, key_of);
        result.others.visit([&](auto& out) {
            using Out = typename std::decay_t<decltype(out)>::value_type;
            sort.scatter(key_of, [&](std::int64_t begin, std::int64_t end, const auto& position_of) {
                pointers.visit([&](const auto* p) {
                    std::int64_t line = std::upper_bound(p, p + lines + 1, begin) - p - 1;
                    for (std::int64_t i = begin; i < end; ++i) {
                        while (p[line + 1] <= i) {
                            ++line;
                        }
                        const auto to = static_cast<std::size_t>(position_of(i));
                        out[to] = static_cast<Out>(line);
                        result.values[to] = values[i];
                    }
                });
            });
        });
        result.pointers = sort.take_pointers();
    });
    return result;
}

template <class To, class From>
void copy(std::int64_t n, const From* in, To* out)
{
#pragma omp parallel for schedule(static) if (n > entries_per_block)
    for (std::int64_t i = 0; i < n; ++i) {
        out[i] = static_cast<To>(in[i]);
    }
}

IndexArray copied_indices(std::int64_t n, std::int64_t bound, IndexView in)
{
    IndexArray result(index_type_for(bound), static_cast<std::size_t>(n));
    result.visit([&](auto& out) { in.visit([&](const auto* p) { copy(n, p, out.data()); }); });
    return result;
}

template <class T>
HostVector<T> copied_values(std::int64_t n, const T* in)
{
    HostVector<T> result(static_cast<std::size_t>(n));
    copy(n, in, result.data());
    return result;
}

}  // namespace

IndexArray matrix::expand(std::int64_t lines, std::int64_t nnz, IndexView pointers)
{
    IndexArray result(index_type_for(lines), static_cast<std::size_t>(nnz));
    const std::int64_t blocks = std::clamp<std::int64_t>(nnz / entries_per_block, 1, core::threads_of_team());
    result.visit([&](auto& out) {
        using Out = typename std::decay_t<decltype(out)>::value_type;
        pointers.visit([&](const auto* p) {
#pragma omp parallel for schedule(static, 1) if (blocks > 1)
            for (std::int64_t b = 0; b < blocks; ++b) {
                const std::int64_t begin = core::even_cut(nnz, blocks, b);
                const std::int64_t end = core::even_cut(nnz, blocks, b + 1);
                if (begin == end) {
                    continue;
                }
                // By lines, not entries: the middle of a long line is one fill.
                std::int64_t line = std::upper_bound(p, p + lines + 1, begin) - p - 1;
                for (std::int64_t i = begin; i < end; ++line) {
                    const std::int64_t stop = std::min<std::int64_t>(p[line + 1], end);
                    std::fill(out.data() + i, out.data() + std::max(i, stop), static_cast<Out>(line));
                    i = std::max(i, stop);
                }
            }
        });
    });
    return result;
}

template <class T>
CscMatrix<T> to_csc(const CsrView<T>& a)
{
    validate(a);
    Compressed<T> c = recompress(a.rows, a.cols, a.nnz, a.row_ptr, a.col_idx, a.values);
    return {a.rows, a.cols, std::move(c.pointers), std::move(c.others), std::move(c.values)};
}

template <class T>
CscMatrix<T> to_csc(const CooView<T>& a)
{
    validate(a);
    Compressed<T> c = compress(a.nnz, a.cols, a.col_idx, a.rows, a.row_idx, a.values);
    return {a.rows, a.cols, std::move(c.pointers), std::move(c.others), std::move(c.values)};
}

template <class T>
CsrMatrix<T> to_csr(const CscView<T>& a)
{
    validate(a);
    Compressed<T> c = recompress(a.cols, a.rows, a.nnz, a.col_ptr, a.row_idx, a.values);
    return {a.rows, a.cols, std::move(c.pointers), std::move(c.others), std::move(c.values)};
}

template <class T>
CsrMatrix<T> to_csr(const CooView<T>& a)
{
    validate(a);
    Compressed<T> c = compress(a.nnz, a.rows, a.row_idx, a.cols, a.col_idx, a.values);
    return {a.rows, a.cols, std::move(c.pointers), std::move(c.others), std::move(c.values)};
}

template <class T>
CooMatrix<T> to_coo(const CsrView<T>& a)
{
    validate(a);
    return {a.rows, a.cols, matrix::expand(a.rows, a.nnz, a.row_ptr), copied_indices(a.nnz, a.cols, a.col_idx),
            copied_values(a.nnz, a.values)};
}

template <class T>
CooMatrix<T> to_coo(const CscView<T>& a)
{
    validate(a);
    return {a.rows, a.cols, copied_indices(a.nnz, a.rows, a.row_idx), matrix::expand(a.cols, a.nnz, a.col_ptr),
            copied_values(a.nnz, a.values)};
}

template <class T>
CooMatrix<T> sort_by_row(const CooView<T>& a)
{
    CsrMatrix<T> sorted = to_csr(a);
    return {a.rows, a.cols, matrix::expand(a.rows, a.nnz, sorted.row_ptr.data()), std::move(sorted.col_idx),
            std::move(sorted.values)};
}

template <class T>
CooMatrix<T> sort_by_column(const CooView<T>& a)
{
    CscMatrix<T> sorted = to_csc(a);
    return {a.rows, a.cols, std::move(sorted.row_idx), matrix::expand(a.cols, a.nnz, sorted.col_ptr.data()),
            std::move(sorted.values)};
}

#define RMSP_INSTANTIATE(T)                               \
    template CscMatrix<T> to_csc(const CsrView<T>&);      \
    template CscMatrix<T> to_csc(const CooView<T>&);      \
    template CsrMatrix<T> to_csr(const CscView<T>&);      \
    template CsrMatrix<T> to_csr(const CooView<T>&);      \
    template CooMatrix<T> to_coo(const CsrView<T>&);      \
    template CooMatrix<T> to_coo(const CscView<T>&);      \
    template CooMatrix<T> sort_by_row(const CooView<T>&); \
    template CooMatrix<T> sort_by_column(const CooView<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp
