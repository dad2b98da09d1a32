/*
 * built: static, dynamic, static-pie
 *
 * The image a program finds itself in: auxiliary vector, vDSO, /proc/self, stack, thread pointer.
 */
#include "transcript.h"
#include <asm/prctl.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

static const char *base(const char *path) { return strrchr(path, '/') ? strrchr(path, '/') + 1 : path; }
/* `image`, however it was linked. */
static const char *plain(const char *name) {
    static char text[64];
    snprintf(text, sizeof text, "%.5s", base(name));
    return text;
}
static void print_vdso(void) {
    Elf32_Ehdr *head = (void *)getauxval(AT_SYSINFO_EHDR);
    IS(head != NULL);
    if (head == NULL)
        return;
    say("vDSO: magic %.3s, class %d, machine %d, type %d", head->e_ident + 1, head->e_ident[EI_CLASS],
        head->e_machine, head->e_type);
    Elf32_Phdr *segments = (void *)((char *)head + head->e_phoff);
    Elf32_Dyn *dynamic = NULL;
    for (int i = 0; i < head->e_phnum; i++)
        if (segments[i].p_type == PT_DYNAMIC)
            dynamic = (void *)((char *)head + segments[i].p_offset);
    Elf32_Sym *symbols = NULL;
    char *strings = NULL;
    uint32_t *hash = NULL;
    for (; dynamic && dynamic->d_tag; dynamic++) {
        void *at = (char *)head + dynamic->d_un.d_ptr;
        if (dynamic->d_tag == DT_SYMTAB)
            symbols = at;
        if (dynamic->d_tag == DT_STRTAB)
            strings = at;
        if (dynamic->d_tag == DT_HASH)
            hash = at;
    }
    static const char *const wanted[] = {"__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time",
                                         "__vdso_getcpu", "__vdso_clock_getres"};
    for (int w = 0; w < 5; w++) {
        int found = 0;
        for (uint32_t i = 0; symbols && strings && hash && i < hash[1]; i++)
            if (strcmp(strings + symbols[i].st_name, wanted[w]) == 0 && symbols[i].st_shndx != 0) {
                found = 1;
                if (w == 0) {
                    int (*clock)(int, struct timespec *) = (void *)((char *)head + symbols[i].st_value);
                    struct timespec now, ours;
                    clock_gettime(CLOCK_MONOTONIC, &ours);
                    VALUE(clock(CLOCK_MONOTONIC, &now));
                    IS(now.tv_sec - ours.tv_sec >= 0 && now.tv_sec - ours.tv_sec < 5);
                }
            }
        say("%s: %s", wanted[w], found ? "there" : "missing");
    }
}

