#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <kernels/steps/coarsening/coarse_entries.cuh>
#include <kernels/steps/coarsening/row_sums.cuh>

/// Rows of extended interpolation by some threads each, in the order of matrix/interpolation_row.hpp, so that both find
/// the same bits: threads look at entries of one row at the same time, which add to different entries of the sum.
namespace rmsp::kernels::cuda::coarsening {

/// Entries of a row of P that a group chooses or computes anew; rows with more are left to a thread.
inline constexpr int most_chosen = 2 * group;

/// Shared memory of one row's sum: a list of columns and values, and a table that finds a column in it.
struct SumRoom {
    std::int32_t entries;  ///< at most 255
    std::int32_t slots;    ///< a power of two, at least twice the entries

    __host__ __device__ std::int32_t bytes() const
    {
        return slots + entries * static_cast<std::int32_t>(sizeof(double) + sizeof(std::int32_t));
    }
};

/// One row while a group adds it up.
template <class Source>
class GroupRow : public Group {
public:
    /// \param room  16-byte aligned
    __device__ GroupRow(const Source& a, const CoarseEntries& coarse, std::byte* room, const SumRoom& size)
        : a_(a),
          coarse_(coarse),
          room_(size.entries),
          slots_(size.slots),
          values_(reinterpret_cast<double*>(room)),
          columns_(reinterpret_cast<std::int32_t*>(room + sizeof(double) * static_cast<std::size_t>(room_))),
          table_(reinterpret_cast<std::uint8_t*>(columns_ + room_))
    {
    }

    /// The row before truncation; -1: it has more entries than there is room for. Returns how many there are.
    __device__ std::int32_t extended(std::int64_t row)
    {
        clear();
        const std::int64_t begin = a_.row_ptr[row];
        const std::int64_t end = a_.row_ptr[row + 1];
        for (std::int64_t first = begin; first < end; first += group) {
            if (!find_points(first + lane, end)) {
                return -1;
            }
        }
        if (size_ == 0) {
            return 0;
        }
        double divisor = a_.diagonal[row];
        for (std::int64_t first = begin; first < end; first += group) {
            add_entries(row, first + lane, end, divisor);
        }
        if (divisor == 0) {
            return 0;
        }
        bool good = true;
        for (std::int32_t i = lane; i < size_; i += group) {
            values_[i] = -values_[i] / divisor;
            good = good && matrix::is_number(values_[i]);
        }
        sync();
        return __all_sync(mask, good ? 1 : 0) != 0 ? size_ : 0;
    }

    /// matrix::truncate() and sort_by_column() of the list of that many entries, 1 <= most <= most_chosen. Returns how
    /// many are left, which entry() has.
    __device__ std::int32_t choose(std::int32_t size, double truncation, std::int64_t most)
    {
        double largest = 0;
        for (std::int32_t i = lane; i < size; i += group) {
            largest = fmax(largest, fabs(values_[i]));
        }
        for (int distance = 1; distance < group; distance *= 2) {
            largest = fmax(largest, across(distance, largest));
        }
        // Bit i is the thread's entry lane + i group.
        std::uint32_t may = 0;
        for (std::int32_t i = lane, bit = 0; i < size; i += group, ++bit) {
            may |= values_[i] != 0 && !(fabs(values_[i]) < truncation * largest) ? 1U << bit : 0U;
        }
        std::int32_t left = __popc(may);
        for (int distance = 1; distance < group; distance *= 2) {
            left += across(distance, left);
        }
        const auto chosen = static_cast<std::int32_t>(left < most ? left : most);
        const double wanted = chosen < size ? total(size) : 0.0;
        // The chosen ones are with the threads, one of the first `group` and one of the others with each.
        std::int32_t columns[2] = {0, 0};
        double values[2] = {0, 0};
        std::int32_t best = next_best(may);
        for (std::int32_t i = 0; i < chosen; ++i) {
            double size_of_best = best >= 0 ? fabs(values_[best]) : -1;
            std::int32_t column_of_best = best >= 0 ? columns_[best] : 0;
            std::int32_t who = lane;
            for (int distance = 1; distance < group; distance *= 2) {
                const double size_of_other = across(distance, size_of_best);
                const std::int32_t column_of_other = across(distance, column_of_best);
                const std::int32_t other = across(distance, who);
                if (size_of_other > size_of_best ||
                    (size_of_other == size_of_best && column_of_other < column_of_best)) {
                    size_of_best = size_of_other;
                    column_of_best = column_of_other;
                    who = other;
                }
            }
            const double value = from(who, best >= 0 ? values_[best] : 0.0);
            if (lane == who) {
                may &= ~(1U << ((best - lane) / group));
                best = next_best(may);
            }
#pragma unroll
            for (int part = 0; part < 2; ++part) {
                if (lane + part * group == i) {
                    columns[part] = column_of_best;
                    values[part] = value;
                }
            }
        }
        std::int32_t rank[2] = {0, 0};
        for (std::int32_t i = 0; i < chosen; ++i) {
            const std::int32_t column = from(i % group, i < group ? columns[0] : columns[1]);
            rank[0] += column < columns[0] ? 1 : 0;
            rank[1] += column < columns[1] ? 1 : 0;
        }
        sync();
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            if (lane + part * group < chosen) {
                columns_[rank[part]] = columns[part];
                values_[rank[part]] = values[part];
            }
        }
        sync();
        factor_ = chosen < size ? matrix::rescaling(total(chosen), wanted) : 1.0;
        return chosen;
    }
    __device__ void set_one(std::int32_t column)
    {
        if (lane == 0) {
            columns_[0] = column;
            values_[0] = 1;
        }
        factor_ = 1;
        sync();
    }
    __device__ std::int32_t column(std::int32_t i) const { return columns_[i]; }
    __device__ double entry(std::int32_t i) const { return values_[i] * factor_; }

