/* What a C library does with a kernel's help or without: iconv, getaddrinfo, qsort, regex, printf, times,
 * files. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <iconv.h>
#include <locale.h>
#include <math.h>
#include <netdb.h>
#include <pwd.h>
#include <regex.h>
#include <search.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <wchar.h>

static int by_value(const void *a, const void *b, void *count) {
    ++*(int *)count;
    return *(const int32_t *)a < *(const int32_t *)b ? -1 : *(const int32_t *)a > *(const int32_t *)b;
}

static void converted(const char *from, const char *to, const char *text) {
    iconv_t way = iconv_open(to, from);
    char in[64], out[128], *ins = strcpy(in, text), *outs = out;
    size_t left = strlen(in), room = sizeof out;
    if (way == (iconv_t)-1) {
        printf("iconv %s %s: %s\n", from, to, strerror(errno));
        return;
    }
    size_t answer = iconv(way, &ins, &left, &outs, &room);
    printf("iconv %s %s: %d, left %zu:", from, to, (int)answer, left);
    for (char *byte = out; byte < outs; byte++)
        printf(" %02x", (unsigned char)*byte);
    printf("\n");
    iconv_close(way);
}

static void resolved(const char *node, const char *service, int flags) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags}, *found = NULL;
    int error = getaddrinfo(node, service, &hints, &found);
    printf("%s %s: %s\n", node, service, error == 0 ? "found" : gai_strerror(error));
    for (struct addrinfo *one = found; one != NULL; one = one->ai_next) {
        char host[64], port[16];
        getnameinfo(one->ai_addr, one->ai_addrlen, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV);
        printf("    %s %s\n", host, port);
    }
    if (found != NULL)
        freeaddrinfo(found);
}

static ucontext_t caller, callee;
static void other_stack(void) {
    printf("on another stack\n");
    swapcontext(&callee, &caller);
    printf("once more\n");
}

int main(void) {
    converted("UTF-8", "UTF-16LE", "gr\xc3\xbc\xc3\x9f");
    converted("UTF-8", "ISO-8859-15", "\xe2\x82\xac");
    converted("UTF-8", "EUC-JP", "\xe6\x97\xa5\xe6\x9c\xac");
    converted("UTF-8", "ASCII", "a\xc3");
    converted("UTF-8", "ASCII//TRANSLIT", "\xe2\x80\xa6");
    converted("NONE", "ASCII", "a");
    resolved("127.0.0.1", "80", AI_NUMERICHOST | AI_NUMERICSERV);
    resolved("::1", "80", AI_NUMERICHOST | AI_NUMERICSERV);
    resolved("localhost", "http", 0);
    resolved("host.invalid", "80", AI_NUMERICHOST);
    struct passwd *root = getpwnam("root");
    printf("root: %s\n", root != NULL ? root->pw_dir : "none");

    int32_t values[5000];
    uint32_t state = 1;
    int count = 0;
    uint64_t sum = 0;
    for (int i = 0; i < 5000; i++)
        values[i] = (int32_t)(state = state * 69069 + 1);
    qsort_r(values, 5000, sizeof *values, by_value, &count);
    for (int i = 0; i < 5000; i++)
        sum = sum * 31 + (uint32_t)values[i];
    printf("qsort: %llx, %s\n", (unsigned long long)sum, count > 5000 ? "compared" : "not compared");

    regex_t expression;
    regmatch_t found[4];
    regcomp(&expression, "^([a-z]+)[^0-9]*([0-9]{2,})(x|$)", REG_EXTENDED);
    for (const char **text = (const char *[]){"abc -- 1234x", "abc 1", "z99", NULL}; *text != NULL; text++) {
        int answer = regexec(&expression, *text, 4, found, 0);
        printf("regex %s: %d", *text, answer);
        for (int i = 0; answer == 0 && i < 4; i++)
            printf(" %d-%d", (int)found[i].rm_so, (int)found[i].rm_eo);
        printf("\n");
    }
    char message[64];
    regerror(regcomp(&expression, "(", REG_EXTENDED), &expression, message, sizeof message);
    printf("regex (: %s\n", message);
    printf("fnmatch: %d %d\n", fnmatch("*.[ch]", "a.c", 0), fnmatch("*.[ch]", "a.o", 0));
    glob_t names;
    printf("glob: %d", glob("/usr/inclu[a-d]e", 0, NULL, &names));
    printf(" %zu %s\n", names.gl_pathc, names.gl_pathv[0]);

    printf("%.20g %a %Lg %e %10.3f|%-8s|%+d|%'d|%c\n", 0.1, 1.0 / 3, 1.0L / 3, 12345.678, M_PI, "left", 5,
           1234567, 'c');
    printf("%g %g %g %g %g\n", sin(1e22), exp(-745.1), pow(1.0000001, 1e8), tgamma(10.5),
           hypot(3e300, 4e300));
    printf("%g %lld %s\n", strtod("0x1.8p-3", NULL), strtoll("-9223372036854775808", NULL, 10),
           strerror(strtoul("99999999999999999999", NULL, 10) > 0 ? errno : 0));
    setlocale(LC_ALL, "C.UTF-8");
    wchar_t wide[16];
    printf("mbstowcs: %d, wcwidth %d\n", (int)mbstowcs(wide, "\xe6\x97\xa5x", 16), wcwidth(0x65e5));
    struct tm day = {.tm_year = 138, .tm_mon = 0, .tm_mday = 19, .tm_hour = 3, .tm_min = 14, .tm_sec = 8};
    long long seconds = (long long)timegm(&day);
    char text[64];
    strftime(text, sizeof text, "%A %c %j %V", &day);
    printf("%lld %s\n", seconds, text);
    setenv("TZ", "Europe/Berlin", 1);
    time_t summer = 1720000000;
    strftime(text, sizeof text, "%F %T %Z %z", localtime(&summer));
    printf("%s\n", text);

    hcreate(10);
    hsearch((ENTRY){"key", "value"}, ENTER);
    printf("hsearch: %s\n", (char *)hsearch((ENTRY){"key", NULL}, FIND)->data);
    mkdir("folder", 0700);
    for (int i = 0; i < 300; i++) {
        snprintf(text, sizeof text, "folder/%d", i);
        fclose(fopen(text, "w"));
    }
    struct dirent **entries;
    int number = scandir("folder", &entries, NULL, versionsort);
    printf("scandir: %d, %s %s\n", number, entries[2]->d_name, entries[number - 1]->d_name);
    char stack[65536];
    getcontext(&callee);
    callee.uc_stack.ss_sp = stack;
    callee.uc_stack.ss_size = sizeof stack;
    callee.uc_link = &caller;
    makecontext(&callee, other_stack, 0);
    swapcontext(&caller, &callee);
    printf("back\n");
    swapcontext(&caller, &callee);
    FILE *memory = open_memstream(&(char *){NULL}, &(size_t){0});
    printf("open_memstream: %d\n", fprintf(memory, "%05d", 42));
    fclose(memory);
    printf("getline: %d\n", (int)getline(&(char *){NULL}, &(size_t){0}, fopen("/proc/self/comm", "r")));
    return 0;
}
