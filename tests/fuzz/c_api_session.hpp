#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rmsp/rmsp.h>

#include "tests/fuzz/c_api_arrays.hpp"
#include "tests/fuzz/c_api_handles.hpp"
#include "tests/fuzz/c_api_model.hpp"

namespace rmsp::fuzz {

/// A runtime, and whether it is there still, for what was made of it.
struct OpenRuntime {
    rmsp_runtime* handle = nullptr;
    std::shared_ptr<bool> alive{};
};

/// The calls of one input. Its members are the functions of the C interface, or a few that belong together; each takes
/// its arguments from the input.
class Session {
public:
    Session(const std::uint8_t* data, std::size_t size);
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    ~Session();
    void run();

private:
    // Statuses that a function may return beside success, usage and out of memory, as bits.
    static constexpr unsigned io = 1U << RMSP_ERROR_IO;
    static constexpr unsigned device = 1U << RMSP_ERROR_DEVICE;
    static constexpr unsigned not_converged = 1U << RMSP_ERROR_NOT_CONVERGED;
    /// Whether a call succeeded; ends the process for a status that it may not return.
    static bool succeeded(rmsp_status status, unsigned also = 0);
    /// Makes a handle by call(place), which is then in the pool; null if it failed. `needs`: there has to be a place.
    template <class Pool, class Model, class Call>
    auto make(Pool& pool, std::shared_ptr<Model> model, const Call& call, unsigned also = 0, bool needs = true);
    /// A text by call(format, place).
    template <class Call>
    void text(const Call& call);

    const OpenRuntime& runtime();
    double scalar();
    /// An array of so many values, or null; `made` has them, without them it is not exact.
    void* array(rmsp_value_type type, std::int64_t size, Vector& made);
    const char* path();
    rmsp_options* options();
    static Matrix contents(const rmsp_host_matrix* host);
    static std::optional<Matrix> downloaded(const rmsp_matrix* matrix);
    void wait_for_all();
    void forget_values_at(const void* values);

    // c_api_general.cpp
    void lists();
    void options_create();
    void options_set();
    void options_text();
    void runtime_create();
    void runtime_destroy();
    void runtime_texts();
    void destroy();
    void host_matrix_create();
    void host_matrix_read();
    void host_matrix_convert();
    void host_matrix_write();
    void host_matrix_contents();
    void vector_file();
    // c_api_matrices.cpp
    void matrix_create();
    void matrix_create_blocks();
    void matrix_create_of_host();
    void matrix_generate();
    void matrix_size();
    void matrix_apply();
    void matrix_apply_vectors();
    void matrix_on_stream();
    void matrix_update_values();
    void matrix_download();
    void matrix_transfer();
    void matrix_diagonal();
    void matrix_measure();
    void matrix_texts();
    void future_wait();
    void vector_create();
    void vector_upload();
    void vector_download();
    void vector_one();
    void vector_two();
    // c_api_solvers.cpp
    void product_create();
    void product_create_resident();
    void product_compute();
    void product_update();
    void product_download();
    void product_to_matrix();
    void solver_create();
    void solver_solve();
    void solver_solve_vectors();
    void result_read();
    void eigen_solve();
    void eigen_read();

    Input in_;
    Arena arena_;
    std::vector<OpenRuntime> runtimes_;
    Options options_;
    HostMatrices hosts_;
    Matrices matrices_;
    Vectors vectors_;
    Products products_;
    Solvers solvers_;
    Results results_;
    Eigens eigens_;
    Futures futures_;
    std::string path_;
    bool wrote_ = false;
};

template <class Pool, class Model, class Call>
auto Session::make(Pool& pool, std::shared_ptr<Model> model, const Call& call, unsigned also, bool needs)
{
    using Handle = decltype(pool.begin()->handle);
    static int nothing = 0;
    const Handle untouched = reinterpret_cast<Handle>(&nothing);
    Handle made = untouched;
    if (in_.seldom()) {
        require(!succeeded(call(static_cast<Handle*>(nullptr)), also) || !needs, "a null place for a handle was taken");
        return Handle{nullptr};
    }
    if (!succeeded(call(&made), also)) {
        require(made == untouched, "a call that failed has written a handle");
        return Handle{nullptr};
    }
    require(made != nullptr && made != untouched, "a call that succeeded gave no handle");
    pool.put(in_, made, std::move(model));
    return made;
}

template <class Call>
void Session::text(const Call& call)
{
    const auto format = static_cast<rmsp_text_format>(in_.seldom() ? in_.byte() : in_.below(2));
    static char nothing = 0;
    char* made = &nothing;
    if (in_.seldom()) {
        require(!succeeded(call(format, static_cast<char**>(nullptr))), "a null place for a text was taken");
        return;
    }
    if (!succeeded(call(format, &made))) {
        require(made == &nothing, "a call that failed has written a text");
        return;
    }
    require(format == RMSP_TEXT || format == RMSP_JSON, "a text of no format");
    require(made != &nothing && made != nullptr && *made != '\0', "an empty text");
    require(format == RMSP_TEXT || *made == '{' || *made == '[', "no JSON");
    rmsp_free(made);
}

}  // namespace rmsp::fuzz
