#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "core/even_cut.hpp"
#include "core/parallel.hpp"
#include "core/value_types.hpp"
#include "io/npz.hpp"
#include "io/npz_reader.hpp"
#include "io/part_reader.hpp"

namespace rmsp::io {
namespace {

/// A run of the elements of a file's arrays: indices, values and, by columns or rows, pointers, each array cut into
/// even parts of its own.
template <class T>
class NpzPart final : public rmsp::detail::PartReader<T> {
public:
    NpzPart(const InputFile& input, PartNumber number, const ReadOptions& options)
        : number_(number), threads_(core::thread_count(options.threads)), reader_(input, threads_)
    {
        const std::string format = reader_.read_format();
        for (const char* const name : {"indices", "indptr", "row", "col", "data"}) {
            if (reader_.is_compressed(name)) {
                this->file.reason = fmt::format("its member '{}.npy' is compressed", name);
                return;
            }
        }
        shape_ = read_shape(reader_);
        by_columns_ = format == "csc";
        data_.emplace(reader_.open("data"));
        if (format == "coo") {
            first_.emplace(reader_.open("row"));
            second_.emplace(reader_.open("col"));
            reader_.check_lengths(*second_, *data_);
        } else {
            first_.emplace(reader_.open("indices"));
            pointers_.emplace(reader_.open("indptr"));
            reader_.check_pointers_size(*pointers_, lines());
        }
        reader_.check_lengths(*first_, *data_);
        this->file = {true, {}, 0, shape_.rows, shape_.cols, pointers_ ? pointer(lines()) : first_->size()};
    }

    std::vector<std::int64_t> read() override
    {
        const auto [begin, end] = range(data_->size());
        const bool coordinates = !pointers_;
        std::vector<std::int64_t> crcs(part_numbers);
        if (pointers_) {
            crcs[2] = read_pointers();
        }
        crcs[0] = read_indices(*first_, begin, end, coordinates || by_columns_ ? shape_.rows : shape_.cols, indices_);
        if (coordinates) {
            crcs[2] = read_indices(*second_, begin, end, shape_.cols, cols_);
        }
        reader_.limit().take(static_cast<core::uint128>(end - begin) * sizeof(T), "its arrays");
        values_.resize(static_cast<std::size_t>(end - begin));
        crcs[1] = data_->read_range(begin, end - begin, values_.data(), threads_);
        return crcs;
    }

    std::vector<HostVector<MatrixEntry<T>>> finish(std::span<const std::int64_t> of_all) override
    {
        check(*first_, of_all, 0);
        check(*data_, of_all, 1);
        check(pointers_ ? *pointers_ : *second_, of_all, 2);
        const auto [begin, stored_end] = range(data_->size());
        const std::int64_t end = std::min(stored_end, this->file.entries);
        const std::int64_t n = std::max<std::int64_t>(0, end - begin);
        reader_.limit().take(static_cast<core::uint128>(n) * sizeof(MatrixEntry<T>), "its entries");
        std::vector<HostVector<MatrixEntry<T>>> runs(1);
        runs[0].resize(static_cast<std::size_t>(n));
        if (pointers_) {
            fill_lines(begin, runs[0]);
        } else {
            for (std::size_t i = 0; i < runs[0].size(); ++i) {
                runs[0][i] = {indices_[i], cols_[i], values_[i]};
            }
        }
        HostVector<std::int64_t>().swap(indices_);
        HostVector<std::int64_t>().swap(cols_);
        HostVector<T>().swap(values_);
        return runs;
    }

private:
    std::int64_t lines() const { return by_columns_ ? shape_.cols : shape_.rows; }
    std::pair<std::int64_t, std::int64_t> range(std::int64_t n, int part) const
    {
        return {core::even_cut(n, number_.parts, part), core::even_cut(n, number_.parts, part + 1)};
    }
    std::pair<std::int64_t, std::int64_t> range(std::int64_t n) const { return range(n, number_.part); }

    std::int64_t pointer(std::int64_t line) const
    {
        std::int64_t value = 0;
        pointers_->read_range(line, 1, &value, 1);
        return value;
    }

