#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <variant>

#include <rmsp/export.hpp>
#include <rmsp/host_vector.hpp>
#include <rmsp/value_types.hpp>

namespace rmsp {

enum class Format : std::uint8_t { csr, csc, coo };
enum class IndexType : std::uint8_t { i32, i64 };

RMSP_API const char* to_string(Format format) noexcept;

/// Whether matrices and vectors may have values of this type.
template <class T>
inline constexpr bool is_value_type = false;
#define RMSP_VALUE_TYPE(T) \
    template <>            \
    inline constexpr bool is_value_type<T> = true;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_VALUE_TYPE)
#undef RMSP_VALUE_TYPE

/// Whether arrays of this type hold indices.
template <class I>
inline constexpr bool is_index_type = std::is_same_v<I, int> || std::is_same_v<I, long> || std::is_same_v<I, long long>;

/// Non-owning view of an array of 32-bit or 64-bit signed indices. It lets a caller's own arrays, of either width, be
/// used without a copy; loops over many indices call visit() once and run typed. The array must outlive the view.
class IndexView {
public:
    IndexView() = default;
    template <class I>
    IndexView(const I* data) noexcept  // NOLINT(google-explicit-constructor)
        : data_(data), type_(sizeof(I) == 4 ? IndexType::i32 : IndexType::i64)
    {
        static_assert(is_index_type<I>, "indices are 32-bit or 64-bit signed integers");
    }

    IndexType type() const noexcept { return type_; }
    const void* data() const noexcept { return data_; }
    std::size_t element_bytes() const noexcept { return type_ == IndexType::i32 ? 4 : 8; }

    std::int64_t operator[](std::int64_t i) const noexcept
    {
        // Copied as bytes: the caller may have written the array as another type of the same width.
        if (type_ == IndexType::i32) {
            return at<std::int32_t>(i);
        }
        return at<std::int64_t>(i);
    }
    /// Calls f with the typed pointer, to std::int32_t or std::int64_t, and returns what it returns.
    template <class F>
    decltype(auto) visit(F&& f) const
    {
        if (type_ == IndexType::i32) {
            return std::forward<F>(f)(static_cast<const std::int32_t*>(data_));
        }
        return std::forward<F>(f)(static_cast<const std::int64_t*>(data_));
    }

private:
    template <class I>
    I at(std::int64_t i) const noexcept
    {
        I index;
        std::memcpy(&index, static_cast<const I*>(data_) + i, sizeof(I));
        return index;
    }

    const void* data_ = nullptr;
    IndexType type_ = IndexType::i64;
};

/// Owning array of indices, 32-bit where that suffices. New elements are uninitialised.
class IndexArray {
public:
    IndexArray() = default;
    IndexArray(HostVector<std::int32_t> v) : storage_(std::move(v)) {}
    IndexArray(HostVector<std::int64_t> v) : storage_(std::move(v)) {}
    IndexArray(IndexType type, std::size_t n)
    {
        if (type == IndexType::i32) {
            storage_ = HostVector<std::int32_t>(n);
        } else {
            storage_ = HostVector<std::int64_t>(n);
        }
    }

    std::size_t size() const noexcept
    {
        return std::visit([](const auto& v) { return v.size(); }, storage_);
    }
    IndexType type() const noexcept { return storage_.index() == 0 ? IndexType::i32 : IndexType::i64; }
    IndexView view() const noexcept
    {
        return std::visit([](const auto& v) { return IndexView(v.data()); }, storage_);
    }
    std::int64_t operator[](std::int64_t i) const noexcept { return view()[i]; }
    /// Calls f with the typed HostVector&.
    template <class F>
    decltype(auto) visit(F&& f)
    {
        return std::visit(std::forward<F>(f), storage_);
    }

private:
    std::variant<HostVector<std::int32_t>, HostVector<std::int64_t>> storage_;
};

/// The narrowest index type that can hold every column of a matrix with `cols` columns.
constexpr IndexType index_type_for(std::int64_t cols) noexcept
{
    return cols <= std::int64_t{INT32_MAX} ? IndexType::i32 : IndexType::i64;
}

/// Compressed sparse rows, not owned. row_ptr has rows + 1 entries, also of no rows, and row_ptr[0] == base; col_idx
/// and values have nnz = row_ptr[rows] - base entries. Columns inside a row may be in any order and may repeat
/// (repeated entries add up).
template <class T>
struct CsrView {
    static_assert(is_value_type<T>, "librmsp multiplies float and double");
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t nnz = 0;
    IndexView row_ptr;
    IndexView col_idx;
    const T* values = nullptr;
    /// What the indices count from: 0, or 1 for functions that say so (Runtime::distribute(), SpgemmOperand). Others
    /// refuse 1.
    int base = 0;
};

