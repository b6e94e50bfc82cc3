#include <iterator>

#include "tests/fuzz/c_api_session.hpp"

namespace rmsp::fuzz {
namespace {

constexpr const char* descriptions[] = {"stencil7 2 2 2",
                                        "stencil7 3 3 2",
                                        "stencil27 2 2 3",
                                        "banded 6 1",
                                        "banded 9 2",
                                        "rmat 3 2",
                                        "random 4 5 2",
                                        "random 6 6 3",
                                        "powerlaw 6 2 2",
                                        "elasticity 2 2 2",
                                        "banded 0 0",
                                        "random 0 0 0",
                                        "random 3 0 0",
                                        "stencil7 2 2",
                                        "stencil7 -1 2 2",
                                        "",
                                        "x y z",
                                        "stencil7 9999999 9999999 9999999",
                                        "banded 4611686018427387904 1",
                                        "rmat 62 9"};

/// One of them; none that asks for memory in vain where that may not be.
const char* description(Input& in)
{
    constexpr std::size_t in_vain = 3;
    return in.seldom() ? nullptr : descriptions[in.below(std::size(descriptions) - (sanitized ? in_vain : 0))];
}

std::int64_t index_at(const void* indices, rmsp_index_type type, std::size_t i)
{
    return type == RMSP_INT32 ? static_cast<const std::int32_t*>(indices)[i]
                              : static_cast<const std::int64_t*>(indices)[i];
}

}  // namespace

/// A host matrix as its arrays have it.
Matrix Session::contents(const rmsp_host_matrix* host)
{
    Matrix out;
    rmsp_format format{};
    std::int64_t nnz = -1;
    const void* first = nullptr;
    const void* second = nullptr;
    const void* values = nullptr;
    rmsp_index_type first_type{};
    rmsp_index_type second_type{};
    require(succeeded(rmsp_host_matrix_size(host, &out.rows, &out.cols, &nnz)) &&
                succeeded(rmsp_host_matrix_type(host, &format, &out.type)) &&
                succeeded(rmsp_host_matrix_arrays(host, &first, &first_type, &second, &second_type, &values)),
            "a host matrix does not tell what it is");
    std::size_t line = 0;
    for (std::size_t k = 0; k < static_cast<std::size_t>(nnz); ++k) {
        while (format != RMSP_COO && index_at(first, first_type, line + 1) <= static_cast<std::int64_t>(k)) {
            ++line;
        }
        const std::int64_t along =
            format == RMSP_COO ? index_at(first, first_type, k) : static_cast<std::int64_t>(line);
        const std::int64_t across = index_at(second, second_type, k);
        const double value = out.type == RMSP_FLOAT ? static_cast<double>(static_cast<const float*>(values)[k])
                                                    : static_cast<const double*>(values)[k];
        out.entries.push_back({format == RMSP_CSC ? across : along, format == RMSP_CSC ? along : across, value});
        require(out.entries.back().row < out.rows && out.entries.back().col < out.cols, "an entry outside its matrix");
    }
    return out;
}

/// What the devices hold; none if they do not tell, as where memory is short, or the runtime gone.
std::optional<Matrix> Session::downloaded(const rmsp_matrix* matrix)
{
    rmsp_host_matrix* host = nullptr;
    if (!succeeded(rmsp_matrix_download(matrix, &host))) {
        return {};
    }
    Matrix out = contents(host);
    rmsp_host_matrix_destroy(host);
    return out;
}

void Session::host_matrix_create()
{
    const auto format = static_cast<rmsp_format>(in_.below(3));
    const Arrays a = arrays_of(in_, arena_, format);
    const auto create = format == RMSP_CSR   ? rmsp_host_matrix_create_csr
                        : format == RMSP_CSC ? rmsp_host_matrix_create_csc
                                             : rmsp_host_matrix_create_coo;
    const auto model = std::make_shared<Matrix>(a.model);
    model->in_order = true;
    make(hosts_, model, [&](rmsp_host_matrix** place) {
        const rmsp_status status = create(a.rows, a.cols, a.nnz, a.first, a.second, a.values, a.first_type,
                                          a.second_type, a.base, a.type, place);
        require(status == RMSP_SUCCESS || place == nullptr || !a.model.valid || !is_small(a.model),
                "a view of good arrays was refused");
        return status;
    });
}

void Session::host_matrix_read()
{
    const char* const from = path();
    rmsp_options* const with = options();
    const bool generate = in_.below(2) == 0;
    const char* const text_of_it = description(in_);
    const auto model = std::make_shared<Matrix>();
    rmsp_host_matrix* const made = make(
        hosts_, model,
        [&](rmsp_host_matrix** place) {
            return generate ? rmsp_host_matrix_generate(text_of_it, with, place)
                            : rmsp_host_matrix_read(from, with, place);
        },
        generate ? 0U : io);
    if (made != nullptr) {
        *model = contents(made);
        model->exact = entries_are_exact(*model);
    }
}

void Session::host_matrix_convert()
{
    const auto [from, model] = hosts_.pick(in_);
    const auto format = static_cast<rmsp_format>(in_.seldom() ? in_.byte() : in_.below(3));
    const auto converted = std::make_shared<Matrix>();
    rmsp_host_matrix* const made = make(
        hosts_, converted, [&](rmsp_host_matrix** place) { return rmsp_host_matrix_convert(from, format, place); });
    if (made != nullptr) {
        require(from != nullptr && model->valid, "a bad matrix was converted");
        *converted = contents(made);
        require_same(*converted, *model, "a converted matrix has other entries");
        converted->exact = model->exact;
    }
}

void Session::host_matrix_write()
{
    const auto [from, model] = hosts_.pick(in_);
    const char* const to = path();
    wrote_ = wrote_ || to != nullptr;
    if (!succeeded(rmsp_host_matrix_write(from, to), io)) {
        return;
    }
    require(from != nullptr && to != nullptr && model->valid, "a bad matrix was written");
    rmsp_options* with = nullptr;
    rmsp_options_create(&with);
    rmsp_options_set(with, "matrix.precision", model->type == RMSP_FLOAT ? "float" : "double");
    rmsp_host_matrix* read = nullptr;
    require(succeeded(rmsp_host_matrix_read(to, with, &read), io), "a matrix that was written cannot be read");
    require_same(contents(read), *model, "a matrix that was written is read as another one");
    rmsp_host_matrix_destroy(read);
    rmsp_options_destroy(with);
}

void Session::host_matrix_contents()
{
    const auto [host, model] = hosts_.pick(in_);
    std::int64_t rows = -1;
    const bool told = succeeded(rmsp_host_matrix_size(host, in_.seldom() ? nullptr : &rows, nullptr, nullptr));
    require(told == (host != nullptr), "a size of no matrix");
    if (host != nullptr && model->valid) {
        require_same(contents(host), *model, "a host matrix has changed");
    }
}

void Session::vector_file()
{
    const auto type = static_cast<rmsp_value_type>(in_.seldom() ? in_.byte() : in_.below(2));
    const char* const at = path();
    std::int64_t size = static_cast<std::int64_t>(in_.below(9)) - (in_.seldom() ? 20 : 0);
    Vector given;
    const void* const entries = array(type == RMSP_FLOAT ? RMSP_FLOAT : RMSP_DOUBLE, size, given);
    bool written = false;
    if (in_.below(2) == 0) {
        wrote_ = wrote_ || at != nullptr;
        written = succeeded(rmsp_write_vector(at, type, size, entries), io);
        require(!written || (at != nullptr && size >= 0 && (entries != nullptr || size == 0)), "no vector was written");
    }
    void* read_back = nullptr;
    std::int64_t count = -1;
    if (!succeeded(rmsp_read_vector(at, type, in_.seldom() ? nullptr : &count, &read_back), io)) {
        require(read_back == nullptr, "a call that failed has written an array");
        return;
    }
    const std::vector<double> is = read(read_back, type, static_cast<std::size_t>(count));
    require(!written || !given.exact || is == given.entries, "a vector that was written is read as another one");
    rmsp_free(read_back);
}

/// Before the caller changes what products that are on their way may read.
void Session::wait_for_all()
{
    for (auto& one : futures_) {
        if (one.handle != nullptr) {
            succeeded(rmsp_future_wait(one.handle));
        }
    }
    for (const OpenRuntime& open : runtimes_) {
        require(succeeded(rmsp_runtime_synchronize(open.handle)), "a runtime does not come to rest");
    }
}

/// What uses the caller's values where they are has others now, and nobody says from when on.
void Session::forget_values_at(const void* values)
{
    const auto forget = [&](auto& pool) {
        for (auto& one : pool) {
            if (one.model != nullptr && one.model->values == values) {
                one.model->exact = false;
            }
        }
    };
    forget(hosts_);
    forget(matrices_);
    for (auto& one : products_) {
        if (one.model != nullptr && (one.model->a->values == values || one.model->b->values == values)) {
            one.model->exact = false;
        }
    }
}

void Session::matrix_generate()
{
    const OpenRuntime on = runtime();
    const char* const from = path();
    rmsp_options* const with = options();
    const bool generate = in_.below(4) != 0;
    const char* const text_of_it = description(in_);
    const auto model = std::make_shared<Matrix>();
    model->alive = on.alive;
    rmsp_matrix* const made = make(
        matrices_, model,
        [&](rmsp_matrix** place) {
            return generate ? rmsp_matrix_generate(on.handle, text_of_it, with, place)
                            : rmsp_matrix_read(on.handle, from, with, place);
        },
        generate ? 0U : io);
    if (made != nullptr) {
        if (const auto now = downloaded(made)) {
            *model = *now;
            model->in_order = false;
            model->exact = entries_are_exact(*model);
            model->alive = on.alive;
        } else {
            require(succeeded(rmsp_matrix_size(made, &model->rows, &model->cols, nullptr)) &&
                        succeeded(rmsp_matrix_value_type(made, &model->type)),
                    "a matrix does not tell its size");
            model->exact = false;
        }
    }
}

}  // namespace rmsp::fuzz
