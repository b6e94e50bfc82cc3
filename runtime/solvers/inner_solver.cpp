#include <type_traits>

#include <core/value_types.hpp>

#include "runtime/solvers/solver_state.hpp"

namespace rmsp {
namespace {

template <class T>
class InnerSolver final : public Preconditioner<double> {
public:
    InnerSolver(const DistributedMatrix<T>& matrix, const SolverOptions& options,
                std::shared_ptr<Preconditioner<T>> preconditioner)
        : options_(solvers::choose_for(matrix, options, preconditioner).options),
          state_(std::make_shared<detail::SolverState<T>>(matrix, options_, std::move(preconditioner), false)),
          begin_(state_->scalars),
          resume_(state_->scalars)
    {
        const solvers::Recipe<T>& recipe = state_->recipe;
        state_->scalars.set(recipe.limit(), std::numeric_limits<double>::infinity());
        begin_.pass_always(ScalarStatement{kernels::scalar_stopped, 0.0},
                           ScalarStatement{kernels::scalar_iterations, -1.0});
        begin_.pass(recipe.x = 0.0 * recipe.x);
        resume_.pass_always(ScalarStatement{kernels::scalar_stopped, 0.0});
    }

    void append(Sequence& sequence, const Vec<double>& z, const Vec<double>& r) override
    {
        const solvers::Recipe<T>& recipe = state_->recipe;
        copy(sequence, recipe.b, r);
        sequence.insert(begin_);
        sequence.insert(recipe.start);
        for (std::int64_t i = 0; i < state_->options.max_iterations; ++i) {
            sequence.insert(recipe.cycle[static_cast<std::size_t>(i) % recipe.cycle.size()]);
        }
        sequence.insert(resume_);
        sequence.insert(recipe.finish);
        copy(sequence, z, recipe.x);
    }
    void renew() override
    {
        if (state_->preconditioner) {
            state_->preconditioner->renew();
        }
        state_->prepare();
    }
    std::string name() const override
    {
        return state_->options.method + (std::is_same_v<T, float> ? " in float" : " in double");
    }

private:
    template <class To, class From>
    static void copy(Sequence& sequence, const Vec<To>& to, const Vec<From>& from)
    {
        if constexpr (std::is_same_v<To, From>) {
            sequence.pass(to = from);
        } else {
            sequence.convert(to, from);
        }
    }

    const std::shared_ptr<const SolverOptions> options_;
    std::shared_ptr<detail::SolverState<T>> state_;
    Sequence begin_;   ///< x = 0, and passes do their work
    Sequence resume_;  ///< they do it again
};

}  // namespace

template <class T>
std::shared_ptr<Preconditioner<double>> inner_solver(const DistributedMatrix<T>& matrix, const SolverOptions& options,
                                                     std::shared_ptr<Preconditioner<T>> preconditioner)
{
    constexpr std::int64_t most = 1000;
    if (options.max_iterations < 1 || options.max_iterations > most) {
        throw Error(ErrorCode::usage, fmt::format("an inner solver of {} iterations was asked for, it must be 1 to {}",
                                                  options.max_iterations, most));
    }
    return std::make_shared<InnerSolver<T>>(matrix, options, std::move(preconditioner));
}

#define RMSP_INSTANTIATE(T)                                                                                          \
    template std::shared_ptr<Preconditioner<double>> inner_solver(const DistributedMatrix<T>&, const SolverOptions&, \
                                                                  std::shared_ptr<Preconditioner<T>>);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp
