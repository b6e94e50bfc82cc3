#include <array>

#include <core/team.hpp>
#include <kernels/spmv/ehyb/host_layout.hpp>
#include <kernels/spmv/ehyb/layout.hpp>
#include <kernels/spmv/spmv.hpp>

namespace rmsp::kernels {
namespace {

using namespace ehyb;

/// Columns of x that a part keeps: what a core's second cache holds beside the matrix that streams through it.
template <class T>
constexpr std::int64_t host_columns = 128 * 1024 / sizeof(T);
/// As on GPUs: values of 16 bytes.
template <class T>
constexpr int vector_values = 16 / sizeof(T);

/// The layout multiplied as GPUs multiply it: a thread takes a part at a time, with the part's own columns of x side by
/// side.
template <class T>
class Ehyb final : public SpmvOperator<T> {
public:
    Ehyb(const CsrShard<T>& shard, EhybOrder order, const EhybGhosts& ghosts, const Context& context)
        : shard_(shard), threads_(std::max(context.threads, 1))
    {
        if (shard.rows == 0) {
            return;
        }
        const Pattern pattern{shard.rows, shard.cols, shard.diagonal, shard.row_ptr, shard.col_idx};
        const std::int64_t parts = part_count(shard.rows, host_columns<T>, threads_, ghosts);
        layout_ = make_layout(pattern, parts_of_rows(pattern, parts, order, threads_), parts, host_columns<T>,
                              vector_values<T>, threads_, ghosts);
        inside_.resize(layout_.inside.entry.size());
        er_.resize(layout_.er.entry.size());
        kept_.resize(static_cast<std::size_t>(threads_));
        for (HostVector<T>& kept : kept_) {
            kept.resize(static_cast<std::size_t>(host_columns<T>) + 1);
        }
        sums_.resize(static_cast<std::size_t>(layout_.pieces));
        update_values(context);
    }

    void apply(T alpha, const T* x, T beta, T* y, const Context& /*context*/) override
    {
        if (shard_.rows == 0) {
            return;
        }
#pragma omp parallel num_threads(threads_)
        {
            T* const kept = kept_[static_cast<std::size_t>(core::thread_of_team())].data();
#pragma omp for schedule(dynamic, 1)
            for (std::int64_t part = 0; part < layout_.part_count; ++part) {
                multiply_part(part, alpha, x, beta, y, kept);
            }
            const auto er_slices = static_cast<std::int64_t>(layout_.er.slices.size()) - 1;
#pragma omp for schedule(dynamic, 1)
            for (std::int64_t slice = 0; slice < er_slices; ++slice) {
                const auto sums = multiply_slice(layout_.er, er_.data(), slice, [&](std::int32_t column) {
                    return column == no_column ? T{0} : x[column];
                });
                const auto first = static_cast<std::size_t>(slice) * slice_rows;
                for (std::size_t lane = 0; lane < slice_rows && first + lane < layout_.er_piece.size(); ++lane) {
                    sums_[static_cast<std::size_t>(layout_.er_piece[first + lane])] = sums[lane];
                }
            }
            const auto er_rows = static_cast<std::int64_t>(layout_.er_row.size());
#pragma omp for
            for (std::int64_t i = 0; i < er_rows; ++i) {
                const auto r = static_cast<std::size_t>(i);
                T sum = 0;
                for (std::int32_t piece = layout_.er_first[r]; piece < layout_.er_first[r + 1]; ++piece) {
                    sum += sums_[static_cast<std::size_t>(piece)];
                }
                y[layout_.er_row[r]] += alpha * sum;
            }
        }
    }

    void update_values(const Context& /*context*/) override
    {
        take_values(layout_.inside.entry, inside_);
        take_values(layout_.er.entry, er_);
    }

    std::int64_t format_bytes() const override
    {
        return workspace_bytes() - bytes(layout_.inside.entry) - bytes(layout_.er.entry);
    }

    std::int64_t workspace_bytes() const override
    {
        return bytes(layout_.order) + bytes(layout_.columns) + bytes(layout_.inside.slices) +
               bytes(layout_.inside.columns) + bytes(layout_.inside.entry) + bytes(layout_.er.slices) +
               bytes(layout_.er.columns) + bytes(layout_.er.entry) + bytes(layout_.er_piece) + bytes(layout_.er_row) +
               bytes(layout_.er_first) + bytes(inside_) + bytes(er_) + bytes(sums_);
    }

private:
    template <class Array>
    static std::int64_t bytes(const Array& array)
    {
        return static_cast<std::int64_t>(array.size() * sizeof(array[0]));
    }