    /// Reads and checks this part's pointers, which are not kept. Returns their checksum.
    std::uint32_t read_pointers() const
    {
        const auto [begin, end] = range(pointers_->size());
        reader_.limit().take(static_cast<core::uint128>(end - begin) * 8, "its arrays");
        HostVector<std::int64_t> own(static_cast<std::size_t>(end - begin));
        const std::uint32_t crc = pointers_->read_range(begin, end - begin, own.data(), threads_);
        if (begin < end) {
            reader_.check_pointers(*pointers_, own, begin, begin > 0 ? pointer(begin - 1) : 0, data_->size());
        }
        reader_.limit().give_back(own.size() * 8);
        return crc;
    }

    std::uint32_t read_indices(const NpyArray& array, std::int64_t begin, std::int64_t end, std::int64_t limit,
                               HostVector<std::int64_t>& out) const
    {
        reader_.limit().take(static_cast<core::uint128>(end - begin) * 8, "its arrays");
        out.resize(static_cast<std::size_t>(end - begin));
        const std::uint32_t crc = array.read_range(begin, end - begin, out.data(), threads_);
        reader_.check_indices(array, out, begin, limit);
        return crc;
    }

    /// \throws Error(io) if the checksum of all parts of an array is not the file's
    void check(const NpyArray& array, std::span<const std::int64_t> of_all, std::size_t place) const
    {
        std::vector<ArrayRange> ranges;
        for (int p = 0; p < number_.parts; ++p) {
            const auto [begin, end] = range(array.size(), p);
            ranges.push_back(
                {end - begin, static_cast<std::uint32_t>(of_all[part_numbers * static_cast<std::size_t>(p) + place])});
        }
        array.check_ranges(ranges);
    }

    /// The entries from number `begin` on, whose lines the pointers tell.
    void fill_lines(std::int64_t begin, HostVector<MatrixEntry<T>>& out) const
    {
        // The line of the first entry: the last one that does not begin behind it.
        std::int64_t line = 0;
        for (std::int64_t high = lines(); high - line > 1;) {
            const std::int64_t middle = line + (high - line) / 2;
            (pointer(middle) <= begin ? line : high) = middle;
        }
        HostVector<std::int64_t> ends;  // of some lines from `first` on
        std::int64_t first = line;
        const auto end_of = [&](std::int64_t of) {
            if (of >= first + static_cast<std::int64_t>(ends.size())) {
                first = of;
                ends.resize(static_cast<std::size_t>(std::min(entries_each, lines() - of)));
                if (ends.empty()) {
                    throw Error(ErrorCode::io, fmt::format("{} has changed while it was read", pointers_->describe()));
                }
                pointers_->read_range(of + 1, static_cast<std::int64_t>(ends.size()), ends.data(), threads_);
            }
            return ends[static_cast<std::size_t>(of - first)];
        };
        for (std::size_t i = 0; i < out.size(); ++i) {
            while (end_of(line) <= begin + static_cast<std::int64_t>(i)) {
                ++line;
            }
            out[i] = by_columns_ ? MatrixEntry<T>{indices_[i], line, values_[i]}
                                 : MatrixEntry<T>{line, indices_[i], values_[i]};
        }
    }

    const PartNumber number_;
    const int threads_;
    const NpzReader reader_;
    Shape shape_{};
    bool by_columns_ = false;
    std::optional<NpyArray> first_;  ///< rows of coordinates, else what the pointers do not tell
    std::optional<NpyArray> second_;
    std::optional<NpyArray> pointers_;
    std::optional<NpyArray> data_;
    HostVector<std::int64_t> indices_;
    HostVector<std::int64_t> cols_;  ///< of coordinates
    HostVector<T> values_;
};

}  // namespace

template <class T>
std::unique_ptr<rmsp::detail::PartReader<T>> npz_part(const InputFile& file, PartNumber number,
                                                      const ReadOptions& options)
{
    return std::make_unique<NpzPart<T>>(file, number, options);
}

#define RMSP_INSTANTIATE(T) \
    template std::unique_ptr<rmsp::detail::PartReader<T>> npz_part(const InputFile&, PartNumber, const ReadOptions&);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::io
