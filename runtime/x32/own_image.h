/* The runtime's own file, where no path leads to it. */
#ifndef X32_OWN_IMAGE_H
#define X32_OWN_IMAGE_H

#include "kernel.h"

/* A descriptor of a file in memory that execveat can start, closed by that; or an error. */
long own_image_open(void);

#endif