    /// matrix::take_columns() of the list of that many entries, for at most most_chosen columns, which entry() has
    /// then.
    __device__ void take(std::int32_t size, const std::int32_t* columns, std::int32_t count)
    {
        const double wanted = count < size ? total(size) : 0.0;
        double values[2] = {0, 0};
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            const std::int32_t i = lane + part * group;
            const std::int32_t at = i < count && size > 0 ? place(columns[i]) : size;
            values[part] = at < size ? values_[at] : 0.0;
        }
        sync();
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            if (lane + part * group < count) {
                values_[lane + part * group] = values[part];
            }
        }
        sync();
        factor_ = count < size ? matrix::rescaling(total(count), wanted) : 1.0;
    }

private:
    /// An entry of the row, as one thread has it.
    struct Entry {
        bool strong = false;
        std::int64_t other = -1;
        std::int32_t point = -1;
        std::int64_t begin = 0;  ///< of the coarse entries of row `other`, if it is strong and no coarse point
        std::int64_t end = 0;
    };

    __device__ void clear()
    {
        sync();
        auto* const words = reinterpret_cast<uint4*>(table_);
        for (std::int32_t i = lane; i < slots_ / static_cast<std::int32_t>(sizeof(uint4)); i += group) {
            words[i] = uint4{0, 0, 0, 0};
        }
        size_ = 0;
        sync();
    }
    __device__ std::int32_t slot(std::int32_t column) const
    {
        return static_cast<std::int32_t>((static_cast<std::uint32_t>(column) * 0x9e3779b1U) >> 16U) & (slots_ - 1);
    }
    /// size_ where there is none.
    __device__ std::int32_t place(std::int32_t column) const
    {
        for (std::int32_t at = slot(column);; at = (at + 1) & (slots_ - 1)) {
            const std::int32_t i = static_cast<std::int32_t>(table_[at]) - 1;
            if (i < 0) {
                return size_;
            }
            if (columns_[i] == column) {
                return i;
            }
        }
    }
    /// In the list's order; each thread has the whole.
    __device__ double total(std::int32_t size) const
    {
        double sum = 0;
        for (std::int32_t i = 0; i < size; ++i) {
            sum += values_[i];
        }
        return sum;
    }
    /// The thread's largest entry of those that `may` says, the first column of equal ones; -1: none.
    __device__ std::int32_t next_best(std::uint32_t may) const
    {
        std::int32_t best = -1;
        for (; may != 0; may &= may - 1) {
            const std::int32_t i = lane + (__ffs(static_cast<int>(may)) - 1) * group;
            if (best < 0 || fabs(values_[i]) > fabs(values_[best]) ||
                (fabs(values_[i]) == fabs(values_[best]) && columns_[i] < columns_[best])) {
                best = i;
            }
        }
        return best;
    }

    /// Adds `point`, -1 for none, of each thread, which differ, in the threads' order. False: there is no room.
    __device__ bool append(std::int32_t point)
    {
        const bool is_new = point >= 0 && place(point) == size_;
        const unsigned all = where(is_new);
        const std::int32_t added = __popc(all);
        if (size_ + added > room_) {
            return false;
        }
        sync();
        const std::int32_t i = size_ + __popc(all & ((1U << lane) - 1));
        if (is_new) {
            columns_[i] = point;
            values_[i] = 0;
        }
        // One after the other: two may want the same slot.
        for (unsigned left = all; left != 0; left &= left - 1) {
            if (lane == __ffs(static_cast<int>(left)) - 1) {
                std::int32_t at = slot(point);
                while (table_[at] != 0) {
                    at = (at + 1) & (slots_ - 1);
                }
                table_[at] = static_cast<std::uint8_t>(i + 1);
            }
            sync();
        }
        size_ += added;
        sync();
        return true;
    }

    __device__ Entry entry_at(std::int64_t k, std::int64_t end) const
    {
        Entry out;
        if (k < end) {
            out.strong = a_.strong[k] != 0;
            out.other = a_.col_idx[k];
            out.point = a_.number[out.other];
            if (out.strong && out.point < 0) {
                out.begin = coarse_.row_ptr[out.other];
                out.end = coarse_.row_ptr[out.other + 1];
            }
        }
        return out;
    }

    /// The coarse points that the strong ones of the group's entries stand for; entry k is the thread's.
    __device__ bool find_points(std::int64_t k, std::int64_t end_of_row)
    {
        const Entry mine = entry_at(k, end_of_row);
        for (unsigned left = where(mine.strong); left != 0; left &= left - 1) {
            const int who = __ffs(static_cast<int>(left)) - 1;
            const std::int32_t point = from(who, mine.point);
            if (point >= 0) {
                if (!append(lane == 0 ? point : -1)) {
                    return false;
                }
                continue;
            }
            const std::int64_t end = from(who, mine.end);
            for (std::int64_t first = from(who, mine.begin); first < end; first += group) {
                const std::int64_t m = first + lane;
                if (!append(m < end && (coarse_.kind[m] & CoarseEntries::strong) != 0 ? coarse_.point[m] : -1)) {
                    return false;
                }
            }
        }
        return true;
    }

    /// What row `other` has in column `row`, if its sign is not the diagonal's; else 0.
    __device__ double back(std::int64_t row, std::int64_t other) const
    {
        std::int64_t begin = a_.row_ptr[other];
        const std::int64_t behind = a_.row_ptr[other + 1];
        std::int64_t end = behind;
        while (begin < end) {
            const std::int64_t middle = (begin + end) / 2;
            if (a_.col_idx[middle] < row) {
                begin = middle + 1;
            } else {
                end = middle;
            }
        }
        if (begin == behind || a_.col_idx[begin] != row) {
            return 0;
        }
        const double value = a_.value(begin);
        return (value < 0) != (a_.diagonal[other] < 0) ? value : 0.0;
    }

    /// Adds the group's entries of the row, entry k being the thread's.
    __device__ void add_entries(std::int64_t row, std::int64_t k, std::int64_t end_of_row, double& divisor)
    {
        const Entry mine = entry_at(k, end_of_row);
        const double value = mine.other >= 0 ? a_.value(k) : 0.0;
        const bool shares = mine.strong && mine.point < 0 && mine.other != row;
        const double comes_back = shares ? back(row, mine.other) : 0.0;
        const unsigned sharing = where(shares);
        for (unsigned left = where(mine.other >= 0 && mine.other != row); left != 0; left &= left - 1) {
            const int who = __ffs(static_cast<int>(left)) - 1;
            const double entry = from(who, value);
            if ((sharing >> static_cast<unsigned>(who) & 1U) != 0) {
                share_out(from(who, mine.begin), from(who, mine.end), entry, from(who, comes_back), divisor);
                continue;
            }
            const std::int32_t point = from(who, mine.point);
            const std::int32_t at = point >= 0 ? place(point) : size_;
            if (at == size_) {
                divisor += entry;
                continue;
            }
            if (lane == 0) {
                values_[at] += entry;
            }
            sync();
        }
    }

    /// Where the coarse entry m of a row adds to the sum; size_: nowhere.
    __device__ std::int32_t place_of(std::int64_t m, std::int64_t end) const
    {
        return m < end && (coarse_.kind[m] & CoarseEntries::opposite) != 0 ? place(coarse_.point[m]) : size_;
    }

    /// matrix::share_out() to the coarse entries [begin, end) of a row, and to the row that is added up, which has
    /// `comes_back` there.
    __device__ void share_out(std::int64_t begin, std::int64_t end, double entry, double comes_back, double& divisor)
    {
        double all = 0;
        std::int32_t at = size_;
        double value = 0;
        for (std::int64_t first = begin; first < end; first += group) {
            at = place_of(first + lane, end);
            value = at < size_ ? coarse_.value[first + lane] : 0.0;
            for (unsigned left = where(at < size_); left != 0; left &= left - 1) {
                all += from(__ffs(static_cast<int>(left)) - 1, value);
            }
        }
        all += comes_back;
        if (all == 0) {
            divisor += entry;
            return;
        }
        for (std::int64_t first = begin; first < end; first += group) {
            if (end - begin > group) {  // else they are at hand
                at = place_of(first + lane, end);
                value = at < size_ ? coarse_.value[first + lane] : 0.0;
            }
            if (at < size_) {
                values_[at] += entry * value / all;
            }
            sync();
        }
        if (comes_back != 0) {
            divisor += entry * comes_back / all;
        }
    }

    Source a_;
    CoarseEntries coarse_;
    std::int32_t room_;
    std::int32_t slots_;
    double* values_;
    std::int32_t* columns_;
    std::uint8_t* table_;
    std::int32_t size_ = 0;
    double factor_ = 1;
};

