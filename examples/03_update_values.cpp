// A matrix whose structure stays while its values change, as in a time-stepping code: only the values travel to the
// devices. Ends with the report of a short measurement. RMSP_DEVICES=0,1 or RMSP_DEVICES=host:4 chooses the devices.
#include <cstdio>
#include <vector>

#include <rmsp/rmsp.hpp>

int main()
{
    rmsp::CsrMatrix<float> a = rmsp::stencil7<float>(30, 30, 30, {.values = rmsp::ValueKind::ones});
    const std::vector<float> x(static_cast<std::size_t>(a.cols), 1.0F);
    std::vector<float> y(static_cast<std::size_t>(a.rows));

    rmsp::Runtime runtime(rmsp::RuntimeOptions::from_environment({}));
    auto matrix = runtime.distribute(a.view());

    bool good = true;
    for (int step = 1; step <= 3; ++step) {
        for (float& value : a.values) {
            value = static_cast<float>(step);
        }
        matrix.update_values(a.values.data());
        matrix.apply(1.0F, x.data(), 0.0F, y.data());
        // A corner of the grid has 4 neighbours, itself included.
        good = good && y[0] == 4.0F * static_cast<float>(step);
    }

    using Vectors = rmsp::DistributedMatrix<float>::Vectors;
    matrix.measure(Vectors::replicated, 2, 50, 1.0F, x.data(), 0.0F, nullptr, y.data());
    std::fputs(matrix.report().to_text().c_str(), stdout);
    return good && y[0] == 12.0F ? 0 : 1;
}
