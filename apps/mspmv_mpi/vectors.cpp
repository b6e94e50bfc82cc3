#include "apps/mspmv_mpi/vectors.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/io.hpp>
#include <rmsp/renumber.hpp>
#include <rmsp/value_types.hpp>

namespace rmsp::mpi {
namespace {

constexpr int vector_tag = 1;
/// MPI counts in int.
constexpr std::int64_t most_bytes = std::int64_t{1} << 30;

/// Calls f(first byte, bytes) for parts that MPI can count.
template <class F>
void in_parts(std::int64_t bytes, const F& f)
{
    for (std::int64_t at = 0; at < bytes; at += most_bytes) {
        f(at, static_cast<int>(std::min(bytes - at, most_bytes)));
    }
}

template <class T>
std::int64_t bytes_of(std::int64_t entries)
{
    return entries * static_cast<std::int64_t>(sizeof(T));
}

}  // namespace

int Shares::rank() const
{
    int rank = 0;
    MPI_Comm_rank(communicator, &rank);
    return rank;
}

void on_first(MPI_Comm communicator, const std::function<void()>& f)
{
    int rank = 0;
    MPI_Comm_rank(communicator, &rank);
    int facts[2] = {-1, 0};  // the error's number, the length of its text
    std::string text;
    if (rank == 0) {
        try {
            f();
        } catch (const Error& error) {
            facts[0] = static_cast<int>(error.code());
            text = error.what();
        } catch (const std::exception& error) {
            facts[0] = static_cast<int>(ErrorCode::internal);
            text = error.what();
        }
        facts[1] = static_cast<int>(text.size());
    }
    MPI_Bcast(facts, 2, MPI_INT, 0, communicator);
    if (facts[0] < 0) {
        return;
    }
    text.resize(static_cast<std::size_t>(facts[1]));
    MPI_Bcast(text.data(), facts[1], MPI_CHAR, 0, communicator);
    throw Error(static_cast<ErrorCode>(facts[0]), text);
}

template <class T>
HostVector<T> scatter(const Shares& shares, const HostVector<T>& whole)
{
    if (shares.rank() != 0) {
        HostVector<T> own(static_cast<std::size_t>(shares.own()));
        in_parts(bytes_of<T>(shares.own()), [&](std::int64_t at, int bytes) {
            MPI_Recv(reinterpret_cast<std::byte*>(own.data()) + at, bytes, MPI_BYTE, 0, vector_tag, shares.communicator,
                     MPI_STATUS_IGNORE);
        });
        return own;
    }
    for (std::size_t p = 1; p + 1 < shares.offsets.size(); ++p) {
        const T* const from = whole.data() + shares.offsets[p];
        in_parts(bytes_of<T>(shares.offsets[p + 1] - shares.offsets[p]), [&](std::int64_t at, int bytes) {
            MPI_Send(reinterpret_cast<const std::byte*>(from) + at, bytes, MPI_BYTE, static_cast<int>(p), vector_tag,
                     shares.communicator);
        });
    }
    return HostVector<T>(whole.begin(), whole.begin() + shares.own());
}

template <class T>
HostVector<T> collect(const Shares& shares, const HostVector<T>& own)
{
    if (shares.rank() != 0) {
        in_parts(bytes_of<T>(shares.own()), [&](std::int64_t at, int bytes) {
            MPI_Send(reinterpret_cast<const std::byte*>(own.data()) + at, bytes, MPI_BYTE, 0, vector_tag,
                     shares.communicator);
        });
        return {};
    }
    HostVector<T> whole(own);
    whole.resize(static_cast<std::size_t>(shares.size()));
    for (std::size_t p = 1; p + 1 < shares.offsets.size(); ++p) {
        T* const to = whole.data() + shares.offsets[p];
        in_parts(bytes_of<T>(shares.offsets[p + 1] - shares.offsets[p]), [&](std::int64_t at, int bytes) {
            MPI_Recv(reinterpret_cast<std::byte*>(to) + at, bytes, MPI_BYTE, static_cast<int>(p), vector_tag,
                     shares.communicator, MPI_STATUS_IGNORE);
        });
    }
    return whole;
}

template <class T>
HostVector<T> everywhere(const Shares& shares, const HostVector<T>& own)
{
    HostVector<T> whole = collect(shares, own);
    whole.resize(static_cast<std::size_t>(shares.size()));
    in_parts(bytes_of<T>(shares.size()), [&](std::int64_t at, int bytes) {
        MPI_Bcast(reinterpret_cast<std::byte*>(whole.data()) + at, bytes, MPI_BYTE, 0, shares.communicator);
    });
    return whole;
}

template <class T>
HostVector<T> read_shares(const Shares& shares, const char* key, const std::string& path, const ReadOptions& options,
                          const char* of_what, std::span<const std::int64_t> row_at)
{
    HostVector<T> whole;
    on_first(shares.communicator, [&] {
        whole = read_vector<T>(path, options);
        if (static_cast<std::int64_t>(whole.size()) != shares.size()) {
            throw Error(ErrorCode::io, fmt::format("{}: {} has {} entries, but the matrix has {} {}", path, key,
                                                   whole.size(), shares.size(), of_what));
        }
        if (!row_at.empty()) {
            HostVector<T> numbered(whole.size());
            renumber(row_at, whole.data(), numbered.data());
            whole = std::move(numbered);
        }
    });
    return scatter(shares, whole);
}

template <class T>
HostVector<T> in_old_order(HostVector<T> v, std::span<const std::int64_t> row_at)
{
    if (row_at.empty()) {
        return v;
    }
    HostVector<T> restored(v.size());
    restore(row_at, v.data(), restored.data());
    return restored;
}

template <class T>
void write_shares(const Shares& shares, const std::string& path, const HostVector<T>& own,
                  std::span<const std::int64_t> row_at)
{
    const HostVector<T> whole = in_old_order(collect(shares, own), row_at);
    on_first(shares.communicator, [&] { write_vector<T>(path, whole); });
}

#define RMSP_INSTANTIATE(T)                                                                                \
    template HostVector<T> scatter(const Shares&, const HostVector<T>&);                                   \
    template HostVector<T> in_old_order(HostVector<T>, std::span<const std::int64_t>);                     \
    template HostVector<T> collect(const Shares&, const HostVector<T>&);                                   \
    template HostVector<T> everywhere(const Shares&, const HostVector<T>&);                                \
    template HostVector<T> read_shares(const Shares&, const char*, const std::string&, const ReadOptions&, \
                                       const char*, std::span<const std::int64_t>);                        \
    template void write_shares(const Shares&, const std::string&, const HostVector<T>&, std::span<const std::int64_t>);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::mpi
