#include <cmath>

#include "tests/fuzz/c_api_session.hpp"

namespace rmsp::fuzz {

void Session::vector_upload()
{
    const auto [vector, model] = vectors_.pick(in_);
    Vector made;
    const std::size_t size = model != nullptr ? model->entries.size() : 2;
    const void* const from = array(model != nullptr ? model->type : RMSP_DOUBLE, static_cast<std::int64_t>(size), made);
    if (succeeded(rmsp_vector_upload(vector, from))) {
        require(from != nullptr || size == 0, "entries from nowhere");
        model->set(made.exact ? std::optional(made.entries) : std::nullopt);
    }
}

void Session::vector_download()
{
    const auto [vector, model] = vectors_.pick(in_);
    Vector made;
    const std::size_t size = model != nullptr ? model->entries.size() : 2;
    const rmsp_value_type type = model != nullptr ? model->type : RMSP_DOUBLE;
    void* const to = array(type, static_cast<std::int64_t>(size), made);
    if (succeeded(rmsp_vector_download(vector, to))) {
        require((to != nullptr || size == 0) && *model->alive, "a vector that is not there");
        require_same(read(to, type, size), model->exact ? std::optional(model->entries) : std::nullopt,
                     "a vector with wrong entries");
    }
}

void Session::vector_one()
{
    const auto [vector, model] = vectors_.pick(in_);
    const double value = scalar();
    const unsigned kind = in_.below(4);
    if (kind == 0) {
        if (succeeded(rmsp_vector_fill(vector, value))) {
            model->set(std::vector<double>(model->entries.size(), value));
        }
    } else if (kind == 1) {
        if (succeeded(rmsp_vector_scale(value, vector))) {
            std::vector<double> scaled = model->entries;
            for (double& entry : scaled) {
                entry = value == 0 ? 0 : entry * value;
            }
            model->set(value == 0 || (model->exact && is_exact(value)) ? std::optional(scaled) : std::nullopt);
        }
    } else if (kind == 2) {
        double norm = -1;
        const bool done = succeeded(rmsp_vector_norm2(vector, in_.seldom() ? nullptr : &norm));
        if (done && model->exact) {
            double sum = 0;
            for (const double entry : model->entries) {
                sum += entry * entry;
            }
            require(std::fabs(norm - std::sqrt(sum)) <= 1e-5 * (1 + norm), "a wrong norm");
        }
    } else {
        const int device_of_it = static_cast<int>(in_.below(5)) - 1;
        void* entries = nullptr;
        std::int64_t first = -1;
        std::int64_t count = -1;
        if (succeeded(rmsp_vector_local(vector, device_of_it, &entries, in_.seldom() ? nullptr : &first, &count))) {
            require(device_of_it >= 0 && count >= 0 && (entries != nullptr || count == 0) &&
                        first + count <= static_cast<std::int64_t>(model->entries.size()),
                    "a part of a vector that is none");
        }
    }
}

void Session::vector_two()
{
    const auto [x, from] = vectors_.pick(in_);
    const auto [y, to] = vectors_.pick(in_);
    const double alpha = scalar();
    const unsigned kind = in_.below(4);
    if (kind == 3) {
        double dot = NAN;
        if (succeeded(rmsp_vector_dot(x, y, in_.seldom() ? nullptr : &dot)) && from->exact && to->exact) {
            double sum = 0;
            double magnitude = 0;
            for (std::size_t i = 0; i < from->entries.size(); ++i) {
                sum += from->entries[i] * to->entries.at(i);
                magnitude += std::fabs(from->entries[i] * to->entries[i]);
            }
            require(std::fabs(dot - sum) <= 1e-5 * (1 + magnitude), "a wrong dot product");
        }
        return;
    }
    const bool done = succeeded(kind == 0   ? rmsp_vector_transfer(x, y)
                                : kind == 1 ? rmsp_vector_copy(x, y)
                                            : rmsp_vector_axpy(alpha, x, y));
    if (!done) {
        return;
    }
    require(x != nullptr && y != nullptr && from->type == to->type && from->entries.size() == to->entries.size(),
            "vectors that do not fit were taken");
    if (kind < 2) {
        to->set(from->exact ? std::optional(from->entries) : std::nullopt);
    } else if (alpha != 0) {
        std::vector<double> sum = to->entries;
        for (std::size_t i = 0; i < sum.size(); ++i) {
            sum[i] += alpha * from->entries[i];
        }
        to->set(from->exact && to->exact && is_exact(alpha) ? std::optional(sum) : std::nullopt);
    }
}

}  // namespace rmsp::fuzz
