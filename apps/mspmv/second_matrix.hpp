#pragma once

#include <rmsp/config.hpp>
#include <rmsp/error.hpp>

namespace rmsp::mspmv {

/// The second matrix of A B: the file or description of [spgemm] with the values and seed of [matrix].
/// \throws Error(usage) unless there is exactly one of them
inline Config::Matrix second_matrix(const Config& config)
{
    if (config.spgemm.file.empty() == config.spgemm.generate.empty()) {
        throw Error(ErrorCode::usage, "spgemm.product \"ab\" needs exactly one of spgemm.file and spgemm.generate");
    }
    Config::Matrix b = config.matrix;
    b.file = config.spgemm.file;
    b.generate = config.spgemm.generate;
    b.plus_identity = false;
    b.kron = 1;
    b.renumber = false;
    b.permutation.clear();
    return b;
}

}  // namespace rmsp::mspmv
