/* The program to record: found as execvp(3) would, and checked before anything is started, so that
 * a program that cannot be recorded leaves nothing behind but one clear sentence. */
#ifndef SJ_AGENT_LAUNCH_PROGRAM_H
#define SJ_AGENT_LAUNCH_PROGRAM_H

#include "proto/base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum sj_program_problem {
    SJ_PROGRAM_FINE = 0,
    SJ_PROGRAM_NOT_FOUND,      /* no such file, in PATH or at the path */
    SJ_PROGRAM_NOT_EXECUTABLE, /* no exec bit, a directory, another machine, no known format */
    SJ_PROGRAM_NOT_RECORDABLE  /* it runs, but cannot be recorded: static, 32-bit, set-user-id */
} sj_program_problem;

typedef struct sj_program {
    char path[PATH_MAX];   /* the file that is executed */
    char binary[PATH_MAX]; /* the ELF file that runs, by its own name: `path`, or an interpreter */
    bool is_script;
    char emulator[PATH_MAX]; /* what runs a program for another machine; "": not needed */
    char sysroot[PATH_MAX];  /* where the emulator finds that machine's libraries; "": it knows */
    const char *agent;       /* file of that machine's agent; NULL: the one for this machine */
} sj_program;

/* sj_program_find looks `name` up (PATH when it has no slash) and checks that it can be recorded.
 * The error names the file and what to do. Blocking: reads a few KB of files. Any thread. */
sj_program_problem sj_program_find(const char *name, sj_program *program, sj_error *error);

/* sj_program_resolve finds the file only, for commands that take programs and libraries alike.
 * SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_program_resolve(const char *name, char *path, size_t capacity,
                                           sj_error *error);

#endif
