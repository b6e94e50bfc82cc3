#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/fuzz/c_api_model.hpp"

/// Arrays of matrices, right and wrong, as fuzz_c_api gives them to the C interface.
namespace rmsp::fuzz {

/// Arguments of rmsp_*_create_csr() and its like. What they claim to be is behind the pointers, unless those are null.
struct Arrays {
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t nnz = 0;
    const void* first = nullptr;
    const void* second = nullptr;
    void* values = nullptr;
    rmsp_index_type first_type = RMSP_INT32;
    rmsp_index_type second_type = RMSP_INT32;
    int base = 0;
    rmsp_value_type type = RMSP_DOUBLE;
    Matrix model{};  ///< `valid`: what a matrix has to be
};

/// Whether indices lie in [base, base + end), or, of pointers, rise from base to base + end.
inline bool are_indices(const std::vector<std::int64_t>& indices, std::int64_t base, std::int64_t end)
{
    return std::all_of(indices.begin(), indices.end(), [&](std::int64_t i) { return i >= base && i - base < end; });
}
inline bool are_pointers(const std::vector<std::int64_t>& pointers, std::int64_t base, std::int64_t end)
{
    return std::is_sorted(pointers.begin(), pointers.end()) && pointers.front() == base &&
           pointers.back() - base == end;
}

/// Entries of a small matrix, in the order of the format: by row, by column, or, of coordinates, in either or none.
inline std::vector<Entry> entries_of(Input& in, rmsp_format format, std::int64_t rows, std::int64_t cols, bool& exact)
{
    Numbers structure(in);
    Numbers numbers(in);
    exact = numbers.are_exact();
    const unsigned order = format == RMSP_CSR ? 0 : format == RMSP_CSC ? 1 : in.below(3);
    const std::int64_t most_of_row = in.below(5);
    std::vector<Entry> entries;
    for (std::int64_t row = 0; row < rows && cols > 0; ++row) {
        for (std::int64_t k = structure.below(most_of_row + 1); k > 0; --k) {
            entries.push_back({row, structure.below(cols), numbers.value()});
        }
    }
    if (order == 1) {
        std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.col < b.col; });
    } else if (order == 2) {
        for (std::size_t i = entries.size(); i > 1; --i) {
            std::swap(entries[i - 1], entries[static_cast<std::size_t>(structure.below(static_cast<std::int64_t>(i)))]);
        }
    }
    return entries;
}

/// What is wrong with arrays, if anything is; its place is chosen by the next byte.
inline void spoil(Input& in, std::int64_t& claimed, std::vector<std::int64_t>& indices)
{
    // Sizes that no computer has, so that nobody tries to give memory to them, and what is just beyond a type.
    static constexpr std::int64_t wild[] = {-1,        0,  1, 2, INT_MAX, INT_MIN, INT64_MAX, INT64_MIN, INT64_MAX - 1,
                                            1LL << 50, 11, -2};
    if (in.below(2) == 0 || indices.empty()) {
        claimed = possible(in.one_of(wild));
    } else {
        indices[in.below(indices.size())] = in.one_of(wild);
    }
}

