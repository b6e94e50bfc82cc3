#pragma once

#include <cstdint>

#include <rmsp/matrix.hpp>

/// Block compressed rows as ordinary ones.
namespace rmsp::matrix {

/// Where the values of a BsrView stand in the CSR matrix of all of them.
struct BlockLayout {
    HostVector<std::int64_t> row_ptr;  ///< blocks before each row of blocks, from 0
    std::int64_t height = 1;
    std::int64_t width = 1;
    BlockOrder order = BlockOrder::by_row;
};

/// Of blocks that were validated.
template <class T>
BlockLayout layout_of(const BsrView<T>& a);

/// Values that come block by block, in the order of the rows; `out` has as many. In parallel.
template <class T>
void to_rows(const BlockLayout& layout, const T* values, T* out);

}  // namespace rmsp::matrix
