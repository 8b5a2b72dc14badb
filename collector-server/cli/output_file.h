/* The file of a command's output, which gets its name when it is whole. */
#ifndef SJ_COLLECTOR_SERVER_CLI_OUTPUT_FILE_H
#define SJ_COLLECTOR_SERVER_CLI_OUTPUT_FILE_H

#include "collector-server/cli/command.h"

#include <stdio.h>

/* Zeroed: no file. */
typedef struct sj_output_file {
    FILE *file;       /* what to write to */
    char *path;       /* the file itself, with links resolved; NULL: standard output */
    char *unfinished; /* its name until it is whole; NULL if the bytes go to `path` at once */
} sj_output_file;

/* Opens the file for writing under the name PATH.unfinished. If `path` is a symbolic link, its
 * target is written, and the link stays. An older file keeps its mode and owner. A pipe, a device,
 * a dangling link and a file that this process has already open (/dev/stdout) get the bytes at
 * once. Without a `path`, the file is standard output. Returns SJ_EXIT_OK, or another exit code
 * after a message. Blocks. */
int sj_output_file_open(const sj_command *command, const char *path, sj_output_file *output);

/* Closes the file. If `code` is SJ_EXIT_OK and all bytes are written, gives the file its name; else
 * removes what is unfinished. Returns `code`, or SJ_EXIT_FAILED after a message. Blocks. */
int sj_output_file_close(const sj_command *command, sj_output_file *output, int code);

#endif
