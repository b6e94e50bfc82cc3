#pragma once

#include <string>
#include <tuple>

#include <core/value_types.hpp>
#include <kernels/context.hpp>
#include <rmsp/error.hpp>

/// A *step* is a small piece of work on one device. Steps come in groups, and a group is a struct of pointers to
/// functions: there each step is declared, once. For each kind of device that has bodies of them the group has a static
/// function of the kind's name, which returns the group's row of that kind and is defined in the source with those
/// bodies. Context is the last parameter of every step and says which row is taken.
namespace rmsp::kernels {

/// The group's row for a kind of device; null if the group has none, or this build lacks that kind.
template <class Steps>
const Steps* steps_on(DeviceKind kind) noexcept
{
    switch (kind) {
        case DeviceKind::host:
            if constexpr (requires { Steps::host(); }) {
                return &Steps::host();
            }
            break;
        case DeviceKind::cuda:
#ifdef RMSP_HAVE_CUDA
            if constexpr (requires { Steps::cuda(); }) {
                return &Steps::cuda();
            }
#endif
            break;
    }
    return nullptr;
}

/// Calls one step of a group on the context's kind of device. \throws NotCompiled naming the step if there is no body
template <class Steps, class R, class... A>
class Step {
public:
    using Body = R (*)(A...);
    using Member = Body Steps::*;

    constexpr Step(Member step, const char* name) : step_(step), name_(name) {}

    R operator()(A... arguments) const
    {
        const Context& context = std::get<sizeof...(A) - 1>(std::tie(arguments...));
        const Steps* const row = steps_on<Steps>(context.kind);
        const Body body = row == nullptr ? nullptr : row->*step_;
        if (body == nullptr) {
            throw NotCompiled(std::string(name_) + " for " + to_string(context.kind) + " devices");
        }
        return body(static_cast<A&&>(arguments)...);
    }

private:
    Member step_;
    const char* name_;
};

template <class Steps, class R, class... A>
Step(R (*Steps::*)(A...), const char*) -> Step<Steps, R, A...>;

/// A step that several groups have, one for each type: the arguments decide.
template <class... Steps>
struct OverloadedStep : Steps... {
    using Steps::operator()...;
};
template <class... Steps>
OverloadedStep(Steps...) -> OverloadedStep<Steps...>;

}  // namespace rmsp::kernels

#define RMSP_STEP_OF(T, Group, step) Step{&Group<T>::step, #step},
/// The function `step` of a group for each type of values, Group<T>.
#define RMSP_VALUE_STEP(Group, step) \
    inline constexpr OverloadedStep step { RMSP_FOR_EACH_VALUE_TYPE(RMSP_STEP_OF, Group, step) }
/// The same for each width of indices.
#define RMSP_INDEX_STEP(Group, step)                                                    \
    inline constexpr OverloadedStep step                                                \
    {                                                                                   \
        RMSP_STEP_OF(std::int32_t, Group, step) RMSP_STEP_OF(std::int64_t, Group, step) \
    }

/// The row of a group for a kind of device, in the source with its bodies: `.step = body` for each step that it has.
#define RMSP_ROW(Group, kind, ...)               \
    const Group& Group::kind()                   \
    {                                            \
        static constexpr Group row{__VA_ARGS__}; \
        return row;                              \
    }
#define RMSP_ROW_OF(T, Group, kind) template const Group<T>& Group<T>::kind();
#define RMSP_ROW_BY_TYPE(Group, kind, ...)       \
    template <class T>                           \
    const Group<T>& Group<T>::kind()             \
    {                                            \
        static constexpr Group row{__VA_ARGS__}; \
        return row;                              \
    }
/// The rows of Group<T> for each type of values; the bodies are of T.
#define RMSP_VALUE_ROW(Group, kind, ...)       \
    RMSP_ROW_BY_TYPE(Group, kind, __VA_ARGS__) \
    RMSP_FOR_EACH_VALUE_TYPE(RMSP_ROW_OF, Group, kind)
/// The same for each width of indices.
#define RMSP_INDEX_ROW(Group, kind, ...)       \
    RMSP_ROW_BY_TYPE(Group, kind, __VA_ARGS__) \
    RMSP_ROW_OF(std::int32_t, Group, kind)     \
    RMSP_ROW_OF(std::int64_t, Group, kind)
