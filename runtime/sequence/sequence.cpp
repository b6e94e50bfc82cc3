#include <rmsp/sequence.hpp>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include <core/value_types.hpp>
#include <rmsp/error.hpp>

#include "runtime/matrix/products.hpp"
#include "runtime/sequence/sequence_state.hpp"
#include "runtime/transport/transport.hpp"

namespace rmsp {
namespace sequence {

void InsertStage::get_ready() { other_->get_ready(); }

std::int64_t InsertStage::waits() const { return other_->waits(); }

std::int64_t InsertStage::bytes() const { return other_->bytes(); }

void InsertStage::queue(engine::Worker& worker, engine::Rendezvous& meeting, const kernels::ScalarOp*)
{
    try {
        other_->queue(worker, meeting);
    } catch (...) {
        other_->scalars->failed = true;
        throw;
    }
}

std::future<void> run_steps(const std::shared_ptr<const std::vector<std::shared_ptr<detail::SequenceState>>>& cycle,
                            std::int64_t first, std::int64_t count)
{
    const auto& scalars = cycle->front()->scalars;
    std::int64_t waits = 1;
    for (const auto& step : *cycle) {
        step->get_ready();
        waits = std::max(waits, step->waits());
    }
    if (waits > transport::most_waits) {
        throw Error(ErrorCode::usage, fmt::format("a sequence of {} passes and products; at most {} can run as one",
                                                  waits, transport::most_waits));
    }
    const std::int64_t most = transport::most_waits / waits;
    const std::int64_t end = first + count;
    std::vector<std::future<void>> jobs;
    do {
        const std::int64_t job_end = std::min(end, first + most);
        std::future<void> job =
            scalars->runtime->submit([cycle, first, job_end](engine::Worker& worker, engine::Rendezvous& meeting) {
                try {
                    const auto length = static_cast<std::int64_t>(cycle->size());
                    for (std::int64_t i = first; i < job_end; ++i) {
                        (*cycle)[static_cast<std::size_t>(i % length)]->queue(worker, meeting);
                    }
                    if (const auto& outside = cycle->front()->scalars->outside; outside && worker.rank() == 0) {
                        outside->settle();
                    }
                } catch (...) {
                    const auto& of_all = cycle->front()->scalars;
                    of_all->failed = true;
                    if (of_all->outside && worker.rank() == 0) {
                        of_all->outside->settle_failed();
                    }
                    throw;
                }
            });
        if (scalars->outside) {
            // It is done then. Where it has failed nothing comes behind it, which other processes would take for it.
            scalars->outside->serve(job);
            job.get();
        } else {
            jobs.push_back(std::move(job));
        }
        first = job_end;
    } while (first < end);
    if (jobs.size() == 1) {
        return std::move(jobs.front());
    }
    return std::async(std::launch::deferred, [all = std::move(jobs)]() mutable {
        for (auto& job : all) {
            job.get();
        }
    });
}

}  // namespace sequence

namespace detail {

SequenceState::~SequenceState()
{
    for (std::size_t rank = 0; rank < programs.size(); ++rank) {
        scalars->runtime->release(static_cast<int>(rank), room,
                                  [array = std::move(programs[rank])]() mutable { array.reset(); });
    }
}

void SequenceState::get_ready()
{
    if (begun != nullptr) {
        throw Error(ErrorCode::usage, "a sequence has a begin_pass() without an end_pass()");
    }
    scalars->recover();
    if (!sent) {
        send_programs();
    }
    scalars->send_new();
    for (const auto& stage : stages) {
        stage->get_ready();
    }
}

void SequenceState::send_programs()
{
    std::vector<kernels::ScalarOp> all;
    for (const auto& stage : stages) {
        stage->collect(all);
    }
    programs.resize(static_cast<std::size_t>(scalars->runtime->devices()));
    scalars->runtime
        ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
            auto& place = programs[static_cast<std::size_t>(worker.rank())];
            place = kernels::DeviceArray<kernels::ScalarOp>(worker.device(), all.size());
            if (!all.empty()) {
                worker.device().upload(worker.stream(), place.data(), all.data(),
                                       all.size() * sizeof(kernels::ScalarOp));
            }
        })
        .get();
    sent = true;
}

std::int64_t SequenceState::waits() const
{
    std::int64_t sum = 0;
    for (const auto& stage : stages) {
        sum += stage->waits();
    }
    return sum;
}

