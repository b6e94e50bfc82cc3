#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <rmsp/config.hpp>

/// Any bytes give a configuration or Error(usage); anything else is a crash. What follows a zero byte is an override.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    std::string text(reinterpret_cast<const char*>(data), size);
    std::vector<std::string> overrides;
    if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
        overrides.push_back(text.substr(zero + 1));
        text.resize(zero);
    }
    try {
        const rmsp::Config config = rmsp::parse_config(text, "fuzz", overrides);
        if (config.matrix.file.empty() == config.matrix.generate.empty() || config.run.iterations < 1) {
            std::abort();
        }
        rmsp::runtime_options(config);
        rmsp::distribute_options(config);
    } catch (const rmsp::Error& error) {
        if (error.code() != rmsp::ErrorCode::usage) {
            std::abort();
        }
    }
    return 0;
}
