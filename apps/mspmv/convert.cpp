#include <memory>
#include <string>

#include <rmsp/config.hpp>

#include "apps/mspmv/commands.hpp"
#include "apps/mspmv/options.hpp"
#include "apps/mspmv/output.hpp"
#include "apps/mspmv/precision.hpp"

namespace rmsp::mspmv {
namespace {

struct ConvertArguments {
    Config::Matrix matrix;
    std::string output;
};

template <class T>
int convert(const ConvertArguments& options)
{
    require_writable(options.output);
    write_loaded<T>(options.matrix, options.output, "");
    return 0;
}

}  // namespace

void add_convert(CLI::App& app, Action& action)
{
    auto options = std::make_shared<ConvertArguments>();
    CLI::App* command = app.add_subcommand("convert", "Read a matrix and write it in another file format");
    command->add_option("IN", options->matrix.file, "Matrix Market (.mtx, plain or .gz, .xz, .zst) or SciPy's .npz")
        ->type_name("FILE")
        ->required();
    add_output(*command, "OUT", options->output);
    add_matrix_options(*command, options->matrix, {"auto", "random", "ones", "laplace", "poisson"},
                       "auto (those of the file), or in their place random, ones, laplace or poisson");
    command->footer(
        "Symmetric files come out expanded, with entries at the same place added together.\n"
        "Examples:\n"
        "  mspmv convert matrix.mtx.gz matrix.npz\n"
        "  mspmv convert matrix.npz matrix.mtx\n"
        "  mspmv convert mesh.mtx.xz elasticity.npz --plus-identity --kron 3 --values random");
    command->callback([&action, options] {
        action = [options] {
            return with_precision(options->matrix.precision, [&]<class T>() { return convert<T>(*options); });
        };
    });
}

}  // namespace rmsp::mspmv
