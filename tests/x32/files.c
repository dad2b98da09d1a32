/*
 * core
 *
 * Plain calls on files: sizes and offsets beyond 4 GiB, times, folders, links, locks, errors.
 */
#include "transcript.h"
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <utime.h>

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

int main(void) {
    const off_t far = 9LL << 32;
    int file = SUCCESS(open("file", O_RDWR | O_CREAT | O_EXCL, 0640));
    RESULT(open("file", O_RDWR | O_CREAT | O_EXCL, 0640));
    RESULT(pwrite(file, "far", 3, far));
    char text[600] = "";
    RESULT(pread(file, text, 10, far + 1));
    TEXT(text);
    RESULT(lseek(file, far, SEEK_SET));
    RESULT(lseek(file, -1, SEEK_CUR));
    RESULT(lseek(file, -far, SEEK_CUR));
    RESULT(lseek(file, 0, SEEK_DATA) >= 0);
    RESULT(lseek(file, far + 10, SEEK_DATA));
    RESULT(lseek(file, 0, 99));
    RESULT(lseek(-1, 0, SEEK_SET));
    struct stat what;
    VALUE(sizeof what);
    RESULT(fstat(file, &what));
    say("size %lld, mode %o, links %d, block size %d", (long long)what.st_size, what.st_mode,
        (int)what.st_nlink, (int)what.st_blksize);
    IS(what.st_uid == getuid() && what.st_ino != 0 && what.st_mtim.tv_sec > 1000000000 && what.st_blocks > 0);
    RESULT(truncate("file", far + 100));
    RESULT(ftruncate(file, (3LL << 32) + 5));
    RESULT(stat("file", &what));
    VALUE(what.st_size);
    RESULT(ftruncate(file, -1));
    RESULT(fallocate(file, 0, 0, 4096));
    RESULT(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
    RESULT(posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL));
    RESULT(posix_fadvise(file, 0, 0, 99));
    RESULT(fsync(file));
    RESULT(fdatasync(-1));
    struct rlimit limit = {1 << 20, RLIM_INFINITY}, old;
    getrlimit(RLIMIT_FSIZE, &old);
    limit.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    RESULT(setrlimit(RLIMIT_FSIZE, &limit));
    RESULT(pwrite(file, "x", 1, 2 << 20));
    RESULT(setrlimit(RLIMIT_FSIZE, &old));

    say("names and folders");
    RESULT(mkdir("folder", 0750));
    RESULT(mkdir("folder", 0750));
    RESULT(symlink("file", "link"));
    RESULT(link("file", "folder/hard"));
    RESULT(mkfifo("folder/pipe", 0600));
    RESULT(mknod("device", S_IFCHR | 0600, makedev(1, 3)));
    RESULT(lstat("link", &what));
    say("mode %o size %lld", what.st_mode, (long long)what.st_size);
    memset(text, 0, sizeof text);
    RESULT(readlink("link", text, 3));
    RESULT(readlink("file", text, 3));
    RESULT(rename("link", "folder/renamed"));
    RESULT(renameat2(AT_FDCWD, "file", AT_FDCWD, "folder", RENAME_NOREPLACE));
    RESULT(renameat2(AT_FDCWD, "file", AT_FDCWD, "folder/hard", RENAME_EXCHANGE));
    RESULT(rmdir("folder"));
    RESULT(unlink("folder"));
    RESULT(access("file", R_OK | W_OK));
    RESULT(access("file", X_OK));
    RESULT(faccessat(AT_FDCWD, "missing", F_OK, AT_EACCESS));
    RESULT(chmod("file", 0400));
    RESULT(open("file", O_WRONLY));
    RESULT(chmod("file", 0640));
    RESULT(chown("file", -1, -1));
    RESULT(chown("file", 0, 0));
    int folder = open("folder", O_RDONLY | O_DIRECTORY);
    RESULT(fstatat(folder, "hard", &what, 0));
    VALUE(what.st_nlink);
    char raw[2048];
    long length = syscall(SYS_getdents64, folder, raw, sizeof raw);
    int entries = 0, dots = 0;
    for (long at = 0; at < length; at += ((struct dirent64 *)(raw + at))->d_reclen, entries++)
        dots += ((struct dirent64 *)(raw + at))->d_name[0] == '.';
    say("%d entries, %d of them dots", entries, dots);
    RESULT(syscall(SYS_getdents64, folder, raw, sizeof raw));
    lseek(folder, 0, SEEK_SET);
    RESULT(syscall(SYS_getdents64, folder, raw, 4));
    length = syscall(SYS_getdents, folder, raw, sizeof raw);
    print_result("getdents", length > 0 ? 1 : length);
    RESULT(syscall(SYS_getdents64, file, raw, sizeof raw));
    struct dirent **list;
    int count = scandir("folder", &list, NULL, by_name);
    for (int i = 0; i < count; i++)
        say("  %s %d", list[i]->d_name, list[i]->d_type);
    RESULT(openat(folder, "../file", O_RDONLY) > 0);
    RESULT(fchdir(folder));
    IS(getcwd(text, sizeof text) != NULL);
    RESULT(syscall(SYS_getcwd, text, 3));
    RESULT(chdir(".."));
    struct open_how how = {.flags = O_RDONLY, .resolve = RESOLVE_BENEATH};
    RESULT(syscall(SYS_openat2, folder, "../file", &how, sizeof how));
    SUCCESS(syscall(SYS_openat2, folder, "hard", &how, sizeof how));
    how.resolve = 0x8000;
    RESULT(syscall(SYS_openat2, folder, "hard", &how, sizeof how));
    RESULT(syscall(SYS_openat2, folder, "hard", &how, 8));
    RESULT(open("x", O_RDWR | O_TMPFILE));
    int nameless = SUCCESS(open(".", O_RDWR | O_TMPFILE, 0600));
    RESULT(fstat(nameless, &what));
    VALUE(what.st_nlink);

    say("times");
    struct timespec times[2] = {{5000000000LL, 123456789}, {1, 2}};
    RESULT(utimensat(AT_FDCWD, "file", times, 0));
    RESULT(stat("file", &what));
    say("%lld %ld, %lld %ld", (long long)what.st_atim.tv_sec, (long)what.st_atim.tv_nsec,
        (long long)what.st_mtim.tv_sec, (long)what.st_mtim.tv_nsec);
    times[0].tv_nsec = UTIME_OMIT, times[1].tv_nsec = UTIME_NOW;
    RESULT(futimens(file, times));
    stat("file", &what);
    IS(what.st_atim.tv_sec == 5000000000LL && what.st_mtim.tv_sec > 1000000000);
    times[0].tv_nsec = 1000000000;
    RESULT(utimensat(AT_FDCWD, "file", times, 0));
    RESULT(utime("file", &(struct utimbuf){7000000000LL, 8}));
    stat("file", &what);
    say("%lld %lld", (long long)what.st_atim.tv_sec, (long long)what.st_mtim.tv_sec);
    RESULT(utimes("file", (struct timeval[]){{1, 999999}, {2, 1000000}}));
    struct statx extended;
    RESULT(statx(AT_FDCWD, "file", 0, STATX_BASIC_STATS, &extended));
    say("statx: size %lld mode %o, mask %d", (long long)extended.stx_size, extended.stx_mode,
        (extended.stx_mask & STATX_BASIC_STATS) == STATX_BASIC_STATS);
    RESULT(statx(AT_FDCWD, "missing", 0, STATX_BASIC_STATS, &extended));
    RESULT(statx(file, "", AT_EMPTY_PATH, STATX_SIZE, &extended));
    RESULT(statx(file, "", 0, STATX_SIZE, &extended));
    struct statfs system;
    VALUE(sizeof system);
    RESULT(statfs("/proc", &system));
    say("type %#lx, name length %ld", (long)system.f_type, (long)system.f_namelen);
    struct statvfs generic;
    RESULT(fstatvfs(file, &generic));
    IS(generic.f_bsize >= 512 && generic.f_namemax == 255);
    RESULT(statfs("missing", &system));

    say("descriptors and locks");
    RESULT(dup2(file, 100));
    RESULT(dup3(file, file, 0));
    RESULT(dup3(file, 101, O_CLOEXEC));
    RESULT(fcntl(101, F_GETFD));
    RESULT(fcntl(file, F_DUPFD, 120));
    RESULT(fcntl(file, F_DUPFD, 1 << 20));
    RESULT(fcntl(file, F_GETFL) & (O_ACCMODE | O_APPEND));
    RESULT(fcntl(file, 4711, 0));
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = far, .l_len = 10};
    VALUE(sizeof lock);
    RESULT(fcntl(file, F_SETLK, &lock));
    pid_t child = fork();
    if (child == 0) {
        lock = (struct flock){.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0};
        RESULT(fcntl(file, F_GETLK, &lock));
        say("type %d whence %d start %lld length %lld, holder %s", lock.l_type, lock.l_whence,
            (long long)lock.l_start, (long long)lock.l_len, lock.l_pid == getppid() ? "the parent" : "other");
        lock.l_type = F_RDLCK;
        RESULT(fcntl(file, F_SETLK, &lock));
        lock.l_start = 0, lock.l_len = far;
        RESULT(fcntl(file, F_SETLK, &lock));
        lock = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = far, .l_len = 10};
        RESULT(fcntl(file, F_OFD_GETLK, &lock));
        RESULT(fcntl(open("file", O_RDWR), F_OFD_SETLK, &lock));
        lock.l_pid = 0;
        RESULT(fcntl(open("file", O_RDWR), F_OFD_SETLK, &lock));
        _exit(0);
    }
    ended("child", child);
    RESULT(fcntl(file, F_SETLK, (void *)8));
    RESULT(flock(file, LOCK_EX | LOCK_NB));
    RESULT(flock(open("file", O_RDWR), LOCK_SH | LOCK_NB));
    RESULT(close_range(100, 130, 0));
    RESULT(fcntl(100, F_GETFD));
    RESULT(close_range(10, 5, 0));
    RESULT(fcntl(file, F_SETLEASE, F_RDLCK));
    struct f_owner_ex owner = {F_OWNER_PID, 0};
    RESULT(fcntl(file, F_GETOWN_EX, &owner));
    VALUE(owner.type);

    say("copying");
    int from = open("from", O_RDWR | O_CREAT, 0600), to = open("to", O_RDWR | O_CREAT, 0600);
    pwrite(from, "to be copied", 12, far);
    off_t offset = far;
    RESULT(sendfile(to, from, &offset, 100));
    VALUE(offset - far);
    loff_t in = far + 3, out = far * 2;
    RESULT(copy_file_range(from, &in, to, &out, 100, 0));
    say("in %lld out %lld", (long long)(in - far), (long long)(out - far * 2));
    int ends[2];
    RESULT(pipe2(ends, O_NONBLOCK | O_CLOEXEC));
    in = far;
    RESULT(splice(from, &in, ends[1], NULL, 5, 0));
    VALUE(in - far);
    int more[2];
    pipe(more);
    RESULT(tee(ends[0], more[1], 100, 0));
    memset(text, 0, sizeof text);
    RESULT(read(more[0], text, 100));
    TEXT(text);
    out = far + 50;
    RESULT(splice(ends[0], NULL, to, &out, 100, 0));
    RESULT(splice(ends[0], NULL, to, &out, 100, SPLICE_F_NONBLOCK));
    RESULT(splice(from, NULL, to, NULL, 5, 0));
    RESULT(fcntl(ends[0], F_GETPIPE_SZ));
    RESULT(fcntl(ends[0], F_SETPIPE_SZ, 8192));
    RESULT(pipe((int *)8));
    RESULT(readahead(from, far, 4096));
    RESULT(sync_file_range(from, far, 4096, 0));

    say("attributes");
    RESULT(setxattr("from", "nonsense", "x", 1, 0));
    RESULT(setxattr("missing", "user.x", "x", 1, 0));
    RESULT(setxattr("from", "trusted.x", "x", 1, 0));
    static const unsigned char acl[] = {2, 0, 0,   0,   1,   0,   6,  0, 255, 255, 255, 255, 2,   0,  4,
                                        0, 7, 0,   0,   0,   4,   0,  4, 0,   255, 255, 255, 255, 16, 0,
                                        4, 0, 255, 255, 255, 255, 32, 0, 0,   0,   255, 255, 255, 255};
    RESULT(setxattr("from", "system.posix_acl_access", acl, sizeof acl, 0));
    RESULT(getxattr("from", "system.posix_acl_access", text, sizeof text));
    IS(memcmp(text, acl, sizeof acl) == 0);
    RESULT(getxattr("from", "system.posix_acl_access", text, 5));
    RESULT(fgetxattr(from, "system.posix_acl_access", NULL, 0));
    memset(text, 0, sizeof text);
    RESULT(flistxattr(from, text, sizeof text) > 20);
    RESULT(lremovexattr("from", "system.posix_acl_access"));
    RESULT(umask(0));
    RESULT(umask(077));
    sync();
    return 0;
}
