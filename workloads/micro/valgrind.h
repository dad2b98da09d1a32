// valgrind's client requests, in every ABI: its own header has none for x32. Without valgrind they do nothing
// (valgrind.h, "magic instruction sequences"; callgrind.h for the numbers).
#ifndef MICRO_VALGRIND_H
#define MICRO_VALGRIND_H

#include <stdint.h>

enum {
    RUNNING_ON_VALGRIND = 0x1001,
    CALLGRIND_ZERO_STATS = 'C' << 24 | 'T' << 16 | 1,
    CALLGRIND_DUMP_STATS_AT = 'C' << 24 | 'T' << 16 | 3,
};

static inline uintptr_t valgrind_request(uintptr_t request, const void *argument) {
#ifdef __x86_64__
    volatile uint64_t words[6] = {request, (uintptr_t)argument, 0, 0, 0, 0};
    uint64_t answer = 0;
    __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"((uint64_t)(uintptr_t)&words[0])
                     : "cc", "memory");
    return (uintptr_t)answer;
#elif defined(__i386__)
    volatile uint32_t words[6] = {request, (uintptr_t)argument, 0, 0, 0, 0};
    uint32_t answer = 0;
    __asm__ volatile("roll $3, %%edi; roll $13, %%edi; roll $29, %%edi; roll $19, %%edi; xchgl %%ebx, %%ebx"
                     : "+d"(answer)
                     : "a"(&words[0])
                     : "cc", "memory");
    return answer;
#else
    (void)request, (void)argument;
    return 0;
#endif
}

#endif
