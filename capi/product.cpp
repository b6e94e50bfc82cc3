#include <utility>

#include <rmsp/spgemm.hpp>

#include "capi/handles.hpp"

struct rmsp_product {
    rmsp::capi::OfEither<rmsp::SparseProduct> product;
    /// Of A and B, unless they are the caller's: where C is computed in runs, they are needed each time.
    std::shared_ptr<const void> a_arrays{};
    std::shared_ptr<const void> b_arrays{};
    std::string a_name{};
    std::string b_name{};
};

namespace rmsp::capi {
namespace {

SpgemmOptions spgemm_options_of(const rmsp_options* options)
{
    const Config& config = config_of(options);
    SpgemmOptions spgemm = spgemm_options(config);
    spgemm.prune_below = config.spgemm.prune_below;
    return spgemm;
}

}  // namespace
}  // namespace rmsp::capi

using namespace rmsp::capi;

rmsp_status rmsp_product_create(rmsp_runtime* runtime, const rmsp_host_matrix* a, const rmsp_host_matrix* b,
                                const rmsp_options* options, rmsp_product** product)
{
    return call(__func__, [&] {
        rmsp::Runtime& devices = required(runtime, "runtime").runtime;
        const AnyHostMatrix& any_b = required(b, "b").matrix;
        rmsp_product*& result = required(product, "product");
        std::visit(
            [&]<class T>(const HostMatrix<T>& of_a) {
                const HostMatrix<T>& of_b = of_type<T>(any_b, "b");
                result = new rmsp_product{
                    rmsp::SparseProduct<T>(devices, csr_of(of_a, "a"), csr_of(of_b, "b"), spgemm_options_of(options)),
                    of_a.arrays, of_b.arrays, of_a.name, of_b.name};
            },
            required(a, "a").matrix);
    });
}

rmsp_status rmsp_product_create_resident(rmsp_runtime* runtime, const rmsp_matrix* a, const rmsp_matrix* b,
                                         const rmsp_options* options, rmsp_product** product)
{
    return call(__func__, [&] {
        rmsp::Runtime& devices = required(runtime, "runtime").runtime;
        const rmsp_matrix& given_b = required(b, "b");
        rmsp_product*& result = required(product, "product");
        std::visit(
            [&]<class T>(const rmsp::DistributedMatrix<T>& of_a) {
                const auto& of_b = of_type<T>(given_b.matrix, "b");
                result = new rmsp_product{rmsp::SparseProduct<T>(devices, of_a, of_b, spgemm_options_of(options)),
                                          nullptr, nullptr, a->name, given_b.name};
            },
            required(a, "a").matrix);
    });
}

void rmsp_product_destroy(rmsp_product* product) { delete product; }

rmsp_status rmsp_product_compute(rmsp_product* product, double alpha)
{
    return call(__func__, [&] {
        std::visit([&]<class T>(rmsp::SparseProduct<T>& c) { c.compute(static_cast<T>(alpha)); },
                   required(product, "product").product);
    });
}

rmsp_status rmsp_product_update_values(rmsp_product* product, const void* a_values, const void* b_values)
{
    return call(__func__, [&] {
        std::visit(
            [&]<class T>(rmsp::SparseProduct<T>& c) {
                c.update_values(static_cast<const T*>(a_values), static_cast<const T*>(b_values));
            },
            required(product, "product").product);
    });
}

rmsp_status rmsp_product_size(const rmsp_product* product, int64_t* rows, int64_t* cols, int64_t* nnz)
{
    return call(__func__, [&] {
        std::visit(
            [&](const auto& c) {
                set(rows, c.rows());
                set(cols, c.cols());
                set(nnz, c.nnz());
            },
            required(product, "product").product);
    });
}

rmsp_status rmsp_product_download(const rmsp_product* product, rmsp_host_matrix** c)
{
    return call(__func__, [&] {
        const rmsp_product& from = required(product, "product");
        rmsp_host_matrix*& result = required(c, "c");
        std::visit(
            [&](const auto& computed) {
                result = new rmsp_host_matrix{
                    owned(computed.download(), "product of " + from.a_name + " and " + from.b_name)};
            },
            from.product);
    });
}

rmsp_status rmsp_product_download_arrays(const rmsp_product* product, int64_t* row_ptr, int32_t* col_idx, void* values)
{
    return call(__func__, [&] {
        std::visit(
            [&]<class T>(const rmsp::SparseProduct<T>& c) { c.download(row_ptr, col_idx, static_cast<T*>(values)); },
            required(product, "product").product);
    });
}

rmsp_status rmsp_product_renew(const rmsp_product* product, rmsp_matrix* matrix)
{
    return call(__func__, [&] {
        auto& to = required(matrix, "matrix").matrix;
        std::visit([&]<class T>(const rmsp::SparseProduct<T>& c) { c.renew(of_type<T>(to, "matrix")); },
                   required(product, "product").product);
    });
}

rmsp_status rmsp_product_report(const rmsp_product* product, rmsp_text_format format, char** text)
{
    return call(__func__, [&] {
        const rmsp_product& of = required(product, "product");
        rmsp::SpgemmReport report;
        report.a = of.a_name;
        report.b = of.b_name;
        std::visit(
            [&](const auto& c) {
                report.plan = c.plan();
                report.phases = c.phases();
            },
            of.product);
        give(text, format, report);
    });
}

rmsp_status rmsp_matrix_create_product(const rmsp_product* product, const rmsp_options* options, rmsp_matrix** matrix)
{
    return call(__func__, [&] {
        const rmsp_product& from = required(product, "product");
        rmsp_matrix*& result = required(matrix, "matrix");
        std::visit(
            [&](const auto& c) {
                result = new rmsp_matrix{c.distribute(distribute_options_of(options)), nullptr,
                                         "product of " + from.a_name + " and " + from.b_name};
            },
            from.product);
    });
}
