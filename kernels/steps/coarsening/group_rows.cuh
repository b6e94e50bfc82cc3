#pragma once

#include <cstddef>
#include <cstdint>

#include <kernels/steps/coarsening/row_sums.cuh>

/// Rows of extended interpolation by some threads each, in the order of matrix/interpolation_row.hpp, so that both find
/// the same bits: threads look at entries of one row of A at the same time, which add to different entries of the sum.
namespace rmsp::kernels::cuda::coarsening {

inline constexpr int group = 8;  ///< threads of a row

/// One row while a group adds it up. All threads of the group call everything, but place() and entry places.
template <class Source>
class GroupRow {
public:
    __device__ GroupRow(const Source& a, std::int32_t* columns, double* values, std::int32_t room)
        : a_(a),
          columns_(columns),
          values_(values),
          room_(room),
          lane_(static_cast<int>(threadIdx.x) % group),
          first_(static_cast<int>(threadIdx.x) % 32 / group * group),
          mask_(((1U << group) - 1) << first_)
    {
    }

    /// The row before truncation; -1: it has more entries than there is room for. Returns how many there are.
    __device__ std::int32_t extended(std::int64_t row)
    {
        size_ = 0;
        const std::int64_t begin = a_.row_ptr[row];
        const std::int64_t end = a_.row_ptr[row + 1];
        for (std::int64_t k = begin; k < end; ++k) {
            if (a_.strong[k] != 0 && !find_points(a_.col_idx[k])) {
                return -1;
            }
        }
        if (size_ == 0) {
            return 0;
        }
        double divisor = a_.diagonal[row];
        for (std::int64_t k = begin; k < end; ++k) {
            const std::int64_t other = a_.col_idx[k];
            if (other == row) {
                continue;
            }
            const std::int32_t point = a_.number[other];
            const std::int32_t at = point >= 0 ? place(point) : size_;
            if (at < size_) {
                if (lane_ == 0) {
                    values_[at] += a_.value(k);
                }
                __syncwarp(mask_);
            } else if (point < 0 && a_.strong[k] != 0) {
                share_out(row, other, a_.value(k), divisor);
            } else {
                divisor += a_.value(k);
            }
        }
        if (divisor == 0) {
            return 0;
        }
        bool good = true;
        for (std::int32_t i = lane_; i < size_; i += group) {
            values_[i] = -values_[i] / divisor;
            good = good && matrix::is_number(values_[i]);
        }
        __syncwarp(mask_);
        return __all_sync(mask_, good ? 1 : 0) != 0 ? size_ : 0;
    }
    __device__ unsigned mask() const { return mask_; }
    __device__ int lane() const { return lane_; }
    __device__ int first() const { return first_; }

private:
    /// size_ where there is none.
    __device__ std::int32_t place(std::int32_t column) const
    {
        std::int32_t i = 0;
        while (i < size_ && columns_[i] != column) {
            ++i;
        }
        return i;
    }
    /// Of the group's threads, those where it is so: bit i is thread i's.
    __device__ unsigned where(bool so) const { return (__ballot_sync(mask_, so ? 1 : 0) & mask_) >> first_; }

    /// Adds `point`, -1 for none, of each thread, which differ, in the threads' order. False: there is no room.
    __device__ bool append(std::int32_t point)
    {
        const bool is_new = point >= 0 && place(point) == size_;
        const unsigned all = where(is_new);
        const std::int32_t added = __popc(all);
        if (size_ + added > room_) {
            return false;
        }
        __syncwarp(mask_);
        if (is_new) {
            const std::int32_t i = size_ + __popc(all & ((1U << lane_) - 1));
            columns_[i] = point;
            values_[i] = 0;
        }
        size_ += added;
        __syncwarp(mask_);
        return true;
    }

    /// The coarse points that a strong column stands for.
    __device__ bool find_points(std::int64_t other)
    {
        if (a_.number[other] >= 0) {
            return append(lane_ == 0 ? a_.number[other] : -1);
        }
        const std::int64_t end = a_.row_ptr[other + 1];
        for (std::int64_t first = a_.row_ptr[other]; first < end; first += group) {
            const std::int64_t m = first + lane_;
            if (!append(m < end && a_.strong[m] != 0 ? a_.number[a_.col_idx[m]] : -1)) {
                return false;
            }
        }
        return true;
    }

    /// Entry m of row `other`, if it counts in matrix::share_out().
    struct Share {
        bool counts = false;
        bool on_row = false;
        std::int32_t at = 0;
        double value = 0;
    };
    __device__ Share share(std::int64_t m, std::int64_t end, std::int64_t row, std::int64_t other, double own) const
    {
        Share out;
        if (m < end) {
            const std::int64_t column = a_.col_idx[m];
            out.value = a_.value(m);
            if ((out.value < 0) != (own < 0) && column != other) {
                const std::int32_t point = a_.number[column];
                out.on_row = column == row;
                out.at = point >= 0 ? place(point) : size_;
                out.counts = out.on_row || out.at < size_;
            }
        }
        return out;
    }

