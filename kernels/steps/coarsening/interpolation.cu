#include <kernels/steps/coarsening/group_rows.cuh>
#include <kernels/steps/coarsening/row_sums.cuh>
#include <kernels/steps/coarsening/smoothing.cuh>

namespace rmsp::kernels {
namespace cuda::coarsening {
namespace {

template <class T>
using Source = matrix::InterpolationSource<T, RowPointers, const std::int32_t*>;

/// The most entries that each row's sum may have.
template <class T>
DeviceArray<std::int32_t> bounds(const Source<T>& source, std::int64_t rows, bool direct, const Context& context)
{
    DeviceArray<std::int32_t> most(*context.memory, static_cast<std::size_t>(rows));
    for_each(rows, context, [source, direct, most = most.data()] __device__(std::int64_t row) {
        const std::int64_t found = matrix::most_entries(source, direct, row);
        most[row] = static_cast<std::int32_t>(found > widest_row ? widest_row + 1 : found);
    });
    return most;
}

template <class T>
struct InterpolateRow {
    Source<T> source;
    bool direct;
    double truncation;
    std::int64_t most;

    __device__ void operator()(std::int64_t row, ThreadSum& sum) const
    {
        matrix::interpolate_row(source, direct, row, sum);
        matrix::truncate(sum, truncation, most);
        matrix::sort_by_column(sum);
    }
};

template <class T>
struct RenewRow {
    Source<T> source;
    bool direct;
    RowPointers row_ptr;  ///< of P
    const std::int32_t* columns;
    T* values;

    __device__ void operator()(std::int64_t row, ThreadSum& sum) const
    {
        matrix::interpolate_row(source, direct, row, sum);
        T* const to = values;
        matrix::take_columns(columns, row_ptr[row], row_ptr[row + 1], sum,
                             [to](std::int64_t k, double value) { to[k] = static_cast<T>(value); });
    }
};

/// How wide the rows are for which `too_wide` is set, which becomes -1 where it is not.
template <class T>
std::int32_t widest_left(const Source<T>& source, std::int64_t rows, std::int32_t* too_wide, const Context& context)
{
    if (rows == 0 || largest_of(too_wide, rows, context) == 0) {
        return 0;
    }
    const DeviceArray<std::int32_t> bound = bounds(source, rows, false, context);
    for_each(rows, context, [bound = bound.data(), too_wide] __device__(std::int64_t row) {
        too_wide[row] = too_wide[row] != 0 ? bound[row] : -1;
    });
    return largest_of(too_wide, rows, context);
}

constexpr std::int64_t few_entries = 10;  // of a row of A

/// Extended interpolation of few entries a row, by groups of threads; the rows that these have no room for by a thread.
template <class T>
std::optional<CsrArrays<T>> extended(const Source<T>& source, const CsrShard<T>& a, double truncation,
                                     std::int64_t most, const Context& context)
{
    const auto n = static_cast<std::size_t>(a.rows);
    const DeviceArray<std::int32_t> count(*context.memory, n);
    const DeviceArray<std::int32_t> too_wide(*context.memory, n);
    for_each(a.rows, context, [most, number = source.number, count = count.data()] __device__(std::int64_t row) {
        count[row] = number[row] >= 0 ? 1 : static_cast<std::int32_t>(most);
    });
    CsrArrays<T> room = make_room<T>(count.data(), a.rows, context);
    {
        const OwnedCoarseEntries coarse(source, a.rows, context);
        const GroupLaunch launch(a.rows, a.nnz > few_entries * a.rows, context);
        extended_kernel<T><<<launch.blocks, group_threads, launch.bytes, stream_of(context)>>>(
            source, coarse.view(), a.rows, truncation, most, launch.room, room.row_ptr.data(), room.col_idx.data(),
            room.values.data(), count.data(), too_wide.data());
        RMSP_CUDA_CHECK_LAUNCH("extended_kernel");
    }
    const std::int32_t widest = widest_left(source, a.rows, too_wide.data(), context);
    if (widest > widest_row) {
        return std::nullopt;
    }
    if (widest > 0) {
        for_row_sums(
            a.rows, too_wide.data(), widest, context,
            WriteRow<T, InterpolateRow<T>>{InterpolateRow<T>{source, false, truncation, most}, room.row_ptr.data(),
                                           room.col_idx.data(), room.values.data(), count.data()});
    }
    return packed(std::move(room), count.data(), a.rows, context);
}

template <class T>
std::optional<CsrArrays<T>> interpolation(const CsrShard<T>& a, const std::uint8_t* strong, const std::int32_t* number,
                                          bool direct, double truncation, std::int64_t most, const Context& context)
{
    const DeviceArray<double> diagonal = diagonal_of(a, context);
    const Source<T> source{RowPointers(a.row_ptr), a.col_idx, a.values, strong, number, diagonal.data()};
    constexpr std::int64_t few = 16;
    if (!direct && most > 0 && most <= few && a.rows > 0) {
        return extended(source, a, truncation, most, context);
    }
    const DeviceArray<std::int32_t> bound = bounds(source, a.rows, direct, context);
    const std::int32_t widest = a.rows > 0 ? largest_of(bound.data(), a.rows, context) : 0;
    if (widest > widest_row) {
        return std::nullopt;
    }
    return collect_rows<T>(a.rows, bound.data(), widest, most, context,
                           InterpolateRow<T>{source, direct, truncation, most});
}

template <class T>
void renew_interpolation(const CsrShard<T>& a, const std::uint8_t* strong, const std::int32_t* number, bool direct,
                         const CsrShard<T>& p, T* values, const Context& context)
{
    const DeviceArray<double> diagonal = diagonal_of(a, context);
    const Source<T> source{RowPointers(a.row_ptr), a.col_idx, a.values, strong, number, diagonal.data()};
    const RenewRow<T> renewed{source, direct, RowPointers(p.row_ptr), p.col_idx, values};
    if (direct || a.rows == 0) {
        const DeviceArray<std::int32_t> bound = bounds(source, a.rows, direct, context);
        const std::int32_t widest = a.rows > 0 ? largest_of(bound.data(), a.rows, context) : 0;
        for_row_sums(a.rows, bound.data(), widest, context, renewed);
        return;
    }
    const DeviceArray<std::int32_t> too_wide(*context.memory, static_cast<std::size_t>(a.rows));
    {
        const OwnedCoarseEntries coarse(source, a.rows, context);
        const GroupLaunch launch(a.rows, a.nnz > few_entries * a.rows, context);
        renew_extended_kernel<T><<<launch.blocks, group_threads, launch.bytes, stream_of(context)>>>(
            source, coarse.view(), a.rows, launch.room, RowPointers(p.row_ptr), p.col_idx, values, too_wide.data());
        RMSP_CUDA_CHECK_LAUNCH("renew_extended_kernel");
    }
    if (const std::int32_t widest = widest_left(source, a.rows, too_wide.data(), context); widest > 0) {
        for_row_sums(a.rows, too_wide.data(), widest, context, renewed);
    }
}

}  // namespace
}  // namespace cuda::coarsening

RMSP_VALUE_ROW(Prolongations, cuda, .interpolation = cuda::coarsening::interpolation<T>,
               .renew_interpolation = cuda::coarsening::renew_interpolation<T>,
               .filtered_inverse = cuda::coarsening::filtered_inverse<T>,
               .filtered_product = cuda::coarsening::filtered_product<T>,
               .smoothed_rows = cuda::coarsening::smoothed_rows<T>,
               .renew_smoothed_rows = cuda::coarsening::renew_smoothed_rows<T>)

}  // namespace rmsp::kernels
