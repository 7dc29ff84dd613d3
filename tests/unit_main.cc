// The main function of the unit tests: Boost.Test, compiled here once for all of them.
#define BOOST_TEST_MODULE pardnn
#include <boost/test/included/unit_test.hpp>
