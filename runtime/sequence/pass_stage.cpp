#include <algorithm>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include <core/value_types.hpp>
#include <rmsp/error.hpp>

#include "runtime/sequence/stage.hpp"

namespace rmsp::sequence {
namespace {

using kernels::ScalarCode;

ScalarCode code_of(ScalarExpression::Operation operation)
{
    using Operation = ScalarExpression::Operation;
    switch (operation) {
        case Operation::add:
            return ScalarCode::add;
        case Operation::subtract:
            return ScalarCode::subtract;
        case Operation::multiply:
            return ScalarCode::multiply;
        case Operation::divide:
            return ScalarCode::divide;
        case Operation::sqrt:
            return ScalarCode::square_root;
        case Operation::hypot:
            return ScalarCode::hypotenuse;
        case Operation::abs:
            return ScalarCode::absolute;
        case Operation::max:
            return ScalarCode::larger;
        case Operation::min:
            return ScalarCode::smaller;
    }
    throw Error(ErrorCode::internal, "an operation on scalars that has no code");
}

bool is_unary(ScalarExpression::Operation operation)
{
    using Operation = ScalarExpression::Operation;
    return operation == Operation::sqrt || operation == Operation::abs;
}

/// Numbers that a program reads before it writes them, or anywhere, and those that it writes.
bool reads(const kernels::ScalarOp& op, std::int16_t number)
{
    const bool reads_dst =
        op.code == ScalarCode::add_product || op.code == ScalarCode::subtract_product || op.code == ScalarCode::select;
    return op.a == number || op.b == number || (reads_dst && op.dst == number);
}
bool writes(const kernels::ScalarOp& op, std::int16_t number)
{
    switch (op.code) {
        case ScalarCode::record:
            return number == kernels::scalar_iterations;
        case ScalarCode::stop_if_less:
        case ScalarCode::stop_unless_more:
        case ScalarCode::stop_if_not_more:
        case ScalarCode::stop_unless_finite:
            return number == kernels::scalar_stopped;
        default:
            return op.dst == number;
    }
}

ScalarCode stop_code(const StopStatement& stop, bool& swapped)
{
    swapped = false;
    switch (stop.condition.kind) {
        case Condition::Kind::less:
            if (!stop.unless) {
                return ScalarCode::stop_if_less;
            }
            swapped = true;  // unless a < b: unless b > a
            return ScalarCode::stop_unless_more;
        case Condition::Kind::more:
            if (stop.unless) {
                return ScalarCode::stop_unless_more;
            }
            swapped = true;
            return ScalarCode::stop_if_less;
        case Condition::Kind::not_more:
            if (!stop.unless) {
                return ScalarCode::stop_if_not_more;
            }
            break;
        case Condition::Kind::finite:
            if (stop.unless) {
                return ScalarCode::stop_unless_finite;
            }
            break;
    }
    throw Error(ErrorCode::usage, "a pass can stop if a < b, a <= b or a > b, and unless a < b, a > b or a is finite");
}

}  // namespace

template <class T>
PassStage<T>::PassStage(std::shared_ptr<ScalarsState> scalars, const std::vector<Statement>& statements, bool always,
                        Stage* before, bool splits)
    : scalars_(std::move(scalars)), always_(always), splits_(splits), before_(before)
{
    add(statements);
    check_size();
    build();
}

template <class T>
const typename PassStage<T>::Vector& PassStage<T>::checked_vector(const Vector& vector)
{
    detail::checked(vector);
    if (vector->runtime != scalars_->runtime) {
        throw Error(ErrorCode::usage, "a pass has a vector of another runtime than the sequence's scalars");
    }
    if (vector->layout != Layout::rows) {
        throw Error(ErrorCode::usage, "a pass has a replicated vector; its vectors are by rows");
    }
    if (vector->offsets[static_cast<std::size_t>(scalars_->devices)] != vector->size) {
        throw Error(ErrorCode::usage,
                    fmt::format("a pass has a vector with entries on other devices than the first {}, "
                                "for which the scalars were made",
                                scalars_->devices));
    }
    if (!content_.vectors.empty()) {
        const VectorState<T>& first = *content_.vectors.front();
        if (first.size != vector->size || first.offsets != vector->offsets) {
            throw Error(ErrorCode::usage,
                        fmt::format("a pass has vectors of {} and of {} entries, or sliced otherwise; vectors of one "
                                    "pass are sliced alike",
                                    first.size, vector->size));
        }
        const auto order_of = [](const VectorState<T>& v) { return v.order ? v.order->matrix.get() : nullptr; };
        if (order_of(first) != order_of(*vector)) {
            throw Error(ErrorCode::usage, "a pass has vectors whose entries are in different orders");
        }
    }
    if (std::find(content_.vectors.begin(), content_.vectors.end(), vector) == content_.vectors.end()) {
        content_.vectors.push_back(vector);
    }
    return vector;
}

template <class T>
int PassStage<T>::made_by(const Vector& vector) const
{
    for (int u = static_cast<int>(content_.updates.size()) - 1; u >= 0; --u) {
        if (content_.updates[static_cast<std::size_t>(u)].out == vector) {
            return u;
        }
    }
    return -1;
}

template <class T>
std::int16_t PassStage<T>::number(const std::variant<double, std::int16_t>& value)
{
    if (const double* const constant = std::get_if<double>(&value)) {
        return scalars_->constant(*constant);
    }
    return std::get<std::int16_t>(value);
}

template <class T>
void PassStage<T>::add_update(const UpdateStatement<T>& statement)
{
    Update update{checked_vector(statement.out), {}};
    for (const auto& term : statement.value.terms) {
        checked_vector(term.vector);
        if (term.times) {
            checked_vector(term.times);
        }
        // Only one factor can be what this pass computes.
        const bool swapped = term.times && made_by(term.times) >= 0;
        if (swapped && made_by(term.vector) >= 0) {
            throw Error(ErrorCode::usage, "a pass multiplies two vectors, entry by entry, that it computes itself");
        }
        const Vector& vector = swapped ? term.times : term.vector;
        update.terms.push_back(
            {vector, swapped ? term.vector : term.times, number(term.scalar), term.sign, made_by(vector)});
    }
    content_.updates.push_back(std::move(update));
}

template <class T>
void PassStage<T>::add_dot(const DotStatement<T>& statement)
{
    const auto& [a, b] = statement.value;
    checked_vector(a);
    checked_vector(b);
    const int a_from = made_by(a);
    const int b_from = made_by(b);
    // What a product leaves is rounded, in parts that depend on its cut.
    const bool as_they_were = before_ != nullptr && a_from < 0 && b_from < 0 && !scalars_->exact;
    content_.dots.push_back(
        {a, b, a_from, b_from, statement.into, as_they_were ? before_->sums_of(a.get(), b.get()) : nullptr});
}

template <class T>
std::int16_t PassStage<T>::compile(const ScalarExpression& expression, std::int16_t into)
{
    std::vector<std::int16_t> stack;
    for (std::size_t i = 0; i < expression.parts.size(); ++i) {
        const auto& part = expression.parts[i];
        if (const double* const constant = std::get_if<double>(&part)) {
            stack.push_back(scalars_->constant(*constant));
        } else if (const std::int16_t* const scalar = std::get_if<std::int16_t>(&part)) {
            stack.push_back(*scalar);
        } else {
            const auto operation = std::get<ScalarExpression::Operation>(part);
            std::int16_t b = kernels::scalar_zero;
            if (!is_unary(operation)) {
                b = stack.back();
                stack.pop_back();
            }
            const std::int16_t a = stack.back();
            stack.pop_back();
            const bool last = i + 1 == expression.parts.size();
            const std::int16_t dst = last && into >= 0 ? into : scalars_->temporary(temporaries_++);
            content_.program.push_back({code_of(operation), dst, a, b});
            stack.push_back(dst);
        }
    }
    if (into >= 0 && stack.back() != into) {
        content_.program.push_back({ScalarCode::copy, into, stack.back(), kernels::scalar_zero});
        return into;
    }
    return stack.back();
}

template <class T>
void PassStage<T>::add(const std::vector<Statement>& statements)
{
    // Updates, then inner products, then scalars, whatever the order they were written in.
    for (const Statement& statement : statements) {
        if (const auto* const update = std::get_if<UpdateStatement<T>>(&statement)) {
            add_update(*update);
        }
    }
    for (const Statement& statement : statements) {
        if (const auto* const dot = std::get_if<DotStatement<T>>(&statement)) {
            add_dot(*dot);
        }
    }
    for (const Statement& statement : statements) {
        temporaries_ = 0;
        if (const auto* const scalar = std::get_if<ScalarStatement>(&statement)) {
            compile(scalar->value, scalar->into);
        } else if (const auto* const stop = std::get_if<StopStatement>(&statement)) {
            bool swapped = false;
            const ScalarCode code = stop_code(*stop, swapped);
            const std::int16_t a = compile(stop->condition.a);
            const std::int16_t b = compile(stop->condition.b);
            content_.program.push_back(
                {code, static_cast<std::int16_t>(stop->outcome), swapped ? b : a, swapped ? a : b});
        } else if (const auto* const step = std::get_if<RecordStatement>(&statement)) {
            content_.program.push_back({ScalarCode::record, 0, compile(step->residual), kernels::scalar_zero});
        }
    }
}

template <class T>
void PassStage<T>::check_size() const
{
    std::size_t terms = 0;
    for (const Update& update : content_.updates) {
        terms += update.terms.size();
    }
    if (content_.updates.size() > kernels::most_pass_updates || terms > kernels::most_pass_terms ||
        content_.dots.size() > kernels::most_pass_dots) {
        throw Error(ErrorCode::usage,
                    fmt::format("a pass of {} updates, {} terms and {} inner products; at most {}, {} and {} fit one",
                                content_.updates.size(), terms, content_.dots.size(), kernels::most_pass_updates,
                                kernels::most_pass_terms, kernels::most_pass_dots));
    }
}

template <class T>
bool PassStage<T>::join(const std::vector<Statement>& statements, bool always, bool splits)
{
    if (always != always_ || splits_) {
        return false;
    }
    const auto written_here = [&](std::int16_t number) {
        return std::any_of(content_.dots.begin(), content_.dots.end(),
                           [&](const Dot& dot) { return dot.into == number; }) ||
               std::any_of(content_.program.begin(), content_.program.end(),
                           [&](const auto& op) { return writes(op, number); });
    };
    // What stops here must keep the next pass from being done.
    if (written_here(kernels::scalar_stopped)) {
        return false;
    }
    for (const Statement& statement : statements) {
        bool joins = true;
        std::visit(
            [&](const auto& s) {
                using S = std::decay_t<decltype(s)>;
                if constexpr (std::is_same_v<S, UpdateStatement<T>>) {
                    for (const auto& term : s.value.terms) {
                        const std::int16_t* const scalar = std::get_if<std::int16_t>(&term.scalar);
                        joins = joins && (scalar == nullptr || !written_here(*scalar));
                    }
                    // An inner product of this pass takes a vector as it is at its end.
                    joins = joins && std::none_of(content_.dots.begin(), content_.dots.end(),
                                                  [&](const Dot& dot) { return dot.a == s.out || dot.b == s.out; });
                    joins = joins && made_by(s.out) < 0;
                } else if constexpr (std::is_same_v<S, DotStatement<T>>) {
                    joins = std::none_of(content_.program.begin(), content_.program.end(),
                                         [&](const auto& op) { return reads(op, s.into) || writes(op, s.into); });
                } else if constexpr (std::is_same_v<S, UpdateStatement<float>> ||
                                     std::is_same_v<S, UpdateStatement<double>> ||
                                     std::is_same_v<S, DotStatement<float>> ||
                                     std::is_same_v<S, DotStatement<double>>) {
                    joins = false;
                }
            },
            statement);
        if (!joins) {
            return false;
        }
    }
    Content before = content_;
    try {
        add(statements);
        check_size();
    } catch (const Error&) {
        // Too much for one pass, or vectors that are not sliced alike: two passes then.
        content_ = std::move(before);
        return false;
    }
    splits_ = splits;
    build();
    return true;
}

template <class T>
void PassStage<T>::build()
{
    const auto devices = static_cast<std::size_t>(scalars_->devices);
    pass_.assign(devices, {});
    begun_.resize(static_cast<std::size_t>(scalars_->runtime->devices()));
    numbers_ = kernels::first_free_scalar;
    for (const kernels::ScalarOp& op : content_.program) {
        numbers_ = std::max({numbers_, op.dst + 1, op.a + 1, op.b + 1});
    }
    for (const Dot& dot : content_.dots) {
        numbers_ = std::max(numbers_, dot.into + 1);
    }
    const auto is_written = [&](std::int16_t number) {
        return std::any_of(content_.program.begin(), content_.program.end(),
                           [&](const kernels::ScalarOp& op) { return writes(op, number); });
    };
    beside_ = content_.dots.empty() && !is_written(kernels::scalar_stopped) &&
              std::none_of(content_.updates.begin(), content_.updates.end(), [&](const Update& update) {
                  return std::any_of(update.terms.begin(), update.terms.end(),
                                     [&](const Term& term) { return is_written(term.scalar); });
              });
    for (std::size_t rank = 0; rank < devices; ++rank) {
        kernels::Pass<T>& pass = pass_[rank];
        const auto slice = [&](const Vector& vector) { return vector->slices[rank]; };
        if (!content_.vectors.empty()) {
            const auto& offsets = content_.vectors.front()->offsets;
            pass.n = offsets[rank + 1] - offsets[rank];
        }
        pass.always = always_;
        int term_count = 0;
        for (const Update& update : content_.updates) {
            kernels::PassUpdate<T>& to = pass.update[pass.updates++];
            to.out = slice(update.out);
            to.first = static_cast<std::int16_t>(term_count);
            for (const Term& term : update.terms) {
                pass.term[term_count++] = {slice(term.vector), term.times ? slice(term.times) : nullptr, term.scalar,
                                           static_cast<std::int8_t>(term.sign), static_cast<std::int8_t>(term.from)};
            }
            to.end = static_cast<std::int16_t>(term_count);
        }
        for (const Dot& dot : content_.dots) {
            pass.dot[pass.dots++] = {slice(dot.a), slice(dot.b), static_cast<std::int8_t>(dot.a_from),
                                     static_cast<std::int8_t>(dot.b_from), dot.into};
        }
    }
}

template <class T>
std::int64_t PassStage<T>::bytes() const
{
    std::vector<const VectorState<T>*> read;
    std::vector<const VectorState<T>*> written;
    const auto add = [](auto& to, const Vector& vector) {
        if (vector && std::find(to.begin(), to.end(), vector.get()) == to.end()) {
            to.push_back(vector.get());
        }
    };
    for (const Update& update : content_.updates) {
        for (const Term& term : update.terms) {
            if (term.from < 0) {
                add(read, term.vector);
            }
            add(read, term.times);
        }
        add(written, update.out);
    }
    for (const Dot& dot : content_.dots) {
        if (dot.sums && dot.sums->leaves()) {
            continue;
        }
        if (dot.a_from < 0) {
            add(read, dot.a);
        }
        if (dot.b_from < 0) {
            add(read, dot.b);
        }
    }
    const auto entries = content_.vectors.empty() ? 0 : content_.vectors.front()->size;
    return entries * static_cast<std::int64_t>((read.size() + written.size()) * sizeof(T));
}

template <class T>
void PassStage<T>::collect(std::vector<kernels::ScalarOp>& all)
{
    first_op_ = all.size();
    all.insert(all.end(), content_.program.begin(), content_.program.end());
}

template <class T>
void PassStage<T>::queue(engine::Worker& worker, engine::Rendezvous& meeting, const kernels::ScalarOp* programs)
{
    const auto rank = static_cast<std::size_t>(std::min(worker.rank(), scalars_->devices - 1));
    kernels::Pass<T>& pass = pass_[rank];
    for (std::size_t d = 0; d < content_.dots.size() && scalars_->takes_part(worker.rank()); ++d) {
        if (const auto& sums = content_.dots[d].sums) {
            pass.dot[d].count = sums->count[rank];
            pass.dot[d].parts = sums->count[rank] > 0 ? sums->places[rank].data() : nullptr;
        }
    }
    kernels::PassPlace& place = begun_[static_cast<std::size_t>(worker.rank())];
    place = scalars_->begin(pass, {programs + first_op_, static_cast<int>(content_.program.size()), numbers_, beside_},
                            splits_, worker, meeting);
    if (!splits_) {
        scalars_->end(pass, place, false, worker, meeting);
    }
}

template <class T>
void PassStage<T>::end(engine::Worker& worker, engine::Rendezvous& meeting)
{
    scalars_->end(pass_[static_cast<std::size_t>(std::min(worker.rank(), scalars_->devices - 1))],
                  begun_[static_cast<std::size_t>(worker.rank())], true, worker, meeting);
}

#define RMSP_INSTANTIATE(T) template class PassStage<T>;
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)
#undef RMSP_INSTANTIATE

}  // namespace rmsp::sequence
