#include "agent/host/own_program.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static bool is_loader(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && (strncmp(slash, "/ld-", 4) == 0 || strcmp(slash, "/ld.so") == 0);
}

sj_status sj_own_program_find(sj_own_program *program, sj_error *error)
{
    const ssize_t bytes = readlink("/proc/self/exe", program->path, sizeof(program->path) - 1);
    program->libraries[0] = '\0';
    if (bytes <= 0) {
        return sj_fail(error, SJ_EIO, "cannot find where sojourn itself is: /proc/self/exe: %s%s",
                       strerror(errno),
                       errno == ENOENT ? "; mount /proc first: mount -t proc proc /proc" : "");
    }
    program->path[bytes] = '\0';
    if (!is_loader(program->path)) {
        return SJ_OK;
    }
    /* The loader writes the path of the program that it starts into the auxiliary vector. */
    const char *given = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    memcpy(program->libraries, program->path, (size_t)bytes + 1);
    *strrchr(program->libraries, '/') = '\0';
    if (given == NULL || realpath(given, program->path) == NULL) {
        return sj_fail(error, SJ_EIO, "cannot find where sojourn itself is: %s: %s",
                       given != NULL ? given : "the loader does not say", strerror(errno));
    }
    return SJ_OK;
}

void sj_own_program_arguments(sj_own_program *program, char *name, char *argument,
                              char *arguments[SJ_OWN_ARGUMENTS + 1])
{
    static char library_path[] = "--library-path";
    static char argv0[] = "--argv0";
    size_t count = 0;
    arguments[count++] = name;
    if (program->libraries[0] != '\0') {
        arguments[count++] = library_path;
        arguments[count++] = program->libraries;
        arguments[count++] = argv0;
        arguments[count++] = name;
        arguments[count++] = program->path;
    }
    arguments[count++] = argument;
    arguments[count] = NULL;
}