int main(int count, char **words) {
    (void)count;
    VALUE(getauxval(AT_PAGESZ));
    VALUE(getauxval(AT_CLKTCK));
    VALUE(getauxval(AT_PHENT));
    IS(getauxval(AT_PHDR) != 0 && getauxval(AT_PHNUM) > 3);
    IS(getauxval(AT_ENTRY) != 0);
    IS(getauxval(AT_UID) == getuid() && getauxval(AT_EUID) == geteuid() && getauxval(AT_GID) == getgid());
    VALUE(getauxval(AT_SECURE));
    VALUE(getauxval(AT_FLAGS));
    TEXT(getauxval(AT_PLATFORM) ? (char *)getauxval(AT_PLATFORM) : "none");
    IS(getauxval(AT_RANDOM) != 0);
    IS(strcmp((char *)getauxval(AT_EXECFN), words[0]) == 0);
    IS(getauxval(AT_HWCAP) != 0);
    errno = 0;
    IS(getauxval(AT_MINSIGSTKSZ) >= 1024);
    IS(getauxval(4711) == 0 && errno == ENOENT);
    Elf32_auxv_t *vector;
    char **variables = environ;
    while (*variables)
        variables++;
    vector = (void *)(variables + 1);
    int entries = 0;
    while (vector[entries].a_type != AT_NULL)
        entries++;
    IS(entries > 15 && entries < 30);
    int file = open("/proc/self/auxv", O_RDONLY);
    static char raw[1024];
    int length = read(file, raw, sizeof raw);
    IS(length >= (entries + 1) * (int)sizeof *vector);
    IS(memcmp(raw, vector, entries * sizeof *vector) == 0);
    close(file);
    IS((uintptr_t)words % 4 == 0 && (uintptr_t)words < (uintptr_t)words[0]);
    print_vdso();

    say("times agree");
    struct timespec a, b;
    struct timeval c;
    clock_gettime(CLOCK_REALTIME, &a);
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &b);
    gettimeofday(&c, NULL);
    IS(b.tv_sec - a.tv_sec >= 0 && b.tv_sec - a.tv_sec < 5 && c.tv_sec - a.tv_sec >= 0 &&
       c.tv_sec - a.tv_sec < 5);
    IS(time(NULL) - a.tv_sec >= -1 && time(NULL) - a.tv_sec < 5);
    RESULT(clock_getres(CLOCK_MONOTONIC, &a));
    VALUE(a.tv_nsec);
    RESULT(clock_gettime(77, &a));
    RESULT(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, (void *)8));
    unsigned cpu = 99, node = 99;
    RESULT(syscall(SYS_getcpu, &cpu, &node, NULL));
    IS(cpu < 64 && node < 8);
    IS(sched_getcpu() >= 0);

    say("/proc/self");
    char text[512] = "";
    IS(readlink("/proc/self/exe", text, sizeof text - 1) > 0);
    TEXT(plain(text));
    IS(strcmp(text, words[0]) == 0);
    file = open("/proc/self/exe", O_RDONLY);
    Elf32_Ehdr head;
    RESULT(read(file, &head, sizeof head));
    say("class %d machine %d", head.e_ident[EI_CLASS], head.e_machine);
    close(file);
    file = open("/proc/self/comm", O_RDONLY);
    memset(text, 0, sizeof text);
    read(file, text, sizeof text - 1);
    TEXT(plain(text));
    close(file);
    RESULT(prctl(PR_GET_NAME, text));
    TEXT(plain(text));
    RESULT(prctl(PR_SET_NAME, "a longer name than fits"));
    RESULT(prctl(PR_GET_NAME, text));
    TEXT(text);
    file = open("/proc/self/cmdline", O_RDONLY);
    memset(text, 0, sizeof text);
    IS(read(file, text, sizeof text - 1) == (int)strlen(words[0]) + 1);
    IS(strcmp(text, words[0]) == 0);
    close(file);
    file = open("/proc/self/environ", O_RDONLY);
    memset(text, 0, sizeof text);
    read(file, text, sizeof text - 1);
    TEXT(text);
    close(file);
    snprintf(text, sizeof text, "/proc/%d/exe", getpid());
    char link[512] = "";
    IS(readlink(text, link, sizeof link - 1) > 0 && strcmp(link, words[0]) == 0);
    FILE *maps = fopen("/proc/self/maps", "r");
    int ours = 0, stacks = 0;
    while (fgets(text, sizeof text, maps)) {
        ours += strstr(text, words[0]) != NULL;
        unsigned long long from, to;
        if (sscanf(text, "%llx-%llx", &from, &to) == 2)
            stacks += (uintptr_t)&stacks >= from && (uintptr_t)&stacks < to;
    }
    IS(ours > 0 && stacks == 1);

    say("thread pointer");
    uint64_t base_fs[2] = {0, 0x5a5a5a5a}, base_gs = 7;
    RESULT(syscall(SYS_arch_prctl, ARCH_GET_FS, base_fs));
    IS(base_fs[0] == (uintptr_t)__builtin_thread_pointer());
    HEX(base_fs[1]);
    RESULT(syscall(SYS_arch_prctl, ARCH_GET_GS, &base_gs));
    HEX(base_gs);
    RESULT(syscall(SYS_arch_prctl, 0x4711, 0));
    RESULT(syscall(SYS_arch_prctl, ARCH_GET_FS, 8));
    return 0;
}
