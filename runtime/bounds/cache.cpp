#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/bounds/pattern.hpp"

namespace rmsp::bounds {
namespace {

/// A fully associative cache over lines 0 to lines - 1 that replaces the least recently used one. Each line has a place
/// in a ring of slots, so that an access takes constant time.
class Cache {
public:
    Cache(std::int64_t lines, std::int64_t capacity)
        : slot_of_(static_cast<std::size_t>(lines), -1),
          state_(static_cast<std::size_t>(lines), 0),
          capacity_(std::max<std::int64_t>(1, std::min(lines, capacity)))
    {
        slots_.reserve(static_cast<std::size_t>(capacity_));
    }

    /// Of what is computed, nothing has to be read the first time.
    void access(std::int64_t line, bool computed)
    {
        uncached += computed ? 2 : 1;
        const auto at = static_cast<std::size_t>(line);
        std::int32_t slot = slot_of_[at];
        if (slot < 0) {
            if ((state_[at] & seen) == 0) {
                ++distinct;
            }
            if (!computed || (state_[at] & seen) != 0) {
                ++read;
            }
            slot = take_slot();
            slots_[static_cast<std::size_t>(slot)].line = line;
            slot_of_[at] = slot;
            insert_first(slot);
        } else if (slot != first_) {
            remove(slot);
            insert_first(slot);
        }
        state_[at] = static_cast<char>(state_[at] | seen | (computed ? dirty : 0));
    }

    void flush()
    {
        for (const Slot& slot : slots_) {
            written += (state_[static_cast<std::size_t>(slot.line)] & dirty) != 0 ? 1 : 0;
        }
    }

    std::int64_t read = 0;
    std::int64_t written = 0;
    std::int64_t distinct = 0;
    std::int64_t uncached = 0;  ///< without a cache what is computed is read and written

private:
    static constexpr char seen = 1;
    static constexpr char dirty = 2;
    struct Slot {
        std::int64_t line;
        std::int32_t before;
        std::int32_t after;
    };

    std::int32_t take_slot()
    {
        if (static_cast<std::int64_t>(slots_.size()) < capacity_) {
            slots_.push_back({});
            return static_cast<std::int32_t>(slots_.size()) - 1;
        }
        const std::int32_t slot = last_;
        remove(slot);
        const auto line = static_cast<std::size_t>(slots_[static_cast<std::size_t>(slot)].line);
        if ((state_[line] & dirty) != 0) {
            ++written;
            state_[line] = seen;
        }
        slot_of_[line] = -1;
        return slot;
    }

    void remove(std::int32_t slot)
    {
        const Slot& s = slots_[static_cast<std::size_t>(slot)];
        (s.before < 0 ? first_ : slots_[static_cast<std::size_t>(s.before)].after) = s.after;
        (s.after < 0 ? last_ : slots_[static_cast<std::size_t>(s.after)].before) = s.before;
    }

    void insert_first(std::int32_t slot)
    {
        Slot& s = slots_[static_cast<std::size_t>(slot)];
        s.before = -1;
        s.after = first_;
        (first_ < 0 ? last_ : slots_[static_cast<std::size_t>(first_)].before) = slot;
        first_ = slot;
    }

    std::vector<std::int32_t> slot_of_;
    std::vector<char> state_;
    std::vector<Slot> slots_;
    std::int64_t capacity_;
    std::int32_t first_ = -1;
    std::int32_t last_ = -1;
};

/// Lines of an array that begins at a line of its own.
struct Array {
    std::int64_t first_line;
    std::int64_t element_bytes;
    std::int64_t line_bytes;

    std::int64_t line(std::int64_t element) const { return first_line + element * element_bytes / line_bytes; }
};

class AddressSpace {
public:
    explicit AddressSpace(std::int64_t line_bytes) : line_bytes_(line_bytes) {}
    Array add(std::int64_t elements, std::int64_t element_bytes)
    {
        const Array array{lines, element_bytes, line_bytes_};
        lines += (elements * element_bytes + line_bytes_ - 1) / line_bytes_;
        return array;
    }
    std::int64_t lines = 0;

private:
    std::int64_t line_bytes_;
};

}  // namespace

SimulatedCache simulate(const Operation& op, const Counts& counts, std::int64_t fast_bytes, std::int64_t line_bytes)
{
    AddressSpace layout(line_bytes);
    const Array a_columns = layout.add(op.a.nnz(), 4);
    const Array a_values = layout.add(op.a.nnz(), op.value_bytes);
    SimulatedCache out;
    out.done = true;
    const auto finish = [&](Cache& cache) {
        cache.flush();
        out.read_bytes = cache.read * line_bytes;
        out.written_bytes = cache.written * line_bytes;
        out.compulsory_bytes = cache.distinct * line_bytes;
        out.uncached_bytes = cache.uncached * line_bytes;
    };
    if (op.b == nullptr) {
        const Array x = layout.add(op.a.cols, op.value_bytes);
        const Array y = layout.add(op.a.rows, op.value_bytes);
        Cache cache(layout.lines, fast_bytes / line_bytes);
        for (std::int64_t row = 0; row < op.a.rows; ++row) {
            for (std::int64_t k = op.a.begin(row); k < op.a.end(row); ++k) {
                cache.access(a_columns.line(k), false);
                cache.access(a_values.line(k), false);
                cache.access(x.line(op.a.column(k)), false);
            }
            cache.access(y.line(row), true);
        }
        finish(cache);
        return out;
    }
    const Pattern& b = *op.b;
    const Array b_columns = layout.add(b.nnz(), 4);
    const Array b_values = layout.add(b.nnz(), op.value_bytes);
    const Array c_columns = layout.add(counts.c_nnz, 4);
    const Array c_values = layout.add(counts.c_nnz, op.value_bytes);
    Cache cache(layout.lines, fast_bytes / line_bytes);
    std::vector<std::int64_t> place(static_cast<std::size_t>(b.cols), -1);
    std::int64_t end = 0;
    for (std::int64_t row = 0; row < op.a.rows; ++row) {
        const std::int64_t first = end;
        for (std::int64_t k = op.a.begin(row); k < op.a.end(row); ++k) {
            cache.access(a_columns.line(k), false);
            cache.access(a_values.line(k), false);
            const std::int32_t inner = op.a.column(k);
            for (std::int64_t l = b.begin(inner); l < b.end(inner); ++l) {
                cache.access(b_columns.line(l), false);
                cache.access(b_values.line(l), false);
                std::int64_t& at = place[static_cast<std::size_t>(b.column(l))];
                if (at < first) {
                    at = end++;
                }
                cache.access(c_columns.line(at), true);
                cache.access(c_values.line(at), true);
            }
        }
    }
    finish(cache);
    return out;
}

}  // namespace rmsp::bounds
