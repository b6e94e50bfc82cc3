#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rmsp/runtime.hpp>
#include <runtime/matrix/matrix_state.hpp>
#include <runtime/node/node.hpp>
#include <runtime/transport/link.hpp>
#include <runtime/transport/table.hpp>

#include "matrices.hpp"

/// Transports that do not do what they should, on host devices that are connected by copies all the same.
namespace rmsp::transport {

inline std::string error_of(const std::function<void()>& f)
{
    try {
        f();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::device);
        return e.what();
    }
    return "no error";
}

/// A runtime of host devices that exchange x by entries through copies.
class LinkedRuntime : public testing::Test {
protected:
    explicit LinkedRuntime(std::unique_ptr<Transport> transport = make_transport("host", {}))
    {
        RuntimeOptions options;
        options.devices = "host:3x1";
        options.bind = BindPolicy::none;
        runtime = Runtime(options);
        const auto state = detail::RuntimeAccess::state(runtime);
        const std::string name = transport->name();
        state->connection = {
            std::make_unique<Link>(std::move(transport), std::vector<std::string>{"host"}, state->workers), name,
            "a test"};
        DistributeOptions by_entries;
        by_entries.exchange = Exchange::entries;
        matrix = runtime.distribute(a.view(), by_entries);
    }
    bool multiplies(DistributedVector<double>& x, DistributedVector<double>& y)
    {
        std::vector<double> result(static_cast<std::size_t>(a.rows), 1e300);
        matrix.apply(1.0, x, 0.0, y);
        y.download(result.data());
        return verify_spmv<double>(a.view(), 1.0, entries.data(), 0.0, nullptr, result.data()).passed;
    }

    const CsrMatrix<double> a = generate<double>("stencil7 8 8 8");
    const std::vector<double> entries = rmsp::test::random_vector<double>(a.cols, 3);
    Runtime runtime;
    DistributedMatrix<double> matrix;
};

}  // namespace rmsp::transport
