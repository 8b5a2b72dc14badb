/* Finds the program to record as execvp(3) would, and checks it before anything starts. So a
 * program that cannot be recorded leaves only one clear message. */
#ifndef SJ_AGENT_LAUNCH_PROGRAM_H
#define SJ_AGENT_LAUNCH_PROGRAM_H

#include "proto/base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sj_program_problem {
    SJ_PROGRAM_FINE = 0,
    SJ_PROGRAM_NOT_FOUND, /* no such file in PATH or at the path */
    /* not executable, a directory, for another machine, or of unknown format */
    SJ_PROGRAM_NOT_EXECUTABLE,
    SJ_PROGRAM_NOT_RECORDABLE /* it runs but cannot be recorded: static, 32-bit, set-user-id */
} sj_program_problem;

typedef struct sj_program {
    char path[PATH_MAX];   /* the file that is executed */
    char binary[PATH_MAX]; /* the ELF file that runs, by its real name: `path`, or an interpreter */
    bool is_script;
    uint16_t machine;        /* e_machine of `binary` */
    char emulator[PATH_MAX]; /* emulator for a program of another machine; "": none */
    char sysroot[PATH_MAX];  /* folder of the emulator's libraries; "": the emulator's default */
    const char *agent;       /* file of that machine's agent; NULL: the agent of this machine */
} sj_program;

/* Looks `name` up (in PATH if it has no slash) and checks that it can be recorded. The error names
 * the file and what to do. Blocks while it reads a few KB of files. Thread-safe. */
sj_program_problem sj_program_find(const char *name, sj_program *program, sj_error *error);

/* Only finds the file, for commands that accept programs and libraries. Returns SJ_ENOTFOUND, or
 * SJ_ELIMIT if the path does not fit. */
SJ_MUST_CHECK sj_status sj_program_resolve(const char *name, char *path, size_t capacity,
                                           sj_error *error);

#endif
