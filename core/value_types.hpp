#pragma once

#include <rmsp/value_types.hpp>
