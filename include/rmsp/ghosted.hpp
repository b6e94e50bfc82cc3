#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <rmsp/error.hpp>
#include <rmsp/export.hpp>
#include <rmsp/preconditioner.hpp>
#include <rmsp/runtime.hpp>

/// Rows of a matrix whose other rows belong to other processes. librmsp multiplies and solves with what this process
/// has; what the processes say to each other is the caller's, behind two interfaces: by MPI, see <rmsp/cluster.hpp>.
namespace rmsp {

/// What one device of this process gives and gets: arrays in its memory, behind what is queued on a stream of it so far
/// (cudaStream_t, null for host devices).
struct DeviceArrays {
    void* stream = nullptr;
    const void* from = nullptr;
    void* to = nullptr;
};

/// All processes that have rows of a matrix. Its functions are called by every process in the same order, one at a
/// time; on the thread that called librmsp, unless on_workers() allows others. What they throw ends the call of
/// librmsp, which throws the same.
class Processes {
public:
    virtual ~Processes() = default;
    /// Replaces numbers by their sums over all processes: the same bits on each of them. At most 8 numbers.
    virtual void sum(std::span<double> numbers) = 0;
    /// What the first process calls this with.
    virtual double of_first(double value) = 0;
    /// Called again and again while devices work; not if on_workers().
    virtual void progress() {}
    /// Whether these functions, and those of GhostExchange, may be called on a thread of librmsp while the caller's
    /// waits for it. Spares handing each of them over to that thread and back. Always the same.
    virtual bool on_workers() const { return false; }
    /// sum() in two halves: starts, with numbers that stay where they are until end_sum() returns. Exchanges may come
    /// in between, other functions of this do not. What can only be done at once is done here.
    virtual void begin_sum(std::span<double> numbers) { sum(numbers); }
    /// Returns when the numbers are their sums.
    virtual void end_sum() {}
    /// How many devices all processes have together, each as many as the others, if they gather numbers in the memory
    /// of their devices, and if on_workers(); solvers then add their sums there, in place of sum(), and the host waits
    /// for none of them. 0: by sum(). The same on all processes; changes between calls of librmsp alone.
    virtual int gathers_on_devices() const { return 0; }
    /// Queues on each device of this process: it gets `count` numbers of each device in turn, those of a process
    /// together.
    virtual void gather_on(std::span<const DeviceArrays> /*devices*/, std::size_t /*count*/)
    {
        throw Error(ErrorCode::internal, "gather_on() of processes that do not gather on devices");
    }
    /// Returns when all that was gathered, or exchanged in_stream_order(), is there. Called before a call of librmsp
    /// ends, and before it waits for the device in another way.
    virtual void settle() {}
};

/// Where entries are in the arrays of the devices that have them.
struct DevicePlaces {
    std::vector<std::int64_t> sent;    ///< of each entry that is sent
    std::vector<std::int64_t> ghosts;  ///< of each ghost
};

/// Brings entries of x to the processes that multiply with them, called as Processes are.
class GhostExchange {
public:
    virtual ~GhostExchange() = default;
    /// Starts: `send` has the entries that GhostedRows::sent lists, `receive` is for the ghosts; the other way round,
    /// `backwards`, `send` has the ghosts' entries and `receive` is for those that were listed. Arrays of the matrix's
    /// type, which stay until end() returns.
    virtual void begin(const void* send, void* receive, bool backwards) = 0;
    /// Returns when all is received, and sent.
    virtual void end() = 0;
    /// Whether entries are in memory of the runtime's devices, each of which has an array of those that it owns or
    /// multiplies with: place() is called once, before anything is exchanged, and begin_on() in place of begin().
    /// Always the same.
    virtual bool on_devices() const { return false; }
    /// Hears on which of `devices` each entry is that is sent, and each ghost; says where in the array there.
    /// Collective.
    virtual DevicePlaces place(std::span<const int> /*sent*/, std::span<const int> /*ghosts*/, int /*devices*/)
    {
        throw Error(ErrorCode::internal, "place() of an exchange in host memory");
    }
    /// begin() with an array of each device to send and one to receive. end() returns when all is there, whoever looks.
    virtual void begin_on(std::span<const DeviceArrays> /*devices*/, bool /*backwards*/)
    {
        throw Error(ErrorCode::internal, "begin_on() of an exchange in host memory");
    }
    /// Whether what is queued on the streams of the last begin_on() later finds all there, and the next one may come
    /// behind it: end() is then not called, but Processes::settle(), for many exchanges at once.
    virtual bool in_stream_order() const { return false; }
};

/// What is exchanged with one other process: [first, first + count) of the ghosts, or of GhostedRows::sent.
struct GhostNeighbour {
    int process = 0;
    std::int64_t first = 0;
    std::int64_t count = 0;
};

/// Processes that also bring each other what multigrid over all of them is made of. Its functions are called by every
/// process in the same order, on the thread that called librmsp.
class LinkedProcesses : public Processes {
public:
    virtual int rank() const = 0;
    virtual int size() const = 0;
    /// Brings to[p] to process p; returns what each has for this one. Both have size() entries.
    virtual std::vector<std::vector<std::byte>> bring(std::vector<std::vector<std::byte>> to) = 0;
    /// The exchange of a matrix with ghosts that are received from, and entries that are sent to these processes.
    virtual std::shared_ptr<GhostExchange> exchange(const std::vector<GhostNeighbour>& receives,
                                                    const std::vector<GhostNeighbour>& sends,
                                                    std::size_t entry_bytes) = 0;
};

/// LinkedProcesses::bring() of numbers, or other plain data, in place of their bytes.
template <class X>
std::vector<std::vector<X>> bring(LinkedProcesses& processes, const std::vector<std::vector<X>>& to)
{
    static_assert(std::is_trivially_copyable_v<X>);
    std::vector<std::vector<std::byte>> out(to.size());
    for (std::size_t p = 0; p < to.size(); ++p) {
        out[p].resize(to[p].size() * sizeof(X));
        if (!to[p].empty()) {
            std::memcpy(out[p].data(), to[p].data(), out[p].size());
        }
    }
    const std::vector<std::vector<std::byte>> came = processes.bring(std::move(out));
    std::vector<std::vector<X>> in(came.size());
    for (std::size_t p = 0; p < came.size(); ++p) {
        in[p].resize(came[p].size() / sizeof(X));
        if (!in[p].empty()) {
            std::memcpy(in[p].data(), came[p].data(), came[p].size());
        }
    }
    return in;
}

/// Where the rows of one process are in the whole matrix, which is square.
struct GhostedNumbers {
    std::vector<std::int64_t> first_rows;  ///< of each process, and their number at the end
    std::vector<std::int64_t> ghosts;      ///< the columns that are ghosts, rising
};

/// What one process has of a matrix.
template <class T>
struct GhostedRows {
    /// Rows of this process; columns below own_cols are those whose entries of x are here, the others are ghosts, whose
    /// entries other processes have.
    CsrView<T> rows;
    std::int64_t own_cols = 0;
    /// The number of the first row in the whole matrix, by which solvers draw their random vectors.
    std::int64_t first_row = 0;
    /// Own columns whose entries others need, in the order in which they are sent; one may come several times.
    std::vector<std::int64_t> sent;
    std::shared_ptr<GhostExchange> exchange;
    std::shared_ptr<Processes> processes;
};

namespace detail {
template <class T>
struct GhostedState;
struct GhostedAccess;
}  // namespace detail

/// Such rows, distributed over the devices of a runtime. A handle, whose copies are the same matrix. Calls of several
/// threads come one after the other; those that exchange are collective: every process makes them, in the same order.
/// What a device or the exchange throws, they throw; `y` is then unspecified.
template <class T>
class GhostedMatrix {
    static_assert(is_value_type<T>, "librmsp multiplies float and double");

public:
    GhostedMatrix() = default;
    /// Distributes own columns and ghosts, each by themselves; the arrays are only read, and only during the call.
    /// Whole rows, resident. No entry is exchanged; collective where the exchange is on_devices(), which places them.
    /// \throws Error(usage) for bad rows, lists or options, Error(out_of_memory)
    RMSP_API GhostedMatrix(Runtime& runtime, const GhostedRows<T>& rows, const DistributeOptions& options = {});

