#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/fuzz/c_api_model.hpp"

/// The handles that an input of fuzz_c_api has, with what they have to be.
namespace rmsp::fuzz {

/// A handle and its model; both null for a null handle.
template <class Handle, class Model>
struct Held {
    Handle* handle = nullptr;
    std::shared_ptr<Model> model{};
};

/// Some handles of a kind.
template <class Handle, class Model, void (*destroy)(Handle*)>
class Pool {
public:
    using One = Held<Handle, Model>;

    Pool() = default;
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    ~Pool()
    {
        for (One& one : handles_) {
            destroy(one.handle);
        }
    }

    /// One that there is, null if there is none, and sometimes all the same.
    const One& pick(Input& in) const
    {
        static const One none;
        const unsigned byte = in.byte();
        for (std::size_t i = 0; byte < 240 && i < handles_.size(); ++i) {
            const One& one = handles_[(byte + i) % handles_.size()];
            if (one.handle != nullptr) {
                return one;
            }
        }
        return none;
    }
    void drop(Input& in)
    {
        One& one = handles_[in.below(handles_.size())];
        destroy(one.handle);
        one = {};
    }
    /// Puts a new handle in the place of another one.
    void put(Input& in, Handle* handle, std::shared_ptr<Model> model)
    {
        One& one = handles_[in.below(handles_.size())];
        destroy(one.handle);
        one = {handle, std::move(model)};
    }
    auto begin() { return handles_.begin(); }
    auto end() { return handles_.end(); }

private:
    std::array<One, 4> handles_{};
};

struct Nothing {};

/// A product that is on its way.
struct Awaited {
    const void* y = nullptr;  ///< where it goes; null: to a vector
    rmsp_value_type type = RMSP_DOUBLE;
    std::size_t size = 0;
    std::optional<std::vector<double>> expected{};
};

struct SparseProduct {
    std::shared_ptr<Matrix> a;
    std::shared_ptr<Matrix> b;
    bool resident = false;      ///< takes the values that a and b have
    bool exact = true;          ///< as far as is known here
    std::optional<Matrix> c{};  ///< once computed
    std::shared_ptr<bool> alive{};
};

struct Solver {
    std::shared_ptr<Matrix> a;
};

using Options = Pool<rmsp_options, Nothing, rmsp_options_destroy>;
using HostMatrices = Pool<rmsp_host_matrix, Matrix, rmsp_host_matrix_destroy>;
using Matrices = Pool<rmsp_matrix, Matrix, rmsp_matrix_destroy>;
using Vectors = Pool<rmsp_vector, Vector, rmsp_vector_destroy>;
using Futures = Pool<rmsp_future, Awaited, rmsp_future_destroy>;
using Products = Pool<rmsp_product, SparseProduct, rmsp_product_destroy>;
using Solvers = Pool<rmsp_solver, Solver, rmsp_solver_destroy>;
using Results = Pool<rmsp_result, Nothing, rmsp_result_destroy>;
using Eigens = Pool<rmsp_eigen, Matrix, rmsp_eigen_destroy>;

}  // namespace rmsp::fuzz
