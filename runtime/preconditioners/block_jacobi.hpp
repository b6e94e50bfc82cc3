#pragma once

#include <algorithm>

#include <kernels/steps/dense_blocks/dense_blocks.hpp>

#include "matrix/diagonal.hpp"
#include "runtime/preconditioners/base.hpp"

namespace rmsp::preconditioners {

/// Inverses of dense blocks of consecutive rows along the diagonal; blocks begin anew on each device.
template <class T>
class BlockJacobi final : public Base<T> {
public:
    BlockJacobi(const DistributedMatrix<T>& matrix, const PreconditionerOptions& options)
        : Base<T>(matrix, "block-jacobi"),
          size_(options.block_size),
          blocks_(std::make_shared<PerDevice<Blocks>>(this->state_->runtime))
    {
        require_option(size_ >= 1 && size_ <= kernels::most_block_rows, "block_size", size_, "1 to 32");
        renew();
    }
    void append(Sequence& sequence, const Vec<T>& z, const Vec<T>& r) override
    {
        this->check_vectors(z, r);
        sequence.call(
            [blocks = blocks_, size = size_, z = z.state(), r = r.state()](const DeviceCall& call) {
                const auto rank = static_cast<std::size_t>(call.device);
                const Blocks& own = blocks->parts[rank];
                kernels::multiply_blocks(
                    static_cast<const T*>(own.inverses.data()), size, r->offsets[rank + 1] - r->offsets[rank],
                    static_cast<const T*>(r->slices[rank]), z->slices[rank], call.stopped,
                    kernels::Context{call.kind, call.stream, call.threads, own.compute_units, nullptr});
            },
            this->report_.device_bytes + 2 * r.state()->size * static_cast<std::int64_t>(sizeof(T)));
    }
    void renew() override
    {
        const auto began = core::Clock::now();
        const CsrMatrix<T> a = distributed::download_matrix(*this->state_);
        const std::vector<std::int64_t>& slices = this->slices();
        std::vector<matrix::BlockInverses<T>> inverses;
        std::int64_t count = 0;
        std::int64_t singular = 0;
        std::int64_t first_row = -1;
        PreconditionerReport& report = this->report_;
        report.device_bytes = 0;
        for (std::size_t rank = 0; rank + 1 < slices.size(); ++rank) {
            inverses.push_back(matrix::block_inverses(a.view(), size_, slices[rank], slices[rank + 1]));
            const matrix::BlockInverses<T>& own = inverses.back();
            if (own.singular > 0 && first_row < 0) {
                first_row = slices[rank] + own.first_singular * size_;
            }
            singular += own.singular;
            count += (slices[rank + 1] - slices[rank] + size_ - 1) / size_;
            report.device_bytes += bytes_of(own.blocks);
        }
        this->state_->runtime
            ->submit([&](engine::Worker& worker, engine::Rendezvous&) {
                const auto rank = static_cast<std::size_t>(worker.rank());
                Blocks& own = blocks_->parts[rank];
                const auto context = worker.context();
                kernels::load_dense_blocks(context);
                own.compute_units = context.compute_units;
                put(worker, own.inverses, inverses[rank].blocks);
            })
            .get();
        report.notes.clear();
        if (singular > 0) {
            report.notes.push_back(
                fmt::format("{} of {} blocks of {} rows are singular, the first at row {}: their rows "
                            "are divided by the diagonal",
                            singular, count, size_, first_row));
        }
        report.seconds = core::seconds_since(began);
    }

private:
    struct Blocks {
        kernels::DeviceArray<T> inverses;
        int compute_units = 1;
    };

    int size_;
    std::shared_ptr<PerDevice<Blocks>> blocks_;
};

}  // namespace rmsp::preconditioners
