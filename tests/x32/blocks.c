/*
 * built: static
 *
 * The largest block that is free stays the largest, however often a program calls.
 */
#include "transcript.h"
#include <pthread.h>
#include <sys/mman.h>

/* The number is loaded long before the call, as in a C library's pthread_create. */
__asm__(".text; call_of: mov %edi, %eax; test %eax, %eax; jz 1f; nop; nop; nop; nop; 1: mov %esi, %edi\n"
        "syscall; cmp $-4096, %rax; ja 2f; ret; 2: ret");
extern int call_of(int number, int argument);

/* In MiB. */
static unsigned largest_block(void) {
    for (unsigned size = 4095; size >= 256; size -= 16) {
        void *block = mmap(NULL, size << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (block != MAP_FAILED) {
            munmap(block, size << 20);
            return size;
        }
    }
    return 0;
}

static void *nothing(void *what) { return what; }

int main(void) {
    unsigned before = largest_block();
    IS(before > 3500);
    for (int i = 0; i < 1000; i++)
        call_of(SYS_getppid, 0);
    IS(largest_block() + 64 > before);
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, nothing, NULL);
        pthread_join(thread, NULL);
    }
    IS(largest_block() + 64 > before);
    return 0;
}
