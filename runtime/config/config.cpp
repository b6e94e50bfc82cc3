#include <rmsp/config.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <core/edit_distance.hpp>
#include <core/toml.hpp>

#include "runtime/config/config_keys.hpp"

namespace rmsp {
namespace {

using config::Key;
using config::key_table;
using config::KeyTarget;

[[noreturn]] void fail(const std::string& origin, const std::string& message)
{
    throw Error(ErrorCode::usage, origin + ": " + message);
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

/// The known name that `name` most likely meant: the same key of another section, else the least edit distance.
std::string nearest(const std::vector<std::string>& known, std::string_view name)
{
    // Distances of very long names would cost time and mean nothing.
    const std::string_view head = name.substr(0, 64);
    return *std::min_element(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
        const auto rank = [&](const std::string& candidate) {
            return std::pair(last_part(candidate) != last_part(head), core::edit_distance(candidate, head));
        };
        return rank(a) < rank(b);
    });
}

std::vector<std::string> names_of(const std::vector<Key>& keys)
{
    std::vector<std::string> names;
    std::transform(keys.begin(), keys.end(), std::back_inserter(names), [](const Key& key) { return key.name; });
    return names;
}

std::vector<std::string> sections_of(const std::vector<Key>& keys)
{
    std::vector<std::string> sections;
    for (const Key& key : keys) {
        std::string section = key.name.substr(0, key.name.find('.'));
        if (sections.empty() || sections.back() != section) {
            sections.push_back(std::move(section));
        }
    }
    return sections;
}

const Key* find_key(const std::vector<Key>& keys, std::string_view name)
{
    const auto it = std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.name == name; });
    return it == keys.end() ? nullptr : &*it;
}

/// A name as a message can show it: zero bytes would end the message.
std::string printable(std::string_view name)
{
    std::string out;
    for (const char c : name) {
        const auto byte = static_cast<unsigned char>(c);
        out += byte < 0x20 || byte == 0x7f ? fmt::format("\\u{:04X}", byte) : std::string(1, c);
    }
    return out;
}

[[noreturn]] void fail_unknown(const std::vector<Key>& keys, const std::string& origin, const std::string& name)
{
    fail(origin, fmt::format("unknown key \"{}\"; the nearest known key is \"{}\"", printable(name),
                             nearest(names_of(keys), name)));
}

std::string type_name(const KeyTarget& target)
{
    static constexpr std::array names{"string", "integer", "number", "boolean", "list of numbers", "list of strings"};
    return names.at(target.index());
}

std::string with_article(std::string_view type) { return fmt::format("{} {}", type[0] == 'i' ? "an" : "a", type); }

std::string found_type(const toml::node& node)
{
    switch (node.type()) {
        case toml::node_type::string:
            return "a string";
        case toml::node_type::integer:
            return "an integer";
        case toml::node_type::floating_point:
            return "a floating-point number";
        case toml::node_type::boolean:
            return "a boolean";
        case toml::node_type::array:
            return "a list";
        case toml::node_type::table:
            return "a table";
        default:
            return "a date or time";
    }
}

std::string literal(std::string_view text) { return '"' + std::string(text) + '"'; }
/// As TOML: a floating-point number keeps its point.
std::string literal(double value)
{
    std::string text = fmt::format("{}", value);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}
std::string literal(std::int64_t value) { return fmt::format("{}", value); }
std::string literal(bool value) { return value ? "true" : "false"; }
template <class T>
std::string literal(const std::vector<T>& values)
{
    std::vector<std::string> texts;
    std::transform(values.begin(), values.end(), std::back_inserter(texts), [](const T& v) { return literal(v); });
    return fmt::format("[{}]", fmt::join(texts, ", "));
}

