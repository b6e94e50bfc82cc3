#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rmsp/export.hpp>
#include <rmsp/matrix.hpp>

namespace rmsp {

enum class DeviceKind : std::uint8_t { host, cuda };
RMSP_API const char* to_string(DeviceKind kind) noexcept;

/// What a result may depend on.
enum class Determinism : std::uint8_t {
    none,          ///< may differ in the last bits from call to call
    run,           ///< the same call on the same devices gives the same bits
    device_count,  ///< the same bits on any number of devices
};
RMSP_API const char* to_string(Determinism level) noexcept;

/// One line of `mspmv kernels`.
struct KernelInfo {
    std::string family;  ///< "spmv", "spgemm"
    std::string name;    ///< what configuration calls it
    DeviceKind device = DeviceKind::host;
    Determinism determinism = Determinism::none;  ///< the strongest level it keeps
    bool compiled = true;
    std::string summary;
    Format format = Format::csr;  ///< of the shards that it multiplies
    /// Multiplies a matrix that is copied to the device at each apply.
    bool streams = false;
    /// Reads 4 bytes a value where all values of a matrix of doubles are exactly floats.
    bool keeps_floats = false;
    bool vendor = false;  ///< of the devices' vendor, to compare with
};

/// Every kernel of this build; those of a format in the order in which the automatic choice considers them.
RMSP_API std::vector<KernelInfo> list_kernels();

}  // namespace rmsp
