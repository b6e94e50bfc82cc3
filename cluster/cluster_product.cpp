#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rmsp/value_types.hpp>

#include "cluster/cluster_state.hpp"

namespace rmsp {

using cluster::checked;
using cluster::Communicator;
using cluster::Halo;
using cluster::Messages;
using cluster::Neighbour;

namespace detail {

template <class T>
struct ClusterProductState {
    std::shared_ptr<ClusterState> cluster;
    std::int64_t first_row = 0;
    std::int64_t a_nnz = 0;
    std::int64_t own_b_rows = 0;
    std::int64_t own_b_nnz = 0;
    IndexArray a_columns;            ///< own rows of B, then those fetched in their order
    CsrMatrix<T> b;                  ///< these rows
    std::vector<std::int64_t> sent;  ///< which of the own nonzeros of B go out, in the order in which they do
    std::shared_ptr<Messages> values;
    SparseProduct<T> product;

    /// Takes own values of B over and brings those of the fetched rows. Collective.
    void bring_values(const T* own)
    {
        std::copy_n(own, own_b_nnz, b.values.data());
        HostVector<T> out(sent.size());
        for (std::size_t i = 0; i < sent.size(); ++i) {
            out[i] = own[sent[i]];
        }
        values->begin(out.data(), b.values.data() + own_b_nnz, false);
        values->end();
    }
};

}  // namespace detail

namespace {

/// The first one of each process, and their number. \throws Agreed, since all processes see the same, unless each
/// begins where the one before ends
std::vector<std::int64_t> rows_in_turn(const std::vector<std::int64_t>& numbers, std::size_t count, std::size_t first,
                                       const char* matrix)
{
    std::vector<std::int64_t> offsets{0};
    for (std::size_t i = 0; i < numbers.size(); i += 8) {
        if (numbers[i + first] != offsets.back()) {
            throw cluster::Agreed(
                ErrorCode::usage,
                fmt::format("process {} gives rows of {} from number {} on, but the processes before it give {} rows",
                            i / 8, matrix, numbers[i + first], offsets.back()));
        }
        offsets.push_back(offsets.back() + numbers[i + count]);
    }
    return offsets;
}

/// The messages of `rows`, with as many entries as these rows have. `lengths` are in the order of the messages.
std::vector<Neighbour> messages_of_entries(const std::vector<Neighbour>& rows, const std::vector<std::int64_t>& lengths)
{
    std::vector<Neighbour> messages;
    std::int64_t at = 0;
    for (const Neighbour& of : rows) {
        std::int64_t count = 0;
        for (std::int64_t row = of.first; row < of.first + of.count; ++row) {
            count += lengths[static_cast<std::size_t>(row)];
        }
        messages.push_back({of.process, at, count});
        at += count;
    }
    return messages;
}

}  // namespace

template <class T>
ClusterProduct<T>::ClusterProduct(const Cluster& cluster, const CsrView<T>& a, std::int64_t a_first_row,
                                  const CsrView<T>& b, std::int64_t b_first_row, const SpgemmOptions& options)
    : state_(std::make_shared<detail::ClusterProductState<T>>())
{
    auto& state = *state_;
    state.cluster = cluster.state_;
    Communicator& processes = *checked(cluster.state_).processes;
    processes.together([&] {
        validate(a);
        validate(b);
        const std::int64_t own[7] = {
            a.rows, a_first_row, a.cols, b.rows, b_first_row, b.cols, static_cast<std::int64_t>(sizeof(T))};
        const std::vector<std::int64_t> all = processes.numbers_of_all(own);
        (void)rows_in_turn(all, 0, 1, "A");
        const std::vector<std::int64_t> b_rows = rows_in_turn(all, 3, 4, "B");
        for (std::size_t i = 0; i < all.size(); i += 8) {
            if (all[i + 2] != b_rows.back() || all[i + 5] != all[5] || all[i + 6] != all[6]) {
                throw cluster::Agreed(
                    ErrorCode::usage,
                    fmt::format("process {} gives rows of A with {} columns and of B with {}, values "
                                "of {} bytes; B has {} rows, and process 0's {} columns, of {} bytes",
                                i / 8, all[i + 2], all[i + 5], all[i + 6], b_rows.back(), all[5], all[6]));
            }
        }
        state.first_row = a_first_row;
        state.a_nnz = a.nnz;
        state.own_b_rows = b.rows;
        state.own_b_nnz = b.nnz;
        const Halo halo = a.col_idx.visit([&](const auto* col_idx) {
            return cluster::find_halo(processes, b_rows, col_idx, a.nnz, state.a_columns);
        });

        // How long the rows are that come, then what is in them.
        std::vector<std::int64_t> sent_lengths;
        std::vector<std::int64_t> sent_columns;
        for (const std::int64_t row : halo.sent) {
            sent_lengths.push_back(b.row_ptr[row + 1] - b.row_ptr[row]);
            for (std::int64_t i = b.row_ptr[row]; i < b.row_ptr[row + 1]; ++i) {
                state.sent.push_back(i);
                sent_columns.push_back(b.col_idx[i]);
            }
        }
        std::vector<std::int64_t> lengths(halo.ghosts.size());
        Messages of_lengths(cluster.state_->processes, halo, sizeof(std::int64_t));
        of_lengths.begin(sent_lengths.data(), lengths.data(), false);
        of_lengths.end();
        Halo entries;
        entries.sends = messages_of_entries(halo.sends, sent_lengths);
        entries.receives = messages_of_entries(halo.receives, lengths);
        HostVector<std::int64_t> row_ptr;
        for (std::int64_t row = 0; row <= b.rows; ++row) {
            row_ptr.push_back(b.row_ptr[row]);
        }
        for (const std::int64_t length : lengths) {
            row_ptr.push_back(row_ptr.back() + length);
        }
        const auto nnz = static_cast<std::size_t>(row_ptr.back());
        std::vector<std::int64_t> columns(nnz - static_cast<std::size_t>(b.nnz));
        Messages of_columns(cluster.state_->processes, entries, sizeof(std::int64_t));
        of_columns.begin(sent_columns.data(), columns.data(), false);
        of_columns.end();
        state.b = {b.rows + static_cast<std::int64_t>(lengths.size()), b.cols, std::move(row_ptr),
                   IndexArray(index_type_for(b.cols), nnz), HostVector<T>(nnz)};
        state.b.col_idx.visit([&](auto& to) {
            using Index = typename std::decay_t<decltype(to)>::value_type;
            for (std::int64_t i = 0; i < b.nnz; ++i) {
                to[static_cast<std::size_t>(i)] = static_cast<Index>(b.col_idx[i]);
            }
            std::transform(columns.begin(), columns.end(), to.begin() + b.nnz,
                           [](std::int64_t column) { return static_cast<Index>(column); });
        });
        state.values = std::make_shared<Messages>(cluster.state_->processes, entries, sizeof(T));
        state.bring_values(b.values);
        const CsrView<T> own_a{a.rows, state.b.rows, a.nnz, a.row_ptr, state.a_columns.view(), a.values};
        state.product = SparseProduct<T>(*cluster.state_->runtime, own_a, state.b.view(), options);
    });
}

template <class T>
void ClusterProduct<T>::compute(T alpha)
{
    auto& state = checked(state_);
    state.cluster->processes->together([&] { state.product.compute(alpha); });
}

template <class T>
void ClusterProduct<T>::update_values(const T* a_values, const T* b_values)
{
    auto& state = checked(state_);
    state.cluster->processes->together([&] {
        // Rows that were fetched are new where their owner's are: on all processes, or on none.
        const std::int64_t own[2] = {b_values != nullptr ? 1 : 0, state.own_b_nnz};
        const std::vector<std::int64_t> all = state.cluster->processes->numbers_of_all(own);
        bool some = false;
        bool b_is_new = true;
        for (std::size_t i = 0; i < all.size(); i += 8) {
            some = some || all[i] != 0;
            b_is_new = b_is_new && (all[i] != 0 || all[i + 1] == 0);
        }
        b_is_new = b_is_new && some;
        if (some && !b_is_new) {
            throw cluster::Agreed(ErrorCode::usage, "new values of B on some processes, but not on all");
        }
        if (b_is_new) {
            state.bring_values(b_values);
        }
        state.product.update_values(a_values, b_is_new ? state.b.values.data() : nullptr);
    });
}

template <class T>
ClusterRows<T> ClusterProduct<T>::download() const
{
    const auto& state = checked(state_);
    return {state.product.download(), state.first_row};
}

template <class T>
const SparseProduct<T>& ClusterProduct<T>::local() const
{
    return checked(state_).product;
}

template <class T>
std::int64_t ClusterProduct<T>::fetched_rows() const
{
    const auto& state = checked(state_);
    return state.b.rows - state.own_b_rows;
}

template <class T>
std::int64_t ClusterProduct<T>::fetched_nonzeros() const
{
    const auto& state = checked(state_);
    return state.b.nnz() - state.own_b_nnz;
}

#define RMSP_INSTANTIATE(T) template class ClusterProduct<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
