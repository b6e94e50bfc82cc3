#include "apps/mspmv/vectors.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rmsp/renumber.hpp>
#include <rmsp/value_types.hpp>

#include "apps/mspmv/output.hpp"
#include "apps/mspmv/signals.hpp"

namespace rmsp::mspmv {

template <class T>
NumberedMatrix<T> load_numbered(const Config::Matrix& config, const Progress& progress)
{
    NumberedMatrix<T> loaded;
    loaded.matrix = load_matrix<T>(config, progress, &loaded.row_at);
    return loaded;
}

template <class T>
HostVector<T> read_input(const char* key, const std::string& path, const ReadOptions& options, std::int64_t size,
                         const char* of_what, std::span<const std::int64_t> row_at)
{
    HostVector<T> v = read_vector<T>(path, options);
    if (static_cast<std::int64_t>(v.size()) != size) {
        throw Error(ErrorCode::io,
                    fmt::format("{}: {} has {} entries, but the matrix has {} {}", path, key, v.size(), size, of_what));
    }
    if (!row_at.empty()) {
        HostVector<T> numbered(v.size());
        renumber(row_at, v.data(), numbered.data());
        return numbered;
    }
    return v;
}

template <class T>
void write_result(const std::string& path, std::span<const T> v, std::span<const std::int64_t> row_at)
{
    if (path.empty()) {
        return;
    }
    HostVector<T> restored;
    if (!row_at.empty()) {
        restored.resize(v.size());
        restore(row_at, v.data(), restored.data());
        v = std::span<const T>(restored);
    }
    const PendingOutput pending(path);
    write_vector<T>(path, v);
}

void require_result_name(const char* key, const std::string& path, std::span<const std::string_view> endings)
{
    const auto fits = [&](std::string_view ending) { return path.ends_with(ending); };
    if (!path.empty() && std::none_of(endings.begin(), endings.end(), fits)) {
        throw Error(ErrorCode::usage,
                    fmt::format("{} (\"{}\") does not end in one of {}", key, path, fmt::join(endings, ", ")));
    }
    require_writable(path);
}

#define RMSP_INSTANTIATE(T)                                                                                           \
    template NumberedMatrix<T> load_numbered(const Config::Matrix&, const Progress&);                                 \
    template HostVector<T> read_input(const char*, const std::string&, const ReadOptions&, std::int64_t, const char*, \
                                      std::span<const std::int64_t>);                                                 \
    template void write_result(const std::string&, std::span<const T>, std::span<const std::int64_t>);
RMSP_FOR_EACH_VALUE_TYPE(RMSP_INSTANTIATE)

}  // namespace rmsp::mspmv
