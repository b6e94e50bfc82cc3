#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <rmsp/sequence.hpp>

#include "runtime/matrix/ghosts.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/matrix/vector_state.hpp"
#include "runtime/sequence/scalars_state.hpp"

namespace rmsp::detail {
struct SequenceState;
}  // namespace rmsp::detail

/// What a sequence consists of.
namespace rmsp::sequence {

using detail::MatrixState;
using detail::ScalarsState;
using detail::VectorState;

/// What a product leaves of the inner product of its x and y, for the pass behind it.
struct ProductSums {
    std::vector<kernels::DeviceArray<double>> places;  ///< of each device
    std::vector<std::int64_t> count;                   ///< of the last product, on each device; 0: none
    engine::Tasks room;                                ///< to free the places
    std::shared_ptr<node::RuntimeState> runtime;

    /// Of products whose y has these slices; waits for the devices. \param more  places besides those of the kernels
    template <class T>
    ProductSums(std::shared_ptr<node::RuntimeState> of, const VectorState<T>& y, std::int64_t more);
    ~ProductSums();
    ProductSums(const ProductSums&) = delete;
    ProductSums& operator=(const ProductSums&) = delete;
    /// Whether the last product left them, on every device; false before the first.
    bool leaves() const;
};

/// A step of a sequence that each device takes.
class Stage {
public:
    Stage() = default;
    virtual ~Stage() = default;
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;
    /// Queues one worker's part. Every worker calls it. `programs`: that of all passes, in the device's memory.
    virtual void queue(engine::Worker& worker, engine::Rendezvous& meeting, const kernels::ScalarOp* programs) = 0;
    /// Queues one worker's part of what a pass that has begun has left to do.
    virtual void end(engine::Worker& /*worker*/, engine::Rendezvous& /*meeting*/) {}
    /// Called before its sequence is queued, on the thread that queues it.
    virtual void get_ready() {}
    /// Adds this one to the pass before it, if both can be one; which then splits, if this one is to.
    virtual bool join(const std::vector<Statement>& /*statements*/, bool /*always*/, bool /*splits*/) { return false; }
    /// Where it leaves sums of the products of those vectors' entries; null: it cannot.
    virtual std::shared_ptr<ProductSums> sums_of(const void* /*a*/, const void* /*b*/) { return nullptr; }
    /// How often a device's kernels may wait for those of others in it, at most (see transport::most_waits).
    virtual std::int64_t waits() const { return 0; }
    /// What all devices together read and write in it at least: each entry once.
    virtual std::int64_t bytes() const { return 0; }
    /// Its program goes to the end of `all`.
    virtual void collect(std::vector<kernels::ScalarOp>& /*all*/) {}
};

/// A pass over vectors of one type; the one place where statements become what kernels do.
template <class T>
class PassStage final : public Stage {
public:
    /// \throws Error(usage) for statements that are not one pass
    /// \param before  the step before it, or null
    /// \param splits  an EndPassStage comes behind
    PassStage(std::shared_ptr<ScalarsState> scalars, const std::vector<Statement>& statements, bool always,
              Stage* before, bool splits = false);

    void queue(engine::Worker& worker, engine::Rendezvous& meeting, const kernels::ScalarOp* programs) override;
    void end(engine::Worker& worker, engine::Rendezvous& meeting) override;
    bool join(const std::vector<Statement>& statements, bool always, bool splits) override;
    std::int64_t waits() const override { return 1; }
    std::int64_t bytes() const override;
    void collect(std::vector<kernels::ScalarOp>& all) override;

private:
    using Vector = std::shared_ptr<VectorState<T>>;
    struct Term {
        Vector vector;
        Vector times;
        std::int16_t scalar;
        int sign;
        int from;
    };
    struct Update {
        Vector out;
        std::vector<Term> terms;
    };
    struct Dot {
        Vector a;
        Vector b;
        int a_from;
        int b_from;
        std::int16_t into;
        std::shared_ptr<ProductSums> sums;  ///< what the product before leaves of it, if it does
    };

    void add(const std::vector<Statement>& statements);
    void add_update(const UpdateStatement<T>& statement);
    void add_dot(const DotStatement<T>& statement);
    const Vector& checked_vector(const Vector& vector);
    /// The update of this pass whose result is `vector`; -1: none.
    int made_by(const Vector& vector) const;
    /// Appends what computes an expression and returns the number that holds it; `into`: that one, if it is not -1.
    std::int16_t compile(const ScalarExpression& expression, std::int16_t into = -1);
    std::int16_t number(const std::variant<double, std::int16_t>& value);
    void check_size() const;
    /// What each device's kernel gets.
    void build();

