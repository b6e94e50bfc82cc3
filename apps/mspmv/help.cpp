#include "apps/mspmv/help.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rmsp/config.hpp>
#include <rmsp/error.hpp>
#include <rmsp/names.hpp>
#include <rmsp/version.hpp>

#include "apps/mspmv/man_page.hpp"
#include "apps/mspmv/options.hpp"
#include "apps/mspmv/print.hpp"

namespace rmsp::mspmv {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app)
{
    return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> names_of(const std::vector<const CLI::App*>& commands)
{
    std::vector<std::string> names;
    for (const CLI::App* command : commands) {
        names.push_back(command->get_name());
    }
    return names;
}

/// "--name" and "-n" of the options.
std::vector<std::string> options_of(const CLI::App& app)
{
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) {
            names.push_back("--" + name);
        }
        for (const std::string& name : option->get_snames()) {
            names.push_back("-" + name);
        }
    }
    return names;
}

const CLI::App& command_named(const CLI::App& app, const std::string& name)
{
    const auto commands = commands_of(app);
    for (const CLI::App* command : commands) {
        if (command->get_name() == name) {
            return *command;
        }
    }
    const std::string meant = similar_name(name, names_of(commands));
    throw Error(ErrorCode::usage,
                fmt::format("\"{}\" is no command{}", name, meant.empty() ? "" : "; did you mean " + meant + '?'));
}

/// "--iterations" and how to set it, "--set run.iterations": each key of configurations as if it were an option. Of
/// several with the same last word, the command's own, else the first.
std::map<std::string, std::string> keys_as_options(const CLI::App& command)
{
    std::map<std::string, std::string> options;
    for (const ConfigKey& key : config_keys()) {
        std::string name = key.name.substr(key.name.rfind('.') + 1);
        std::replace(name.begin(), name.end(), '_', '-');
        if (std::string set = "--set " + key.name; key.name.starts_with(command.get_name())) {
            options.insert_or_assign("--" + name, std::move(set));
        } else {
            options.try_emplace("--" + name, std::move(set));
        }
    }
    return options;
}

std::string bash_completion(const CLI::App& app)
{
    std::string cases;
    for (const CLI::App* command : commands_of(app)) {
        cases +=
            fmt::format("        {}) words=\"{}\" ;;\n", command->get_name(), fmt::join(options_of(*command), " "));
    }
    const std::string global = fmt::format("{}", fmt::join(options_of(app), " "));
    return fmt::format(
        "# Completion of mspmv for bash, printed by `mspmv completion bash`.\n"
        "_mspmv() {{\n"
        "    local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command= words i\n"
        "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
        "        [[ ${{COMP_WORDS[i]}} == -* ]] || {{ command=${{COMP_WORDS[i]}}; break; }}\n"
        "    done\n"
        "    if [[ $previous == --machine ]]; then\n"
        "        COMPREPLY=($(compgen -W \"$(mspmv machines 2>/dev/null | sed -n 's/^\\([a-z0-9-]*\\)  .*/\\1/p')\" -- "
        "\"$word\"))\n"
        "        return\n"
        "    fi\n"
        "    case $command in\n"
        "        '') words=\"{} {}\" ;;\n"
        "        help) words=\"{} --man\" ;;\n"
        "        completion) words=\"bash zsh\" ;;\n"
        "{}"
        "    esac\n"
        "    if [[ $word == -* || -z $command || $command == help || $command == completion ]]; then\n"
        "        COMPREPLY=($(compgen -W \"$words {}\" -- \"$word\"))\n"
        "    else\n"
        "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
        "    fi\n"
        "}}\n"
        "complete -o filenames -F _mspmv mspmv\n",
        fmt::join(names_of(commands_of(app)), " "), global, fmt::join(names_of(commands_of(app)), " "), cases, global);
}

