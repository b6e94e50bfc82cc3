#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <rmsp/spgemm.hpp>

#include "runtime/engine/rendezvous.hpp"
#include "runtime/spgemm/rows.hpp"
#include "runtime/transport/transport.hpp"

/// How devices get rows of B from each other.
namespace rmsp::spgemm {

using detail::RuntimeState;

/// How devices get entries of B from each other: each has a slice of them, and gathers what else it needs.
struct EntryExchange {
    /// Of each device, where entry 0 of the array is, or would be.
    struct Places {
        std::vector<void*> copies;
        std::vector<void*> held;  ///< its slice, where that is not in its copy: B is another product's C
    };
    std::vector<std::int64_t> slices;      ///< device i has entries [slices[i], slices[i + 1]) of B
    std::vector<transport::Range> needed;  ///< of each device; none where its slice has all of it already
    std::vector<transport::Range> here;    ///< what each device has of B's entries in the end
    Places col_idx;
    Places values;
    std::shared_ptr<transport::Channel> channel;  ///< the runtime's; null: host devices, which read each other's memory
    std::atomic<bool> given_up = false;           ///< some device has no room: each takes B from the host

    /// Whether the slices are in other arrays than the copies: B was on the devices before.
    bool of_resident() const noexcept { return !values.held.empty(); }
};

/// The entries of B that each device needs; empty if there is one that needs several ranges.
std::vector<transport::Range> needed_entries(const std::vector<RowSelection>& selections, IndexView row_ptr);
/// Slices of B's entries, each of what its device needs and as even as that allows; empty if there are none.
std::vector<std::int64_t> entry_slices(const std::vector<transport::Range>& needed);
/// Whether it is faster to send each device its slice of what is needed, and let it gather the rest, than to send it
/// its rows.
bool exchange_pays(const std::vector<RowSelection>& from_host, const std::vector<transport::Range>& needed);
/// How devices would exchange rows of B: a transport, "shared", or "none". \throws Error(usage) for an unknown option
std::string exchange_transport(const RuntimeState& runtime, const SpgemmOptions& options);
/// The channel of all exchanges of entries by a transport; null where the devices need none. Opened at the first call,
/// which may be no worker's, and kept with the runtime: memory that peers reach takes long to get and to free.
std::shared_ptr<transport::Channel> entry_channel(RuntimeState& runtime, const std::string& transport);
/// Queues what brings the entries of an array from where they are held to the copies. All workers of the job call it.
template <class E>
void gather_held(engine::Worker& worker, engine::Rendezvous& meeting, const EntryExchange& exchange,
                 const EntryExchange::Places& places);
/// Where entry 0 of an array would be whose first entry is number `first`.
template <class E>
void* entry_zero(const E* array, std::int64_t first)
{
    // Not a pointer into the array: counted in bytes.
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(array) -
                                   static_cast<std::uintptr_t>(first) * sizeof(E));
}

/// An exchange of which nothing is on its way yet, with its channel. `held`: of each device its slice, where B is on
/// the devices; else null. Not on a worker.
template <class T>
std::unique_ptr<EntryExchange> open_exchange(RuntimeState& runtime, const std::string& transport,
                                             std::vector<std::int64_t> slices, std::vector<transport::Range> needed,
                                             const std::vector<FactorPart<T>>* held);
/// Memory for what the device needs of B. False, on every device, if one has none. All workers of the job call it, and
/// the next two.
/// \param more  allocates what else is to be there
template <class T>
bool make_room(EntryExchange& exchange, engine::MemoryBudget& memory, DeviceRows<T>& b, engine::Worker& worker,
               engine::Rendezvous& meeting, const std::function<void()>& more);
template <class T>
void exchange_columns(const EntryExchange& exchange, const CsrView<T>& b, engine::Worker& worker,
                      engine::Rendezvous& meeting);
/// `from`: the host's values of B, if it is not on the devices.
template <class T>
void exchange_values(const EntryExchange& exchange, const T* from, engine::Worker& worker, engine::Rendezvous& meeting);
/// The selected rows of B from what was exchanged, with their row pointers, unless `out` has these: then they come from
/// the host.
template <class T>
void take_exchanged(const EntryExchange& exchange, const CsrView<T>& b, const RowSelection& rows,
                    engine::MemoryBudget& memory, DeviceRows<T>& out, engine::Worker& worker);

}  // namespace rmsp::spgemm
