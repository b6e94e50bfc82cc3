#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rmsp/preconditioner.hpp>
#include <rmsp/runtime.hpp>
#include <rmsp/sequence.hpp>

#include "runtime/multigrid/options.hpp"
#include "runtime/multigrid/smoothing.hpp"
#include "runtime/sequence/sequence_state.hpp"

/// Cycles over the levels of one process, or of several. What differs are the products, which overloads for each kind
/// of level append: append_product(), append_restriction(), append_prolongation().
namespace rmsp::multigrid {

/// How often coarser levels are visited.
enum class Cycle : std::uint8_t { v, w, f, k };

inline Cycle cycle_of(const MultigridOptions& options)
{
    return options.cycle == "w"   ? Cycle::w
           : options.cycle == "f" ? Cycle::f
           : options.cycle == "k" ? Cycle::k
                                  : Cycle::v;
}

template <class T, class L>
class CycleOverLevels {
public:
    CycleOverLevels(const std::vector<L>& levels, const std::optional<DistributedMatrix<T>>& inverse, int sweeps)
        : levels_(levels), inverse_(inverse), sweeps_(sweeps)
    {
    }

    /// Appends what computes x for a right-hand side. \param scalars  of a K cycle
    void append(Sequence& sequence, const Vec<T>& x, const Vec<T>& b, Cycle cycle, std::optional<Scalars>& scalars)
    {
        if (cycle != Cycle::k) {
            append(sequence, 0, x, b, true, cycle);
            return;
        }
        // Its scalars are its own, so that what the caller's sequence has room for does not depend on the levels.
        Sequence own(*scalars);
        append(own, 0, x, b, true, cycle);
        sequence.insert(own);
    }

private:
    void append(Sequence& sequence, std::size_t number, const Vec<T>& x, const Vec<T>& b, bool from_zero, Cycle cycle)
    {
        const L& level = levels_[number];
        if (number + 1 == levels_.size()) {
            if (inverse_) {
                sequence.multiply(*inverse_, b, x);
            } else {
                append_smoothing(sequence, level, x, b, from_zero, last_sweeps);
            }
            return;
        }
        const L& next = levels_[number + 1];
        if (level.gathers) {
            append_restriction(sequence, level, b, *next.b);
            append(sequence, number + 1, *next.x, *next.b, true, cycle);
            append_prolongation(sequence, level, *next.x, x, T{0});
            return;
        }
        append_smoothing(sequence, level, x, b, from_zero, sweeps_);
        append_residual(sequence, level, x, b);
        append_restriction(sequence, level, *level.residual, *next.b);
        if (!next.krylov.empty()) {
            append_krylov(sequence, number + 1);
        } else {
            append(sequence, number + 1, *next.x, *next.b, true, cycle);
        }
        // A second visit pays only where there is something below that was not solved exactly.
        if ((cycle == Cycle::w || cycle == Cycle::f) && number + 2 < levels_.size() && !next.gathers &&
            number < most_doubled) {
            append(sequence, number + 1, *next.x, *next.b, false, cycle == Cycle::f ? Cycle::v : cycle);
        }
        append_prolongation(sequence, level, *next.x, x, T{1});
        append_smoothing(sequence, level, x, b, false, sweeps_);
    }

    /// Two iterations of flexible conjugate gradients with the cycle as preconditioner, from nothing; b becomes the
    /// residual of the first. (Y. Notay, P. S. Vassilevski: Recursive Krylov-based multigrid cycles, Numer. Linear
    /// Algebra Appl. 15, 2008, algorithm 3.2, always with the second iteration, since what is queued cannot depend on
    /// residuals)
    void append_krylov(Sequence& sequence, std::size_t number)
    {
        const L& level = levels_[number];
        const Vec<T>& c = level.krylov[0];
        const Vec<T>& ac = level.krylov[1];
        const Vec<T>& d = level.krylov[2];
        const Vec<T>& ad = level.krylov[3];
        const Scalar& energy = level.krylov_scalars[0];
        const Scalar& along = level.krylov_scalars[1];
        const Scalar& cross = level.krylov_scalars[2];
        const Scalar& rest = level.krylov_scalars[3];
        const Scalar& second = level.krylov_scalars[4];
        // 0 / 0 is 0; what is left of d beside c is no less than rounding makes it.
        constexpr double smallest = 1e-300;
        constexpr double rounding = 1e-10;
        append(sequence, number, c, *level.b, true, Cycle::k);
        append_product(sequence, level, c, ac, T{1}, T{0});
        sequence.pass(energy = dot(c, ac), along = dot(c, *level.b), energy = max(energy, smallest),
                      along = along / energy);
        sequence.pass(*level.b -= along * ac);
        append(sequence, number, d, *level.b, true, Cycle::k);
        append_product(sequence, level, d, ad, T{1}, T{0});
        sequence.pass(cross = dot(d, ac), rest = dot(d, ad), second = dot(d, *level.b),
                      rest = max(max(rest - cross * cross / energy, rounding * ScalarExpression(rest)), smallest),
                      second = second / rest, along = along - cross * second / energy);
        sequence.pass(*level.x = along * c + second * d);
    }

    void append_smoothing(Sequence& sequence, const L& level, const Vec<T>& x, const Vec<T>& b, bool from_zero,
                          int sweeps)
    {
        append_sweeps(sequence, level, x, b, from_zero, sweeps, [&] { append_residual(sequence, level, x, b); });
    }

    void append_residual(Sequence& sequence, const L& level, const Vec<T>& x, const Vec<T>& b)
    {
        // A pass, which joins the one before it where that reads or writes the same vectors, and a product that adds to
        // it.
        sequence.pass(*level.residual = b);
        append_product(sequence, level, x, *level.residual, T{-1}, T{1});
    }

    const std::vector<L>& levels_;
    const std::optional<DistributedMatrix<T>>& inverse_;
    const int sweeps_;
};

/// Makes the vectors and scalars of a K cycle on a level that is not the first one and is neither solved exactly nor
/// passed over. \param own  this process's rows of the level's matrix
template <class T, class L>
void make_krylov(L& level, const DistributedMatrix<T>& own, Scalars& scalars)
{
    for (int k = 0; k < 4; ++k) {
        level.krylov.emplace_back(own.make_y());
    }
    for (int k = 0; k < 5; ++k) {
        level.krylov_scalars.push_back(scalars.make());
    }
}

}  // namespace rmsp::multigrid
