/*
 * process_vm_readv, process_vm_writev (rows 539, 540), vmsplice (532), move_pages (533), process_madvise.
 */
#include "transcript.h"
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/uio.h>

int main(void) {
    char *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    strcpy(shared, "of the child");
    int ready[2], done[2];
    pipe(ready), pipe(done);
    pid_t child = fork();
    if (child == 0) {
        strcpy(shared, "CHILD'S BYTES");
        write(ready[1], "x", 1);
        char byte;
        read(done[0], &byte, 1);
        say("the child holds \"%s\"", shared);
        _exit(0);
    }
    char byte, one[64] = "", two[64] = "";
    read(ready[0], &byte, 1);
    struct iovec local[] = {{one, 5}, {two, 20}},
                 remote[] = {{shared, 8}, {shared + 8, 6}, {shared + 100, 3}};
    RESULT(process_vm_readv(child, local, 2, remote, 2, 0));
    TEXT(one), TEXT(two);
    local[0] = (struct iovec){"written", 7};
    RESULT(process_vm_writev(child, local, 1, remote, 1, 0));
    RESULT(process_vm_readv(child, local, 2, remote, 2, 1));
    RESULT(process_vm_readv(child, local, IOV_MAX + 1, remote, 2, 0));
    RESULT(process_vm_readv(child, local, 0, remote, 2, 0));
    RESULT(process_vm_readv(child, (void *)8, 1, remote, 2, 0));
    RESULT(process_vm_readv(child, local, 2, (void *)8, 1, 0));
    remote[1].iov_base = (void *)8;
    local[0] = (struct iovec){one, 20};
    RESULT(process_vm_readv(child, local, 2, remote, 3, 0));
    RESULT(process_vm_readv(child, local, 2, remote + 1, 1, 0));
    remote[0].iov_len = 0x80000000;
    RESULT(process_vm_readv(child, local, 2, remote, 1, 0));
    RESULT(process_vm_readv(1 << 30, local, 2, remote, 1, 0));

    say("process_madvise");
    int file = syscall(SYS_pidfd_open, child, 0);
    struct iovec range = {shared, 8192};
    RESULT(syscall(SYS_process_madvise, file, &range, 1, MADV_COLD, 0));
    RESULT(syscall(SYS_process_madvise, file, &range, 1, MADV_COLD, 1));
    RESULT(syscall(SYS_process_madvise, file, (void *)8, 1, MADV_COLD, 0));
    RESULT(syscall(SYS_process_madvise, 250, &range, 1, MADV_COLD, 0));
    write(done[1], "x", 1);
    ended("child", child);

    say("vmsplice");
    int ends[2];
    pipe(ends);
    strcpy(shared, "spliced from memory");
    struct iovec parts[] = {{shared, 7}, {shared + 8, 4}, {shared + 12, 7}};
    RESULT(vmsplice(ends[1], parts, 3, 0));
    memset(one, 0, sizeof one);
    RESULT(read(ends[0], one, 40));
    TEXT(one);
    write(ends[1], "to memory", 9);
    memset(one, 0, sizeof one), memset(two, 0, sizeof two);
    struct iovec into[] = {{one, 3}, {two, 30}};
    RESULT(vmsplice(ends[0], into, 2, 0));
    TEXT(one), TEXT(two);
    RESULT(vmsplice(ends[1], parts, 3, 0x100));
    RESULT(vmsplice(ends[1], (void *)8, 1, 0));
    RESULT(vmsplice(ends[1], parts, IOV_MAX + 1, 0));
    RESULT(vmsplice(ends[1], parts, 0, 0));
    parts[1].iov_base = (void *)8;
    RESULT(vmsplice(ends[1], parts + 1, 1, 0));
    RESULT(vmsplice(open("file", O_RDWR | O_CREAT, 0600), parts, 1, 0));
    RESULT(vmsplice(-1, parts, 1, 0));

    say("move_pages");
    shared[0] = 1;
    void *pages[] = {shared, shared + 4096, (void *)0x10000};
    int status[3] = {99, 99, 99}, nodes[3] = {0, 0, 0};
    RESULT(syscall(SYS_move_pages, 0, 3, pages, NULL, status, 0));
    /* Which error a page has that was never touched depends on the kernel's version. */
    say("status: %d, %s, %s", status[0], status[1] < 0 ? "error" : "node", error_name(-status[2]));
    RESULT(syscall(SYS_move_pages, 0, 1, pages, nodes, status, 2));
    VALUE(status[0]);
    RESULT(syscall(SYS_move_pages, 0, 1, (void *)8, NULL, status, 0));
    RESULT(syscall(SYS_move_pages, 0, 1, pages, NULL, (void *)8, 0));
    RESULT(syscall(SYS_move_pages, 0, 1, pages, NULL, status, 64));
    RESULT(syscall(SYS_move_pages, 0, 0, pages, NULL, status, 0));
    return 0;
}
