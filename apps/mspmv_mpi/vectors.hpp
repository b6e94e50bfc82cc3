#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <mpi.h>

#include <rmsp/host_vector.hpp>
#include <rmsp/io.hpp>

/// Vectors of which each process has the entries of its rows or columns, and the first one a file.
namespace rmsp::mpi {

/// Who has what of a vector: process p the entries [offsets[p], offsets[p + 1]).
struct Shares {
    MPI_Comm communicator = MPI_COMM_NULL;
    std::span<const std::int64_t> offsets;

    int rank() const;
    std::int64_t first() const { return offsets[static_cast<std::size_t>(rank())]; }
    std::int64_t own() const { return offsets[static_cast<std::size_t>(rank()) + 1] - first(); }
    std::int64_t size() const { return offsets.back(); }
};

/// Does something on the first process; what it throws all throw. Collective.
void on_first(MPI_Comm communicator, const std::function<void()>& f);

/// Each process's entries of the first one's vector. Collective.
template <class T>
HostVector<T> scatter(const Shares& shares, const HostVector<T>& whole);
/// All entries, on the first process. Collective.
template <class T>
HostVector<T> collect(const Shares& shares, const HostVector<T>& own);
/// All entries, on all processes. Collective.
template <class T>
HostVector<T> everywhere(const Shares& shares, const HostVector<T>& own);

/// A vector in the numbering of the matrix's file again; `row_at` as load_matrix() gives it, or empty.
template <class T>
HostVector<T> in_old_order(HostVector<T> v, std::span<const std::int64_t> row_at);

/// Each process's entries of the vector of a file, which the first one reads. `row_at`, there: as load_matrix() gives
/// it. Collective. \throws Error(io) on all if it has not as many entries as `of_what` ("rows") there are
template <class T>
HostVector<T> read_shares(const Shares& shares, const char* key, const std::string& path, const ReadOptions& options,
                          const char* of_what, std::span<const std::int64_t> row_at);
/// Writes the vector, on the first process. Collective. \throws Error(io) on all
template <class T>
void write_shares(const Shares& shares, const std::string& path, const HostVector<T>& own,
                  std::span<const std::int64_t> row_at);

}  // namespace rmsp::mpi
