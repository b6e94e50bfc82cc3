#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <kernels/spmv/spmv.hpp>
#include <rmsp/runtime.hpp>

#include "runtime/node/node.hpp"
#include "runtime/transport/transport.hpp"

namespace rmsp::distributed {

/// An order that is not the matrix's, of vectors on one device.
struct VectorOrder {
    kernels::RowOrder rows;
    std::shared_ptr<const void> matrix;  ///< whose kernel's it is
};

}  // namespace rmsp::distributed

namespace rmsp::detail {

/// What a vector's handle points to. Shared between the handles and the jobs that use it.
template <class T>
struct VectorState {
    explicit VectorState(std::size_t devices) : storage(devices), room(devices) {}
    ~VectorState();

    std::shared_ptr<RuntimeState> runtime;
    Layout layout = Layout::rows;
    std::int64_t size = 0;
    std::vector<std::int64_t> offsets;
    std::vector<kernels::DeviceArray<T>> storage;  ///< of each device; host devices share the first
    engine::Tasks room;                            ///< to free them
    std::vector<T*> slices;                        ///< each device's first entry (replicated: entry 0)
    /// By rows on GPUs: entries that each device has room for, its slice and what a matrix needs of the others', and
    /// where entry 0 would be, so that x is gathered in place.
    std::vector<transport::Range> held;
    std::vector<void*> entry_zero;
    std::vector<std::int64_t>
        ghost_room;  ///< entries that each device has room for behind its slice and all that is held
    std::optional<distributed::VectorOrder> order;  ///< none: the matrix's

    /// How many of the first devices have entries of it.
    int devices() const noexcept
    {
        std::size_t last = offsets.size() - 1;
        while (layout == Layout::rows && last > 1 && offsets[last - 1] == offsets[last]) {
            --last;
        }
        return static_cast<int>(last);
    }
    /// Of a job that uses this vector, and others that are sliced alike.
    engine::JobTerms terms(bool host_data = false) const
    {
        engine::JobTerms terms;
        terms.host_data = host_data;
        terms.devices = devices();
        return terms;
    }

    /// terms() of a job that reads or writes each entry so many times, and does nothing else.
    engine::JobTerms terms_of_entries(int times) const
    {
        std::int64_t most = layout == Layout::replicated ? size : 0;
        for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
            most = std::max(most, offsets[i + 1] - offsets[i]);
        }
        engine::JobTerms all = terms();
        all.brief = times * most * static_cast<std::int64_t>(sizeof(T)) <= engine::most_bytes_of_a_brief_job;
        return all;
    }

    /// Whether every device has room for the entries that it needs.
    bool holds(const std::vector<transport::Range>& needed) const
    {
        return std::equal(needed.begin(), needed.end(), held.begin(), [](const auto& wanted, const auto& has) {
            return wanted.empty() || (wanted.first >= has.first && wanted.end <= has.end);
        });
    }
};

/// What the handle points to.
/// \throws Error(usage) for one that is empty: made by the default constructor, or moved from
template <class T>
const std::shared_ptr<VectorState<T>>& checked(const std::shared_ptr<VectorState<T>>& state);

/// What a vector's handle points to.
struct VectorAccess {
    template <class T>
    static const std::shared_ptr<VectorState<T>>& state(const DistributedVector<T>& vector)
    {
        return vector.state_;
    }
    template <class T>
    static DistributedVector<T> handle(std::shared_ptr<VectorState<T>> state)
    {
        return DistributedVector<T>(std::move(state));
    }
};

}  // namespace rmsp::detail

namespace rmsp::distributed {

using detail::checked;
using detail::RuntimeState;
using detail::VectorAccess;
using detail::VectorState;

}  // namespace rmsp::distributed
