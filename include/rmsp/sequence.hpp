#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <rmsp/error.hpp>
#include <rmsp/export.hpp>
#include <rmsp/runtime.hpp>

/// Iterations that never wait for the host. Numbers such as the alpha of a conjugate gradient iteration live on the
/// devices (Scalar), and what is done with them and with vectors is recorded once in a Sequence and then repeated: each
/// device carries out its part, sums of inner products are added between the devices inside the kernels, and the host
/// only queues. The solvers of <rmsp/solver.hpp> are written so; this is for solvers of one's own:
///
///     Scalars scalars(runtime);
///     Scalar rho = scalars.make(), alpha = scalars.make(), pq = scalars.make();
///     Vec<double> x(x_vector), r(r_vector), p(p_vector), q(q_vector);
///     Sequence step(scalars);
///     step.multiply(matrix, p, q);                             // q = A p
///     step.pass(pq = dot(p, q), alpha = rho / pq);
///     step.pass(x += alpha * p, r -= alpha * q, rho = dot(r, r));
///     step.run(100);
///
/// Operators of Vec and Scalar only describe: nothing happens before the sequence runs. Inner products are summed in
/// double, in an order that depends on sizes and devices alone: the same sequence gives the same bits.
namespace rmsp {

class Scalar;
class Scalars;
class Sequence;
template <class T>
class Vec;

namespace detail {
struct ScalarsState;
struct SequenceState;
struct SequenceAccess;
}  // namespace detail

/// What is computed from scalars: sums, products, quotients, square roots.
class ScalarExpression {
public:
    /// In postfix order.
    enum class Operation : std::uint8_t { add, subtract, multiply, divide, sqrt, hypot, abs, max, min };
    using Part = std::variant<double, std::int16_t, Operation>;  ///< a constant, a scalar's index, an operation

    ScalarExpression(double constant) : parts{constant} {}  // NOLINT(google-explicit-constructor)
    RMSP_API ScalarExpression(const Scalar& scalar);        // NOLINT(google-explicit-constructor)
    RMSP_API ScalarExpression(Operation operation, const ScalarExpression& a);
    RMSP_API ScalarExpression(Operation operation, const ScalarExpression& a, const ScalarExpression& b);