inline Arrays arrays_of(Input& in, Arena& arena, rmsp_format format)
{
    Arrays out;
    out.type = static_cast<rmsp_value_type>(in.below(2));
    const unsigned types = in.below(4);
    out.first_type = static_cast<rmsp_index_type>(types % 2);
    out.second_type = static_cast<rmsp_index_type>(types / 2);
    out.base = in.below(4) == 0 ? 1 : 0;
    out.rows = in.below(10);
    out.cols = in.below(3) == 0 ? in.below(10) : static_cast<unsigned>(out.rows);
    Matrix& model = out.model;
    model.entries = entries_of(in, format, out.rows, out.cols, model.exact);
    out.nnz = static_cast<std::int64_t>(model.entries.size());
    const bool pointers = format != RMSP_COO;
    const std::int64_t lines = format == RMSP_CSC ? out.cols : out.rows;
    std::vector<std::int64_t> first(pointers ? static_cast<std::size_t>(lines) + 1 : 0, out.base);
    std::vector<std::int64_t> second;
    std::vector<double> values;
    for (const Entry& entry : model.entries) {
        const std::int64_t line = format == RMSP_CSC ? entry.col : entry.row;
        second.push_back((format == RMSP_CSC ? entry.row : entry.col) + out.base);
        values.push_back(entry.value);
        if (!pointers) {
            first.push_back(line + out.base);
            continue;
        }
        for (auto i = static_cast<std::size_t>(line) + 1; i < first.size(); ++i) {
            ++first[i];
        }
    }
    bool nulls[3] = {};
    if (in.seldom() || in.seldom()) {
        std::int64_t none = 0;
        switch (in.below(8)) {
            case 0:
                spoil(in, out.rows, first);
                break;
            case 1:
                spoil(in, out.cols, second);
                break;
            case 2:
                spoil(in, out.nnz, second);
                break;
            case 3:
                out.base = static_cast<int>(in.below(4)) - 1;
                break;
            case 4:
                out.first_type = static_cast<rmsp_index_type>(static_cast<int>(in.below(4)) - 1);
                break;
            case 5:
                out.type = static_cast<rmsp_value_type>(static_cast<int>(in.below(4)) - 1);
                break;
            case 6:
                spoil(in, none, first);
                break;
            default:
                nulls[in.below(3)] = true;
        }
    }
    const auto is_type = [](int type) { return type == 0 || type == 1; };
    const bool types_are = is_type(out.first_type) && is_type(out.second_type) && is_type(out.type);
    // As many entries behind the pointers as are claimed. Null where no memory is as large.
    const auto fits = [](std::int64_t count) { return count >= 0 && count <= most_entries; };
    const std::int64_t first_count = format == RMSP_COO   ? out.nnz
                                     : format == RMSP_CSC ? std::min(out.cols, INT64_MAX - 1) + 1
                                                          : std::min(out.rows, INT64_MAX - 1) + 1;
    const auto first_type = is_type(out.first_type) ? out.first_type : RMSP_INT64;
    first.resize(fits(first_count) ? static_cast<std::size_t>(first_count) : 0, out.nnz + out.base);
    second.resize(fits(out.nnz) ? static_cast<std::size_t>(out.nnz) : 0, out.base);
    values.resize(second.size(), 1.0);
    out.first = nulls[0] || !fits(first_count) ? nullptr : arena.indices(first_type, first);
    out.second = nulls[1] || !fits(out.nnz) ? nullptr : arena.indices(out.second_type, second);
    out.values =
        nulls[2] || !fits(out.nnz) ? nullptr : arena.values(is_type(out.type) ? out.type : RMSP_DOUBLE, values);
    // What is in the arrays, where 32 bits cut it.
    const auto cut = [](rmsp_index_type type, std::vector<std::int64_t>& indices) {
        for (std::int64_t& index : indices) {
            index = type == RMSP_INT32 ? static_cast<std::int32_t>(index) : index;
        }
    };
    cut(first_type, first);
    cut(out.second_type, second);
    const bool sizes_are = out.rows >= 0 && out.cols >= 0 && out.rows < INT64_MAX && out.cols < INT64_MAX &&
                           fits(out.nnz) && fits(first_count);
    const bool arrays_are = (out.first != nullptr || first_count == 0) &&
                            ((out.second != nullptr && out.values != nullptr) || out.nnz == 0);
    model.valid = types_are && is_type(out.base) && sizes_are && arrays_are &&
                  (pointers ? are_pointers(first, out.base, out.nnz) : are_indices(first, out.base, out.rows)) &&
                  are_indices(second, out.base, format == RMSP_CSC ? out.rows : out.cols);
    model.type = out.type;
    model.rows = out.rows;
    model.cols = out.cols;
    model.entries.clear();
    std::size_t line = 0;
    for (std::size_t k = 0; model.valid && k < second.size(); ++k) {
        while (pointers && first[line + 1] - out.base <= static_cast<std::int64_t>(k)) {
            ++line;
        }
        const std::int64_t along = pointers ? static_cast<std::int64_t>(line) : first[k] - out.base;
        const std::int64_t across = second[k] - out.base;
        model.entries.push_back({format == RMSP_CSC ? across : along, format == RMSP_CSC ? along : across, values[k]});
    }
    model.values = out.values;
    return out;
}

}  // namespace rmsp::fuzz
