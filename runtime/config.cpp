#include <rmsp/config.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <string_view>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

namespace rmsp {
namespace {

using Target =
    std::variant<std::string*, std::int64_t*, double*, bool*, std::vector<double>*, std::vector<std::string>*>;

/// One key of the file. The table of them drives parsing, overrides, messages and documentation.
struct Key {
    std::string name;
    Target target;
    std::string meaning;
    std::vector<std::string> choices = {};  ///< of a string, or of each string in a list; empty: any
    double minimum = -std::numeric_limits<double>::infinity();
    bool above_minimum = false;  ///< the minimum itself is not allowed
};

std::vector<Key> key_table(Config& c)
{
    return {
        {"matrix.file", &c.matrix.file,
         "matrix to read: Matrix Market (plain, .gz, .xz, .zst) or SciPy .npz; this or matrix.generate"},
        {"matrix.generate", &c.matrix.generate,
         "matrix to generate instead: \"stencil27 NX NY NZ\", \"stencil7 NX NY NZ\", \"banded ROWS HALF_BAND\", "
         "\"rmat SCALE EDGE_FACTOR\", \"random ROWS COLS PER_ROW\", \"powerlaw ROWS PER_ROW EXPONENT\""},
        {"matrix.format",
         &c.matrix.format,
         "format that the matrix is multiplied in, converted after reading: csr (split by rows), csc (by columns), coo "
         "(by "
         "rows, with coordinates); auto: csr",
         {"csr", "csc", "coo", "auto"}},
        {"matrix.order",
         &c.matrix.order,
         "order of the entries of coo: by row, by column, or none (shuffled by matrix.seed)",
         {"row", "column", "none"}},
        {"matrix.precision", &c.matrix.precision, "floating-point type of the values and vectors", {"double", "float"}},
        {"matrix.values",
         &c.matrix.values,
         "auto (those of the file; random where the matrix is generated), or in their place: random (uniform in [-1, "
         "1)), "
         "ones, laplace (of the graph; generated matrices: stencils only)",
         {"auto", "random", "ones", "laplace"}},
        {"matrix.plus_identity", &c.matrix.plus_identity, "multiply A + I instead of A"},
        {"matrix.kron",
         &c.matrix.kron,
         "multiply the Kronecker product of the matrix with a block of so many rows and columns instead: unknowns at "
         "each "
         "node of a mesh",
         {},
         1},
        {"matrix.seed", &c.matrix.seed, "seed of the generated matrix and of the random x and y", {}, 0},

        {"runtime.devices", &c.runtime.devices,
         "\"auto\" (every GPU, else host devices), CUDA ordinals \"0,1,3\", host devices \"host:4\" or, of two threads "
         "each, \"host:4x2\"; RMSP_DEVICES"},
        {"runtime.bind",
         &c.runtime.bind,
         "thread binding: auto (where the machine allows), none, strict (an error where it fails); RMSP_BIND",
         {"auto", "none", "strict"}},
        {"runtime.threads",
         &c.runtime.threads,
         "what drives the devices: a thread for each device, or one for all of them, one device after the other (the "
         "baseline)",
         {"device", "one"}},
        {"runtime.weights",
         &c.runtime.weights,
         "relative speed of each device, each above 0; empty: all equal",
         {},
         0,
         true},
        {"runtime.transports",
         &c.runtime.transports,
         "transports in the order in which they are tried; empty: the default order; RMSP_TRANSPORT",
         {"nccl", "peer", "host"}},
        {"runtime.limit_gbs",
         &c.runtime.limit_gbs,
         "bandwidth limit of one device in GB/s for the report; 0: measured",
         {},
         0},
        {"runtime.topology", &c.runtime.topology,
         "plan for the machine that this file describes (hwloc XML or TOML); only with --dry-run"},
        {"runtime.cache", &c.runtime.cache,
         "folder of what later runs need not find out again; auto: $XDG_CACHE_HOME/rmsp or ~/.cache/rmsp; off: none; "
         "RMSP_CACHE_DIR"},

        {"partition.strategy",
         &c.partition.strategy,
         "what the parts share equally: nonzeros (MSREP) or rows (the baseline)",
         {"nonzeros", "rows"}},
        {"partition.alignment",
         &c.partition.alignment,
         "whether a cut may fall inside a row: auto (at a row's end where that costs at most 0.5 % of a part), exact "
         "(at the exact nonzero), row (never inside)",
         {"auto", "exact", "row"}},
        {"partition.devices",
         &c.partition.devices,
         "devices that get a part of a resident matrix, the first of runtime.devices; 0: if that is auto, as many as "
         "make an apply fastest by a model, else all",
         {},
         0},
        {"partition.balance",
         &c.partition.balance,
         "what the parts of a resident matrix share equally: nonzeros; time (of their kernels, measured: the cuts are "
         "then moved); auto: time on GPUs where so many applies repay it",
         {"auto", "nonzeros", "time"}},
        {"partition.exchange",
         &c.partition.exchange,
         "how an x by rows is exchanged: ranges of columns, single entries, or auto: entries where they are less than "
         "half of the ranges",
         {"auto", "ranges", "entries"}},
        {"partition.pointers",
         &c.partition.pointers,
         "where the local row pointers of the parts are computed: device, or host (the baseline)",
         {"device", "host"}},
        {"partition.unsorted",
         &c.partition.unsorted,
         "what happens to coo in no order: refuse (an error), sort (a copy by row, once), split (as it is; each device "
         "may have some of every row)",
         {"refuse", "sort", "split"}},

        {"kernel.spmv", &c.kernel.spmv, "kernel by its name in `mspmv kernels`, or auto"},
        {"kernel.values",
         &c.kernel.values,
         "how devices keep the values of a matrix of doubles: exact, or float: rounded once, multiplied in double",
         {"exact", "float"}},
        {"kernel.determinism",
         &c.kernel.determinism,
         "what the bits of a result may depend on: none (anything), run (same call, same bits), device_count (same "
         "bits "
         "on any number of devices)",
         {"none", "run", "device_count"}},
        {"kernel.expected_applies",
         &c.kernel.expected_applies,
         "how often the matrix will be multiplied: what auto makes formats for, and from 100 on races kernels for; 0: "
         "run.warmup + run.iterations",
         {},
         0},

        {"run.mode",
         &c.run.mode,
         "resident: the matrix stays on the devices; streamed: it stays in host memory, and each apply copies it to "
         "the "
         "GPUs in pieces",
         {"resident", "streamed"}},
        {"run.chunk_mib",
         &c.run.chunk_mib,
         "MiB of one such piece, of which a GPU holds six; 0: 64, and less towards the end of each part",
         {},
         0},
        {"run.merge",
         &c.run.merge,
         "what adds the partial results of devices that have some of the same rows (csc): a transport, or auto, the "
         "fastest of the connected ones by bytes and latency",
         {"auto", "peer", "nccl", "host"}},
        {"run.vectors",
         &c.run.vectors,
         "where x and y live in the timed loop: host (both), replicated (x on every device), rows (x sliced, gathered "
         "at "
         "each apply)",
         {"host", "replicated", "rows"}},
        {"run.iterations", &c.run.iterations, "timed applies", {}, 1},
        {"run.warmup", &c.run.warmup, "applies before the timed ones", {}, 0},
        {"run.cache",
         &c.run.cache,
         "what a timed apply finds in the devices' caches: warm (what the one before left) or cold (nothing: they are "
         "flushed first, outside the time)",
         {"warm", "cold"}},
        {"run.alpha", &c.run.alpha, "alpha of y = alpha A x + beta y"},
        {"run.beta", &c.run.beta, "beta of y = alpha A x + beta y; 0: y is not read"},
        {"run.verify", &c.run.verify, "compare the last y with the serial reference"},
        {"run.compare_vendor", &c.run.compare_vendor,
         "also time the vendor's kernels (GPUs: cuSPARSE) in the same run"},

        {"stream.encoding",
         &c.stream.encoding,
         "how a streamed matrix crosses the links: none (as it is in memory), auto (columns and values encoded without "
         "loss where that saves bytes)",
         {"none", "auto"}},
        {"stream.device_mib",
         &c.stream.device_mib,
         "MiB of each device's memory that a streamed matrix and its copies of x and y may take; 0: all there is",
         {},
         0},

        {"spgemm.product",
         &c.spgemm.product,
         "what mspmv spgemm computes: aa (A A), aat (A A^T), ata (A^T A), ab (A B)",
         {"aa", "aat", "ata", "ab"}},
        {"spgemm.file", &c.spgemm.file, "B of A B: a file as for matrix.file; this or spgemm.generate"},
        {"spgemm.generate", &c.spgemm.generate, "B of A B, generated as by matrix.generate"},
        {"spgemm.kernel", &c.spgemm.kernel, "kernel by its name in `mspmv kernels`, or auto"},
        {"spgemm.accumulator",
         &c.spgemm.accumulator,
         "how a row of C is added up: auto, or one that the kernel has",
         {"auto", "scatter", "scatter-1", "scatter-2", "scatter-4", "scatter-8", "hash", "window", "chunks"}},
        {"spgemm.transport",
         &c.spgemm.transport,
         "how GPUs get from each other what several of them need of B: peer, nccl, host; none: each gets all of its "
         "rows from the host",
         {"auto", "peer", "nccl", "host", "none"}},
        {"spgemm.memory_limit",
         &c.spgemm.memory_limit,
         "memory of each device that a product may hold: up to 1 a share of what is free, above it bytes; where C does "
         "not fit, it is computed in runs of rows that go to the host",
         {},
         0,
         true},
        {"spgemm.prune_below",
         &c.spgemm.prune_below,
         "count the entries of C that are not below this in magnitude",
         {},
         0},
        {"spgemm.iterations", &c.spgemm.iterations, "timed products on the devices", {}, 1},
        {"spgemm.warmup", &c.spgemm.warmup, "products before the timed ones", {}, 0},
        {"spgemm.sampled_rows",
         &c.spgemm.sampled_rows,
         "rows of C that are compared entry by entry, besides C v with A (B v)",
         {},
         0},

        {"output.json", &c.output.json, "JSON report: a file name, \"-\" for standard output, empty for none"},
        {"output.log_level",
         &c.output.log_level,
         "least severe message that is logged to standard error",
         {"trace", "debug", "info", "warn", "error", "off"}},
    };
}

[[noreturn]] void fail(const std::string& origin, const std::string& message)
{
    throw Error(ErrorCode::usage, origin + ": " + message);
}

std::size_t edit_distance(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i + 1;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({substituted, row[j + 1] + 1, row[j] + 1});
        }
    }
    return row.back();
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

/// The known name that `name` most likely meant: the same key of another section, else the least edit distance.
std::string nearest(const std::vector<std::string>& known, std::string_view name)
{
    // Distances of very long names would cost time and mean nothing.
    const std::string_view head = name.substr(0, 64);
    return *std::min_element(known.begin(), known.end(), [&](const std::string& a, const std::string& b) {
        const auto rank = [&](const std::string& candidate) {
            return std::pair(last_part(candidate) != last_part(head), edit_distance(candidate, head));
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

[[noreturn]] void fail_unknown(const std::vector<Key>& keys, const std::string& origin, const std::string& name)
{
    fail(origin,
         fmt::format("unknown key \"{}\"; the nearest known key is \"{}\"", name, nearest(names_of(keys), name)));
}

std::string type_name(const Target& target)
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
        root = toml::parse(text);
    } catch (const toml::parse_error& e) {
        fail(position(e.source()), std::string(e.description()));
    }
    const std::vector<std::string> sections = sections_of(keys);
    for (const auto& [section, content] : root) {
        const std::string section_name(section.str());
        if (std::find(sections.begin(), sections.end(), section_name) == sections.end()) {
            if (content.is_table()) {
                fail(position(section.source()),
                     fmt::format("unknown section \"{}\"; the nearest known section is \"{}\"", section_name,
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
        parsed = toml::parse("v = " + document);
    } catch (const toml::parse_error&) {
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
    static constexpr std::array<std::pair<const char*, const char*>, 4> variables{{
        {"RMSP_DEVICES", "runtime.devices"},
        {"RMSP_BIND", "runtime.bind"},
        {"RMSP_TRANSPORT", "runtime.transports"},
        {"RMSP_CACHE_DIR", "runtime.cache"},
    }};
    for (const auto& [variable, name] : variables) {
        const char* text = std::getenv(variable);
        if (text != nullptr && *text != '\0') {
            assign_text(*find_key(keys, name), text, fmt::format("environment variable {}", variable));
        }
    }
}

void apply_override(Config& config, const std::vector<Key>& keys, const std::string& text)
{
    const std::string origin = fmt::format("override \"{}\"", text);
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
        fail(origin, "must have the form section.key=value");
    }
    const std::string name(trim(std::string_view(text).substr(0, equals)));
    const Key* key = find_key(keys, name);
    if (key == nullptr) {
        fail_unknown(keys, origin, name);
    }
    assign_text(*key, trim(std::string_view(text).substr(equals + 1)), origin);
    // A later source of the matrix takes the place of an earlier one.
    if (name == "matrix.file" && !config.matrix.file.empty()) {
        config.matrix.generate.clear();
    } else if (name == "matrix.generate" && !config.matrix.generate.empty()) {
        config.matrix.file.clear();
    }
}

}  // namespace

Config parse_config(const std::string& text, const std::string& name, const std::vector<std::string>& overrides)
{
    Config config;
    const std::vector<Key> keys = key_table(config);
    apply_file(keys, text, name);
    if (!config.matrix.file.empty() && !config.matrix.generate.empty()) {
        fail(name, fmt::format("matrix.file (\"{}\") and matrix.generate (\"{}\") exclude each other",
                               config.matrix.file, config.matrix.generate));
    }
    apply_environment(keys);
    for (const std::string& text_of_override : overrides) {
        apply_override(config, keys, text_of_override);
    }
    if (config.matrix.file.empty() && config.matrix.generate.empty()) {
        fail(name, "no matrix: one of matrix.file and matrix.generate must be given");
    }
    return config;
}

Config load_config(const std::string& path, const std::vector<std::string>& overrides)
{
    const auto fail_read = [&] {
        throw Error(ErrorCode::io, fmt::format("{}: cannot read the configuration: {}", path, std::strerror(errno)));
    };
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
    if (file == nullptr) {
        fail_read();
    }
    std::string text;
    std::array<char, 4096> block;
    while (const std::size_t n = std::fread(block.data(), 1, block.size(), file.get())) {
        text.append(block.data(), n);
    }
    if (std::ferror(file.get()) != 0) {
        fail_read();
    }
    return parse_config(text, path, overrides);
}

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

RuntimeOptions runtime_options(const Config& config)
{
    RuntimeOptions options;
    options.devices = config.runtime.devices;
    options.bind = parse_bind_policy(config.runtime.bind);
    options.one_thread = config.runtime.threads == "one";
    options.weights = config.runtime.weights;
    options.transports = config.runtime.transports;
    options.limit_gbs = config.runtime.limit_gbs;
    options.topology_file = config.runtime.topology;
    options.cache = config.runtime.cache;
    return options;
}

DistributeOptions distribute_options(const Config& config)
{
    DistributeOptions options;
    options.strategy = config.partition.strategy == "rows" ? PartitionStrategy::rows : PartitionStrategy::nonzeros;
    options.alignment = config.partition.alignment == "exact" ? RowAlignment::exact
                        : config.partition.alignment == "row" ? RowAlignment::row
                                                              : RowAlignment::automatic;
    options.devices = static_cast<int>(std::min<std::int64_t>(config.partition.devices, INT32_MAX));
    options.balance = config.partition.balance == "nonzeros" ? Balance::nonzeros
                      : config.partition.balance == "time"   ? Balance::time
                                                             : Balance::automatic;
    options.exchange = config.partition.exchange == "ranges"    ? Exchange::ranges
                       : config.partition.exchange == "entries" ? Exchange::entries
                                                                : Exchange::automatic;
    options.x_layout = config.run.vectors == "replicated" ? Layout::replicated : Layout::rows;
    options.row_pointers = config.partition.pointers == "host" ? RowPointers::host : RowPointers::device;
    options.unsorted = config.partition.unsorted == "sort"    ? Unsorted::sort
                       : config.partition.unsorted == "split" ? Unsorted::split
                                                              : Unsorted::refuse;
    options.kernel = config.kernel.spmv;
    options.values = config.kernel.values == "float" ? StoredValues::floats : StoredValues::exact;
    options.merge = config.run.merge;
    options.expected_applies =
        config.kernel.expected_applies > 0 ? config.kernel.expected_applies : config.run.warmup + config.run.iterations;
    options.mode = config.run.mode == "streamed" ? Mode::streamed : Mode::resident;
    constexpr std::int64_t most_mib = std::numeric_limits<std::int64_t>::max() >> 20;
    options.chunk_bytes = std::min(config.run.chunk_mib, most_mib) << 20;
    options.encoding = config.stream.encoding == "auto" ? StreamEncoding::automatic : StreamEncoding::none;
    options.device_bytes = std::min(config.stream.device_mib, most_mib) << 20;
    options.determinism = config.kernel.determinism == "run"            ? Determinism::run
                          : config.kernel.determinism == "device_count" ? Determinism::device_count
                                                                        : Determinism::none;
    return options;
}

SpgemmOptions spgemm_options(const Config& config)
{
    SpgemmOptions options;
    options.kernel = config.spgemm.kernel;
    options.accumulator = config.spgemm.accumulator;
    options.memory_limit = config.spgemm.memory_limit;
    options.transport = config.spgemm.transport;
    options.determinism = config.kernel.determinism == "run"            ? Determinism::run
                          : config.kernel.determinism == "device_count" ? Determinism::device_count
                                                                        : Determinism::none;
    return options;
}

}  // namespace rmsp