void check_choice(const Key& key, const std::string& value, const std::string& origin)
{
    if (!key.choices.empty() && std::find(key.choices.begin(), key.choices.end(), value) == key.choices.end()) {
        fail(origin, fmt::format("{} is \"{}\", but must be {}\"{}\"", key.name, value,
                                 key.choices.size() > 1 ? "one of " : "", fmt::join(key.choices, "\", \"")));
    }
}

template <class Number>
void check_range(const Key& key, Number value, const std::string& origin)
{
    const double x = static_cast<double>(value);
    if (!std::isfinite(x)) {
        fail(origin, fmt::format("{} is {}, but must be finite", key.name, value));
    }
    if (x < key.minimum || (key.above_minimum && x == key.minimum)) {
        fail(origin, fmt::format("{} is {}, but must be {} {}", key.name, value,
                                 key.above_minimum ? "above" : "at least", key.minimum));
    }
    if (x > key.maximum) {
        fail(origin, fmt::format("{} is {}, but must be at most {}", key.name, value, key.maximum));
    }
}

/// Stores TOML values in the target of a key. Where() turns a node into the origin that a message names.
template <class Where>
class Assign {
public:
    Assign(const Key& key, const Where& where) : key_(key), where_(where) {}

    void operator()(const toml::node& node) const
    {
        std::visit([&](auto* target) { *target = get(node, *target); }, key_.target);
    }

private:
    [[noreturn]] void fail_type(const toml::node& node, std::string_view wanted) const
    {
        fail(where_(node), fmt::format("{} must be {}, not {}", key_.name, with_article(wanted), found_type(node)));
    }

    std::string get(const toml::node& node, const std::string&) const
    {
        if (!node.is_string()) {
            fail_type(node, "string");
        }
        std::string value = node.as_string()->get();
        check_choice(key_, value, where_(node));
        return value;
    }
    std::int64_t get(const toml::node& node, std::int64_t) const
    {
        if (!node.is_integer()) {
            fail_type(node, "integer");
        }
        const std::int64_t value = node.as_integer()->get();
        check_range(key_, value, where_(node));
        return value;
    }
    double get(const toml::node& node, double) const
    {
        if (!node.is_number()) {
            fail_type(node, "number");
        }
        const double value =
            node.is_integer() ? static_cast<double>(node.as_integer()->get()) : node.as_floating_point()->get();
        check_range(key_, value, where_(node));
        return value;
    }
    bool get(const toml::node& node, bool) const
    {
        if (!node.is_boolean()) {
            fail_type(node, "boolean");
        }
        return node.as_boolean()->get();
    }
    template <class T>
    std::vector<T> get(const toml::node& node, const std::vector<T>&) const
    {
        if (!node.is_array()) {
            fail_type(node, type_name(key_.target));
        }
        std::vector<T> values;
        for (const toml::node& element : *node.as_array()) {
            values.push_back(get(element, T{}));
        }
        return values;
    }

    const Key& key_;
    const Where& where_;
};

void apply_file(const std::vector<Key>& keys, const std::string& text, const std::string& name)
{
    const auto position = [&](const toml::source_region& source) {
        return fmt::format("{}:{}:{}", name, source.begin.line, source.begin.column);
    };
    const auto where = [&](const toml::node& node) { return position(node.source()); };

    toml::table root;
    try {
        root = core::parse_toml(text);
    } catch (const core::TomlError& e) {
        fail(fmt::format("{}:{}:{}", name, e.line, e.column), e.what());
    }
    const std::vector<std::string> sections = sections_of(keys);
    for (const auto& [section, content] : root) {
        const std::string section_name(section.str());
        if (std::find(sections.begin(), sections.end(), section_name) == sections.end()) {
            if (content.is_table()) {
                fail(position(section.source()),
                     fmt::format("unknown section \"{}\"; the nearest known section is \"{}\"", printable(section_name),
                                 nearest(sections, section_name)));
            }
            fail_unknown(keys, position(section.source()), section_name);
        }
        if (!content.is_table()) {
            fail(where(content),
                 fmt::format("{} must be a table, \"[{}]\", not {}", section_name, section_name, found_type(content)));
        }
        for (const auto& [key_name, value] : *content.as_table()) {
            const std::string full_name = fmt::format("{}.{}", section_name, key_name.str());
            const Key* key = find_key(keys, full_name);
            if (key == nullptr) {
                fail_unknown(keys, position(key_name.source()), full_name);
            }
            Assign(*key, where)(value);
        }
    }
}

