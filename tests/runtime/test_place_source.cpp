#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "matrices.hpp"
#include "runtime/matrix/matrix_state.hpp"
#include "runtime/node/node.hpp"

namespace rmsp::test {
namespace {

/// Two host devices on a machine that has two NUMA nodes, as far as the runtime can tell.
class PlaceSource : public testing::Test {
protected:
    PlaceSource()
    {
        RuntimeOptions options;
        options.devices = "host:2x1";
        options.bind = BindPolicy::none;
        runtime_ = std::make_unique<Runtime>(options);
        detail::RuntimeState& state = *detail::RuntimeAccess::state(*runtime_);
        state.topology.nodes.resize(2);
        state.infos[0].numa_node = 0;
        state.infos[1].numa_node = 1;
        state.move_pages = [this](unsigned long count, void** pages, const int* nodes, int* status) -> long {
            const std::lock_guard guard(mutex_);
            for (unsigned long i = 0; i < count; ++i) {
                if (nodes != nullptr) {
                    node_of_[pages[i]] = nodes[i];
                    ++moved_;
                }
                status[i] = node_of_[pages[i]];
            }
            return 0;
        };
        options_.mode = Mode::streamed;
    }

    template <class View>
    DistributedMatrix<double> distribute_and_check(const View& view)
    {
        auto matrix = runtime_->distribute(view, options_);
        check(matrix);
        return matrix;
    }
    void check(DistributedMatrix<double>& matrix)
    {
        const auto x = random_vector<double>(a_.cols, 1);
        std::vector<double> y(static_cast<std::size_t>(a_.rows));
        matrix.apply(1.0, x.data(), 0.0, y.data());
        EXPECT_TRUE(verify_spmv(a_.view(), 1.0, x.data(), 0.0, y.data(), y.data()).passed);
    }
    static std::string note_of(const DistributedMatrix<double>& matrix)
    {
        for (const std::string& note : detail::MatrixAccess::state(matrix)->record.notes) {
            if (note.starts_with("pages of the streamed matrix")) {
                return note;
            }
        }
        return "";
    }

    std::unique_ptr<Runtime> runtime_;
    DistributeOptions options_;
    CsrMatrix<double> a_ = stencil27<double>(14, 13, 12);
    std::mutex mutex_;
    std::map<void*, int> node_of_;
    int moved_ = 0;
};

TEST_F(PlaceSource, PagesMoveToTheNodeOfTheDeviceThatReadsThem)
{
    const auto matrix = distribute_and_check(a_.view());
    EXPECT_GT(moved_, 100);
    const PartialCsr& second = matrix.plan().partition.parts[1];
    // A page inside each part of the values.
    const auto node_at = [&](std::int64_t entry) {
        const auto address = reinterpret_cast<std::uintptr_t>(a_.values.data() + entry) / 4096 * 4096;
        return node_of_.at(reinterpret_cast<void*>(address));
    };
    EXPECT_EQ(node_at(second.start_idx / 2), 0);
    EXPECT_EQ(node_at((second.start_idx + second.end_idx) / 2), 1);
    const std::string note = note_of(matrix);
    EXPECT_NE(note.find("(moved): device 0 reads"), std::string::npos) << note;
    EXPECT_NE(note.find("100 % of them on its node 1"), std::string::npos) << note;
    EXPECT_EQ(note.find("not moved"), std::string::npos) << note;
}

TEST_F(PlaceSource, KeptPagesAreSaidToBeElsewhere)
{
    options_.placement = StreamPlacement::keep;
    const auto matrix = distribute_and_check(a_.view());
    EXPECT_EQ(moved_, 0);
    EXPECT_NE(note_of(matrix).find(" 0 % of them on its node 1"), std::string::npos) << note_of(matrix);
}

TEST_F(PlaceSource, EveryFormatIsCopied)
{
    options_.placement = StreamPlacement::copy;
    options_.coordinates = StreamCoordinates::indices;
    options_.unsorted = Unsorted::split;
    const CscMatrix<double> csc = to_csc(a_.view());
    const CooMatrix<double> coo = to_coo(a_.view());
    const CooMatrix<double> mixed = shuffled(coo);
    distribute_and_check(a_.view());
    distribute_and_check(csc.view());
    distribute_and_check(coo.view());
    const auto matrix = distribute_and_check(mixed.view());
    EXPECT_EQ(moved_, 0);
    EXPECT_NE(note_of(matrix).find("(copied)"), std::string::npos) << note_of(matrix);
}

TEST_F(PlaceSource, NewValuesOfACopyCountFromTheirUpdateOn)
{
    options_.placement = StreamPlacement::copy;
    options_.chunk_bytes = 4096;
    auto matrix = distribute_and_check(a_.view());
    for (double& value : a_.values) {
        value *= -2;
    }
    matrix.update_values(a_.values.data());
    check(matrix);
    std::vector<double> others(a_.values.size());
    EXPECT_THROW(matrix.update_values(others.data()), Error);
}

TEST_F(PlaceSource, PagesThatDoNotMoveAreReported)
{
    detail::RuntimeAccess::state(*runtime_)->move_pages = [](unsigned long count, void**, const int*, int* status) {
        std::fill_n(status, count, -EBUSY);
        return long{0};
    };
    const auto matrix = distribute_and_check(a_.view());
    EXPECT_NE(note_of(matrix).find("some were not moved: "), std::string::npos) << note_of(matrix);
}

}  // namespace
}  // namespace rmsp::test
