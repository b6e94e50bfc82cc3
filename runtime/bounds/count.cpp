#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/value_types.hpp"
#include "runtime/bounds/pattern.hpp"

namespace rmsp::bounds {

template <class T>
Pattern pattern_of(const CsrView<T>& a)
{
    validate(a);
    if (a.rows > INT32_MAX || a.cols > INT32_MAX) {
        throw Error(ErrorCode::usage,
                    fmt::format("a matrix of {} x {} cannot be characterized: at most {} rows and columns can", a.rows,
                                a.cols, INT32_MAX));
    }
    Pattern out;
    out.rows = a.rows;
    out.cols = a.cols;
    out.row_ptr.resize(static_cast<std::size_t>(a.rows) + 1);
    out.col_idx.resize(static_cast<std::size_t>(a.nnz));
    a.row_ptr.visit([&](const auto* row_ptr) {
        for (std::size_t i = 0; i < out.row_ptr.size(); ++i) {
            out.row_ptr[i] = static_cast<std::int64_t>(row_ptr[i]);
        }
    });
    a.col_idx.visit([&](const auto* col_idx) {
        for (std::size_t k = 0; k < out.col_idx.size(); ++k) {
            out.col_idx[k] = static_cast<std::int32_t>(col_idx[k]);
        }
    });
    return out;
}

#define RMSP_INSTANTIATE(T) template Pattern pattern_of(const CsrView<T>&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

Counts count(const Operation& op)
{
    Counts counts;
    std::vector<char> column_used(static_cast<std::size_t>(op.a.cols));
    for (const std::int32_t column : op.a.col_idx) {
        const std::int64_t partners = op.partners(column);
        counts.multiplies += partners;
        counts.a_used += partners > 0 ? 1 : 0;
        char& used = column_used[static_cast<std::size_t>(column)];
        counts.b_used += used == 0 ? partners : 0;
        used = 1;
    }
    if (op.b == nullptr) {
        counts.c_nnz = op.a.rows;
        for (std::int64_t row = 0; row < op.a.rows; ++row) {
            counts.c_used += op.a.length(row) > 0 ? 1 : 0;
        }
        return counts;
    }
    std::vector<std::int64_t> seen(static_cast<std::size_t>(op.b->cols), -1);
    counts.c_row_ptr.assign(1, 0);
    for (std::int64_t row = 0; row < op.a.rows; ++row) {
        for (std::int64_t k = op.a.begin(row); k < op.a.end(row); ++k) {
            const std::int32_t inner = op.a.column(k);
            for (std::int64_t l = op.b->begin(inner); l < op.b->end(inner); ++l) {
                std::int64_t& last = seen[static_cast<std::size_t>(op.b->column(l))];
                counts.c_nnz += last != row ? 1 : 0;
                last = row;
            }
        }
        counts.c_row_ptr.push_back(counts.c_nnz);
    }
    counts.c_used = counts.c_nnz;
    return counts;
}

Traffic traffic(const Operation& op, const Counts& counts, const Touches& touches)
{
    Traffic moved;
    if (op.b == nullptr) {
        const std::int64_t result = 2 * touches.c - counts.c_used + (counts.c_nnz - counts.c_used);
        moved.words = 2 * touches.a + touches.b + result;
        moved.bytes = op.entry_bytes() * touches.a + op.value_bytes * (touches.b + result);
    } else {
        moved.words = 2 * (touches.a + touches.b) + 3 * touches.c - counts.c_used;
        moved.bytes = op.entry_bytes() * (touches.a + touches.b) + (op.entry_bytes() + op.value_bytes) * touches.c -
                      op.value_bytes * counts.c_used;
    }
    return moved;
}

std::int64_t footprint_bytes(const Operation& op, const Touches& part)
{
    const std::int64_t others = op.b == nullptr ? op.value_bytes : op.entry_bytes();
    return op.entry_bytes() * part.a + others * (part.b + part.c);
}

Cut cut_rows(const Operation& op, std::int64_t fast_bytes, const std::vector<std::int64_t>* order,
             const std::vector<std::int32_t>* part_of)
{
    const bool vector = op.b == nullptr;
    Cut cut;
    Touches part;  // what the current one holds
    std::vector<std::int64_t> b_part(static_cast<std::size_t>(vector ? op.a.cols : op.b->nnz()), -1);
    std::vector<std::int64_t> c_epoch(static_cast<std::size_t>(vector ? 1 : op.b->cols), -1);
    std::int64_t epoch = 0;  // of a row within a part
    const auto close = [&] {
        cut.touches.a += part.a;
        cut.touches.b += part.b;
        cut.touches.c += part.c;
        cut.parts += part.a > 0 ? 1 : 0;
        part = {};
    };
    // A part has an identity of its own also where it is closed before it holds anything.
    std::int64_t identity = 0;
    std::int32_t last_part = -1;
    for (std::int64_t i = 0; i < op.a.rows; ++i) {
        const std::int64_t row = order == nullptr ? i : (*order)[static_cast<std::size_t>(i)];
        ++epoch;
        if (part_of != nullptr && (*part_of)[static_cast<std::size_t>(row)] != last_part) {
            last_part = (*part_of)[static_cast<std::size_t>(row)];
            close();
            ++identity;
        }
        for (std::int64_t k = op.a.begin(row); k < op.a.end(row); ++k) {
            const std::int32_t inner = op.a.column(k);
            const std::int64_t first = vector ? inner : op.b->begin(inner);
            const std::int64_t end = vector ? first + 1 : op.b->end(inner);
            bool a_held = false;
            for (std::int64_t l = first; l < end; ++l) {
                const std::size_t column = vector ? 0 : static_cast<std::size_t>(op.b->column(l));
                const auto entry = static_cast<std::size_t>(l);
                Touches next = part;
                next.a += a_held ? 0 : 1;
                next.b += b_part[entry] == identity ? 0 : 1;
                next.c += c_epoch[column] == epoch ? 0 : 1;
                if (footprint_bytes(op, next) > fast_bytes) {
                    close();
                    ++identity;
                    ++epoch;
                    next = {1, 1, 1};
                }
                part = next;
                a_held = true;
                b_part[entry] = identity;
                c_epoch[column] = epoch;
            }
        }
    }
    close();
    return cut;
}

}  // namespace rmsp::bounds
