/* The program under test. It prints what it sees, so that a traced run can be compared with a plain
 * one. Arguments: the number of calls; optionally `plugin PATH`, `fork`, `fail`. */
#include "agent/include/sojourn.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern long sample_triple(long a, long b);
extern char **environ;

static void print_descriptors(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    printf("descriptors %d\n", count);
}

static long call_triple(long count)
{
    long sum = 0;
    for (long i = 0; i < count; i++) {
        sum += sample_triple(i, 1);
    }
    return sum;
}

static void use_plugin(const char *path)
{
    for (int i = 0; i < 2; i++) {
        void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (plugin == NULL) {
            printf("no plugin: %s\n", dlerror());
            exit(2);
        }
        printf("plugin %ld\n", *(long *)dlsym(plugin, "plugin_sum"));
        dlclose(plugin);
    }
}

static void fork_child(long count)
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        printf("child %ld\n", call_triple(count));
        exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    printf("child status %d\n", status);
}

int main(int argc, char **argv)
{
    printf("errno %d\n", errno);
    for (char **entry = environ; *entry != NULL; entry++) {
        printf("environment %s\n", *entry);
    }
    print_descriptors();
    const long count = argc > 1 ? atol(argv[1]) : 1;
    sojourn_mark_begin("work");
    errno = 33;
    printf("sum %ld\n", call_triple(count));
    sojourn_mark_end("work");
    printf("errno %d\n", errno);
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "plugin") == 0 && i + 1 < argc) {
            use_plugin(argv[++i]);
        } else if (strcmp(argv[i], "fork") == 0) {
            fork_child(count);
        }
    }
    print_descriptors();
    return 0;
}