    void take_values(const HostVector<std::uint32_t>& entry, HostVector<T>& values) const
    {
        const auto n = static_cast<std::int64_t>(values.size());
#pragma omp parallel for num_threads(threads_)
        for (std::int64_t i = 0; i < n; ++i) {
            const auto slot = static_cast<std::size_t>(i);
            values[slot] = entry[slot] == no_entry ? T{0} : shard_.values[entry[slot]];
        }
    }

    /// Sums of the 32 rows of a slice; x_of(column) is the entry of x.
    template <class Column, class Gather>
    static std::array<T, slice_rows> multiply_slice(const Sliced<HostVector, Column>& sliced, const T* values,
                                                    std::int64_t slice, const Gather& x_of)
    {
        const Slice& begin = sliced.slices[static_cast<std::size_t>(slice)];
        const int width = static_cast<int>(sliced.slices[static_cast<std::size_t>(slice) + 1].entries - begin.entries);
        const T* const value = values + std::int64_t{begin.entries} * slice_rows;
        const Column* const column = sliced.columns.data() + std::int64_t{begin.groups} * group * slice_rows;
        std::array<T, slice_rows> sums{};
        for (int k = 0; k < width; ++k) {
            for (int lane = 0; lane < slice_rows; ++lane) {
                sums[static_cast<std::size_t>(lane)] +=
                    value[value_place(k, lane, width, vector_values<T>)] * x_of(column[column_place(k, lane)]);
            }
        }
        return sums;
    }

    void multiply_part(std::int64_t part, T alpha, const T* x, T beta, T* y, T* kept) const
    {
        const auto p = static_cast<std::size_t>(part);
        const std::int32_t* const columns = layout_.columns.data() + layout_.first_column[p];
        const std::int32_t n = layout_.first_column[p + 1] - layout_.first_column[p];
        for (std::int32_t i = 0; i < n; ++i) {
            kept[i] = x[columns[i]];
        }
        kept[n] = T{0};
        for (std::int32_t slice = layout_.first_slice[p]; slice < layout_.first_slice[p + 1]; ++slice) {
            const auto sums = multiply_slice(layout_.inside, inside_.data(), slice,
                                             [&](std::uint16_t column) { return kept[column]; });
            const std::int32_t first = layout_.first_row[p] + (slice - layout_.first_slice[p]) * slice_rows;
            const std::int32_t rows = std::min(slice_rows, layout_.first_row[p + 1] - first);
            for (std::int32_t lane = 0; lane < rows; ++lane) {
                T& out = y[layout_.order[static_cast<std::size_t>(first + lane)]];
                const T sum = alpha * sums[static_cast<std::size_t>(lane)];
                out = beta == T{0} ? sum : sum + beta * out;
            }
        }
    }

    CsrShard<T> shard_;
    int threads_;
    Layout layout_;
    HostVector<T> inside_;             ///< values of the parts
    HostVector<T> er_;                 ///< of ER
    std::vector<HostVector<T>> kept_;  ///< columns of x of a part, for each thread
    std::vector<T> sums_;              ///< of the pieces of ER
};

}  // namespace

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_host(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                   const Context& context)
{
    return std::make_unique<Ehyb<T>>(shard, EhybOrder::mesh, no_ghosts, context);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_ghosts_host(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                          const Context& context)
{
    return std::make_unique<Ehyb<T>>(shard, EhybOrder::mesh, ehyb_ghosts, context);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_metis_host(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                         const Context& context)
{
    require_metis("ehyb-metis");
    return std::make_unique<Ehyb<T>>(shard, EhybOrder::metis, no_ghosts, context);
}

template <class T>
std::unique_ptr<SpmvOperator<T>> prepare_ehyb_natural_host(const CsrShard<T>& shard, const RowStatistics& /*rows*/,
                                                           const Context& context)
{
    return std::make_unique<Ehyb<T>>(shard, EhybOrder::natural, no_ghosts, context);
}

RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_ehyb_host)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_ehyb_ghosts_host)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_ehyb_metis_host)
RMSP_FOR_EACH_VALUE_TYPE(RMSP_CSR_BODY, prepare_ehyb_natural_host)

}  // namespace rmsp::kernels
