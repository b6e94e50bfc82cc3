#include <cmath>
#include <cstring>

#include "tests/fuzz/c_api_session.hpp"

namespace rmsp::fuzz {
namespace {

/// Whether C of options leaves out small entries.
bool prunes(const rmsp_options* options)
{
    char* below = nullptr;
    if (options == nullptr || rmsp_options_get(options, "spgemm.prune_below", &below) != RMSP_SUCCESS) {
        return false;
    }
    const bool prunes = std::strtod(below, nullptr) != 0;
    rmsp_free(below);
    return prunes;
}

/// |b - A x| in double, and the sum of all magnitudes in it.
std::pair<double, double> residual_of(const Matrix& a, const std::vector<double>& b, const std::vector<double>& x)
{
    std::vector<double> r = b;
    double magnitude = 0;
    for (const double entry : b) {
        magnitude += std::fabs(entry);
    }
    for (const Entry& entry : a.entries) {
        const double term = entry.value * x[static_cast<std::size_t>(entry.col)];
        r[static_cast<std::size_t>(entry.row)] -= term;
        magnitude += std::fabs(term);
    }
    double sum = 0;
    for (const double entry : r) {
        sum += entry * entry;
    }
    return {std::sqrt(sum), magnitude};
}

}  // namespace

void Session::product_create()
{
    const OpenRuntime on = runtime();
    const auto [a, of_a] = hosts_.pick(in_);
    const auto [b, of_b] = hosts_.pick(in_);
    rmsp_options* const with = options();
    const auto model = std::make_shared<SparseProduct>();
    model->alive = on.alive;
    if (of_a != nullptr && of_b != nullptr) {
        model->a = std::make_shared<Matrix>(*of_a);
        model->b = std::make_shared<Matrix>(*of_b);
        model->exact = !prunes(with);
    }
    const rmsp_product* const made = make(products_, model, [&, left = a, right = b](rmsp_product** place) {
        return rmsp_product_create(on.handle, left, right, with, place);
    });
    require(made == nullptr || (of_a->valid && of_b->valid && of_a->cols == of_b->rows && of_a->type == of_b->type),
            "a product of matrices that do not fit");
}

void Session::product_create_resident()
{
    const OpenRuntime on = runtime();
    const auto [a, of_a] = matrices_.pick(in_);
    const auto [b, of_b] = matrices_.pick(in_);
    rmsp_options* const with = options();
    const auto model = std::make_shared<SparseProduct>(
        SparseProduct{.a = of_a, .b = of_b, .resident = true, .exact = !prunes(with), .alive = on.alive});
    const rmsp_product* const made = make(products_, model, [&, left = a, right = b](rmsp_product** place) {
        return rmsp_product_create_resident(on.handle, left, right, with, place);
    });
    require(made == nullptr || (of_a->cols == of_b->rows && of_a->type == of_b->type),
            "a product of matrices that do not fit");
}

void Session::product_compute()
{
    const auto [made, of] = products_.pick(in_);
    const double alpha = scalar();
    if (succeeded(rmsp_product_compute(made, alpha))) {
        of->c = product(alpha, *of->a, *of->b);
        of->c->exact = of->c->exact && of->exact;
    }
    std::int64_t rows = -1;
    const bool told = succeeded(rmsp_product_size(made, &rows, nullptr, nullptr));
    require(!told || rows == of->a->rows, "a product of another size");
    if (in_.seldom()) {
        text([&, product = made](rmsp_text_format format, char** place) {
            return rmsp_product_report(product, format, place);
        });
    }
}

void Session::product_update()
{
    const auto [made, of] = products_.pick(in_);
    const Matrix none;
    Vector a;
    Vector b;
    const auto values = [&](const std::shared_ptr<Matrix>& matrix, Vector& to) {
        const Matrix& from = matrix != nullptr ? *matrix : none;
        return in_.below(3) == 0 ? nullptr : array(from.type, static_cast<std::int64_t>(from.entries.size()), to);
    };
    // Of matrices on devices with entries that nobody knows here, only their own values are right.
    const void* const of_a = of == nullptr ? nullptr : values(of->a, a);
    const void* const of_b = of == nullptr ? nullptr : values(of->b, b);
    if (!succeeded(rmsp_product_update_values(made, of_a, of_b))) {
        return;
    }
    require(!of->resident || (of_a == nullptr && of_b == nullptr) || (of->a->entries.empty() && of->b->entries.empty()),
            "values were taken for a matrix on the devices");
    const auto renew = [](Matrix& matrix, const void* given, const Vector& now) {
        for (std::size_t i = 0; given != nullptr && i < now.entries.size(); ++i) {
            matrix.entries[i].value = now.entries[i];
        }
        matrix.exact = given != nullptr ? now.exact : matrix.exact;
    };
    if (!of->resident) {
        renew(*of->a, of_a, a);
        renew(*of->b, of_b, b);
    }
}

void Session::product_download()
{
    const auto [made, of] = products_.pick(in_);
    const auto model = std::make_shared<Matrix>();
    rmsp_host_matrix* const host = make(
        hosts_, model, [product = made](rmsp_host_matrix** place) { return rmsp_product_download(product, place); });
    if (host != nullptr) {
        *model = contents(host);
        require(of->c.has_value(), "a product was downloaded before it was computed");
        require_same(*model, *of->c, "a wrong product of matrices");
        model->exact = of->c->exact && entries_are_exact(*model);
    }
}

void Session::product_to_matrix()
{
    const auto [made, of] = products_.pick(in_);
    rmsp_matrix* matrix = nullptr;
    std::shared_ptr<Matrix> model;
    if (in_.below(2) == 0) {
        model = std::make_shared<Matrix>();
        rmsp_options* const with = options();
        matrix = make(matrices_, model, [&, product = made](rmsp_matrix** place) {
            return rmsp_matrix_create_product(product, with, place);
        });
    } else {
        const auto held = matrices_.pick(in_);
        if (!succeeded(rmsp_product_renew(made, held.handle))) {
            return;
        }
        matrix = held.handle;
        model = held.model;
    }
    if (matrix == nullptr) {
        return;
    }
    require(of->c.has_value(), "a matrix was made of a product before it was computed");
    const auto now = downloaded(matrix);
    const Matrix is = now ? *now : *of->c;
    require_same(is, *of->c, "a matrix of another product");
    const bool exact = now && of->c->exact && entries_are_exact(is);
    *model = is;
    model->alive = of->alive;
    model->exact = exact;
    model->in_order = false;
}

void Session::solver_create()
{
    const auto [matrix, a] = matrices_.pick(in_);
    rmsp_options* const with = options();
    make(solvers_, std::make_shared<Solver>(Solver{a}),
         [&, of = matrix](rmsp_solver** place) { return rmsp_solver_create(of, with, place); });
}

void Session::solver_solve()
{
    const auto [solver, of] = solvers_.pick(in_);
    const Matrix none;
    const Matrix& a = of != nullptr ? *of->a : none;
    if (in_.seldom()) {
        succeeded(rmsp_solver_renew(solver));
    }
    Vector rhs;
    Vector guess;
    const void* const b = array(a.type, a.rows, rhs);
    void* const x = array(a.type, a.cols, guess);
    const bool given = (b != nullptr || a.rows == 0) && (x != nullptr || a.cols == 0);
    rmsp_result* const result = make(
        results_, std::make_shared<Nothing>(),
        [&, with = solver](rmsp_result** place) { return rmsp_solver_solve(with, b, x, place); }, not_converged, false);
    if (result == nullptr) {
        return;
    }
    require(given, "a solve without its arrays");
    rmsp_outcome outcome{};
    double claimed = NAN;
    require(succeeded(rmsp_result_outcome(result, &outcome)) &&
                std::strcmp(rmsp_outcome_name(outcome), "unknown") != 0 &&
                succeeded(rmsp_result_residual(result, &claimed, nullptr, nullptr)),
            "a result without an outcome");
    if (outcome == RMSP_CONVERGED && a.exact && rhs.exact) {
        const auto [residual, magnitude] =
            residual_of(a, rhs.entries, read(x, a.type, static_cast<std::size_t>(a.cols)));
        const double tolerance = (a.type == RMSP_FLOAT ? 1e-4 : 1e-10) * (1 + magnitude);
        require(std::fabs(residual - claimed) <= tolerance, "a solve has another residual than it says");
    }
}

void Session::solver_solve_vectors()
{
    const auto [solver, of] = solvers_.pick(in_);
    const auto [b, rhs] = vectors_.pick(in_);
    const auto [x, solution] = vectors_.pick(in_);
    const rmsp_result* const result = make(
        results_, std::make_shared<Nothing>(),
        [&, with = solver, from = b, to = x](rmsp_result** place) {
            return rmsp_solver_solve_vectors(with, from, to, place);
        },
        not_converged, false);
    if (solution != nullptr) {
        solution->exact = false;  // also where it failed
    }
    require(result == nullptr || (rhs->type == solution->type && rhs->type == of->a->type), "a solve of other types");
}

void Session::result_read()
{
    rmsp_result* const result = results_.pick(in_).handle;
    std::int64_t count = -1;
    const double* history = nullptr;
    const char* reason = nullptr;
    double seconds = -1;
    const bool told = succeeded(rmsp_result_history(result, in_.seldom() ? nullptr : &history, &count));
    double last = 0;
    for (std::int64_t i = 0; told && i < count; ++i) {
        last += history[i];
    }
    static_cast<void>(last);
    require(succeeded(rmsp_result_reason(result, &reason)) == (result != nullptr) &&
                succeeded(rmsp_result_seconds(result, &seconds)) == (result != nullptr) &&
                succeeded(rmsp_result_iterations(result, &count)) == (result != nullptr) &&
                (result == nullptr || (reason != nullptr && std::strlen(reason) < 10000)),
            "a result without its figures");
    text([&](rmsp_text_format format, char** place) { return rmsp_result_report(result, format, place); });
}

void Session::eigen_solve()
{
    const auto [matrix, a] = matrices_.pick(in_);
    rmsp_options* const with = options();
    const rmsp_eigen* const made = make(
        eigens_, a, [&, of = matrix](rmsp_eigen** place) { return rmsp_eigen_solve(of, with, place); }, not_converged);
    require(made == nullptr || a->rows == a->cols, "eigenvalues of what is not square");
}

void Session::eigen_read()
{
    const auto [eigen, a] = eigens_.pick(in_);
    const double* values = nullptr;
    const double* residuals = nullptr;
    int count = -1;
    const bool told = succeeded(rmsp_eigen_values(eigen, &values, &residuals, in_.seldom() ? nullptr : &count));
    require(!told || (count >= 0 && count <= a->rows), "more eigenvalues than rows");
    double sum = 0;
    for (int i = 0; told && i < count; ++i) {
        sum += values[i] + residuals[i];
    }
    static_cast<void>(sum);
    rmsp_outcome outcome{};
    std::int64_t iterations = -1;
    const char* reason = nullptr;
    require(succeeded(rmsp_eigen_outcome(eigen, &outcome)) == (eigen != nullptr) &&
                succeeded(rmsp_eigen_iterations(eigen, &iterations)) == (eigen != nullptr) &&
                succeeded(rmsp_eigen_reason(eigen, &reason)) == (eigen != nullptr),
            "eigenpairs without figures");
    if (in_.below(2) == 0) {
        text([&, of = eigen](rmsp_text_format format, char** place) { return rmsp_eigen_report(of, format, place); });
        return;
    }
    const int index = static_cast<int>(in_.below(5)) - 1;
    const auto model = std::make_shared<Vector>();
    const rmsp_vector* const vector =
        make(vectors_, model, [&, of = eigen](rmsp_vector** place) { return rmsp_eigen_vector(of, index, place); });
    if (vector != nullptr) {
        require(index >= 0 && (!told || index < count), "an eigenvector of no number");
        model->type = a->type;
        model->shared = true;  // the next handle of the same number is the same vector
        model->alive = a->alive;
        model->entries.resize(static_cast<std::size_t>(a->rows));
    }
}

}  // namespace rmsp::fuzz
