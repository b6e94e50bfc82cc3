#pragma once

#include <memory>
#include <string>
#include <utility>

#include "runtime/multigrid/linked_hierarchy.hpp"
#include "runtime/preconditioners/base.hpp"

namespace rmsp::preconditioners {

/// A cycle of algebraic multigrid of a matrix that several processes have.
template <class T>
class LinkedMultigrid final : public Base<T> {
public:
    LinkedMultigrid(const GhostedMatrix<T>& matrix, GhostedNumbers numbers, std::shared_ptr<LinkedProcesses> processes,
                    std::string name, multigrid::Method method, MultigridOptions options,
                    multigrid::MakeSmoother<T> make_smoother)
        : Base<T>(matrix.own(), std::move(name)),
          ghosted_(matrix),
          numbers_(std::move(numbers)),
          processes_(std::move(processes)),
          method_(method),
          options_(std::move(options)),
          make_smoother_(std::move(make_smoother))
    {
        make();
    }
    void append(Sequence& sequence, const Vec<T>& z, const Vec<T>& r) override
    {
        this->check_vectors(z, r);
        hierarchy_->append(sequence, z, r);
    }
    void renew() override
    {
        make();
        ++generation_;
    }
    std::int64_t generation() const override { return generation_; }

private:
    void make()
    {
        hierarchy_ = std::make_shared<multigrid::LinkedHierarchy<T>>(ghosted_, numbers_, processes_, method_, options_,
                                                                     make_smoother_);
        std::string name = std::move(this->report_.name);
        this->report_ = hierarchy_->report();
        this->report_.name = std::move(name);
    }

    GhostedMatrix<T> ghosted_;
    GhostedNumbers numbers_;
    std::shared_ptr<LinkedProcesses> processes_;
    multigrid::Method method_;
    MultigridOptions options_;
    multigrid::MakeSmoother<T> make_smoother_;
    std::shared_ptr<multigrid::LinkedHierarchy<T>> hierarchy_;
    std::int64_t generation_ = 0;
};

}  // namespace rmsp::preconditioners
