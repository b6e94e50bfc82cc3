#pragma once

#include <cstdint>
#include <functional>

#include <kernels/context.hpp>
#include <kernels/steps/step.hpp>

/// Aggregates of the rows of a square matrix that one GPU has, or that several have which reach each other's memory:
/// these do each step together, and find what one would find that has all rows. In columns of the matrix, which rise in
/// each row, each once. Only on GPUs; on the host: matrix/coarsening.hpp.
namespace rmsp::kernels {

/// Of one device: its rows, and what it lends the others; all pointers are its memory.
struct AggregatePart {
    std::int64_t first_row = 0;  ///< in the whole matrix
    std::int64_t rows = 0;
    std::int64_t nnz = 0;
    IndexView row_ptr;
    const std::int32_t* col_idx = nullptr;
    const std::uint8_t* strong = nullptr;  ///< marks of the entries (matrix/strength.hpp)
    std::uint8_t* alike = nullptr;         ///< those of symmetrise()
    std::int32_t* number = nullptr;        ///< of each row: what aggregates() finds
    /// Room while aggregates are found: `rows` entries each, and aggregate_words words.
    std::int32_t* missing = nullptr;
    std::int32_t* first = nullptr;
    std::int32_t* queue = nullptr;
    std::uint8_t* state = nullptr;
    std::uint64_t* words = nullptr;
    std::int32_t* slots = nullptr;  ///< slots_each for each row
    int slots_each = 0;
};

/// Rows from `first_row` on that have no room yet. \param strong, number  as AggregatePart has them
template <class T>
AggregatePart aggregate_part(const CsrShard<T>& a, std::int64_t first_row, const std::uint8_t* strong,
                             std::int32_t* number)
{
    AggregatePart part;
    part.first_row = first_row;
    part.rows = a.rows;
    part.nnz = a.nnz;
    part.row_ptr = a.row_ptr;
    part.col_idx = a.col_idx;
    part.strong = strong;
    part.number = number;
    return part;
}

/// Devices that find aggregates together at most.
inline constexpr int most_aggregate_parts = 16;
inline constexpr int aggregate_words = 128 + 2 * most_aggregate_parts;

/// Threads that look at a row together: a row of mean length takes them about one step.
constexpr int lanes_of_rows(std::int64_t rows, std::int64_t nnz) { return nnz > 12 * rows ? 32 : 8; }

/// What AggregatePart points to beside the matrix. Neighbours of rows are in slots, where there is room for that: what
/// a row is next to is found by one load then, not by three that wait for each other.
struct AggregateRoom {
    AggregateRoom() = default;
    AggregateRoom(Memory& memory, std::int64_t rows, std::int64_t nnz)
        : slots_each(rows * lanes_of_rows(rows, nnz) <= most_slots ? lanes_of_rows(rows, nnz) : 0),
          alike(memory, static_cast<std::size_t>(nnz)),
          missing(memory, static_cast<std::size_t>(rows)),
          first(memory, static_cast<std::size_t>(rows)),
          queue(memory, static_cast<std::size_t>(rows)),
          state(memory, static_cast<std::size_t>(rows)),
          words(memory, aggregate_words),
          slots(memory, static_cast<std::size_t>(rows * slots_each))
    {
    }
    void lend(AggregatePart& part) const
    {
        part.alike = alike.data();
        part.missing = missing.data();
        part.first = first.data();
        part.queue = queue.data();
        part.state = state.data();
        part.words = words.data();
        part.slots = slots.data();
        part.slots_each = slots_each;
    }

    static constexpr std::int64_t most_slots = std::int64_t{1} << 27;  ///< 512 MB
    int slots_each = 0;
    DeviceArray<std::uint8_t> alike;
    DeviceArray<std::int32_t> missing;
    DeviceArray<std::int32_t> first;
    DeviceArray<std::int32_t> queue;
    DeviceArray<std::uint8_t> state;
    DeviceArray<std::uint64_t> words;
    DeviceArray<std::int32_t> slots;
};

/// The rows of a matrix, wherever they are, as one of the devices sees them.
struct AggregateParts {
    AggregatePart part[most_aggregate_parts];  ///< in the order of their rows
    int count = 1;
    int own = 0;  ///< the device's

    // Where there are several:
    /// Returns once all devices have come there, and what each queued before is done; all throw where one did.
    std::function<void()> meet;
    /// As meet(), with the sum of what each says.
    std::function<std::int64_t(std::int64_t)> total;
    /// As meet(), with the sum of what the devices before this one say.
    std::function<std::int64_t(std::int64_t)> before;
    /// Host memory: kernels stop waiting for each other where it is `epoch` or more.
    const volatile std::uint64_t* given_up = nullptr;
    std::uint64_t epoch = 0;
};

/// Each device of a matrix takes part in each step, which waits for its device.
struct Aggregations {
    /// alike[k] = whether an entry or its counterpart on the other side of the diagonal is strong, as a mark. Rounding
    /// makes one of two alike entries strong and not the other. Returns false where a strong one has none.
    bool (*symmetrise)(const AggregateParts& parts, const Context& context) = nullptr;
    /// number[i] = the aggregate that row i is in, or -1, by `alike`. Returns how many there are; -1 where so many rows
    /// wait for each other, as along a line, that the host is faster.
    std::int64_t (*aggregates)(const AggregateParts& parts, const Context& context) = nullptr;

    static const Aggregations& cuda();
};
inline constexpr Step symmetrise{&Aggregations::symmetrise, "symmetrise"};
inline constexpr Step aggregates{&Aggregations::aggregates, "aggregates"};

}  // namespace rmsp::kernels
