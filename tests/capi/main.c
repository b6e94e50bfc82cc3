#include "check.h"
#include "tests.h"

static const test_case tests[] = {
    {"Options", "AreSetAndReadByTheirKeys", options_are_set_and_read},
    {"Options", "RefuseWhatIsNoKeyOrValue", options_refuse},
    {"Matrix", "MultipliesOnEveryDeviceSet", matrix_multiplies},
    {"Matrix", "RefusesBadArrays", matrix_refuses_bad_arrays},
    {"Matrix", "NamesMisuse", matrix_names_misuse},
};

int main(int argc, char** argv) { return run_tests(argc, argv, tests, (int)(sizeof tests / sizeof *tests)); }
