/*
 * built: static, dynamic
 *
 * Every way code comes to a system call: the instruction before and after it, jumps to it, made at run time,
 * in files.
 */
#include "transcript.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>

/* Each answers the process number; rdi is 0. */
__asm__(
    ".text\n"
    ".globl plain, long_move, far_move, computed, twice, through_jump, jumped_at, push_pop, from_register, "
    "last, loop, data_like, reads_high_byte, writes_high_byte, table\n"
    "plain: mov $0x40000027, %eax\n syscall\n ret\n"
    "long_move: mov $0x40000027, %rax\n syscall\n ret\n"
    "far_move: mov $0x40000027, %eax\n mov $1, %ecx\n mov $2, %edx\n nop\n syscall\n cmp $-4095, %rax\n jae "
    "1f\n ret\n1: ud2\n"
    "computed: xor %eax, %eax\n add $0x27, %eax\n bts $30, %eax\n syscall\n test %eax, %eax\n js 1b\n ret\n"
    "twice: mov $0x40000027, %eax\n syscall\n mov %eax, %r8d\n mov $0x40000027, %eax\n syscall\n cmp %eax, "
    "%r8d\n jne 1b\n ret\n"
    "through_jump: mov $0x40000027, %eax\n jmp 2f\n ud2\n2: syscall\n ret\n"
    "jumped_at: test %edi, %edi\n mov $0x40000027, %edx\n jne 3f\n mov %edx, %eax\n jmp 4f\n3: mov "
    "$0x4000006e, %eax\n4: syscall\n pop %rdx\n push %rdx\n ret\n"
    "push_pop: push %rbx\n push $0x27\n pop %rax\n or $0x40000000, %eax\n syscall\n pop %rbx\n ret\n"
    "from_register: mov $0x40000027, %r11\n mov %r11, %rax\n syscall\n nopl 0(%rax)\n ret\n"
    "loop: mov $1000, %r8d\n5: mov $0x40000027, %eax\n syscall\n dec %r8d\n jnz 5b\n ret\n"
    /* AH is a part of the number; between the move and the call. */
    "reads_high_byte: push %rbx\n mov $0x1100, %eax\n mov $0x40000027, %eax\n movzbl %ah, %ebx\n syscall\n"
    " add %ebx, %eax\n pop %rbx\n ret\n"
    "writes_high_byte: xor %edx, %edx\n mov $0x40000127, %eax\n mov %dl, %ah\n syscall\n ret\n"
    /* 0f 05 inside of an immediate, and as data in the code: neither may be touched. */
    "data_like: mov $0x050f0527, %eax\n mov $0x050f050f, %ecx\n sub $0x050f0500, %eax\n cmp $0x050f050f, "
    "%ecx\n jne 1b\n mov $0x40000027, %eax\n syscall\n ret\n"
    "table: .byte 0xb8, 0x27, 0, 0, 0x40, 0x0f, 0x05, 0x0f, 0x05\n"
    ".balign 4096\n"
    /* The move ends one page, the call begins the next. */
    ".skip 4091\nlast: mov $0x40000027, %eax\n syscall\n ret\n");
int plain(int), long_move(int), far_move(int), computed(int), twice(int), through_jump(int), jumped_at(int),
    push_pop(int), from_register(int), last(int), loop(int), data_like(int), reads_high_byte(int),
    writes_high_byte(int);
extern const unsigned char table[9];

static int calls(const char *what, const void *code, size_t length, int protection, int flags, int file) {
    unsigned char *page = mmap(NULL, 8192, protection, flags, file, 0);
    if (page == MAP_FAILED)
        return say("%s: %s", what, error_name(errno)), 0;
    if (code) {
        memcpy(page, code, length);
        mprotect(page, 8192, PROT_READ | PROT_EXEC);
    }
    int right = ((int (*)(int))page)(0) == getpid();
    say("%s: %s", what, right ? "yes" : "no");
    munmap(page, 8192);
    return right;
}
static void count(int number) { (void)number; }

enum {
    READ = PROT_READ,
    WRITE = PROT_READ | PROT_WRITE,
    ALL = PROT_READ | PROT_WRITE | PROT_EXEC,
    PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS
};