std::int64_t SequenceState::bytes() const
{
    std::int64_t sum = 0;
    for (const auto& stage : stages) {
        sum += stage->bytes();
    }
    return sum;
}

void SequenceState::queue(engine::Worker& worker, engine::Rendezvous& meeting) const
{
    const kernels::ScalarOp* const place = programs[static_cast<std::size_t>(worker.rank())].data();
    for (const auto& stage : stages) {
        stage->queue(worker, meeting, place);
    }
}

}  // namespace detail

namespace {

enum class ValueType : std::uint8_t { none, float32, float64 };

template <class T>
constexpr ValueType value_type = std::is_same_v<T, float> ? ValueType::float32 : ValueType::float64;

bool sums_or_stops(const Statement& statement)
{
    return std::holds_alternative<DotStatement<float>>(statement) ||
           std::holds_alternative<DotStatement<double>>(statement) || std::holds_alternative<StopStatement>(statement);
}

/// Of the vectors in some statements; doubles where there are none.
/// \throws Error(usage) for both
ValueType type_of(const std::vector<Statement>& statements)
{
    ValueType found = ValueType::none;
    const auto meet = [&](ValueType type) {
        if (found != ValueType::none && found != type) {
            throw Error(ErrorCode::usage, "a pass has vectors of floats and of doubles");
        }
        found = type;
    };
    const auto visit = [&]<class T>(const Statement& statement, T) {
        if (std::holds_alternative<UpdateStatement<T>>(statement) ||
            std::holds_alternative<DotStatement<T>>(statement)) {
            meet(value_type<T>);
        }
    };
    for (const Statement& statement : statements) {
        visit(statement, float{});
        visit(statement, double{});
    }
    return found;
}

/// A stage of its own, unless the one before can do it as well.
void add_pass(detail::SequenceState& state, const std::vector<Statement>& statements, bool always, bool splits)
{
    state.sent = false;
    sequence::Stage* const before = state.stages.empty() ? nullptr : state.stages.back().get();
    if (before != nullptr && before->join(statements, always, splits)) {
        return;
    }
    const auto make = [&](auto value) {
        state.stages.push_back(
            std::make_unique<sequence::PassStage<decltype(value)>>(state.scalars, statements, always, before, splits));
    };
    if (type_of(statements) == ValueType::float32) {
        make(float{});
    } else {
        make(double{});
    }
}

}  // namespace

ScalarExpression::ScalarExpression(const Scalar& scalar) : parts{scalar.index()} {}

ScalarExpression::ScalarExpression(Operation operation, const ScalarExpression& a) : parts(a.parts)
{
    parts.emplace_back(operation);
}

ScalarExpression::ScalarExpression(Operation operation, const ScalarExpression& a, const ScalarExpression& b)
    : parts(a.parts)
{
    parts.insert(parts.end(), b.parts.begin(), b.parts.end());
    parts.emplace_back(operation);
}

template <class T>
Vec<T>::Vec(const DistributedVector<T>& vector) : state_(detail::checked(detail::VectorAccess::state(vector)))
{
}

template <class T>
DistributedVector<T> Vec<T>::vector() const
{
    return detail::VectorAccess::handle(state_);
}

Scalars::Scalars(const Runtime& runtime, int most)
    : state_(std::make_shared<detail::ScalarsState>(detail::RuntimeAccess::state(runtime), most, 0))
{
}

Scalar Scalars::make(double value) { return Scalar(state_->make(value)); }

double Scalars::get(const Scalar& scalar) const { return state_->read(scalar.index(), 1).front(); }

void Scalars::set(const Scalar& scalar, double value)
{
    state_->send_new();
    state_->write(scalar.index(), {value});
}

void Scalars::restart()
{
    state_->send_new();
    state_->restart(0.0);
}

namespace {

/// What a device may store at the same time.
double told(const double& place)
{
    double value = 0;
    __atomic_load(&place, &value, __ATOMIC_ACQUIRE);
    return value;
}

}  // namespace

std::int64_t Scalars::iterations() const { return static_cast<std::int64_t>(told(state_->progress().iterations)); }

int Scalars::outcome() const { return static_cast<int>(told(state_->progress().outcome)); }

double Scalars::residual(std::int64_t iteration) const
{
    return told(state_->progress().residual[iteration % kernels::ScalarProgress::kept]);
}