    std::vector<Part> parts;
};

/// a < b, or the like.
struct Condition {
    enum class Kind : std::uint8_t { less, not_more, more, finite };
    Kind kind = Kind::less;
    ScalarExpression a = 0.0;
    ScalarExpression b = 0.0;
};

/// A sum of vectors, each times a scalar and perhaps, entry by entry, another vector.
template <class T>
struct VectorExpression {
    struct Term {
        std::shared_ptr<detail::VectorState<T>> vector;
        std::shared_ptr<detail::VectorState<T>> times;  ///< null: none
        std::variant<double, std::int16_t> scalar = 1.0;
        int sign = 1;
    };
    std::vector<Term> terms;
};
template <class T>
struct DotExpression {
    std::shared_ptr<detail::VectorState<T>> a;
    std::shared_ptr<detail::VectorState<T>> b;
};

// Statements of a pass.
template <class T>
struct UpdateStatement {
    std::shared_ptr<detail::VectorState<T>> out;
    VectorExpression<T> value;
};
template <class T>
struct DotStatement {
    std::int16_t into = 0;
    DotExpression<T> value;
};
struct ScalarStatement {
    std::int16_t into = 0;
    ScalarExpression value = 0.0;
};
struct StopStatement {
    Condition condition;
    bool unless = false;
    int outcome = 1;
};
struct RecordStatement {
    ScalarExpression residual = 0.0;
};
using Statement = std::variant<UpdateStatement<float>, UpdateStatement<double>, DotStatement<float>,
                               DotStatement<double>, ScalarStatement, StopStatement, RecordStatement>;

/// A number that lives on the devices, in double. A handle; made by Scalars::make(). An assignment to it is a
/// statement.
class Scalar {
public:
    Scalar(const Scalar&) = default;
    template <class T>
    [[nodiscard]] DotStatement<T> operator=(const DotExpression<T>& value) const
    {
        return {index_, value};
    }
    [[nodiscard]] ScalarStatement operator=(const ScalarExpression& value) const { return {index_, value}; }
    [[nodiscard]] ScalarStatement operator=(const Scalar& value) const { return {index_, ScalarExpression(value)}; }
    std::int16_t index() const noexcept { return index_; }

private:
    friend class Scalars;
    explicit Scalar(std::int16_t index) : index_(index) {}
    std::int16_t index_;
};

#define RMSP_SCALAR_OPERATION(symbol, name)                                                       \
    inline ScalarExpression operator symbol(const ScalarExpression& a, const ScalarExpression& b) \
    {                                                                                             \
        return {ScalarExpression::Operation::name, a, b};                                         \
    }
RMSP_SCALAR_OPERATION(+, add)
RMSP_SCALAR_OPERATION(-, subtract)
RMSP_SCALAR_OPERATION(*, multiply)
RMSP_SCALAR_OPERATION(/, divide)
#undef RMSP_SCALAR_OPERATION
/// The square root; 0 of what is negative.
inline ScalarExpression sqrt(const ScalarExpression& a) { return {ScalarExpression::Operation::sqrt, a}; }
inline ScalarExpression abs(const ScalarExpression& a) { return {ScalarExpression::Operation::abs, a}; }
inline ScalarExpression hypot(const ScalarExpression& a, const ScalarExpression& b)
{
    return {ScalarExpression::Operation::hypot, a, b};
}
inline ScalarExpression max(const ScalarExpression& a, const ScalarExpression& b)
{
    return {ScalarExpression::Operation::max, a, b};
}
inline ScalarExpression min(const ScalarExpression& a, const ScalarExpression& b)
{
    return {ScalarExpression::Operation::min, a, b};
}
inline Condition operator<(const ScalarExpression& a, const ScalarExpression& b)
{
    return {Condition::Kind::less, a, b};
}
inline Condition operator<=(const ScalarExpression& a, const ScalarExpression& b)
{
    return {Condition::Kind::not_more, a, b};
}
inline Condition operator>(const ScalarExpression& a, const ScalarExpression& b)
{
    return {Condition::Kind::more, a, b};
}
inline Condition is_finite(const ScalarExpression& a) { return {Condition::Kind::finite, a, 0.0}; }

/// Stops the iteration: passes after this one do nothing until Scalars::restart(), and Scalars::outcome() is `outcome`,
/// which is above 0. Only the first stop counts. A condition with NaN is false.
[[nodiscard]] inline StopStatement stop_if(Condition condition, int outcome)
{
    return {std::move(condition), false, outcome};
}
[[nodiscard]] inline StopStatement stop_unless(Condition condition, int outcome)
{
    return {std::move(condition), true, outcome};
}
/// Counts an iteration that ended with that residual norm.
[[nodiscard]] inline RecordStatement record(ScalarExpression residual) { return {std::move(residual)}; }

/// A distributed vector, by rows, in statements. A handle: copies mean the same vector. An assignment to it is a
/// statement.
template <class T>
class Vec {
public:
    /// \throws Error(usage) for an empty handle
    RMSP_API explicit Vec(const DistributedVector<T>& vector);
    Vec(const Vec&) = default;

    [[nodiscard]] UpdateStatement<T> operator=(const VectorExpression<T>& value) const { return {state_, value}; }
    [[nodiscard]] UpdateStatement<T> operator=(const Vec& value) const { return {state_, value.expression()}; }
    [[nodiscard]] UpdateStatement<T> operator+=(const VectorExpression<T>& value) const
    {
        UpdateStatement<T> update{state_, expression()};
        update.value.terms.insert(update.value.terms.end(), value.terms.begin(), value.terms.end());
        return update;
    }
    [[nodiscard]] UpdateStatement<T> operator-=(const VectorExpression<T>& value) const;

