#pragma once

#include <stdexcept>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "device_csr.hpp"

namespace rmsp::kernels::test {

/// A suite with the kernels of a family for the devices under test: each by its name, and whether in floats.
/// Family::kernels<T>() is the family's table.
template <class Family>
class KernelTest : public DeviceTest<testing::TestWithParam<std::tuple<std::string, bool>>> {
protected:
    /// Calls f(kernel) with the kernel in the precision of this test.
    template <class F>
    void visit(F&& f)
    {
        if (std::get<1>(GetParam())) {
            f(find<float>());
        } else {
            f(find<double>());
        }
    }

    template <class T>
    const auto& find() const
    {
        for (const auto& kernel : Family::template kernels<T>()) {
            if (kernel.info.device == device_kind() && kernel.info.name == std::get<0>(GetParam())) {
                return kernel;
            }
        }
        throw std::logic_error("not in the registry");
    }
};

}  // namespace rmsp::kernels::test
