#pragma once

#include <string>

#include <rmsp/config.hpp>

/// What an iteration of a solver does between nodes.
namespace rmsp::mspmv {

struct StepCounts {
    double products = 1;      ///< with A or A^T, each an exchange
    double sums = 0;          ///< over all nodes
    double sums_beside = 0;   ///< of these, what goes on beside a product
    double vector_bytes = 0;  ///< read and written besides the products, for each row: vectors and preconditioner
};

/// Counted while the configuration's solver runs on host devices of this process, on a stencil of a few hundred points:
/// of 27 neighbours where the matrix has more than 14 nonzeros a row, else of 7.
/// \throws Error(usage) where it cannot do a few iterations there
/// \param method  in place of the configuration's
StepCounts count_steps(const Config& config, const std::string& method, double nonzeros_a_row);

}  // namespace rmsp::mspmv
