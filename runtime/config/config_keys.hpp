#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include <rmsp/config.hpp>

namespace rmsp::config {

/// Where the value of a key goes.
using KeyTarget =
    std::variant<std::string*, std::int64_t*, double*, bool*, std::vector<double>*, std::vector<std::string>*>;

/// One key of a configuration file.
struct Key {
    std::string name;
    KeyTarget target;
    std::string meaning;
    std::vector<std::string> choices = {};  ///< of a string, or of each string in a list; empty: any
    double minimum = -std::numeric_limits<double>::infinity();
    bool above_minimum = false;  ///< the minimum itself is not allowed
    double maximum = std::numeric_limits<double>::infinity();
};

/// Every key, with its place in `config`. Drives parsing, overrides, messages and documentation.
std::vector<Key> key_table(Config& config);

}  // namespace rmsp::config
