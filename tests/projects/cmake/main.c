#include "words.h"
#include <stdio.h>

int main(void) {
    printf("%lu\n", words(64) * sizeof(void *));
    return 0;
}
