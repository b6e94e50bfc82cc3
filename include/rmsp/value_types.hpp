#pragma once

/// The types that values of a matrix or a vector may have: macro(T), or macro(T, more...), for each of them, one after
/// the other. The one list of them: librmsp's explicit instantiations and tables by type are written with it.
#define RMSP_FOR_EACH_VALUE_TYPE(macro, ...) \
    macro(float __VA_OPT__(, ) __VA_ARGS__) macro(double __VA_OPT__(, ) __VA_ARGS__)
