#include "check.h"
#include "tests.h"

static const test_case tests[] = {
    {"General", "NamesVersionAndBuild", general_version},
    {"General", "NamesStatusesAndOutcomes", general_names},
    {"General", "ListsWhatTheBuildHas", general_lists},
    {"Options", "AreSetAndReadByTheirKeys", options_are_set_and_read},
    {"Options", "RefuseWhatIsNoKeyOrValue", options_refuse},
    {"Runtime", "TellsOfItsDevices", runtime_devices},
    {"Runtime", "NamesMisuse", runtime_misuse},
    {"HostMatrix", "IsAViewOfTheCallersArrays", host_matrix_view},
    {"HostMatrix", "IsGeneratedConvertedAndPlanned", host_matrix_generated},
    {"HostMatrix", "IsWrittenAndRead", host_matrix_files},
    {"HostMatrix", "NamesMisuse", host_matrix_misuse},
    {"Matrix", "MultipliesEveryFormatAndType", matrix_multiplies},
    {"Matrix", "RefusesBadArrays", matrix_refuses_bad_arrays},
    {"Matrix", "TakesNewValues", matrix_updates},
    {"Matrix", "StreamsWhatItKeeps", matrix_streams},
    {"Matrix", "IsReadAndGenerated", matrix_read_and_generated},
    {"Matrix", "IsPlannedMeasuredAndReported", matrix_reports},
    {"Matrix", "NamesMisuse", matrix_misuse},
    {"Vectors", "AreMultipliedOnTheDevices", vectors_are_multiplied},
    {"Vectors", "DoArithmetic", vectors_do_arithmetic},
    {"Vectors", "AreOpenToTheCaller", vectors_are_local},
    {"Vectors", "NameMisuse", vectors_misuse},
    {"Product", "IsComputedAndFetched", product_is_computed},
    {"Product", "StaysOnTheDevices", product_stays},
    {"Product", "NamesMisuse", product_misuse},
    {"Solver", "SolvesByEveryMethod", solver_every_method},
    {"Solver", "TellsHowItEnded", solver_outcomes},
    {"Solver", "IsRenewed", solver_is_renewed},
    {"Solver", "NamesMisuse", solver_misuse},
    {"Threads", "HaveTheirOwnErrors", threads_have_their_own_errors},
    {"Threads", "ShareHandles", threads_share_handles},
};

int main(int argc, char** argv) { return run_tests(argc, argv, tests, (int)(sizeof tests / sizeof *tests)); }
