#include <rmsp/config.hpp>

#include <utility>

#include <rmsp/error.hpp>
#include <rmsp/renumber.hpp>

#include <fmt/format.h>

#include "core/value_types.hpp"

namespace rmsp {

template <class T>
CsrMatrix<T> load_matrix(const Config::Matrix& config, const Progress& progress, HostVector<std::int64_t>* row_at)
{
    const ValueKind kind = config.values == "ones"      ? ValueKind::ones
                           : config.values == "laplace" ? ValueKind::laplace
                           : config.values == "poisson" ? ValueKind::poisson
                                                        : ValueKind::random;
    const auto seed = static_cast<std::uint64_t>(config.seed);
    ReadOptions read_options;
    read_options.max_bytes = config.max_bytes;
    CsrMatrix<T> matrix;
    if (!config.file.empty()) {
        ReadOptions options = read_options;
        options.progress = progress;
        matrix = read_matrix<T>(config.file, options);
    } else {
        GenerateOptions options;
        options.seed = seed;
        options.values = kind;
        options.progress = progress;
        matrix = generate<T>(config.generate, options);
    }
    if (config.plus_identity) {
        matrix = plus_identity(matrix.view());
    }
    if (config.kron != 1) {
        matrix = kronecker_ones(matrix.view(), config.kron);
    }
    // Generated values are made anew where the structure has changed, so that blocks do not repeat them.
    const bool changed = config.plus_identity || config.kron != 1;
    if (config.file.empty() ? changed : config.values != "auto") {
        set_values(matrix, kind, seed);
    }
    if (config.renumber && !config.permutation.empty()) {
        throw Error(ErrorCode::usage, fmt::format("matrix.renumber and matrix.permutation (\"{}\") are two numberings",
                                                  config.permutation));
    }
    HostVector<std::int64_t> order;
    if (!config.permutation.empty()) {
        order = read_order(config.permutation, read_options);
        try {
            matrix = renumbered(matrix.view(), order);
        } catch (const Error& e) {
            throw Error(e.code(), fmt::format("{}: {}", config.permutation, e.what()));
        }
    }
    if (config.renumber) {
        order = mesh_order(matrix.view());
        matrix = renumbered(matrix.view(), order);
    }
    if (row_at != nullptr) {
        *row_at = std::move(order);
    }
    return matrix;
}

std::string describe(const Config::Matrix& config)
{
    const bool file = !config.file.empty();
    std::string text = file ? config.file : config.generate;
    text += config.plus_identity ? ", plus identity" : "";
    text += config.kron != 1 ? fmt::format(", Kronecker product with blocks of {}", config.kron) : "";
    if (!file || config.values != "auto") {
        text += fmt::format(", values {}, seed {}", config.values == "auto" ? "random" : config.values, config.seed);
    }
    text += config.renumber ? ", numbered anew" : "";
    text += config.permutation.empty() ? "" : fmt::format(", in the order of {}", config.permutation);
    return text;
}

#define RMSP_INSTANTIATE(T) \
    template CsrMatrix<T> load_matrix(const Config::Matrix&, const Progress&, HostVector<std::int64_t>*);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp
