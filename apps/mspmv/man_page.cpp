#include "apps/mspmv/man_page.hpp"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include <rmsp/version.hpp>

namespace rmsp::mspmv {
namespace {

/// For troff: no dash becomes a hyphen, no line a request.
std::string roff(std::string_view text)
{
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if ((c == '.' || c == '\'') && (i == 0 || text[i - 1] == '\n')) {
            out += "\\&";
        }
        out += c == '-' ? "\\-" : c == '\\' ? "\\e" : std::string(1, c);
    }
    return out;
}

std::string roff_options(const CLI::App& app)
{
    std::string out;
    for (const CLI::Option* option : app.get_options()) {
        const bool place = option->get_positional();
        std::string type = option->get_type_name();
        type.resize(std::min(type.find(':'), type.size()));  // without the values that a check allows
        out += fmt::format(".TP\n.B {}{}{}\n{}\n", roff(option->get_name(place, !place)),
                           type.empty() || place ? "" : " ", place ? "" : roff(type), roff(option->get_description()));
    }
    return out;
}

std::string roff_footer(const CLI::App& app)
{
    return app.get_footer().empty() ? "" : fmt::format(".PP\n.nf\n{}\n.fi\n", roff(app.get_footer()));
}

}  // namespace

std::string man_page(const CLI::App& app, std::string_view what)
{
    const std::string name = app.get_name();
    std::string title = name;
    std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::toupper(c); });
    std::string out = fmt::format(
        ".TH {} 1 \"\" \"librmsp {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n"
        ".SH SYNOPSIS\n.B {}\n[OPTIONS] COMMAND [ARGUMENTS]\n.SH DESCRIPTION\n{}.\n.SH OPTIONS\n{}",
        title, version(), roff(name), roff(what), roff(name), roff(app.get_description()), roff_options(app));
    out += ".SH COMMANDS\n";
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        out += fmt::format(".SS {} {}\n{}.\n{}{}", roff(name), roff(command->get_name()),
                           roff(command->get_description()), roff_options(*command), roff_footer(*command));
    }
    return out + ".SH NOTES\n" + roff_footer(app);
}

}  // namespace rmsp::mspmv
