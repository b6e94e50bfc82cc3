#pragma once

#include <memory>
#include <variant>

#include <rmsp/rmsp.h>
#include <rmsp/config.hpp>
#include <rmsp/runtime.hpp>

/// What is behind the handles of rmsp.h.

namespace rmsp::capi {

/// A handle of either type of values; its index is the rmsp_value_type.
template <template <class> class Handle>
using OfEither = std::variant<Handle<float>, Handle<double>>;

}  // namespace rmsp::capi

struct rmsp_options {
    rmsp::Config config;
};

struct rmsp_runtime {
    rmsp::Runtime runtime;
};

struct rmsp_matrix {
    rmsp::capi::OfEither<rmsp::DistributedMatrix> matrix;
    /// The arrays that a streamed matrix uses where they are, unless they are the caller's.
    std::shared_ptr<const void> arrays{};
};

namespace rmsp::capi {

/// The configuration of options, which may be null.
const Config& config_of(const rmsp_options* options);
/// What a matrix takes of them.
DistributeOptions distribute_options_of(const rmsp_options* options);

}  // namespace rmsp::capi
