#include "words.h"

unsigned long words(unsigned long bytes) { return bytes / sizeof(void *); }
