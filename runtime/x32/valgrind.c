#include "valgrind.h"
#include "settings.h"

/* valgrind.h, memcheck.h */
#define RUNNING_ON_VALGRIND 0x1001UL
#define CHANGE_ERROR_DISABLEMENT 0x1801UL
#define MEMCHECK_MAKE_NOACCESS 0x4d430000UL
#define MEMCHECK_MAKE_UNDEFINED 0x4d430001UL

static u64 ask(u64 number, u64 first, u64 second) {
    u64 request[6] = {number, first, second};
    u64 answer = 0;
    __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
                     : "=d"(answer)
                     : "a"(request), "0"(answer)
                     : "cc", "memory");
    return answer;
}

int valgrind_is_here(void) { return ask(RUNNING_ON_VALGRIND, 0, 0) != 0; }

void valgrind_frame_begins(u64 from, u64 to) {
    if (settings.valgrind) {
        ask(MEMCHECK_MAKE_UNDEFINED, from, to - from);
    }
}

void valgrind_frame_ends(u64 from, u64 to) {
    if (settings.valgrind) {
        ask(MEMCHECK_MAKE_NOACCESS, from, to - from);
    }
}

void valgrind_reports(int does) {
    if (settings.valgrind) {
        ask(CHANGE_ERROR_DISABLEMENT, does ? -1UL : 1, 0);
    }
}
