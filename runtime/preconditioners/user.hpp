#pragma once

#include <utility>

#include "runtime/preconditioners/base.hpp"

namespace rmsp::preconditioners {

/// A caller's function on local slices.
template <class T>
class User final : public Base<T> {
public:
    User(const DistributedMatrix<T>& matrix, LocalPreconditioner<T> apply)
        : Base<T>(matrix, "user"), apply_(std::move(apply))
    {
        if (!apply_) {
            throw Error(ErrorCode::usage, "a preconditioner of an empty function");
        }
    }
    void append(Sequence& sequence, const Vec<T>& z, const Vec<T>& r) override
    {
        this->check_vectors(z, r);
        sequence.call([apply = apply_, z = z.state(), r = r.state()](const DeviceCall& call) {
            const auto rank = static_cast<std::size_t>(call.device);
            const auto count = static_cast<std::size_t>(r->offsets[rank + 1] - r->offsets[rank]);
            apply(call, std::span<const T>(r->slices[rank], count), std::span<T>(z->slices[rank], count));
        });
    }

private:
    LocalPreconditioner<T> apply_;
};

}  // namespace rmsp::preconditioners
