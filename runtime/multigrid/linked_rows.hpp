#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <rmsp/ghosted.hpp>

/// Rows of a matrix that several processes have, in host memory, and what they tell each other of them while they make
/// a hierarchy. What says "collective" is called by all of them, in the same order.
namespace rmsp::multigrid {

/// What processes say to each other, of numbers.
class Links {
public:
    explicit Links(std::shared_ptr<LinkedProcesses> processes) : processes_(std::move(processes)) {}

    const std::shared_ptr<LinkedProcesses>& processes() const { return processes_; }
    std::size_t rank() const { return static_cast<std::size_t>(processes_->rank()); }
    std::size_t size() const { return static_cast<std::size_t>(processes_->size()); }
    /// Brings to[p] to process p; what each has for this one. Collective.
    template <class X>
    std::vector<std::vector<X>> bring(const std::vector<std::vector<X>>& to) const
    {
        return rmsp::bring(*processes_, to);
    }
    /// A number of each process, in their order. Collective.
    template <class X>
    std::vector<X> of_all(X own) const
    {
        const std::vector<std::vector<X>> in = bring(std::vector<std::vector<X>>(size(), {own}));
        std::vector<X> all;
        for (const std::vector<X>& one : in) {
            all.push_back(one.at(0));
        }
        return all;
    }
    /// The sum of a number of each. Collective.
    double total(double own) const
    {
        processes_->sum({&own, 1});
        return own;
    }
    /// The first place of each, and their number, where each has so many. Collective.
    std::vector<std::int64_t> offsets(std::int64_t own) const
    {
        std::vector<std::int64_t> offsets{0};
        for (const std::int64_t count : of_all(own)) {
            offsets.push_back(offsets.back() + count);
        }
        return offsets;
    }

private:
    std::shared_ptr<LinkedProcesses> processes_;
};

/// Rows of a process, or some of others: columns are those of the whole matrix, rising in each row, each once.
template <class T>
struct WholeColumns {
    std::vector<std::int64_t> row_ptr{0};
    std::vector<std::int64_t> columns;
    std::vector<T> values;

    std::int64_t rows() const { return static_cast<std::int64_t>(row_ptr.size()) - 1; }
    std::int64_t begin(std::int64_t row) const { return row_ptr[static_cast<std::size_t>(row)]; }
    std::int64_t end(std::int64_t row) const { return row_ptr[static_cast<std::size_t>(row) + 1]; }
    /// Appends to the last row, which close() ends.
    void add(std::int64_t column, T value)
    {
        columns.push_back(column);
        values.push_back(value);
    }
    void close() { row_ptr.push_back(static_cast<std::int64_t>(columns.size())); }
};

/// Rows of other processes that this one wants to know of, and own ones that they do.
struct Known {
    std::vector<std::int64_t> numbers;     ///< in the whole matrix, rising
    std::vector<GhostNeighbour> receives;  ///< parts of `numbers`
    std::vector<std::int64_t> sent;        ///< own rows, from 0
    std::vector<GhostNeighbour> sends;     ///< parts of `sent`
};
/// \param first_rows  of each process, and their number at the end \param numbers  rising, each once. Collective.
Known ask(const Links& links, const std::vector<std::int64_t>& first_rows, std::vector<std::int64_t> numbers);
/// What the others have, `width` numbers a row in `own`, of the rows that are known. Collective.
template <class X>
std::vector<X> values_of(const Links& links, const Known& known, std::span<const X> own, std::size_t width = 1)
{
    std::vector<std::vector<X>> to(links.size());
    for (const GhostNeighbour& part : known.sends) {
        std::vector<X>& out = to[static_cast<std::size_t>(part.process)];
        for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
            const auto from = own.begin() + known.sent[static_cast<std::size_t>(i)] * static_cast<std::int64_t>(width);
            out.insert(out.end(), from, from + static_cast<std::int64_t>(width));
        }
    }
    const std::vector<std::vector<X>> in = links.bring(to);
    std::vector<X> all;
    for (const GhostNeighbour& part : known.receives) {
        const std::vector<X>& of = in[static_cast<std::size_t>(part.process)];
        all.insert(all.end(), of.begin(), of.end());
    }
    return all;
}
/// Own rows, or points, among those of others that are known, in the order of the whole.
class AmongOthers {
public:
    /// \param first, own  the numbers [first, first + own) are this process's
    AmongOthers(const Links& links, std::int64_t first, std::int64_t own, Known known)
        : links_(links), number_(first), own_(own), known_(std::move(known))
    {
        const std::vector<std::int64_t>& others = known_.numbers;
        first_ = std::lower_bound(others.begin(), others.end(), number_) - others.begin();
        numbers_.assign(others.begin(), others.begin() + first_);
        for (std::int64_t i = 0; i < own_; ++i) {
            numbers_.push_back(number_ + i);
        }
        numbers_.insert(numbers_.end(), others.begin() + first_, others.end());
    }

