#include "io/description.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rmsp/error.hpp>
#include <rmsp/io.hpp>

namespace rmsp {
namespace io {
namespace {

constexpr std::string_view decimal = "exponent";  // the one parameter that is not an integer

constexpr std::array<Generator, 6> patterns{{{"stencil27", {"nx", "ny", "nz"}},
                                             {"stencil7", {"nx", "ny", "nz"}},
                                             {"banded", {"rows", "half_band"}},
                                             {"rmat", {"scale", "edge_factor"}},
                                             {"random", {"rows", "cols", "per_row"}},
                                             {"powerlaw", {"rows", "per_row", decimal}}}};

std::vector<Generator> all_generators()
{
    std::vector<Generator> all(patterns.begin(), patterns.end());
    all.insert(all.end(), structures.begin(), structures.end());
    return all;
}

std::size_t count(const Generator& generator)
{
    return static_cast<std::size_t>(
        std::count_if(generator.parameters.begin(), generator.parameters.end(), [](auto p) { return !p.empty(); }));
}

std::string usage(const Generator& generator)
{
    return fmt::format("{} {}", generator.name,
                       fmt::join(generator.parameters.begin(),
                                 generator.parameters.begin() + static_cast<std::ptrdiff_t>(count(generator)), " "));
}

std::vector<std::string_view> split_words(std::string_view text)
{
    constexpr std::string_view blanks = " \t\r\n";
    std::vector<std::string_view> words;
    for (std::size_t at = text.find_first_not_of(blanks); at != std::string_view::npos;) {
        const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
        words.push_back(text.substr(at, end - at));
        at = text.find_first_not_of(blanks, end);
    }
    return words;
}

Generator find_generator(std::string_view description, const std::vector<std::string_view>& words)
{
    for (const Generator& generator : all_generators()) {
        if (!words.empty() && words[0] == generator.name) {
            return generator;
        }
    }
    const std::string known = fmt::format("known are: {}", fmt::join(list_generators(), ", "));
    refuse_description(description, words.empty() ? "it is empty; " + known
                                                  : fmt::format("unknown generator \"{}\"; {}", words[0], known));
}

double parse_decimal(std::string_view description, std::string_view name, std::string_view word)
{
    double value = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
    if (parsed.ec != std::errc{} || parsed.ptr != word.data() + word.size()) {
        refuse_description(description, fmt::format("{} \"{}\" is not a number", name, word));
    }
    return value;
}

Arguments parse_arguments(std::string_view description, const Generator& generator,
                          const std::vector<std::string_view>& words)
{
    const std::size_t wanted = count(generator);
    if (words.size() - 1 < wanted) {
        refuse_description(description, fmt::format("{} is missing (usage: {})", generator.parameters[words.size() - 1],
                                                    usage(generator)));
    }
    if (words.size() - 1 > wanted) {
        refuse_description(description,
                           fmt::format("unexpected \"{}\" (usage: {})", words[wanted + 1], usage(generator)));
    }
    Arguments values{};
    for (std::size_t i = 0; i < wanted; ++i) {
        const std::string_view word = words[i + 1];
        if (generator.parameters[i] == decimal) {
            continue;
        }
        const auto parsed = std::from_chars(word.data(), word.data() + word.size(), values[i]);
        if (parsed.ec == std::errc::result_out_of_range) {
            refuse_description(description,
                               fmt::format("{} \"{}\" does not fit 64 bits", generator.parameters[i], word));
        }
        if (parsed.ec != std::errc{} || parsed.ptr != word.data() + word.size()) {
            refuse_description(description, fmt::format("{} \"{}\" is not an integer (usage: {})",
                                                        generator.parameters[i], word, usage(generator)));
        }
        if (values[i] < 0) {
            refuse_description(description, fmt::format("{} \"{}\" is negative", generator.parameters[i], word));
        }
    }
    return values;
}

}  // namespace

void refuse_description(std::string_view description, const std::string& what)
{
    throw Error(ErrorCode::usage, fmt::format("generated matrix \"{}\": {}", description, what));
}

Description parse_description(std::string_view text)
{
    std::vector<std::string_view> words = split_words(text);
    const Generator generator = find_generator(text, words);
    const Arguments arguments = parse_arguments(text, generator, words);
    double exponent = 0;
    for (std::size_t i = 0; i < generator.parameters.size(); ++i) {
        if (generator.parameters[i] == decimal) {
            exponent = parse_decimal(text, decimal, words[i + 1]);
        }
    }
    return {generator, std::move(words), arguments, exponent};
}

}  // namespace io

std::vector<std::string> list_generators()
{
    std::vector<std::string> usages;
    for (const io::Generator& generator : io::all_generators()) {
        usages.push_back(io::usage(generator));
    }
    return usages;
}

}  // namespace rmsp
