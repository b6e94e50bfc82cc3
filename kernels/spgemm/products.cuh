#pragma once

#include <kernels/spgemm/device.cuh>

/// The list of products of C's entries, from which repeated values are computed.
namespace rmsp::kernels::spgemm {

/// Bytes of work space that begin_products() needs.
std::size_t begin_bytes(std::int64_t entries);
/// Turns how many products each of C's entries has into where they begin; offsets has one more than entries, work
/// begin_bytes(entries).
template <class T>
void begin_products(const T* counts, std::int64_t entries, std::uint32_t* offsets, void* work, std::size_t work_bytes,
                    cudaStream_t stream);

/// The products of C's entries, one after the other; no products: there are none.
struct ListedProducts {
    DeviceArray<std::uint32_t> offsets;  ///< where those of each entry begin, and where the last ends
    DeviceArray<ProductRef> products;
    std::size_t bytes() const { return offsets.size() * sizeof(std::uint32_t) + products.size() * sizeof(ProductRef); }
};

/// Entries of C whose products are packed together, and ordered by how many they have: then the 32 of a slice have
/// about as many.
inline constexpr int products_window = 2048;
inline constexpr int slices_a_bundle = 4;
/// Products that an entry has in its slice, at most, in a window with so many products; what is beyond is added up by
/// others, so that nobody waits for a long entry.
constexpr unsigned most_in_slice(std::int64_t products, std::int64_t entries)
{
    return products <= 4 * entries ? 8 : 16;
}
/// Products that a lane takes of what is beyond.
inline constexpr int products_a_piece = 8;

/// What is packed of a window's products: the places of both factors from `a` and `b` on, the latter in the lower bits
/// of a word.
struct alignas(16) ProductWindow {
    static constexpr std::int32_t wide = -1;  ///< they do not fit one word: another has the place in B
    std::int32_t a;
    std::int32_t b;
    std::int32_t how;  ///< bits of a place in B, or wide
    std::int32_t
        number;  ///< of C's windows: those with much work come first, so that nothing waits for them at the end
};

/// Products of four slices of 32 entries of C each, in rows of 32 words (wide: of places in A, each with one of places
/// in B): the first product of each entry of the slices in turn, then the second, and so on, of the slices that have so
/// many. The last bundle of a window has what entries have beyond, in pieces of products of one entry: for each 32 of
/// them a row of whose they are, then a row of their products.
struct alignas(16) ProductBundle {
    std::uint32_t begin;                   ///< row
    std::uint32_t pieces;                  ///< of the last bundle, in times 32
    std::uint16_t steps[slices_a_bundle];  ///< rows of each slice; they fall
};

/// The list of products, to be read fast.
struct PackedProducts {
    ProductWindow* windows;  ///< product_windows() of them
    ProductBundle* bundles;  ///< bundles_a_window a window
    std::uint16_t* order;  ///< products_window a window: places of the entries there, of the four of a lane of a bundle
                           ///< side by side
    std::uint32_t* words;
};
/// Room for them; no words: there are none.
struct PackedList {
    DeviceArray<std::uint32_t> words;
    DeviceArray<ProductWindow> windows;
    DeviceArray<ProductBundle> bundles;
    DeviceArray<std::uint16_t> order;
    PackedProducts packed() const { return {windows.data(), bundles.data(), order.data(), words.data()}; }
    std::size_t bytes() const
    {
        return words.size() * sizeof(std::uint32_t) + windows.size() * sizeof(ProductWindow) +
               bundles.size() * sizeof(ProductBundle) + order.size() * sizeof(std::uint16_t);
    }
};

std::int64_t product_windows(std::int64_t entries);
/// The list once more, packed. Waits. \return without words if that, or what it is made with, takes more bytes than
/// `most_bytes`, or if the device has no room
PackedList pack_products(const ListedProducts& listed, std::int64_t entries, std::int64_t most_bytes,
                         const Context& context);
/// values = alpha times the sums of the packed products, on so many multiprocessors.
template <class T>
void sum_products(const PackedProducts& packed, std::int64_t entries, int units, T alpha, const T* a_values,
                  const T* b_values, T* values, cudaStream_t stream);
/// The same of products that are not packed, by `lanes` threads an entry: 1, 2, 4, 8, 16 or 32.
template <class T>
void sum_entries(const ListedProducts& listed, std::int64_t entries, int lanes, T alpha, const T* a_values,
                 const T* b_values, T* values, cudaStream_t stream);
template <class T>
void fill_ones(T* to, std::int64_t n, cudaStream_t stream);

inline constexpr std::uint32_t no_product = 0xffffffffu;
inline constexpr std::uint32_t no_entry = 0xffffffffu;
inline constexpr int slice_bundles = products_window / (32 * slices_a_bundle);
inline constexpr int bundles_a_window = slice_bundles + 1;

/// Rows of 32 pieces, and of whose they are.
constexpr int rows_of_pieces(int planes) { return 1 + products_a_piece * planes; }

}  // namespace rmsp::kernels::spgemm