    std::size_t size() const { return numbers_.size(); }
    /// The place of the first own one, and how many are own.
    std::int64_t first() const { return first_; }
    std::int64_t own() const { return own_; }
    bool is_own(std::int64_t place) const { return place >= first_ && place < first_ + own_; }
    /// In the whole, rising.
    const std::vector<std::int64_t>& numbers() const { return numbers_; }
    const Known& known() const { return known_; }
    /// The place of a number that is here.
    std::int32_t here(std::int64_t number) const
    {
        return static_cast<std::int32_t>(number >= number_ && number < number_ + own_
                                             ? first_ + number - number_
                                             : std::lower_bound(numbers_.begin(), numbers_.end(), number) -
                                                   numbers_.begin());
    }
    /// Overwrites `width` entries of each that others have by what those have. Collective.
    template <class X>
    void share(std::span<X> entries, std::size_t width = 1) const
    {
        const auto first = static_cast<std::size_t>(first_) * width;
        const auto own = static_cast<std::size_t>(own_) * width;
        const std::vector<X> came =
            values_of<X>(links_, known_, std::span<const X>(entries).subspan(first, own), width);
        std::copy_n(came.begin(), first, entries.begin());
        std::copy(came.begin() + static_cast<std::ptrdiff_t>(first), came.end(),
                  entries.begin() + static_cast<std::ptrdiff_t>(first + own));
    }

private:
    const Links links_;
    std::int64_t number_;  ///< of the first own one
    std::int64_t own_;
    std::int64_t first_ = 0;
    Known known_;
    std::vector<std::int64_t> numbers_;
};

/// The rows that are known. Collective.
template <class T>
WholeColumns<T> rows_of(const Links& links, const Known& known, const WholeColumns<T>& own);

/// The values of these rows alone, one row after the other. Collective.
template <class T>
std::vector<T> values_of_rows(const Links& links, const Known& known, const WholeColumns<T>& own);

/// Columns of rows that are not in [first, end), rising, each once.
template <class T>
std::vector<std::int64_t> others(const WholeColumns<T>& rows, std::int64_t first, std::int64_t end);

/// Own columns from 0 on, then those that are known in their order.
template <class T>
CsrMatrix<T> numbered(const WholeColumns<T>& rows, std::int64_t first, std::int64_t own,
                      const std::vector<std::int64_t>& known);

/// Adds rows together that processes have of the same matrix: [first, end) of them goes to process p.
template <class T>
class AddedRows {
public:
    /// Collective. \param numbers  of the rows, in the whole matrix, rising
    AddedRows(const Links& links, const std::vector<std::int64_t>& first_rows, const std::vector<std::int64_t>& numbers,
              const WholeColumns<T>& rows);
    /// The sums for these values of the rows, added in the order of the processes. Collective.
    void add(const std::vector<T>& values);
    /// The sums that this process has.
    const WholeColumns<T>& sums() const { return sums_; }

private:
    const Links links_;
    std::vector<std::size_t> begins_;  ///< of the values for each process, and their number
    std::vector<std::size_t> places_;  ///< among the sums, of what comes, process after process
    WholeColumns<T> sums_;
};

}  // namespace rmsp::multigrid