std::string_view trim(std::string_view text)
{
    const auto first = text.find_first_not_of(" \t");
    return first == std::string_view::npos ? std::string_view{}
                                           : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool is_quoted(std::string_view text) { return !text.empty() && (text.front() == '"' || text.front() == '\''); }

/// One value of an override or of the environment as a TOML document { v = value }: bare words become strings, and the
/// brackets and quotes of a list may be left out.
toml::table parse_value(const Key& key, std::string_view text, const std::string& origin)
{
    const bool strings = std::holds_alternative<std::vector<std::string>*>(key.target);
    const bool list = strings || std::holds_alternative<std::vector<double>*>(key.target);
    if (std::holds_alternative<std::string*>(key.target) && !is_quoted(text)) {
        return toml::table{{"v", std::string(text)}};
    }
    std::string document(text);
    if (list && !text.starts_with('[')) {
        if (strings && !is_quoted(text)) {
            toml::array words;
            for (std::size_t begin = 0; !text.empty() && begin <= text.size();) {
                const std::size_t end = std::min(text.find(',', begin), text.size());
                words.push_back(std::string(trim(text.substr(begin, end - begin))));
                begin = end + 1;
            }
            return toml::table{{"v", std::move(words)}};
        }
        document = '[' + document + ']';
    }
    toml::table parsed;
    try {
        document.insert(0, "v = ");
        parsed = core::parse_toml(document);
    } catch (const core::TomlError&) {
        parsed.clear();
    }
    // More than one entry: the value held a line break and a further key.
    if (parsed.size() != 1) {
        fail(origin,
             fmt::format("{} must be {}; \"{}\" is not one", key.name, with_article(type_name(key.target)), text));
    }
    return parsed;
}

void assign_text(const Key& key, std::string_view text, const std::string& origin)
{
    const toml::table parsed = parse_value(key, text, origin);
    const auto where = [&](const toml::node&) { return origin; };
    Assign(key, where)(*parsed.get("v"));
}

void apply_environment(const std::vector<Key>& keys)
{
    static constexpr std::array<std::pair<const char*, const char*>, 5> variables{{
        {"RMSP_DEVICES", "runtime.devices"},
        {"RMSP_BIND", "runtime.bind"},
        {"RMSP_TRANSPORT", "runtime.transports"},
        {"RMSP_CACHE_DIR", "runtime.cache"},
        {"RMSP_IO_MAX_BYTES", "io.max_bytes"},
    }};
    for (const auto& [variable, name] : variables) {
        const char* text = std::getenv(variable);
        if (text != nullptr && *text != '\0') {
            assign_text(*find_key(keys, name), text, fmt::format("environment variable {}", variable));
        }
    }
}

const Key& known_key(const std::vector<Key>& keys, const std::string& origin, const std::string& name)
{
    const Key* key = find_key(keys, name);
    if (key == nullptr) {
        fail_unknown(keys, origin, name);
    }
    return *key;
}

void assign_named(Config& config, const std::vector<Key>& keys, const std::string& origin, const std::string& name,
                  std::string_view text)
{
    assign_text(known_key(keys, origin, name), trim(text), origin);
    // A later source of the matrix takes the place of an earlier one.
    if (name == "matrix.file" && !config.matrix.file.empty()) {
        config.matrix.generate.clear();
    } else if (name == "matrix.generate" && !config.matrix.generate.empty()) {
        config.matrix.file.clear();
    }
    // So does a later description of a machine.
    if (name == "runtime.topology" && !config.runtime.topology.empty()) {
        config.runtime.machine.clear();
    } else if (name == "runtime.machine" && !config.runtime.machine.empty()) {
        config.runtime.topology.clear();
    }
}

void apply_override(Config& config, const std::vector<Key>& keys, const std::string& text)
{
    const std::string origin = fmt::format("override \"{}\"", text);
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
        fail(origin, "must have the form section.key=value");
    }
    assign_named(config, keys, origin, std::string(trim(std::string_view(text).substr(0, equals))),
                 std::string_view(text).substr(equals + 1));
}

}  // namespace

