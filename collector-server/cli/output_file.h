/* The output file of a command. The file gets its final name after all bytes are written. */
#ifndef SJ_COLLECTOR_SERVER_CLI_OUTPUT_FILE_H
#define SJ_COLLECTOR_SERVER_CLI_OUTPUT_FILE_H

#include "collector-server/cli/command.h"

#include <stdio.h>

/* Zeroed: no file. */
typedef struct sj_output_file {
    FILE *file;       /* the stream to write to */
    char *path;       /* the final name, with symbolic links resolved; NULL: standard output */
    char *unfinished; /* the name until all bytes are written; NULL: `path` is written directly */
    int lock;         /* a descriptor that locks `unfinished` until it has its final name */
} sj_output_file;

/* Opens the file for writing under the name PATH.unfinished. If `path` is a symbolic link, the file
 * replaces the link's target, and the link stays. If a file with this name exists, copies its mode
 * and, if allowed, its owner to the new file. Opens `path` itself if it is a pipe, a device, a
 * dangling link or a file that this process has already open (/dev/stdout). A NULL `path` means
 * standard output. Fails if another command is writing PATH.unfinished. Returns SJ_EXIT_OK, or
 * another exit code after a message. Blocks. */
int sj_output_file_open(const sj_command *command, const char *path, sj_output_file *output);

/* Closes the file, or flushes standard output. If `code` is SJ_EXIT_OK and all bytes are written,
 * gives the file its final name; else removes PATH.unfinished. Returns `code`, or SJ_EXIT_FAILED
 * after a message if writing failed. Blocks. */
int sj_output_file_close(const sj_command *command, sj_output_file *output, int code);

#endif
