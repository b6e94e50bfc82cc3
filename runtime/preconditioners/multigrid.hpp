#pragma once

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "runtime/multigrid/hierarchy.hpp"
#include "runtime/preconditioners/base.hpp"

namespace rmsp::preconditioners {

/// A cycle of algebraic multigrid, of the levels of one process or of several: H is Hierarchy<T> or LinkedHierarchy<T>.
/// Unlike others, one whose renew() throws must be renewed, or made, again.
template <class T, class H>
class Multigrid final : public Base<T> {
public:
    /// \param matrix  own rows of what the levels were made of
    Multigrid(const DistributedMatrix<T>& matrix, std::string name, H hierarchy, double rebuild_factor)
        : Base<T>(matrix, std::move(name)), hierarchy_(std::move(hierarchy)), rebuild_factor_(rebuild_factor)
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
        std::string note;
        if (has_decayed()) {
            note = fmt::format(
                "all levels were made anew: the last solve {} {} iterations, the first one after they "
                "were made took {} (amg_rebuild_factor)",
                last_converged_ ? "took" : "did not converge in", last_, first_);
        }
        try {
            note.empty() ? hierarchy_.renew() : hierarchy_.rebuild();
            generation_ += note.empty() ? 0 : 1;
        } catch (const Error& error) {
            // Of several processes the others have gone on.
            if (note.empty() || error.code() != ErrorCode::out_of_memory ||
                !std::is_same_v<H, multigrid::Hierarchy<T>>) {
                throw;
            }
            // Both hierarchies are there for a while.
            hierarchy_.renew();
            note = fmt::format(
                "the levels were kept, although solves take more iterations, since there is no room to "
                "make others: {}",
                error.what());
        }
        describe();
        if (!note.empty()) {
            first_ = 0;
            this->report_.notes.push_back(std::move(note));
        }
    }
    std::int64_t generation() const override { return generation_; }
    void solved(std::int64_t iterations, bool converged) override
    {
        last_ = iterations;
        last_converged_ = converged;
        first_ = first_ == 0 && converged ? std::max(iterations, fewest) : first_;
    }

private:
    void describe()
    {
        std::string name = std::move(this->report_.name);
        this->report_ = hierarchy_.report();
        this->report_.name = std::move(name);
    }
    bool has_decayed() const
    {
        return rebuild_factor_ > 0 && first_ > 0 &&
               (!last_converged_ || static_cast<double>(last_) > rebuild_factor_ * static_cast<double>(first_));
    }

    /// Iterations that a first solve counts as at least: of one that began at its solution nothing can be said.
    static constexpr std::int64_t fewest = 5;

    H hierarchy_;
    double rebuild_factor_;
    std::int64_t generation_ = 0;
    // Iterations of solves, since all levels were made.
    std::int64_t first_ = 0;  ///< of the first one that converged; 0: none did
    std::int64_t last_ = 0;
    bool last_converged_ = true;
};

}  // namespace rmsp::preconditioners
