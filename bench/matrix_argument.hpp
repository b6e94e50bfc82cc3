#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <rmsp/config.hpp>

/// A matrix as the benchmarks take it on their command line.
struct NamedMatrix {
    std::string name;
    rmsp::Config::Matrix config;
};

inline constexpr const char* matrix_argument_help =
    "file, generator (\"rmat 22 16\"), or NAME,key=value,... with keys of [matrix]: "
    "wave3,file=wave.mtx.xz,plus_identity=true,kron=3,values=random";

/// "NAME,key=value,..." with the keys of [matrix], or just a file or a generator's words. \throws Error(usage)
inline NamedMatrix parse_matrix(const std::string& text)
{
    std::vector<std::string> words;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        words.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    const auto config_of = [](const std::vector<std::string>& overrides) {
        return rmsp::parse_config("", "MATRIX", overrides).matrix;
    };
    if (words.size() == 1 && text.find(' ') != std::string::npos) {
        return {text, config_of({"matrix.generate=" + text})};
    }
    if (words.size() == 1) {
        const std::string file = text.substr(text.rfind('/') + 1);
        return {file.substr(0, file.find('.')), config_of({"matrix.file=" + text})};
    }
    std::vector<std::string> overrides;
    for (std::size_t i = 1; i < words.size(); ++i) {
        overrides.push_back("matrix." + words[i]);
    }
    return {words[0], config_of(overrides)};
}
