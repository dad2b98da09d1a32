/*
 * built: static, dynamic
 *
 * What execve refuses, so that the caller goes on: programs without their interpreter, and files that are no
 * programs. And a program that only a descriptor leads to, which execve closes.
 */
#include "transcript.h"
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static char content[1 << 22];
static size_t size;

static void read_program(const char *name) {
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", getenv("PROGRAMS"), name);
    int file = open(path, O_RDONLY);
    size = read(file, content, sizeof content);
    close(file);
}

static void write_file(const char *name, mode_t mode, const void *from, size_t count) {
    unlink(name);
    int file = open(name, O_WRONLY | O_CREAT, mode);
    write(file, from, count);
    close(file);
}

static void run(const char *what, const char *path) {
    pid_t child = fork();
    if (child == 0) {
        execve(path, (char *[]){"called", "exit", "9", NULL}, (char *[]){NULL});
        say("%s: %s", what, error_name(errno));
        _exit(99);
    }
    ended(what, child);
}

static Elf32_Phdr *interpreter(void) {
    Elf32_Ehdr *head = (void *)content;
    Elf32_Phdr *headers = (void *)(content + head->e_phoff);
    for (int i = 0; i < head->e_phnum; i++)
        if (headers[i].p_type == PT_INTERP)
            return &headers[i];
    _exit(98);
}

static void with_interpreter(const char *what, const char *name) {
    read_program("child-x32-dynamic");
    Elf32_Phdr *header = interpreter();
    header->p_filesz = strlen(name) + 1;
    header->p_offset = size;
    memcpy(content + size, name, header->p_filesz);
    write_file("changed", 0755, content, size + header->p_filesz);
    run(what, "./changed");
}

static void interpreters(void) {
    char text[100] = "no program, but longer than the header of one: ....................................";
    write_file("text", 0755, text, sizeof text);
    write_file("unreadable", 0644, text, sizeof text);
    write_file("short", 0755, text, 10);
    read_program("child-x86-64");
    write_file("wide", 0755, content, size);
    with_interpreter("nowhere", "/nowhere");
    with_interpreter("below a file", "./text/nowhere");
    with_interpreter("a folder", "/");
    with_interpreter("not executable", "./unreadable");
    with_interpreter("text", "./text");
    with_interpreter("short", "./short");
    with_interpreter("of x86-64", "./wide");
    with_interpreter("without a name", "");
    read_program("child-x32-dynamic");
    interpreter()->p_filesz--;
    write_file("changed", 0755, content, size);
    run("a name without an end", "./changed");
    with_interpreter("nowhere, again", "/nowhere");
    write_file("script", 0755, "#!./changed\n", 12);
    run("a script of it", "./script");
    write_file("outer", 0755, "#!./script\n", 11);
    run("a script of that", "./outer");
}

static void headers(void) {
    read_program("child-x32");
    Elf32_Ehdr *head = (void *)content, before = *head;
    head->e_type = ET_CORE;
    write_file("changed", 0755, content, size);
    run("a core", "./changed");
    head->e_type = ET_REL;
    write_file("changed", 0755, content, size);
    run("an object file", "./changed");
    *head = before;
    head->e_phentsize = 56;
    write_file("changed", 0755, content, size);
    run("headers of another size", "./changed");
    *head = before;
    head->e_phnum = 0;
    write_file("changed", 0755, content, size);
    run("no headers", "./changed");
    write_file("changed", 0755, content, 40);
    run("half a header", "./changed");
    *head = before;
    write_file("changed", 0755, content, size);
    run("all as it was", "./changed");
}

static void by_descriptor(void) {
    char path[100];
    read_program("child-x32");
    int memory = memfd_create("memory", MFD_CLOEXEC);
    write(memory, content, size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
    run("in memory", path);
    int file = open("changed", O_RDONLY | O_CLOEXEC);
    unlink("changed");
    snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), file);
    run("deleted", path);
    file = open("script", O_RDONLY | O_CLOEXEC);
    write_file("changed", 0755, content, size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    run("a script", path);
}

int main(void) {
    interpreters();
    headers();
    by_descriptor();
    return 0;
}