/// Compressed sparse columns, not owned: the CSR of the transpose. col_ptr has cols + 1 entries.
template <class T>
struct CscView {
    static_assert(is_value_type<T>, "librmsp multiplies float and double");
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t nnz = 0;
    IndexView col_ptr;
    IndexView row_idx;
    const T* values = nullptr;
    /// What the indices count from: 0, or 1 for functions that say so (Runtime::distribute(), SpgemmOperand). Others
    /// refuse 1.
    int base = 0;
};

/// Coordinates, not owned; nnz entries in each array, in any order unless a function asks for one.
template <class T>
struct CooView {
    static_assert(is_value_type<T>, "librmsp multiplies float and double");
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t nnz = 0;
    IndexView row_idx;
    IndexView col_idx;
    const T* values = nullptr;
    /// What the indices count from: 0, or 1 for functions that say so (Runtime::distribute(), SpgemmOperand). Others
    /// refuse 1.
    int base = 0;
};

/// Order of the values of a block.
enum class BlockOrder : std::uint8_t { by_row, by_column };

/// Block compressed sparse rows, not owned: CSR whose entries are dense blocks of height x width values. All sizes but
/// those two count blocks: the matrix has rows * height rows and cols * width columns.
template <class T>
struct BsrView {
    static_assert(is_value_type<T>, "librmsp multiplies float and double");
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t blocks = 0;
    IndexView row_ptr;          ///< rows + 1 entries; row_ptr[0] == base
    IndexView col_idx;          ///< of each block; in any order within a row, and may repeat
    const T* values = nullptr;  ///< blocks * height * width, block after block
    std::int64_t height = 1;
    std::int64_t width = 1;
    BlockOrder order = BlockOrder::by_row;
    int base = 0;  ///< what row_ptr and col_idx count from: 0 or 1
};

/// Owning CSR matrix on the host; what readers and generators return.
template <class T>
struct CsrMatrix {
    static_assert(is_value_type<T>, "librmsp multiplies float and double");
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    HostVector<std::int64_t> row_ptr;  ///< rows + 1 entries
    IndexArray col_idx;                ///< 32-bit where cols allows it
    HostVector<T> values;

    std::int64_t nnz() const noexcept { return static_cast<std::int64_t>(values.size()); }
    CsrView<T> view() const noexcept
    {
        return {rows, cols, nnz(), IndexView(row_ptr.data()), col_idx.view(), values.data()};
    }
};

/// Owning CSC matrix on the host.
template <class T>
struct CscMatrix {
    static_assert(is_value_type<T>, "librmsp multiplies float and double");
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    HostVector<std::int64_t> col_ptr;  ///< cols + 1 entries
    IndexArray row_idx;                ///< 32-bit where rows allows it
    HostVector<T> values;

    std::int64_t nnz() const noexcept { return static_cast<std::int64_t>(values.size()); }
    CscView<T> view() const noexcept
    {
        return {rows, cols, nnz(), IndexView(col_ptr.data()), row_idx.view(), values.data()};
    }
};

/// Owning COO matrix on the host.
template <class T>
struct CooMatrix {
    static_assert(is_value_type<T>, "librmsp multiplies float and double");
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    IndexArray row_idx;  ///< 32-bit where rows allows it
    IndexArray col_idx;  ///< 32-bit where cols allows it
    HostVector<T> values;

    std::int64_t nnz() const noexcept { return static_cast<std::int64_t>(values.size()); }
    CooView<T> view() const noexcept { return {rows, cols, nnz(), row_idx.view(), col_idx.view(), values.data()}; }
};

/// Order of the entries of a COO matrix.
enum class CooOrder : std::uint8_t {
    by_row,     ///< rows do not fall; the columns of a row are in any order
    by_column,  ///< columns do not fall; the rows of a column are in any order
    unsorted,
};
RMSP_API const char* to_string(CooOrder order) noexcept;

/// Order of nnz entries, found in parallel; by_row where both hold.
RMSP_API CooOrder coo_order(std::int64_t nnz, IndexView row_idx, IndexView col_idx);

/// Checks sizes, monotone pointers and index ranges, in parallel; of arrays that count from 0.
/// \throws Error(usage) naming the first row (or column) and entry that is wrong
template <class T>
RMSP_API void validate(const CsrView<T>& a);
template <class T>
RMSP_API void validate(const CscView<T>& a);
template <class T>
RMSP_API void validate(const CooView<T>& a);
/// Takes a base of 1 as well. \throws Error(usage) naming the first block that is wrong
template <class T>
RMSP_API void validate(const BsrView<T>& a);

}  // namespace rmsp
