#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <rmsp/error.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/options.hpp"
#include "apps/mspmv/output.hpp"
#include "apps/mspmv/page/page.hpp"
#include "apps/mspmv/page/plot_page.hpp"

namespace rmsp::mspmv {
namespace {

struct PlotArguments {
    std::vector<std::string> files;
    std::vector<std::string> labels;
    std::string output;
};

int plot(const PlotArguments& options)
{
    const std::string ending = std::filesystem::path(options.output).extension().string();
    if (ending != ".html" && ending != ".svg") {
        throw Error(ErrorCode::usage, fmt::format("-o: \"{}\" does not end in .html or .svg", options.output));
    }
    if (!options.labels.empty() && options.labels.size() != options.files.size()) {
        throw Error(ErrorCode::usage,
                    fmt::format("--labels: {} labels for {} reports", options.labels.size(), options.files.size()));
    }
    require_writable(options.output);
    std::vector<PlottedReport> reports;
    for (std::size_t i = 0; i < options.files.size(); ++i) {
        const std::string& file = options.files[i];
        reports.push_back({options.labels.empty() ? std::filesystem::path(file).stem().string() : options.labels[i],
                           read_report(file)});
    }
    write_text(options.output, ending == ".svg" ? plot_svg(reports) : plot_page(reports));
    return 0;
}

}  // namespace

void add_plot(CLI::App& app, Action& action)
{
    auto options = std::make_shared<PlotArguments>();
    CLI::App* command = app.add_subcommand("plot", "Draw several reports beside each other, from their JSON");
    command->add_option("JSON", options->files, "what --json of run, spgemm, solve or eigen wrote, two or more")
        ->type_name("FILE")
        ->required()
        ->expected(1, 64);
    command->add_option("--labels", options->labels, "a name for each, in their order; else those of the files")
        ->type_name("A,B,...")
        ->delimiter(',')
        ->expected(1, 64);
    command->add_option("-o,--output", options->output, "the page or drawing: .html or .svg")
        ->type_name("FILE")
        ->required();
    command->footer(
        "Examples:\n"
        "  mspmv plot report.json result.json -o comparison.html\n"
        "  mspmv plot report.json result.json --labels before,after -o comparison.svg");
    command->callback([&action, options] { action = [options] { return plot(*options); }; });
}

}  // namespace rmsp::mspmv
