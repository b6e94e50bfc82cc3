#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <rmsp/error.hpp>
#include <rmsp/version.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/help.hpp"
#include "apps/mspmv/print.hpp"
#include "apps/mspmv/progress.hpp"
#include "apps/mspmv/signals.hpp"
#include "apps/mspmv/terminal.hpp"

namespace {

/// Allocates nothing: there may be no memory left.
int fail(rmsp::ErrorCode code, std::string_view message, std::string_view more = {}) noexcept
{
    rmsp::mspmv::clear_progress_line();
    const bool red = rmsp::mspmv::coloured(STDERR_FILENO);
    for (const std::string_view part : {std::string_view(red ? "mspmv: \033[31merror\033[0m: " : "mspmv: error: "),
                                        message, more, std::string_view("\n")}) {
        rmsp::mspmv::print_error(part);
    }
    return static_cast<int>(code);
}

void apply_appearance(const std::string& colour)
{
    using rmsp::mspmv::Colour;
    rmsp::mspmv::appearance().colour = colour == "always"  ? Colour::always
                                       : colour == "never" ? Colour::never
                                                           : Colour::automatic;
    for (const auto& sink : spdlog::default_logger()->sinks()) {
        if (auto* const terminal = dynamic_cast<spdlog::sinks::stderr_color_sink_mt*>(sink.get())) {
            terminal->set_color_mode(rmsp::mspmv::coloured(STDERR_FILENO) ? spdlog::color_mode::always
                                                                          : spdlog::color_mode::never);
        }
    }
}

int run(int argc, char** argv)
{
    CLI::App app("Multiplies sparse matrices, and solves with them, on every GPU of a node, or on groups of its cores",
                 "mspmv");
    app.require_subcommand(1);
    app.set_version_flag("--version", fmt::format("mspmv {}\ncommit: {}\nfeatures: {}", rmsp::version(), rmsp::commit(),
                                                  rmsp::build_features()));
    app.footer(
        "Exit codes: 0 success, 1 internal error, 2 usage or configuration, 3 input or output, 4 out of memory,\n"
        "5 device or communication, 6 a solve did not converge, 7 verification failed.\n"
        "Examples:\n"
        "  mspmv generate stencil27 100 100 100 -o stencil.npz\n"
        "  mspmv run configs/quickstart.toml --matrix stencil.npz\n"
        "  mspmv help run");
    // Options of the program are taken behind a command, too.
    app.fallthrough();
    std::string colour = "auto";
    app.add_option("--color", colour, "colours: auto (of terminals, unless NO_COLOR is set), always, never")
        ->type_name("WHEN")
        ->check(CLI::IsMember({"auto", "always", "never"}));
    app.add_flag("--quiet", rmsp::mspmv::appearance().quiet,
                 "no report on standard output and no progress: results go to files");
    rmsp::mspmv::Action action;
    rmsp::mspmv::add_run(app, action);
    rmsp::mspmv::add_spgemm(app, action);
    rmsp::mspmv::add_solve(app, action);
    rmsp::mspmv::add_eigen(app, action);
    rmsp::mspmv::add_solvers(app, action);
    rmsp::mspmv::add_characterize(app, action);
    rmsp::mspmv::add_report(app, action);
    rmsp::mspmv::add_plot(app, action);
    rmsp::mspmv::add_machines(app, action);
    rmsp::mspmv::add_topo(app, action);
    rmsp::mspmv::add_doctor(app, action);
    rmsp::mspmv::add_kernels(app, action);
    rmsp::mspmv::add_generate(app, action);
    rmsp::mspmv::add_convert(app, action);
    rmsp::mspmv::add_help(app, action);
    rmsp::mspmv::add_completion(app, action);
    try {
        app.parse(argc, argv);
        apply_appearance(colour);
    } catch (const CLI::Success& e) {  // --help and --version
        std::ostringstream text;
        const int code = app.exit(e, text, text);
        rmsp::mspmv::print_fitted(text.str());
        return code;
    } catch (const CLI::ParseError& e) {
        const auto commands = app.get_subcommands();
        const auto unknown = app.remaining();
        if (commands.empty() && !unknown.empty()) {
            return fail(rmsp::ErrorCode::usage, fmt::format("\"{}\" is no command{} (see mspmv --help)",
                                                            unknown.front(), rmsp::mspmv::suggestion(app)));
        }
        return fail(rmsp::ErrorCode::usage,
                    fmt::format("{}{} (see mspmv {}--help)", e.what(), rmsp::mspmv::suggestion(app),
                                commands.empty() ? "" : commands.front()->get_name() + ' '));
    }
#ifdef _OPENMP
    // OpenMP's runtime ends the process where it cannot start a thread.
    constexpr int most_threads = 4096;
    if (omp_get_max_threads() > most_threads) {
        return fail(rmsp::ErrorCode::usage, fmt::format("OMP_NUM_THREADS asks for {} threads, more than {}",
                                                        omp_get_max_threads(), most_threads));
    }
#endif
    return action();
}

}  // namespace

int main(int argc, char** argv)
{
    using rmsp::mspmv::return_of_main;
    try {
        rmsp::mspmv::expect_return_of_main();
        rmsp::mspmv::handle_termination();
        auto logger = spdlog::stderr_color_mt("mspmv");
        logger->set_pattern("%n: %^%l%$: %v");
        logger->set_level(spdlog::level::warn);
        spdlog::set_default_logger(std::move(logger));
        return return_of_main(run(argc, argv));
    } catch (const rmsp::Error& e) {
        spdlog::debug("raised at {}:{} in {}", e.where().file_name(), e.where().line(), e.where().function_name());
        return return_of_main(fail(e.code(), e.what()));
    } catch (const std::bad_alloc& e) {
        // Of a reader it names the file.
        constexpr std::string_view lack = "out of host memory";
        const std::string_view what = e.what();
        return return_of_main(fail(rmsp::ErrorCode::out_of_memory, what.starts_with(lack) ? what : lack));
    } catch (const std::system_error& e) {
        const bool lack =
            e.code() == std::errc::resource_unavailable_try_again || e.code() == std::errc::not_enough_memory;
        return return_of_main(lack ? fail(rmsp::ErrorCode::out_of_memory, "no more memory or threads: ", e.what())
                                   : fail(rmsp::ErrorCode::internal, "internal error: ", e.what()));
    } catch (const std::exception& e) {
        return return_of_main(fail(rmsp::ErrorCode::internal, "internal error: ", e.what()));
    }
}
