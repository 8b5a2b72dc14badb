/* The output folder of a command. The folder gets its final name after all its files are written.
 */
#ifndef SJ_COLLECTOR_SERVER_CLI_OUTPUT_FOLDER_H
#define SJ_COLLECTOR_SERVER_CLI_OUTPUT_FOLDER_H

#include "collector-server/cli/command.h"

/* Zeroed: no folder. */
typedef struct sj_output_folder {
    const char *path; /* borrowed */
    char *unfinished; /* the name until all files are written */
} sj_output_folder;

/* Creates the empty folder PATH.unfinished. Fails if `path` or this folder exists. Returns
 * SJ_EXIT_OK, or another exit code after a message. `path` must outlive the folder. Blocks. */
int sj_output_folder_open(const sj_command *command, const char *path, sj_output_folder *output);

/* If `code` is SJ_EXIT_OK, gives the folder its final name; else removes it with its files. Returns
 * `code`, or SJ_EXIT_FAILED after a message if the folder cannot get its name. Blocks. */
int sj_output_folder_close(const sj_command *command, sj_output_folder *output, int code);

#endif
