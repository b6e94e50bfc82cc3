#include <memory>
#include <string>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/options.hpp"
#include "apps/mspmv/output.hpp"
#include "apps/mspmv/page/page.hpp"
#include "apps/mspmv/print.hpp"

namespace rmsp::mspmv {
namespace {

struct ReportArguments {
    std::string file;
    std::string html;
};

int show(const ReportArguments& options)
{
    require_writable(options.html);
    const Json report = read_report(options.file);
    if (options.html.empty()) {
        write_report(report_text(report, options.file), "", "");
    } else if (options.html == "-") {
        print(report_page(report, options.file));
    } else {
        write_text(options.html, report_page(report, options.file));
    }
    return 0;
}

}  // namespace

void add_report(CLI::App& app, Action& action)
{
    auto options = std::make_shared<ReportArguments>();
    CLI::App* command = app.add_subcommand("report", "Print a report from its JSON, or draw it as a page of HTML");
    command->add_option("JSON", options->file, "what --json of run, spgemm or solve wrote")
        ->type_name("FILE")
        ->required();
    add_text(*command, "--html", options->html, "FILE",
             "write a page with drawings, which needs nothing beside itself; - : to standard output");
    command->footer(
        "Examples:\n"
        "  mspmv run configs/quickstart.toml --json report.json\n"
        "  mspmv report report.json\n"
        "  mspmv report report.json --html report.html");
    command->callback([&action, options] { action = [options] { return show(*options); }; });
}

}  // namespace rmsp::mspmv
