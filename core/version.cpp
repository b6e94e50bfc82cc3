#include <rmsp/version.hpp>

#include <rmsp_build.hpp>
#include <rmsp_commit.hpp>

namespace rmsp {

const char* version() noexcept { return RMSP_VERSION; }

const char* commit() noexcept { return RMSP_COMMIT; }

const char* build_features() noexcept { return RMSP_FEATURES; }

}  // namespace rmsp
