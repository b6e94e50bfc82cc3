#include <cstring>

#include "tests/fuzz/c_api_session.hpp"

namespace rmsp::fuzz {
namespace {

bool is_streamed(const rmsp_options* options)
{
    char* mode = nullptr;
    if (options == nullptr || rmsp_options_get(options, "run.mode", &mode) != RMSP_SUCCESS) {
        return false;
    }
    const bool streamed = std::strstr(mode, "streamed") != nullptr;
    rmsp_free(mode);
    return streamed;
}

bool is_alive(const std::shared_ptr<bool>& alive) { return alive != nullptr && *alive; }

}  // namespace

void Session::matrix_create()
{
    const OpenRuntime on = runtime();
    rmsp_options* const with = in_.below(2) == 0 ? nullptr : options();
    const auto format = static_cast<rmsp_format>(in_.below(3));
    const Arrays a = arrays_of(in_, arena_, format);
    const auto create = format == RMSP_CSR   ? rmsp_matrix_create_csr
                        : format == RMSP_CSC ? rmsp_matrix_create_csc
                                             : rmsp_matrix_create_coo;
    const auto model = std::make_shared<Matrix>(a.model);
    model->alive = on.alive;
    model->values = is_streamed(with) ? a.values : nullptr;
    make(matrices_, model, [&](rmsp_matrix** place) {
        const rmsp_status status = create(on.handle, a.rows, a.cols, a.nnz, a.first, a.second, a.values, a.first_type,
                                          a.second_type, a.base, a.type, with, place);
        require(status != RMSP_SUCCESS || a.model.valid, "a bad matrix was taken");
        require(status == RMSP_SUCCESS || on.handle == nullptr || place == nullptr || with != nullptr ||
                    !a.model.valid || !is_small(a.model) || format == RMSP_COO || runtimes_.size() > 2,
                "a good matrix was refused");
        return status;
    });
}

void Session::matrix_create_blocks()
{
    static constexpr std::int64_t wild[] = {-1, 0, INT64_MAX, INT64_MIN, 1LL << 62, 1LL << 32, (1LL << 31) - 1};
    const OpenRuntime on = runtime();
    rmsp_options* const with = options();
    std::int64_t rows = in_.below(4);
    std::int64_t cols = in_.below(4);
    std::int64_t height = 1 + in_.below(3);
    std::int64_t width = 1 + in_.below(3);
    const bool by_column = in_.below(2) != 0;
    const int base = static_cast<int>(in_.below(2));
    const auto type = static_cast<rmsp_value_type>(in_.below(2));
    const auto model =
        std::make_shared<Matrix>(Matrix{.type = type, .rows = rows * height, .cols = cols * width, .alive = on.alive});
    const std::vector<Entry> blocks = entries_of(in_, RMSP_CSR, rows, cols, model->exact);
    Numbers numbers(in_);
    model->exact = numbers.are_exact();
    std::vector<std::int64_t> first(static_cast<std::size_t>(rows) + 1, base);
    std::vector<std::int64_t> second;
    std::vector<double> values;
    for (const Entry& block : blocks) {
        second.push_back(block.col + base);
        for (auto i = static_cast<std::size_t>(block.row) + 1; i < first.size(); ++i) {
            ++first[i];
        }
        for (std::int64_t k = 0; k < height * width; ++k) {
            values.push_back(numbers.value());
            const std::int64_t row = by_column ? k % height : k / width;
            const std::int64_t col = by_column ? k / height : k % width;
            model->entries.push_back({block.row * height + row, block.col * width + col, values.back()});
        }
    }
    auto count = static_cast<std::int64_t>(blocks.size());
    bool good = true;
    const void* const pointers = arena_.indices(RMSP_INT64, first);
    if (in_.seldom()) {
        // Of no blocks at all, of which any size has its arrays.
        good = count == 0 && rows == 0;
        std::int64_t* const sizes[] = {&cols, &height, &width};
        if (good) {
            *in_.one_of(sizes) = possible(in_.one_of(wild));
        } else {
            count = in_.seldom() ? -1 : count + 1;
            values.resize(values.size() + static_cast<std::size_t>(height * width));
            second.push_back(0);
        }
        model->exact = false;
    }
    rmsp_matrix* const made = make(matrices_, model, [&](rmsp_matrix** place) {
        return rmsp_matrix_create_bsr(on.handle, rows, cols, count, height, width, by_column ? 1 : 0, pointers,
                                      arena_.indices(RMSP_INT32, second), arena_.values(type, values), RMSP_INT64,
                                      RMSP_INT32, base, type, with, place);
    });
    require(made == nullptr || good, "a bad matrix of blocks was taken");
    if (made != nullptr) {
        rmsp_matrix_size(made, &model->rows, &model->cols, nullptr);
    }
}

void Session::matrix_create_of_host()
{
    const OpenRuntime on = runtime();
    const auto [host, of] = hosts_.pick(in_);
    rmsp_options* const with = options();
    const auto model = std::make_shared<Matrix>(of != nullptr ? *of : Matrix{});
    model->alive = on.alive;
    model->values = is_streamed(with) ? model->values : nullptr;
    const rmsp_matrix* const made =
        make(matrices_, model, [&](rmsp_matrix** place) { return rmsp_matrix_create(on.handle, host, with, place); });
    require(made == nullptr || model->valid, "a bad matrix was taken");
}

void Session::matrix_size()
{
    const auto [matrix, a] = matrices_.pick(in_);
    std::int64_t rows = -1;
    std::int64_t cols = -1;
    std::int64_t nnz = -1;
    rmsp_value_type type{};
    const bool told = succeeded(rmsp_matrix_size(matrix, &rows, in_.seldom() ? nullptr : &cols, &nnz));
    require(!told || (rows == a->rows && (cols == a->cols || cols == -1)), "a matrix of another size");
    require(!told || !a->exact || nnz == static_cast<std::int64_t>(a->entries.size()), "another number of entries");
    require(!succeeded(rmsp_matrix_value_type(matrix, &type)) || type == a->type, "another type of values");
    succeeded(rmsp_matrix_value_type(matrix, nullptr));
}

void Session::matrix_apply()
{
    const auto [matrix, model] = matrices_.pick(in_);
    const Matrix none;
    const Matrix& a = model != nullptr ? *model : none;
    const unsigned kind = in_.below(4);
    const bool transposed = kind == 1;
    const double alpha = scalar();
    const double beta = scalar();
    const std::int64_t x_size = transposed ? a.rows : a.cols;
    const std::int64_t y_size = transposed ? a.cols : a.rows;
    Vector from;
    Vector to;
    const void* const x = array(a.type, x_size, from);
    void* const y = array(a.type, y_size, to);
    const bool given = (x != nullptr || x_size == 0) && (y != nullptr || y_size == 0);
    const auto expected = given ? product(a, transposed, alpha, from, beta, to) : std::nullopt;
    if (kind == 2) {
        const auto model_of_future =
            std::make_shared<Awaited>(Awaited{y, a.type, static_cast<std::size_t>(y_size), expected});
        const rmsp_future* const made = make(futures_, model_of_future, [&, of = matrix](rmsp_future** place) {
            return rmsp_matrix_apply_async(of, alpha, x, beta, y, place);
        });
        require(made == nullptr || (given && is_alive(a.alive)), "a product that cannot be was begun");
        return;
    }
    const bool done = succeeded(transposed ? rmsp_matrix_apply_transposed(matrix, alpha, x, beta, y)
                                           : rmsp_matrix_apply(matrix, alpha, x, beta, y));
    require(!done || (given && is_alive(a.alive)), "a product that cannot be succeeded");
    require(
        done || transposed || !given || !is_alive(a.alive) || a.values != nullptr || runtimes_.size() > 2 || !a.exact,
        "a product failed");
    if (done) {
        require_same(read(y, a.type, static_cast<std::size_t>(y_size)), expected, "a wrong product");
    }
}

void Session::matrix_apply_vectors()
{
    const auto [matrix, model] = matrices_.pick(in_);
    const auto [x, from] = vectors_.pick(in_);
    const auto [y, to] = vectors_.pick(in_);
    const unsigned kind = in_.below(4);
    const bool transposed = kind == 1;
    const double alpha = scalar();
    const double beta = scalar();
    bool done = false;
    if (kind == 2) {
        const rmsp_future* const made =
            make(futures_, std::make_shared<Awaited>(), [&, of = matrix, a = x, b = y](rmsp_future** place) {
                return rmsp_matrix_apply_vectors_async(of, alpha, a, beta, b, place);
            });
        done = made != nullptr;
    } else {
        done = succeeded(transposed ? rmsp_matrix_apply_transposed_vectors(matrix, alpha, x, beta, y)
                                    : rmsp_matrix_apply_vectors(matrix, alpha, x, beta, y));
    }
    if (!done) {
        return;
    }
    require(matrix != nullptr && x != nullptr && y != nullptr && x != y, "a product without vectors");
    const Matrix& a = *model;
    require(a.type == from->type && a.type == to->type &&
                from->entries.size() == static_cast<std::size_t>(transposed ? a.rows : a.cols) &&
                to->entries.size() == static_cast<std::size_t>(transposed ? a.cols : a.rows),
            "vectors that do not fit were multiplied");
    const auto expected = product(a, transposed, alpha, *from, beta, *to);
    to->set(expected);
}

void Session::matrix_on_stream()
{
    const auto [matrix, model] = matrices_.pick(in_);
    const Matrix none;
    const Matrix& a = model != nullptr ? *model : none;
    Vector from;
    Vector to;
    const bool transposed = in_.below(2) == 0;
    const std::int64_t most = std::max(a.rows, a.cols);
    const void* const x = array(a.type, most, from);
    void* const y = array(a.type, most, to);
    rmsp_status status = RMSP_ERROR_USAGE;
    switch (in_.below(3)) {
        case 0:
            status = rmsp_matrix_update_values_on_stream(
                matrix, arena_.values(a.type, std::vector<double>(a.entries.size())), nullptr);
            break;
        case 1:
            status = transposed ? rmsp_matrix_apply_transposed_on_stream(matrix, 1, x, 0, y, nullptr)
                                : rmsp_matrix_apply_on_stream(matrix, 1, x, 0, y, nullptr);
            break;
        default: {
            rmsp_solver* const solver = solvers_.pick(in_).handle;
            status = rmsp_solver_solve_on_stream(solver, nullptr, nullptr, nullptr, nullptr);
        }
    }
    require(!succeeded(status) || (model != nullptr && a.entries.empty()), "host memory was taken for a GPU's");
}

void Session::matrix_update_values()
{
    const auto [matrix, a] = matrices_.pick(in_);
    std::int64_t nnz = 0;
    if (!succeeded(rmsp_matrix_size(matrix, nullptr, nullptr, &nnz))) {
        succeeded(rmsp_matrix_update_values(matrix, nullptr));
        return;
    }
    Vector made;
    const void* values = array(a->type, nnz, made);
    const bool in_place = a->values != nullptr && values != nullptr && !in_.seldom();
    if (in_place) {
        wait_for_all();
        forget_values_at(a->values);
        write(const_cast<void*>(a->values), a->type, made.entries);
        values = a->values;
    }
    const bool done = succeeded(rmsp_matrix_update_values(matrix, values));
    require(!done || values != nullptr || nnz == 0, "values from nowhere");
    require(!done || in_place || a->values == nullptr || nnz == 0, "a streamed matrix took another array");
    if (!done) {
        return;
    }
    a->exact = made.exact && a->in_order && a->entries.size() == made.entries.size();
    for (std::size_t i = 0; a->exact && i < made.entries.size(); ++i) {
        a->entries[i].value = made.entries[i];
    }
}

void Session::matrix_download()
{
    const auto [matrix, a] = matrices_.pick(in_);
    const auto model = std::make_shared<Matrix>();
    rmsp_host_matrix* const made =
        make(hosts_, model, [of = matrix](rmsp_host_matrix** place) { return rmsp_matrix_download(of, place); });
    if (made != nullptr) {
        *model = contents(made);
        require_same(*model, *a, "a matrix is downloaded as another one");
        model->exact = a->exact;
    }
}

void Session::matrix_transfer()
{
    const auto [matrix, a] = matrices_.pick(in_);
    const OpenRuntime on = runtime();
    rmsp_options* const with = options();
    const auto model = std::make_shared<Matrix>();
    rmsp_matrix* const made = make(matrices_, model, [&, of = matrix](rmsp_matrix** place) {
        return rmsp_matrix_transfer(of, on.handle, with, place);
    });
    if (made == nullptr) {
        return;
    }
    // `a` stays here where its handle was replaced by the new one.
    require(!is_streamed(with) && is_alive(a->alive), "a transfer that cannot be");
    const auto now = downloaded(made);
    *model = now ? *now : *a;
    model->alive = on.alive;
    model->exact = now && a->exact;
    require_same(*model, *a, "a matrix is transferred as another one");
}

void Session::matrix_diagonal()
{
    const auto [matrix, a] = matrices_.pick(in_);
    const auto model = std::make_shared<Vector>();
    const rmsp_vector* const made =
        make(vectors_, model, [of = matrix](rmsp_vector** place) { return rmsp_matrix_diagonal(of, place); });
    if (made == nullptr) {
        return;
    }
    require(a->rows == a->cols, "a diagonal of what is not square");
    model->type = a->type;
    model->alive = a->alive;
    model->entries.resize(static_cast<std::size_t>(a->rows));
    std::vector<double> diagonal(model->entries.size());
    for (const Entry& entry : a->entries) {
        if (entry.row == entry.col) {
            diagonal[static_cast<std::size_t>(entry.row)] += entry.value;
        }
    }
    model->set(a->exact ? std::optional(diagonal) : std::nullopt);
}

void Session::matrix_measure()
{
    const auto [matrix, model] = matrices_.pick(in_);
    rmsp_options* const with = options();
    const Matrix none;
    const Matrix& a = model != nullptr ? *model : none;
    Vector from;
    Vector to;
    const void* const x = array(a.type, a.cols, from);
    void* const y = array(a.type, a.rows, to);
    const bool done = with != nullptr && succeeded(rmsp_matrix_measure(matrix, with, x, y));
    require(!done || x != nullptr || a.cols == 0, "a measurement without x");
}

void Session::matrix_texts()
{
    const auto [matrix, a] = matrices_.pick(in_);
    const auto function = in_.below(2) == 0 ? rmsp_matrix_plan : rmsp_matrix_report;
    text([&, of = matrix](rmsp_text_format format, char** place) { return function(of, format, place); });
}

void Session::future_wait()
{
    const auto [future, of] = futures_.pick(in_);
    if (!succeeded(rmsp_future_wait(future))) {
        for (auto& one : vectors_) {
            if (one.model != nullptr) {
                one.model->exact = false;
            }
        }
    } else if (of->y != nullptr) {
        require_same(read(of->y, of->type, of->size), of->expected, "a wrong product");
    }
}

void Session::vector_create()
{
    const auto [matrix, a] = matrices_.pick(in_);
    const bool is_x = in_.below(2) == 0;
    const auto layout = static_cast<rmsp_layout>(in_.seldom() ? in_.byte() : in_.below(2));
    const auto order = static_cast<rmsp_order>(in_.seldom() ? in_.byte() : in_.below(2));
    const auto model = std::make_shared<Vector>();
    rmsp_vector* const made = make(vectors_, model, [&, of = matrix](rmsp_vector** place) {
        return is_x ? rmsp_vector_create_x(of, layout, order, place) : rmsp_vector_create_y(of, order, place);
    });
    if (made == nullptr) {
        return;
    }
    std::int64_t size = -1;
    require(succeeded(rmsp_vector_size(made, &size)) && size == (is_x ? a->cols : a->rows) && size <= most_entries &&
                succeeded(rmsp_vector_value_type(made, &model->type)) && model->type == a->type,
            "a vector of another size or type");
    model->entries.resize(static_cast<std::size_t>(size));
    model->alive = a->alive;
    succeeded(rmsp_vector_size(made, nullptr));
}

}  // namespace rmsp::fuzz