/// Rows of P to their places; too_wide[row] = 1 for those that are left, else 0.
template <class T, class Source>
__global__ void __launch_bounds__(group_threads)
    extended_kernel(Source a, CoarseEntries coarse, std::int64_t rows, double truncation, std::int64_t most,
                    SumRoom room, const std::int64_t* __restrict__ places, std::int32_t* columns, T* values,
                    std::int32_t* count, std::int32_t* too_wide)
{
    extern __shared__ uint4 shared[];
    const int own = static_cast<int>(threadIdx.x) / group;
    GroupRow<Source> sum(a, coarse, reinterpret_cast<std::byte*>(shared) + std::ptrdiff_t{own} * room.bytes(), room);
    const std::int64_t step = std::int64_t{gridDim.x} * groups;
    for (std::int64_t row = std::int64_t{blockIdx.x} * groups + own; row < rows; row += step) {
        std::int32_t size = 1;
        if (a.number[row] >= 0) {
            sum.set_one(a.number[row]);
        } else {
            size = sum.extended(row);
        }
        const bool wide = size < 0;
        if (a.number[row] < 0) {
            size = size > 0 ? sum.choose(size, truncation, most) : 0;
        }
        if (sum.lane == 0) {
            too_wide[row] = wide ? 1 : 0;
            count[row] = size;
        }
        for (std::int32_t i = sum.lane; i < size; i += group) {
            columns[places[row] + i] = sum.column(i);
            values[places[row] + i] = static_cast<T>(sum.entry(i));
        }
        sum.sync();
    }
}

