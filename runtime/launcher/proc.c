#include "proc.h"

#include "kernel.h"

uint64_t field(const char *text, const char *key) {
    for (const char *line = text; *line; line++) {
        if (line == text || line[-1] == '\n') {
            const char *a = line, *b = key;
            while (*b && *a == *b)
                a++, b++;
            if (!*b) {
                uint64_t value = 0;
                for (; *a && *a != '\n'; a++)
                    if (*a >= '0' && *a <= '9')
                        value = value * 10 + (uint64_t)(*a - '0');
                return value;
            }
        }
    }
    return 0;
}

const char *status_of(long pid) {
    static char path[64], text[8192];
    append(append_number(append(path, "/proc/"), (uint64_t)pid), "/status");
    long fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? 0 : sys_read((int)fd, text, sizeof text - 1);
    if (fd >= 0)
        sys_close((int)fd);
    text[n > 0 ? n : 0] = 0;
    return text;
}

int is_own_child(long pid) {
    const char *text = status_of(pid);
    return field(text, "Tgid:") == (uint64_t)pid && field(text, "PPid:") == (uint64_t)sys_getpid();
}

/* Every child has page faults (cminflt in /proc/PID/stat, which stays until the process is reaped; its
 * command name may hold anything). */
int is_parent(long pid) {
    static char path[64], text[1024];
    char *at = append_number(append(path, "/proc/"), (uint64_t)pid);
    append(at, "/stat");
    long fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? 0 : sys_read((int)fd, text, sizeof text - 1);
    if (fd >= 0)
        sys_close((int)fd);
    long end = n;
    while (end > 0 && text[end - 1] != ')')
        end--;
    int fields = 0;
    for (; end < n; end++)
        if (text[end] == ' ' && ++fields == 9)
            return end + 1 < n && text[end + 1] != '0';
    return 1; /* nothing is known */
}
