#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string_view>

#include <kernels/spmv/choose/features.hpp>
#include <kernels/spmv/packed_tiles/packed_tiles.hpp>
#include <kernels/spmv/policy.hpp>

/// How long each kernel would take, by the bytes that it reads and the entries of x that it gathers. Plain data and pure functions.
namespace rmsp::kernels {

/// The part of a GPU that the model knows, relative to its bandwidth so that one set of numbers serves several GPUs.
struct DeviceModel {
    double bytes_per_second = 4.6e12;
    /// Bytes that the memory delivers while the L2 delivers one sector of x (110 G/s on an H200), of vectors that fit it; a larger
    /// one costs the memory a burst of 64 bytes.
    double bytes_per_gather = 41;
    double bytes_per_far_gather = 64;
    double l2_bytes = 48e6;
    double launch_seconds = 6e-6;  ///< an empty kernel between two events, and the first loads
    bool operator==(const DeviceModel&) const = default;
};

/// What of a product goes on while the devices exchange an x by rows.
enum class Beside : std::uint8_t {
    nothing,
    rows,     ///< the rows that need none of it
    columns,  ///< the device's own columns, and the popular ones of the others
};

/// What sets a kernel apart besides the bytes of its format.
struct KernelModel {
    std::string_view name;
    double bandwidth_share;   ///< of the limit that it reaches where bytes decide
    double gather_share;      ///< of the gather rate that it reaches where gathers decide
    double prepare_products;  ///< what making its format costs, in products
    double entry_bytes = 0;   ///< what the memory delivers while it works on an entry, however few bytes that has
    Beside beside = Beside::nothing;
    bool operator==(const KernelModel&) const = default;
};

/// Fitted to runs on an H200; the host's relative to each other. A kernel that is not listed counts as the last.
inline constexpr KernelModel kernel_models[] = {
    {"sell", 0.93, 0.9, 17, 4.5, Beside::rows},
    {"sell-blocks", 0.78, 0.9, 35},
    {"column-blocks", 0.72, 4.0, 40, 17.5, Beside::columns},
    {"packed-tiles", 0.76, 1.0, 20, 9},
    {"csr-row-vector", 0.84, 0.7, 1, 0, Beside::rows},
    {"csr-nnz-split", 0.83, 0.87, 8},
    {"sell-reordered", 0.93, 0.9, 90, 4.5},
    {"csr-openmp", 0.9, 1.0, 1},
    {"diagonals", 0.9, 2.0, 6},
    {"csr-row-warp", 0.6, 0.5, 1},
};

/// csr-row-vector where it stages rows: stages_rows().
inline constexpr KernelModel staged_rows_model{"csr-row-vector", 0.93, 0.7, 1, 0, Beside::rows};

constexpr const KernelModel& kernel_model(std::string_view name)
{
    for (const KernelModel& model : kernel_models) {
        if (model.name == name) {
            return model;
        }
    }
    return kernel_models[std::size(kernel_models) - 1];
}

/// What kernel "sell-reordered" makes of a mesh whose numbering is bad.
struct ReorderedMesh {
    double sectors = 0.1;        ///< Features::sectors
    double code_bytes = 1.6;     ///< of kernel "sell"
    double most_hubs = 0.1;      ///< Features::hub_share of what may be a mesh
    double least_sectors = 0.5;  ///< Features::sectors of what is numbered badly
    bool operator==(const ReorderedMesh&) const = default;
};
inline constexpr ReorderedMesh reordered_mesh{};

/// Whether a kernel's format has a chance, by the sample: the others are neither made ready nor raced.
inline bool suits(std::string_view name, const Features& f)
{
    return name != "sell-reordered" ||
           (f.sectors >= reordered_mesh.least_sectors && f.hub_share <= reordered_mesh.most_hubs);
}

struct Prediction {
    double bytes = 0;            ///< of matrix, x and y, once each
    double seconds = 0;          ///< of one product
    double prepare_seconds = 0;  ///< of what the kernel makes beforehand
};

/// \param value_bytes  of a value of the matrix, x and y
inline Prediction predict_spmv(std::string_view name, const Features& f, int value_bytes,
                               const DeviceModel& device = {})
{
    const auto nnz = static_cast<double>(f.rows.nnz);
    const auto rows = static_cast<double>(f.rows.rows);
    const auto x_entries = static_cast<double>(std::min(f.x_entries, f.rows.nnz));
    const double x_bytes = x_entries * value_bytes;
    // Where all values are stored alike.
    const int narrowed = f.floats ? static_cast<int>(sizeof(float)) : value_bytes;
    const int tile_values = f.constant ? 0 : narrowed;
    double matrix = nnz * (value_bytes + 4) + rows * 4;
    double gathers = nnz * f.sectors;
    double code_bytes = 0;
    if (name == "sell") {
        code_bytes = f.code_bytes;
        matrix = nnz * ((1 + f.padding) * (f.stored_value_bytes + 4.0 / 32) + code_bytes);
    } else if (name == "sell-reordered") {
        // Rows of a part of the mesh are farther apart, by its share of the columns.
        const double apart = std::sqrt(std::max(1.0, x_entries / rows));
        code_bytes = std::min(4.0, reordered_mesh.code_bytes * apart);
        gathers = nnz * std::min(f.sectors, reordered_mesh.sectors * apart);
        matrix = nnz * ((1 + f.padding) * (f.stored_value_bytes + 4.0 / 32) + code_bytes) + 4 * (rows + x_entries);
    } else if (name == "diagonals") {
        // Slices with codes are those that stay in CSR: two bytes a lane, mostly.
        matrix = nnz * (value_bytes + 4.0 / 16 + std::min(4.0, 2 * f.code_bytes)) + rows * 4;
    } else if (name == "sell-blocks") {
        // Without dense blocks each entry is one of 2 x 2.
        const bool blocks = f.block.entries() > 1;
        matrix = nnz * (blocks ? f.block_fill : 4.0) * (narrowed + 4.0 / (blocks ? f.block.entries() : 4));
    } else if (name == "column-blocks") {
        // 16-bit columns; the partial sums of what lies outside the hubs, of which a sample meets only the hottest, are written
        // and read again.
        matrix = nnz * (tile_values + 2 + (1 - std::sqrt(f.hub_share)) * (value_bytes + 4));
    } else if (name == "packed-tiles") {
        // An entry without a value for each empty row; a bit and a share of a lane's count and of the header for each.
        matrix = (nnz + static_cast<double>(f.rows.empty_rows)) *
                 (tile_values + 0.3 + (packed_low_bits + (1 - f.narrow) * packed_high_bits(f.cols)) / 8);
    }
    const KernelModel& kernel =
        name == staged_rows_model.name && stages_rows(f.rows) ? staged_rows_model : kernel_model(name);
    const double per_gather = x_bytes <= device.l2_bytes ? device.bytes_per_gather : device.bytes_per_far_gather;
    // What is not a diagonal of kernel "sell" gathers from 32 rows at once, and reads codes before columns are known.
    const double bandwidth_share = kernel.bandwidth_share - 0.08 * code_bytes;
    const double entry_bytes = kernel.entry_bytes + 1.4 * code_bytes;
    Prediction p;
    p.bytes = matrix + x_bytes + rows * value_bytes;
    p.seconds = device.launch_seconds +
                std::max({p.bytes / bandwidth_share, gathers * per_gather / kernel.gather_share, nnz * entry_bytes}) /
                    device.bytes_per_second;
    if (name == "sell-reordered") {
        // x and the sums are permuted on their way, which gathers each entry by itself.
        p.seconds += (rows + x_entries) * per_gather / device.bytes_per_second;
    }
    p.prepare_seconds = kernel.prepare_products * p.seconds;
    return p;
}

}  // namespace rmsp::kernels