/// New values of the rows of P; too_wide[row] = 1 for those that are left, else 0.
template <class T, class Source>
__global__ void __launch_bounds__(group_threads)
    renew_extended_kernel(Source a, CoarseEntries coarse, std::int64_t rows, SumRoom room, RowPointers row_ptr,
                          const std::int32_t* __restrict__ columns, T* values, std::int32_t* too_wide)
{
    extern __shared__ uint4 shared[];
    const int own = static_cast<int>(threadIdx.x) / group;
    GroupRow<Source> sum(a, coarse, reinterpret_cast<std::byte*>(shared) + std::ptrdiff_t{own} * room.bytes(), room);
    const std::int64_t step = std::int64_t{gridDim.x} * groups;
    for (std::int64_t row = std::int64_t{blockIdx.x} * groups + own; row < rows; row += step) {
        const std::int64_t begin = row_ptr[row];
        const auto count = static_cast<std::int32_t>(row_ptr[row + 1] - begin);
        bool wide = false;
        if (a.number[row] >= 0) {
            sum.set_one(a.number[row]);
        } else if (count > 0) {
            const std::int32_t size = count <= most_chosen ? sum.extended(row) : -1;
            wide = size < 0;
            if (!wide) {
                sum.take(size, columns + begin, count);
            }
        }
        for (std::int32_t i = sum.lane; i < count && !wide; i += group) {
            values[begin + i] = static_cast<T>(sum.entry(i));
        }
        if (sum.lane == 0) {
            too_wide[row] = wide ? 1 : 0;
        }
        sum.sync();
    }
}

/// Launches kernels of groups: with how much room, and how many blocks.
struct GroupLaunch {
    /// \param many  rows of A that have many entries, as those behind a grid's first matrix
    GroupLaunch(std::int64_t rows, bool many, const Context& context)
        : room(many ? SumRoom{128, 256} : SumRoom{48, 128}),
          bytes(static_cast<std::size_t>(groups) * static_cast<std::size_t>(room.bytes())),
          blocks(group_blocks(rows, context))
    {
    }

    SumRoom room;  ///< of each group; at most 48 KiB a block, which every GPU has
    std::size_t bytes;
    unsigned blocks;
};

}  // namespace rmsp::kernels::cuda::coarsening
