/*
 * A program without PT_GNU_STACK: what is executable (arch/x86/include/asm/elf.h, elf_read_implies_exec).
 */
#include "transcript.h"
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/stat.h>

/* The protection of the mapping in which something is. */
static void print_protection(const char *what, const void *at) {
    char line[512], protection[8];
    unsigned long long low, high;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%llx-%llx %4s", &low, &high, protection) == 3 && low <= (uintptr_t)at &&
            (uintptr_t)at < high)
            say("%s: %s", what, protection);
    fclose(maps);
}

static int global = 1;
static const int constant = 1;

static void tell(void) {
    HEX(personality(0xffffffff) & READ_IMPLIES_EXEC);
    print_protection("stack", __builtin_frame_address(0));
    print_protection("data", &global);
    print_protection("constants", &constant);
    print_protection("heap", sbrk(0) - 1);
    print_protection("PROT_READ", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    print_protection("PROT_NONE", mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char *changed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    RESULT(mprotect(changed, 4096, PROT_READ | PROT_WRITE));
    print_protection("changed", changed);
}

/* A copy of this program whose header of the stack is none, or has other flags. */
static void copy_without_header(const char *name, unsigned type, unsigned flags) {
    struct stat status;
    int from = open("/proc/self/exe", O_RDONLY), to = open(name, O_RDWR | O_CREAT, 0755);
    fstat(from, &status);
    char *bytes = mmap(NULL, status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, from, 0);
    Elf32_Phdr *headers = (Elf32_Phdr *)(bytes + ((Elf32_Ehdr *)bytes)->e_phoff);
    for (int i = 0; i < ((Elf32_Ehdr *)bytes)->e_phnum; i++)
        if (headers[i].p_type == PT_GNU_STACK)
            headers[i].p_type = type, headers[i].p_flags = flags;
    write(to, bytes, status.st_size);
    close(from), close(to);
}

static void run(const char *name) {
    pid_t child = fork();
    if (child == 0) {
        execl(name, name, "tell", NULL);
        _exit(9);
    }
    ended(name, child);
}

int main(int count, char **words) {
    (void)words;
    if (count > 1) {
        tell();
        return 0;
    }
    tell();
    copy_without_header("./without", PT_NULL, PF_R | PF_W);
    run("./without");
    copy_without_header("./executable", PT_GNU_STACK, PF_R | PF_W | PF_X);
    run("./executable");
    return 0;
}