/// A file `_mspmv` for zsh's fpath, or to be sourced.
std::string zsh_completion(const CLI::App& app)
{
    const std::string names = fmt::format("{}", fmt::join(names_of(commands_of(app)), " "));
    const std::string global = fmt::format("{}", fmt::join(options_of(app), " "));
    std::string cases;
    for (const CLI::App* command : commands_of(app)) {
        const std::string own = command->get_name() == "help" ? names + " --man"
                                : command->get_name() == "completion"
                                    ? "bash zsh"
                                    : fmt::format("{}", fmt::join(options_of(*command), " "));
        cases += fmt::format("        {}) known=({}) ;;\n", command->get_name(), own);
    }
    return fmt::format(
        "#compdef mspmv\n"
        "# Completion of mspmv for zsh, printed by `mspmv completion zsh`.\n"
        "_mspmv() {{\n"
        "    local command= one\n"
        "    local -a known\n"
        "    for one in ${{words[2,CURRENT-1]}}; do\n"
        "        [[ $one == -* ]] || {{ command=$one; break }}\n"
        "    done\n"
        "    if [[ ${{words[CURRENT-1]}} == --machine ]]; then\n"
        "        compadd -- $(mspmv machines 2>/dev/null | sed -n 's/^\\([a-z0-9-]*\\)  .*/\\1/p')\n"
        "        return\n"
        "    fi\n"
        "    case $command in\n"
        "        '') known=({}) ;;\n"
        "{}"
        "    esac\n"
        "    if [[ ${{words[CURRENT]}} == -* || -z $command || $command == help || $command == completion ]]; then\n"
        "        compadd -- $known {}\n"
        "    else\n"
        "        _files\n"
        "    fi\n"
        "}}\n"
        "if [[ $funcstack[1] == _mspmv ]]; then\n"
        "    _mspmv \"$@\"\n"
        "else\n"
        "    compdef _mspmv mspmv\n"
        "fi\n",
        names, cases, global);
}

}  // namespace

void add_help(CLI::App& app, Action& action)
{
    struct Options {
        std::string command;
        bool man = false;
    };
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("help", "Say what a command does, or all of them as a man page");
    command->add_option("COMMAND", options->command, "one of the commands")->type_name("NAME");
    command->add_flag("--man", options->man, "print the man page instead, for troff");
    command->footer("Examples:\n  mspmv help run\n  mspmv help --man > mspmv.1");
    command->callback([&app, &action, options] {
        action = [&app, options] {
            if (options->man) {
                print(man_page(app, "sparse matrices on every GPU of a node"));
            } else if (options->command.empty()) {
                print_fitted(app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal));
            } else {
                print_fitted(command_named(app, options->command).help("mspmv", CLI::AppFormatMode::Normal));
            }
            return 0;
        };
    });
}

void add_completion(CLI::App& app, Action& action)
{
    auto shell = std::make_shared<std::string>();
    CLI::App* command = app.add_subcommand("completion", "Print what completes the words of mspmv in a shell");
    command->add_option("SHELL", *shell, "bash or zsh")
        ->type_name("NAME")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh"}));
    command->footer("Example:\n  mspmv completion bash > /etc/bash_completion.d/mspmv");
    // The option writes to `shell`, which has to be there as long as the callback.
    command->callback([&app, &action, shell] {
        action = [&app, shell] {
            print(*shell == "zsh" ? zsh_completion(app) : bash_completion(app));
            return 0;
        };
    });
}

std::string suggestion(const CLI::App& app)
{
    const auto chosen = app.get_subcommands();
    const auto unknown = app.remaining(true);
    if (unknown.empty()) {
        return "";
    }
    const std::string word = unknown.front().substr(0, unknown.front().find('='));
    if (!word.starts_with('-') && !chosen.empty()) {
        return "";
    }
    std::vector<std::string> known = options_of(app);
    std::map<std::string, std::string> keys;
    if (chosen.empty()) {
        known = word.starts_with('-') ? known : names_of(commands_of(app));
    } else {
        const std::vector<std::string> more = options_of(*chosen.front());
        known.insert(known.end(), more.begin(), more.end());
        if (std::find(more.begin(), more.end(), "--set") != more.end()) {
            keys = keys_as_options(*chosen.front());
        }
        for (const auto& [name, set] : keys) {
            known.push_back(name);  // behind the options, which come first where both are as near
        }
    }
    const std::string meant = similar_name(word, known);
    if (meant.empty()) {
        return "";
    }
    const auto key = std::find(known.begin(), known.end(), meant) - known.begin() <
                             static_cast<std::ptrdiff_t>(known.size() - keys.size())
                         ? keys.end()
                         : keys.find(meant);
    return key == keys.end()
               ? fmt::format("; did you mean {}?", meant)
               : fmt::format("; did you mean {}={}?", key->second,
                             word.size() < unknown.front().size() ? unknown.front().substr(word.size() + 1) : "...");
}

}  // namespace rmsp::mspmv
