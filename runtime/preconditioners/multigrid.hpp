#pragma once

#include <string>
#include <utility>

#include "runtime/multigrid/hierarchy.hpp"
#include "runtime/preconditioners/base.hpp"

namespace rmsp::preconditioners {

/// A cycle of algebraic multigrid. Unlike others, one whose renew() throws must be renewed, or made, again.
template <class T>
class Multigrid final : public Base<T> {
public:
    Multigrid(const DistributedMatrix<T>& matrix, std::string name, multigrid::Method method,
              const MultigridOptions& options, multigrid::MakeSmoother<T> make_smoother)
        : Base<T>(matrix, std::move(name)), hierarchy_(matrix, method, options, std::move(make_smoother))
    {
        describe();
    }
    void append(Sequence& sequence, const Vec<T>& z, const Vec<T>& r) override
    {
        this->check_vectors(z, r);
        hierarchy_.append(sequence, z, r);
    }
    bool varies() const override { return hierarchy_.varies(); }
    void renew() override
    {
        hierarchy_.renew();
        describe();
    }

private:
    void describe()
    {
        std::string name = std::move(this->report_.name);
        this->report_ = hierarchy_.report();
        this->report_.name = std::move(name);
    }

    multigrid::Hierarchy<T> hierarchy_;
};

}  // namespace rmsp::preconditioners
