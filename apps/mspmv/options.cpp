#include "apps/mspmv/options.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rmsp/io.hpp>

namespace rmsp::mspmv {
namespace {

/// The parser's own ranges print the largest double.
CLI::Validator at_least(std::int64_t least)
{
    return {[least](const std::string& text) {
                std::int64_t value = 0;
                return CLI::detail::lexical_cast(text, value) && value >= least
                           ? std::string()
                           : fmt::format("\"{}\" is not an integer of at least {}", text, least);
            },
            ""};
}

void add_integer(CLI::App& command, const char* name, std::int64_t& target, std::int64_t least, const char* meaning)
{
    command.add_option(name, target, meaning)->type_name("N")->check(at_least(least))->capture_default_str();
}

}  // namespace

void add_text(CLI::App& command, const char* name, std::string& target, const char* type, const char* meaning)
{
    command.add_option(name, target, meaning)
        ->type_name(type)
        ->take_last()
        ->check(CLI::Validator([](const std::string& text) { return text.empty() ? "must not be empty" : ""; }, ""));
}

void add_matrix_options(CLI::App& command, Config::Matrix& matrix, const std::vector<std::string>& values,
                        const char* meaning_of_values)
{
    command.add_option("--values", matrix.values, meaning_of_values)
        ->type_name("KIND")
        ->check(CLI::IsMember(values))
        ->capture_default_str();
    add_integer(command, "--seed", matrix.seed, 0, "seed of what is random");
    command.add_flag("--plus-identity", matrix.plus_identity, "write A + I instead of A");
    add_integer(command, "--kron", matrix.kron, 1,
                "write the Kronecker product with a block of N rows and columns: N unknowns at each node");
    command.add_flag("--renumber", matrix.renumber, "write rows and columns in the order of Cuthill and McKee");
    add_text(command, "--permutation", matrix.permutation, "FILE",
             "write rows and columns in the order of this .npy, which mspmv characterize saves");
    command
        .add_option("--max-bytes", matrix.max_bytes,
                    "most bytes of host memory that reading one file may hold; 0: as many as the machine has")
        ->type_name("N")
        ->check(at_least(0))
        ->envname("RMSP_IO_MAX_BYTES")
        ->capture_default_str();
    command.add_option("--precision", matrix.precision, "precision of the values: double or float")
        ->type_name("TYPE")
        ->check(CLI::IsMember({"double", "float"}))
        ->capture_default_str();
}

void add_output(CLI::App& command, const char* name, std::string& target)
{
    const auto endings = written_endings();
    const std::string list = fmt::format("{}", fmt::join(endings, ", "));
    command.add_option(name, target, "file to write; its name ends in one of " + list)
        ->type_name("FILE")
        ->required()
        // Before anything is read or generated.
        ->check(CLI::Validator(
            [endings, list](const std::string& path) {
                const bool known = std::any_of(endings.begin(), endings.end(),
                                               [&](std::string_view ending) { return path.ends_with(ending); });
                return known ? std::string() : fmt::format("\"{}\" does not end in one of {}", path, list);
            },
            ""));
}

}  // namespace rmsp::mspmv