static double time_of_calls(unsigned char *page) {
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (int i = 0; i < 64 * 40; i++)
        ((int (*)(int))(page + i % 64 * 64))(0);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec);
}
/* Of more sites than a runtime has room for, the last cost no more than those that are never rewritten. */
static void more_than_have_room(const void *code, size_t size) {
    enum { PAGES = 80 };
    unsigned char *pages = mmap(NULL, (PAGES + 1) * 4096, WRITE, PRIVATE, -1, 0);
    double least[2] = {1e18, 1e18};
    for (int i = 0; i < (PAGES + 1) * 64; i++)
        memcpy(pages + i * 64, code, size);
    mprotect(pages, PAGES * 4096, PROT_READ | PROT_EXEC);
    mprotect(pages + PAGES * 4096, 4096, ALL);
    for (int i = 0; i < 4 * PAGES * 64; i++)
        ((int (*)(int))(pages + i / 256 * 4096 + i % 64 * 64))(0);
    /* The least time of several: the machine has other work. An emulated one may have a time that is too
     * short: they begin anew. */
    for (int i = 0; i < 10 || (i < 400 && least[1] >= 8 * least[0]); i++) {
        if (i % 100 == 0)
            least[0] = least[1] = 1e18;
        double time = time_of_calls(pages + (PAGES - i % 2) * 4096);
        least[i % 2] = time < least[i % 2] ? time : least[i % 2];
    }
    IS(least[1] < 8 * least[0]);
    munmap(pages, (PAGES + 1) * 4096);
}

int main(void) {
    IS(plain(0) == getpid());
    IS(long_move(0) == getpid());
    IS(far_move(0) == getpid());
    IS(computed(0) == getpid());
    IS(twice(0) == getpid());
    IS(through_jump(0) == getpid());
    IS(jumped_at(0) == getpid());
    IS(jumped_at(1) == getppid());
    IS(push_pop(0) == getpid());
    IS(from_register(0) == getpid());
    IS(loop(0) == getpid());
    IS(data_like(0) == getpid());
    IS(last(0) == getpid());
    VALUE(table[5] + table[8]);
    int wrong = 0;
    for (int i = 0; i < 100; i++)
        wrong += reads_high_byte(0) != getpid() || writes_high_byte(0) != getpid();
    VALUE(wrong);

    say("made at run time");
    static const unsigned char code[] = {0xb8, 0x27, 0, 0, 0x40, 0x0f, 0x05, 0xc3};
    calls("written, then made executable", code, sizeof code, WRITE, PRIVATE, -1);
    calls("writable and executable at once", code, sizeof code, ALL, PRIVATE, -1);
    calls("shared", code, sizeof code, WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    int file = memfd_create("code", 0);
    ftruncate(file, 8192);
    write(file, code, sizeof code);
    calls("from a file", NULL, 0, PROT_READ | PROT_EXEC, MAP_PRIVATE, file);
    calls("from a file, shared", NULL, 0, PROT_READ | PROT_EXEC, MAP_SHARED, file);
    unsigned char kept[sizeof code];
    pread(file, kept, sizeof kept, 0);
    IS(memcmp(kept, code, sizeof code) == 0);
    unsigned char *page = mmap(NULL, 4096, ALL, PRIVATE, -1, 0);
    /* Written again and again while it is executable, as just-in-time compilers do. */
    wrong = 0;
    for (int i = 0; i < 200; i++) {
        memcpy(page, code, sizeof code);
        page[1] = i % 2 ? 0x27 : 0x6e;
        wrong += ((int (*)(int))page)(0) != (i % 2 ? getpid() : getppid());
    }
    VALUE(wrong);
    unsigned char *moved = mremap(page, 4096, 8192, MREMAP_MAYMOVE);
    moved[1] = 0x27;
    IS(((int (*)(int))moved)(0) == getpid());
    /* A call whose two bytes lie on two pages. */
    page = mmap(NULL, 8192, WRITE, PRIVATE, -1, 0);
    memcpy(page + 4096 - 6, code, sizeof code);
    mprotect(page, 8192, PROT_READ | PROT_EXEC);
    IS(((int (*)(int))(page + 4096 - 6))(0) == getpid());
    /* On the stack, and interrupted by signals. */
    signal(SIGALRM, count);
    unsigned char *again = mmap(NULL, 4096, ALL, PRIVATE, -1, 0);
    memcpy(again, code, sizeof code);
    alarm(1);
    wrong = 0;
    for (int i = 0; i < 200; i++)
        wrong += ((int (*)(int))again)(0) != getpid() || plain(0) != loop(0);
    VALUE(wrong);
    more_than_have_room(code, sizeof code);
    return 0;
}
