// The main function of every test program. Its exit status says more than that of GoogleTest's own: 0 if tests passed
// and none failed, 1 if one failed or none was there to run, 77 if all of them skipped themselves.
#include <gmock/gmock.h>

int main(int argc, char** argv)
{
    testing::InitGoogleMock(&argc, argv);
    const int status = RUN_ALL_TESTS();
    if (GTEST_FLAG_GET(list_tests) || status != 0) {
        return status;
    }
    const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
    if (tests.successful_test_count() > 0) {
        return 0;
    }
    return tests.skipped_test_count() > 0 ? 77 : 1;
}