Sequence::Sequence(const Scalars& scalars) : state_(std::make_shared<detail::SequenceState>(scalars.state_)) {}

void Sequence::record_pass(const std::vector<Statement>& statements, bool always)
{
    detail::SequenceState& state = *state_;
    if (state.begun != nullptr && std::any_of(statements.begin(), statements.end(), sums_or_stops)) {
        throw Error(ErrorCode::usage, "a pass between begin_pass() and end_pass() has inner products or stops");
    }
    add_pass(state, statements, always, false);
}

void Sequence::record_begin(const std::vector<Statement>& statements)
{
    detail::SequenceState& state = *state_;
    if (state.begun != nullptr) {
        throw Error(ErrorCode::usage, "a begin_pass() comes before the end_pass() of another");
    }
    add_pass(state, statements, false, true);
    state.begun = state.stages.back().get();
}

void Sequence::end_pass()
{
    detail::SequenceState& state = *state_;
    if (state.begun == nullptr) {
        throw Error(ErrorCode::usage, "an end_pass() without a begin_pass() before");
    }
    state.stages.push_back(std::make_unique<sequence::EndPassStage>(*std::exchange(state.begun, nullptr)));
}

template <class T>
void Sequence::multiply(const DistributedMatrix<T>& a, const Vec<T>& x, const Vec<T>& y, T alpha, T beta)
{
    distributed::require_operands(detail::checked(detail::MatrixAccess::state(a)), false, x.state(), y.state());
    state_->stages.push_back(std::make_unique<sequence::MultiplyStage<T>>(detail::MatrixAccess::state(a), x.state(),
                                                                          y.state(), alpha, beta, false));
}

template <class T>
void Sequence::multiply_transposed(const DistributedMatrix<T>& a, const Vec<T>& x, const Vec<T>& y, T alpha, T beta)
{
    const auto& matrix = detail::checked(detail::MatrixAccess::state(a));
    distributed::prepare_apply(*matrix, true);
    distributed::require_operands(matrix, true, x.state(), y.state());
    state_->stages.push_back(
        std::make_unique<sequence::MultiplyStage<T>>(matrix, x.state(), y.state(), alpha, beta, true));
}

template <class To, class From>
void Sequence::convert(const Vec<To>& to, const Vec<From>& from)
{
    const auto& a = *detail::checked(to.state());
    const auto& b = *detail::checked(from.state());
    if (a.runtime != b.runtime || a.layout != Layout::rows || b.layout != Layout::rows || a.offsets != b.offsets ||
        a.order || b.order) {
        throw Error(ErrorCode::usage,
                    "a vector of floats and one of doubles are not sliced alike, by rows and in their "
                    "matrices' order; distribute both matrices alike");
    }
    state_->stages.push_back(std::make_unique<sequence::ConvertStage<To, From>>(to.state(), from.state()));
}

void Sequence::insert(const Sequence& other)
{
    if (other.state_ == state_ || other.state_->scalars->runtime != state_->scalars->runtime) {
        throw Error(ErrorCode::usage, "a sequence can have another one of its runtime in it, and not itself");
    }
    state_->stages.push_back(std::make_unique<sequence::InsertStage>(other.state_));
}

void Sequence::call(std::function<void(const DeviceCall&)> f, std::int64_t bytes)
{
    state_->stages.push_back(std::make_unique<sequence::CallStage>(state_->scalars, std::move(f), bytes));
}

std::int64_t Sequence::bytes() const { return state_->bytes(); }

std::future<void> Sequence::run_async(std::int64_t times)
{
    return sequence::run_steps(std::make_shared<const std::vector<std::shared_ptr<detail::SequenceState>>>(1, state_),
                               0, times);
}

void Sequence::run(std::int64_t times) { run_async(times).get(); }

#define RMSP_INSTANTIATE(T)                                                                            \
    template class Vec<T>;                                                                             \
    template void Sequence::multiply(const DistributedMatrix<T>&, const Vec<T>&, const Vec<T>&, T, T); \
    template void Sequence::multiply_transposed(const DistributedMatrix<T>&, const Vec<T>&, const Vec<T>&, T, T);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE
template void Sequence::convert(const Vec<float>&, const Vec<double>&);
template void Sequence::convert(const Vec<double>&, const Vec<float>&);

}  // namespace rmsp