    VectorExpression<T> expression() const { return {{{state_, nullptr, 1.0, 1}}}; }
    operator VectorExpression<T>() const { return expression(); }  // NOLINT(google-explicit-constructor)
    const std::shared_ptr<detail::VectorState<T>>& state() const noexcept { return state_; }
    RMSP_API DistributedVector<T> vector() const;

private:
    std::shared_ptr<detail::VectorState<T>> state_;
};

template <class T>
VectorExpression<T> operator-(VectorExpression<T> a)
{
    for (auto& term : a.terms) {
        term.sign = -term.sign;
    }
    return a;
}
template <class T>
VectorExpression<T> operator+(VectorExpression<T> a, const VectorExpression<T>& b)
{
    a.terms.insert(a.terms.end(), b.terms.begin(), b.terms.end());
    return a;
}
template <class T>
VectorExpression<T> operator+(const Vec<T>& a, const VectorExpression<T>& b)
{
    return a.expression() + b;
}
template <class T>
VectorExpression<T> operator+(VectorExpression<T> a, const Vec<T>& b)
{
    return std::move(a) + b.expression();
}
template <class T>
VectorExpression<T> operator+(const Vec<T>& a, const Vec<T>& b)
{
    return a.expression() + b.expression();
}
template <class T>
VectorExpression<T> operator-(const VectorExpression<T>& a, const VectorExpression<T>& b)
{
    return a + (-b);
}
template <class T>
VectorExpression<T> operator-(const Vec<T>& a, const VectorExpression<T>& b)
{
    return a.expression() + (-b);
}
template <class T>
VectorExpression<T> operator-(const VectorExpression<T>& a, const Vec<T>& b)
{
    return a + (-b.expression());
}
template <class T>
VectorExpression<T> operator-(const Vec<T>& a, const Vec<T>& b)
{
    return a.expression() + (-b.expression());
}
template <class T>
VectorExpression<T> operator-(const Vec<T>& a)
{
    return -a.expression();
}
template <class T>
VectorExpression<T> operator*(const Scalar& scalar, const Vec<T>& vector)
{
    return {{{vector.state(), nullptr, scalar.index(), 1}}};
}
template <class T>
VectorExpression<T> operator*(double constant, const Vec<T>& vector)
{
    return {{{vector.state(), nullptr, constant, 1}}};
}
/// Entry by entry.
template <class T>
VectorExpression<T> operator*(const Vec<T>& a, const Vec<T>& b)
{
    return {{{a.state(), b.state(), 1.0, 1}}};
}
/// A sum times a scalar. \throws Error(usage) where a term has a factor already: a term has one
template <class T>
VectorExpression<T> operator*(const Scalar& scalar, VectorExpression<T> sum)
{
    for (auto& term : sum.terms) {
        if (term.scalar != std::variant<double, std::int16_t>(1.0)) {
            throw Error(ErrorCode::usage,
                        "a vector in a pass is multiplied by two factors; compute their product first");
        }
        term.scalar = scalar.index();
    }
    return sum;
}
/// A sum times a constant. \throws Error(usage) where a term is multiplied by a Scalar already: a term has one factor
template <class T>
VectorExpression<T> operator*(double constant, VectorExpression<T> sum)
{
    for (auto& term : sum.terms) {
        double* const before = std::get_if<double>(&term.scalar);
        if (before == nullptr) {
            throw Error(ErrorCode::usage,
                        "a vector in a pass is multiplied by two factors; compute their product first");
        }
        *before *= constant;
    }
    return sum;
}
template <class T>
UpdateStatement<T> Vec<T>::operator-=(const VectorExpression<T>& value) const
{
    return {state_, expression() - value};
}
template <class T>
DotExpression<T> dot(const Vec<T>& a, const Vec<T>& b)
{
    return {a.state(), b.state()};
}

/// The scalars of some sequences, which run one after the other, never two at a time. A handle, whose copies are the
/// same bank.
class Scalars {
public:
    /// Room for `most` scalars, temporary ones and constants included. Blocks.
    /// \throws Error(usage) for fewer than 16 or more than 16,384, Error(out_of_memory)
    RMSP_API explicit Scalars(const Runtime& runtime, int most = 1024);
    /// A scalar that holds `value` when the next sequence runs. \throws Error(usage) if there is no room
    [[nodiscard]] RMSP_API Scalar make(double value = 0);
    /// Its value after all that was queued before; blocks. \throws what a device threw
    [[nodiscard]] RMSP_API double get(const Scalar& scalar) const;
    /// Queued.
    RMSP_API void set(const Scalar& scalar, double value);

    /// Passes do their work again, recorded iterations count from 0. Queued.
    RMSP_API void restart();
    /// What the sequences whose runs have ended left: recorded iterations, the outcome that stopped them (0: none), the
    /// residual norms of the last recorded iterations (as many as are kept, at least 4,000), the oldest first.
    RMSP_API std::int64_t iterations() const;
    RMSP_API int outcome() const;
    RMSP_API double residual(std::int64_t iteration) const;

private:
    friend class Sequence;
    friend struct detail::SequenceAccess;
    explicit Scalars(std::shared_ptr<detail::ScalarsState> state) : state_(std::move(state)) {}
    std::shared_ptr<detail::ScalarsState> state_;
};

/// What a function in a sequence is called with, on the thread of each device: it queues its work on the stream and
/// returns, or does it at once on a host device.
struct DeviceCall {
    int device = 0;  ///< position in Runtime::devices()
    DeviceKind kind = DeviceKind::host;
    void* stream = nullptr;  ///< cudaStream_t, of the current device; null on host devices
    int threads = 1;         ///< of a host device
    /// In the device's memory: not 0 once the iteration has stopped.
    const double* stopped = nullptr;
};

/// Statements that the devices carry out in order. A handle, whose copies are the same sequence. Recording and running
/// are for one thread at a time; several sequences may run at the same time, in turns.
class Sequence {
public:
    RMSP_API explicit Sequence(const Scalars& scalars);