    /// matrix::share_out()
    __device__ void share_out(std::int64_t row, std::int64_t other, double entry, double& divisor)
    {
        const double own = a_.diagonal[other];
        const std::int64_t begin = a_.row_ptr[other];
        const std::int64_t end = a_.row_ptr[other + 1];
        double all = 0;
        for (std::int64_t first = begin; first < end; first += group) {
            const Share mine = share(first + lane_, end, row, other, own);
            for (unsigned left = where(mine.counts); left != 0; left &= left - 1) {
                all += __shfl_sync(mask_, mine.value, first_ + __ffs(static_cast<int>(left)) - 1);
            }
        }
        if (all == 0) {
            divisor += entry;
            return;
        }
        for (std::int64_t first = begin; first < end; first += group) {
            const Share mine = share(first + lane_, end, row, other, own);
            const double part = entry * mine.value / all;
            if (mine.counts && !mine.on_row) {
                values_[mine.at] += part;
            }
            if (const unsigned on_row = where(mine.counts && mine.on_row); on_row != 0) {
                divisor += __shfl_sync(mask_, part, first_ + __ffs(static_cast<int>(on_row)) - 1);
            }
            __syncwarp(mask_);
        }
    }

    Source a_;
    std::int32_t* columns_;
    double* values_;
    std::int32_t room_;
    std::int32_t size_ = 0;
    int lane_;
    int first_;
    unsigned mask_;
};

/// Rows of P to their places; too_wide[row] = 1 for those that are left, else 0. `room` entries of each group's sum are
/// in shared memory.
template <class T, class Source>
__global__ void __launch_bounds__(threads)
    extended_kernel(Source a, std::int64_t rows, double truncation, std::int64_t most, std::int32_t room,
                    const std::int64_t* __restrict__ places, std::int32_t* columns, T* values, std::int32_t* count,
                    std::int32_t* too_wide)
{
    constexpr int groups = threads / group;
    extern __shared__ double shared[];
    const int own = static_cast<int>(threadIdx.x) / group;
    double* const sums = shared + std::ptrdiff_t{own} * room;
    auto* const points =
        reinterpret_cast<std::int32_t*>(shared + std::ptrdiff_t{groups} * room) + std::ptrdiff_t{own} * room;
    GroupRow<Source> group_row(a, points, sums, room);
    const unsigned mask = group_row.mask();
    const std::int64_t step = std::int64_t{gridDim.x} * groups;
    for (std::int64_t row = std::int64_t{blockIdx.x} * groups + own; row < rows; row += step) {
        const std::int32_t coarse = a.number[row];
        std::int32_t size = 1;
        if (coarse < 0) {
            size = group_row.extended(row);
        } else if (group_row.lane() == 0) {
            points[0] = coarse;
            sums[0] = 1;
        }
        if (group_row.lane() == 0) {
            too_wide[row] = size < 0 ? 1 : 0;
            ThreadSum list(points, sums, 1);
            list.resize(size < 0 ? 0 : size);
            matrix::truncate(list, truncation, most);
            matrix::sort_by_column(list);
            size = static_cast<std::int32_t>(list.size());
            count[row] = size;
        }
        size = __shfl_sync(mask, size, group_row.first());
        __syncwarp(mask);
        for (std::int32_t i = group_row.lane(); i < size; i += group) {
            columns[places[row] + i] = points[i];
            values[places[row] + i] = static_cast<T>(sums[i]);
        }
        __syncwarp(mask);
    }
}

template <class T, class Source>
void launch_extended(const Source& a, std::int64_t rows, bool many, double truncation, std::int64_t most,
                     const CsrArrays<T>& to, std::int32_t* count, std::int32_t* too_wide, const Context& context)
{
    // Rows two steps away of a grid's first matrix, and of those after it.
    const std::int32_t room = many ? 128 : 48;  // at most 48 KiB a block, which every GPU has
    constexpr int groups = threads / group;
    constexpr std::int64_t blocks_each = 32;  // of a multiprocessor, so that the last ones end together
    const auto bytes = static_cast<std::size_t>(groups * room) * (sizeof(double) + sizeof(std::int32_t));
    const std::int64_t blocks =
        std::min<std::int64_t>((rows + groups - 1) / groups, blocks_each * std::max(context.compute_units, 1));
    extended_kernel<T, Source><<<static_cast<unsigned>(blocks), threads, bytes, stream_of(context)>>>(
        a, rows, truncation, most, room, to.row_ptr.data(), to.col_idx.data(), to.values.data(), count, too_wide);
    RMSP_CUDA_CHECK_LAUNCH("extended_kernel");
}

}  // namespace rmsp::kernels::cuda::coarsening
