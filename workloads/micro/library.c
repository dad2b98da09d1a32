#include "library.h"

long micro_library(long value) {
    __asm__ volatile("" : "+r"(value));
    return value;
}
