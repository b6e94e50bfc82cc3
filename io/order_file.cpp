#include <cstdint>
#include <span>
#include <string>

#include <fmt/format.h>

#include <rmsp/error.hpp>
#include <rmsp/renumber.hpp>

#include "core/parallel.hpp"
#include "core/reading.hpp"
#include "io/file.hpp"
#include "io/npy.hpp"

namespace rmsp {

HostVector<std::int64_t> read_order(const std::string& path, const ReadOptions& options)
{
    return core::reading(path, [&] {
        core::ReadLimit limit(path, options.max_bytes);
        const io::InputFile file(limit);
        if (!io::begins_as_npy(file.bytes())) {
            throw Error(ErrorCode::io, fmt::format("{}: a numbering is an .npy file of integers; its {} bytes do not "
                                                   "begin as one",
                                                   path, file.size()));
        }
        const io::NpyArray array(file);
        limit.take(static_cast<core::uint128>(array.size()) * sizeof(std::int64_t), "the numbering");
        HostVector<std::int64_t> row_at(static_cast<std::size_t>(array.size()));
        array.read(row_at.data(), core::thread_count(options.threads));
        return row_at;
    });
}

void write_order(const std::string& path, std::span<const std::int64_t> row_at)
{
    if (!path.ends_with(".npy")) {
        throw Error(ErrorCode::io, fmt::format("{}: the name of a numbering's file must end in .npy", path));
    }
    io::OutputFile file(path);
    file.write(io::npy_header("<i8", static_cast<std::int64_t>(row_at.size())));
    file.write(row_at.data(), row_at.size_bytes());
    file.commit();
}

}  // namespace rmsp