    struct Content {
        std::vector<Update> updates;
        std::vector<Dot> dots;
        std::vector<kernels::ScalarOp> program;
        std::vector<Vector> vectors;  ///< all of them
    };

    std::shared_ptr<ScalarsState> scalars_;
    bool always_;
    bool splits_;
    Stage* before_;
    Content content_;
    int numbers_ = 0;                        ///< of the bank, the first ones, that the program has to do with
    bool beside_ = false;                    ///< kernels::PassPlace::beside
    std::vector<kernels::Pass<T>> pass_;     ///< of each device
    std::vector<kernels::PassPlace> begun_;  ///< of each worker, between queue() and end()
    std::size_t first_op_ = 0;
    std::size_t temporaries_ = 0;  ///< that the statement which is compiled has
};

/// The end of a pass that has begun before.
class EndPassStage final : public Stage {
public:
    explicit EndPassStage(Stage& begun) : begun_(begun) {}
    void queue(engine::Worker& worker, engine::Rendezvous& meeting, const kernels::ScalarOp* /*programs*/) override
    {
        begun_.end(worker, meeting);
    }

private:
    Stage& begun_;  ///< of the same sequence
};

/// y = alpha A x + beta y, or with A^T.
template <class T>
class MultiplyStage final : public Stage {
public:
    MultiplyStage(std::shared_ptr<MatrixState<T>> matrix, std::shared_ptr<VectorState<T>> x,
                  std::shared_ptr<VectorState<T>> y, T alpha, T beta, bool of_transpose)
        : matrix_(std::move(matrix)),
          x_(std::move(x)),
          y_(std::move(y)),
          alpha_(alpha),
          beta_(beta),
          of_transpose_(of_transpose)
    {
    }
    void queue(engine::Worker& worker, engine::Rendezvous& meeting, const kernels::ScalarOp* programs) override;
    std::shared_ptr<ProductSums> sums_of(const void* a, const void* b) override;
    std::int64_t waits() const override { return distributed::ghost_messages; }
    std::int64_t bytes() const override;

private:
    std::shared_ptr<ProductSums> sums_;  ///< null: nobody asks for them
    std::shared_ptr<MatrixState<T>> matrix_;
    std::shared_ptr<VectorState<T>> x_;
    std::shared_ptr<VectorState<T>> y_;
    T alpha_;
    T beta_;
    bool of_transpose_;
};

/// to = from, of other types.
template <class To, class From>
class ConvertStage final : public Stage {
public:
    ConvertStage(std::shared_ptr<VectorState<To>> to, std::shared_ptr<VectorState<From>> from)
        : to_(std::move(to)), from_(std::move(from))
    {
    }
    void queue(engine::Worker& worker, engine::Rendezvous& meeting, const kernels::ScalarOp* programs) override;
    std::int64_t bytes() const override { return from_->size * static_cast<std::int64_t>(sizeof(To) + sizeof(From)); }

private:
    std::shared_ptr<VectorState<To>> to_;
    std::shared_ptr<VectorState<From>> from_;
};

/// Another sequence.
class InsertStage final : public Stage {
public:
    explicit InsertStage(std::shared_ptr<detail::SequenceState> other) : other_(std::move(other)) {}
    void get_ready() override;
    std::int64_t waits() const override;
    std::int64_t bytes() const override;
    void queue(engine::Worker& worker, engine::Rendezvous& meeting, const kernels::ScalarOp* programs) override;

private:
    std::shared_ptr<detail::SequenceState> other_;
};

/// A caller's function.
class CallStage final : public Stage {
public:
    CallStage(std::shared_ptr<ScalarsState> scalars, std::function<void(const DeviceCall&)> f, std::int64_t bytes)
        : scalars_(std::move(scalars)), f_(std::move(f)), bytes_(bytes)
    {
    }
    void queue(engine::Worker& worker, engine::Rendezvous& meeting, const kernels::ScalarOp* programs) override;
    std::int64_t bytes() const override { return bytes_; }

private:
    std::shared_ptr<ScalarsState> scalars_;
    std::function<void(const DeviceCall&)> f_;
    std::int64_t bytes_;
};

}  // namespace rmsp::sequence