RuntimeOptions RuntimeOptions::from_environment(RuntimeOptions base)
{
    // Through the keys that the variables stand for, so that both are checked alike.
    Config config;
    config.runtime.devices = base.devices;
    config.runtime.bind.clear();
    config.runtime.transports = base.transports;
    config.runtime.cache = base.cache;
    apply_environment(key_table(config));
    base.devices = config.runtime.devices;
    base.bind = config.runtime.bind.empty() ? base.bind : parse_bind_policy(config.runtime.bind);
    base.transports = config.runtime.transports;
    base.cache = config.runtime.cache;
    return base;
}

Config parse_config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides)
{
    Config config;
    const std::vector<Key> keys = key_table(config);
    apply_file(keys, text, name);
    if (!config.matrix.file.empty() && !config.matrix.generate.empty()) {
        fail(name, fmt::format("matrix.file (\"{}\") and matrix.generate (\"{}\") exclude each other",
                               config.matrix.file, config.matrix.generate));
    }
    if (!config.runtime.topology.empty() && !config.runtime.machine.empty()) {
        fail(name, fmt::format("runtime.topology (\"{}\") and runtime.machine (\"{}\") exclude each other",
                               config.runtime.topology, config.runtime.machine));
    }
    apply_environment(keys);
    const bool generated = !config.matrix.generate.empty();
    const std::string values = std::exchange(config.matrix.values, "");
    for (const std::string& text_of_override : overrides) {
        apply_override(config, keys, text_of_override);
    }
    if (config.matrix.values.empty()) {
        // Values that were meant for the generated matrix are not put in the place of a file's own.
        config.matrix.values = generated && !config.matrix.file.empty() ? "auto" : values;
    }
    if (config.matrix.file.empty() && config.matrix.generate.empty()) {
        fail(name, "no matrix: one of matrix.file and matrix.generate must be given");
    }
    return config;
}

void set_key(Config& config, const std::string& name, const std::string& value)
{
    assign_named(config, key_table(config), fmt::format("option \"{}\"", printable(name)), name, value);
}

std::string key_text(const Config& config, const std::string& name)
{
    // The table has places to write to.
    Config copy = config;
    const std::vector<Key> keys = key_table(copy);
    const std::string origin = fmt::format("option \"{}\"", printable(name));
    const Key& key = known_key(keys, origin, name);
    const auto* text = std::get_if<std::string*>(&key.target);
    return text != nullptr ? **text : std::visit([](const auto* value) { return literal(*value); }, key.target);
}

void apply_environment(Config& config) { apply_environment(key_table(config)); }

std::vector<ConfigKey> config_keys()
{
    Config defaults;
    std::vector<ConfigKey> keys;
    for (const Key& key : key_table(defaults)) {
        std::string type = type_name(key.target);
        if (!key.choices.empty()) {
            const bool list = std::holds_alternative<std::vector<std::string>*>(key.target);
            type = fmt::format("{}{}", list ? "list of " : "", fmt::join(key.choices, ", "));
        } else if (std::isfinite(key.minimum)) {
            type += fmt::format(" {} {}", key.above_minimum ? ">" : ">=", key.minimum);
        }
        keys.push_back(
            {key.name, type, std::visit([](const auto* value) { return literal(*value); }, key.target), key.meaning});
    }
    return keys;
}

}  // namespace rmsp
