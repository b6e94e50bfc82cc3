#pragma once

#include <cstddef>
#include <exception>
#include <list>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "runtime/engine/device.hpp"

namespace rmsp::engine {

class Worker;

/// A callable kept in place: to set it neither allocates nor throws, so that it can be done where nothing may fail.
template <class... Args>
class InPlace {
public:
    InPlace() = default;
    InPlace(const InPlace&) = delete;
    InPlace& operator=(const InPlace&) = delete;
    ~InPlace()
    {
        if (destroy_ != nullptr) {
            destroy_(room_);
        }
    }

    /// Once.
    template <class F>
    void set(F f) noexcept
    {
        static_assert(sizeof(F) <= sizeof(room_) && alignof(F) <= alignof(std::max_align_t));
        static_assert(std::is_nothrow_move_constructible_v<F>);
        ::new (static_cast<void*>(room_)) F(std::move(f));
        call_ = [](void* room, Args... args) { (*std::launder(static_cast<F*>(room)))(args...); };
        destroy_ = [](void* room) noexcept { std::launder(static_cast<F*>(room))->~F(); };
    }
    void operator()(Args... args) { call_(room_, args...); }
    explicit operator bool() const noexcept { return call_ != nullptr; }

private:
    alignas(std::max_align_t) std::byte room_[80] = {};
    void (*call_)(void*, Args...) = nullptr;
    void (*destroy_)(void*) noexcept = nullptr;
};

/// What a worker is given. An exception of `run` or `done` ends the process: they catch what they can throw.
struct Task {
    InPlace<Worker&> run;
    /// Called when everything that `run` queued on the worker's stream has finished, with the error if it failed; may
    /// be empty.
    InPlace<std::exception_ptr> done;
    /// What `run` queues takes microseconds: `done` may be called when what the next tasks queue has finished as well.
    bool brief = false;

    // The worker's own:
    std::unique_ptr<Event> event;  ///< null: there is nothing more to wait for
    bool shares = false;           ///< it has ended when the task behind it has
    std::exception_ptr failure;    ///< of what `run` queued, known before
};

/// A list hands its elements to another one without allocating: what is to be posted is made before anything is begun.
using Tasks = std::list<Task>;

}  // namespace rmsp::engine
