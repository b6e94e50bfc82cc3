#pragma once

#include <algorithm>
#include <cstdint>

#include <kernels/spmv/choose/features.hpp>
#include <kernels/spmv/spmv.hpp>

/// How long a kernel takes, by the bytes that it reads and the entries of x that it gathers: what all kernels share.
/// Plain data and pure functions; what is a kernel's own is its SpmvKernel::work.
namespace rmsp::kernels {

/// The part of a GPU that the model knows, relative to its bandwidth so that one set of numbers serves several GPUs.
struct DeviceModel {
    double bytes_per_second = 4.6e12;
    /// Bytes that the memory delivers while the L2 delivers one sector of x (110 G/s on an H200), of vectors that fit
    /// it; a larger one costs the memory a burst of 64 bytes.
    double bytes_per_gather = 41;
    double bytes_per_far_gather = 64;
    double l2_bytes = 48e6;
    double launch_seconds = 6e-6;  ///< an empty kernel between two events, and the first loads
    bool operator==(const DeviceModel&) const = default;
};

/// What a product of one kernel takes. Shares are fitted to runs on an H200; those of hosts are relative to each other.
struct Work {
    double matrix_bytes = 0;
    double gathers = 0;           ///< sectors of x
    double bandwidth_share = 1;   ///< of the limit that it reaches where bytes decide
    double gather_share = 1;      ///< of the gather rate that it reaches where gathers decide
    double prepare_products = 1;  ///< what making its format costs, in products
    double entry_bytes = 0;       ///< what the memory delivers while it works on an entry, however few bytes that has
    double row_bytes = 0;         ///< and on a row
    double permuted = 0;          ///< entries of x and y that it copies into another order, each gathered by itself
    double start_seconds = 0;     ///< beyond a launch: further kernels, and loads that wait for others
};

/// Entries of x that a product reads.
inline double x_entries(const Features& f) { return static_cast<double>(std::min(f.x_entries, f.rows.nnz)); }

/// Bytes of a value where a format stores all of them alike: as they are, or all as floats.
inline int narrowed_bytes(const Features& f, int value_bytes)
{
    return f.floats ? static_cast<int>(sizeof(float)) : value_bytes;
}

/// Bytes of a value where a format stores all of them alike, or one may stand for all.
inline int uniform_bytes(const Features& f, int value_bytes) { return f.constant ? 0 : narrowed_bytes(f, value_bytes); }

/// The work of a kernel that reads the arrays of CSR; its shares are still to be set.
inline Work csr_work(const Features& f, int value_bytes)
{
    const auto nnz = static_cast<double>(f.rows.nnz);
    const auto rows = static_cast<double>(f.rows.rows);
    Work work;
    work.matrix_bytes = nnz * (value_bytes + 4) + rows * 4;
    work.gathers = nnz * f.sectors;
    return work;
}

struct Prediction {
    double bytes = 0;            ///< of matrix, x and y, once each
    double seconds = 0;          ///< of one product
    double prepare_seconds = 0;  ///< of what the kernel makes beforehand
};

/// \param value_bytes  of a value of the matrix, x and y
inline Prediction predict(const Work& work, const Features& f, int value_bytes, const DeviceModel& device = {})
{
    const auto nnz = static_cast<double>(f.rows.nnz);
    const auto rows = static_cast<double>(f.rows.rows);
    const double x_bytes = x_entries(f) * value_bytes;
    const double per_gather = x_bytes <= device.l2_bytes ? device.bytes_per_gather : device.bytes_per_far_gather;
    Prediction p;
    p.bytes = work.matrix_bytes + x_bytes + rows * value_bytes;
    p.seconds =
        device.launch_seconds + std::max({p.bytes / work.bandwidth_share, work.gathers * per_gather / work.gather_share,
                                          nnz * work.entry_bytes, rows * work.row_bytes}) /
                                    device.bytes_per_second;
    p.seconds += work.permuted * per_gather / device.bytes_per_second + work.start_seconds;
    p.prepare_seconds = work.prepare_products * p.seconds;
    return p;
}

}  // namespace rmsp::kernels
