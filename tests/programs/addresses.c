/* Takes the addresses of malloc and free, as tables of functions do. In a program that is not
 * position-independent they are those of its own procedure linkage table, for every module. With OWN_MALLOC
 * it brings its own. It asks for 10 blocks in main() and gives 5 back. */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef OWN_MALLOC
static char room[1 << 16] __attribute__((aligned(16)));
static size_t used;

void *malloc(size_t size) {
    void *block = room + used;
    used += (size + 15) & ~(size_t)15;
    return used <= sizeof room ? block : NULL;
}
void free(void *block) { (void)block; }
void *calloc(size_t count, size_t size) { return malloc(count * size); }
#endif

static struct {
    void *(*ask)(size_t);
    void (*give_back)(void *);
} volatile table;

int main(void) {
    /* By instructions: for initialised data the linker would need no such entry. */
    table.ask = malloc;
    table.give_back = free;
    for (size_t i = 0; i < 10; i++) {
        void *block = table.ask(100 + i);
        if (block == NULL) {
            _exit(9);
        }
        if (i % 2 == 0) {
            table.give_back(block);
        }
    }
#ifdef OWN_MALLOC
    free(valloc(10)); /* what it does not bring reaches the recorder */
#endif
    return 0;
}