    /// Of this process: its rows with own columns alone. It makes the vectors of all products: make_y(), and
    /// make_x(Layout::rows).
    RMSP_API const DistributedMatrix<T>& own() const;
    /// Columns that are ghosts, and entries that are sent.
    RMSP_API std::int64_t ghosts() const;
    RMSP_API std::int64_t sent() const;
    /// y = alpha A x + beta y: entries of x are exchanged while the devices multiply own columns. Blocks; collective.
    RMSP_API void apply(T alpha, const DistributedVector<T>& x, T beta, DistributedVector<T>& y);
    /// y = alpha A^T x + beta y with x as own().make_y() makes it, y as own().make_x(Layout::rows). Blocks; collective.
    RMSP_API void apply_transposed(T alpha, const DistributedVector<T>& x, T beta, DistributedVector<T>& y);
    /// New values of the same rows, in the order of the arrays given. Blocks; nothing is exchanged.
    RMSP_API void update_values(const T* values);

private:
    friend struct detail::GhostedAccess;
    std::shared_ptr<detail::GhostedState<T>> state_;
};

/// Multigrid over all processes, "amg" or "sa-amg" with PreconditionerOptions::multigrid, the same on all of them: each
/// level is a matrix of all, as this one is, with P that crosses processes where A does; levels of few rows are on
/// fewer processes, the last one is inverted on one. Smoothers are of each process's own rows and columns, what couples
/// it to others being added to the diagonal. renew() keeps the structure of all levels, as that of one process does,
/// and is collective; a near-nullspace has the own rows alone. Collective. Blocks.
/// \throws Error(usage) for another name, as make_preconditioner() of one matrix, and for nodes of several unknowns
///         that are cut by processes;
///         what `processes` throws
template <class T>
[[nodiscard]] RMSP_API std::shared_ptr<Preconditioner<T>> make_preconditioner(
    const GhostedMatrix<T>& matrix, const GhostedNumbers& numbers, std::shared_ptr<LinkedProcesses> processes,
    const std::string& name, const PreconditionerOptions& options = {});

}  // namespace rmsp