    /// One pass over the vectors: updates in the order given, then inner products of what they gave, then scalars and
    /// stops. Vectors are sliced alike, as those that make_x() and make_y() of a square matrix make; values of type T
    /// are rounded to T as they are stored. At most 3 updates, 12 terms and 8 inner products; one that may be done in
    /// the pass before is. What stops an iteration acts from the next pass on.
    /// \throws Error(usage) for vectors that are not by rows, are of other runtimes, sizes, slices or orders, and for a
    ///         pass that is too large
    template <class... Statements>
    void pass(Statements&&... statements)
    {
        std::vector<Statement> all;
        (add(all, std::forward<Statements>(statements)), ...);
        record_pass(all, false);
    }
    /// pass() that is also done where the iteration has stopped.
    template <class... Statements>
    void pass_always(Statements&&... statements)
    {
        std::vector<Statement> all;
        (add(all, std::forward<Statements>(statements)), ...);
        record_pass(all, true);
    }
    /// A pass in two halves: updates are done, and inner products begin. Their sums over the devices, and over the
    /// processes of a GhostedMatrix, go on beside the products and passes that follow, and are there, with the scalars
    /// and stops of this pass, from end_pass() on. What these are in between is not specified. Where sums cannot go on
    /// beside other work, they are done here. Until end_pass() no pass has inner products or stops.
    /// \throws Error(usage) as pass(), and for a pass that has begun already
    template <class... Statements>
    void begin_pass(Statements&&... statements)
    {
        std::vector<Statement> all;
        (add(all, std::forward<Statements>(statements)), ...);
        record_begin(all);
    }
    /// \throws Error(usage) where none has begun
    RMSP_API void end_pass();
    /// y = alpha A x + beta y. Done whether or not the iteration has stopped. \throws Error(usage) as
    /// DistributedMatrix::apply()
    template <class T>
    RMSP_API void multiply(const DistributedMatrix<T>& a, const Vec<T>& x, const Vec<T>& y, T alpha = 1, T beta = 0);
    /// y = alpha A^T x + beta y. \throws Error(usage) as DistributedMatrix::apply_transposed()
    template <class T>
    RMSP_API void multiply_transposed(const DistributedMatrix<T>& a, const Vec<T>& x, const Vec<T>& y, T alpha = 1,
                                      T beta = 0);
    /// Each entry of `to` is that of `from`, rounded where To is float. Done whether or not the iteration has stopped.
    /// \throws Error(usage) for vectors that are not by rows, in Order::matrix and sliced alike
    template <class To, class From>
    RMSP_API void convert(const Vec<To>& to, const Vec<From>& from);
    /// Carries out what another sequence of the same runtime consists of, also after it has been changed. Its scalars
    /// may be others: what stops one of the iterations leaves the other going on. \throws Error(usage) for itself
    RMSP_API void insert(const Sequence& other);
    /// Calls f on the thread of each device.
    /// \param bytes  that f reads and writes on all devices together, for bytes()
    RMSP_API void call(std::function<void(const DeviceCall&)> f, std::int64_t bytes = 0);

    /// What all devices together read and write in it at least: each product the bytes of its plan
    /// (ShardPlan::apply_bytes), each pass every vector that it reads or writes once. What a product leaves for the
    /// pass behind it is not read again.
    RMSP_API std::int64_t bytes() const;

    /// Queues all of it `times` times. The future is ready when the devices are done; get() rethrows what one threw.
    [[nodiscard]] RMSP_API std::future<void> run_async(std::int64_t times = 1);
    /// Blocks.
    RMSP_API void run(std::int64_t times = 1);

private:
    friend struct detail::SequenceAccess;
    static void add(std::vector<Statement>& all, Statement statement) { all.push_back(std::move(statement)); }
    static void add(std::vector<Statement>& all, const std::vector<Statement>& statements)
    {
        all.insert(all.end(), statements.begin(), statements.end());
    }
    RMSP_API void record_pass(const std::vector<Statement>& statements, bool always);
    RMSP_API void record_begin(const std::vector<Statement>& statements);

    std::shared_ptr<detail::SequenceState> state_;
};

}  // namespace rmsp
