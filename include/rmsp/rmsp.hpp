#pragma once

/// Everything that librmsp offers.

#include <rmsp/characterize.hpp>
#include <rmsp/config.hpp>
#include <rmsp/convert.hpp>
#include <rmsp/device_convert.hpp>
#include <rmsp/device_link.hpp>
#include <rmsp/doctor.hpp>
#include <rmsp/eigen.hpp>
#include <rmsp/eigen_report.hpp>
#include <rmsp/error.hpp>
#include <rmsp/export.hpp>
#include <rmsp/host_vector.hpp>
#include <rmsp/io.hpp>
#include <rmsp/job.hpp>
#include <rmsp/kernel_info.hpp>
#include <rmsp/limits.hpp>
#include <rmsp/matrix.hpp>
#include <rmsp/matrix_part.hpp>
#include <rmsp/metrics.hpp>
#include <rmsp/partition.hpp>
#include <rmsp/plan.hpp>
#include <rmsp/preconditioner.hpp>
#include <rmsp/renumber.hpp>
#include <rmsp/report.hpp>
#include <rmsp/runtime.hpp>
#include <rmsp/sequence.hpp>
#include <rmsp/solve_report.hpp>
#include <rmsp/solver.hpp>
#include <rmsp/spgemm.hpp>
#include <rmsp/topology.hpp>
#include <rmsp/transfer.hpp>
#include <rmsp/value_types.hpp>
#include <rmsp/vector_operations.hpp>
#include <rmsp/version.hpp>
