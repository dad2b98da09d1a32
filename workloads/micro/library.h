// A function in a shared library: its callers go through the procedure linkage table.
#ifndef MICRO_LIBRARY_H
#define MICRO_LIBRARY_H

long micro_library(long value);

#endif
