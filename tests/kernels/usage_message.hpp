#pragma once

#include <string>

#include <gtest/gtest.h>
#include <rmsp/error.hpp>

namespace rmsp::kernels::test {

/// What the usage error says that f throws.
template <class F>
std::string usage_message(F&& f)
{
    try {
        f();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::usage);
        return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
}

}  // namespace rmsp::kernels::test
