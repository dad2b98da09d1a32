/*
 * Text that holds the bytes of system calls which are never made there: a program reads it, and copies it to
 * make code of it. The calls beside it, in the same page, are made often.
 */
#include "transcript.h"
#include <sys/mman.h>

typedef long function(void);

/* mov $getppid,%eax; syscall; ret */
#define CALL "mov $0x4000006e, %eax\n syscall\n ret\n"

__asm__(".text\n .balign 4096\n"
        "calls: .rept 16\n .balign 16\n" CALL ".endr\n"
        ".balign 16\n template: " CALL "template_end: .balign 4096\n");
extern unsigned char calls[], template[], template_end[];

int main(void) {
    unsigned char before[16];
    size_t size = (size_t)(template_end - template);
    memcpy(before, template, size);
    int wrong = 0;
    for (int turn = 0; turn < 50; turn++)
        for (int i = 0; i < 16; i++)
            wrong += ((function *)(calls + 16 * i))() != getppid();
    say("wrong calls: %d", wrong);
    say("the template is as it was: %s", memcmp(before, template, size) == 0 ? "yes" : "no");
    void *copy = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(copy, template, size);
    say("its copy makes the call: %s", ((function *)copy)() == getppid() ? "yes" : "no");
    say("the template makes it: %s", ((function *)(void *)template)() == getppid() ? "yes" : "no");
    return 0;
}
