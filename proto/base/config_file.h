/* Configuration files of the daemons. A file has the program's long options, one a line, without
 * the dashes:
 *
 *     # the addresses for devices
 *     listen = tls+tcp://0.0.0.0:7655
 *     open
 *
 * A program parses the lines of the file like arguments that come before those of the command line.
 * So an option of the command line wins, and options that can be repeated add up. */
#ifndef SJ_PROTO_BASE_CONFIG_FILE_H
#define SJ_PROTO_BASE_CONFIG_FILE_H

#include "proto/base/error.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>

enum { SJ_CONFIG_MAX_BYTES = 1 << 16 };

typedef struct sj_config_file {
    int argc;
    /* argv[0], the options of the file, the given arguments without --config, and NULL */
    char **argv;
    const char *path; /* NULL: --config was not given */
    size_t *lines; /* lines[i] is the number of the file's line for argv[i + 1]; `count` elements */
    size_t count;
    char *text;
} sj_config_file;

/* Finds `--config FILE` or `--config=FILE` in `argv`, reads that file, and makes an argument list
 * of its lines and `argv`. Without --config, the list is `argv`. `argv` must live as long as
 * `config`. Call sj_config_file_deinit, also after an error. Errors name file and line. Returns
 * SJ_EINVAL if a line is not an option, or lacks the value that `options` demand; the file has a
 * zero byte; or --config has no file. Returns SJ_EIO if the file cannot be read. Returns SJ_ELIMIT
 * if it has more than SJ_CONFIG_MAX_BYTES. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_config_file_read(int argc, char **argv, const struct option *options,
                                            sj_config_file *config, sj_error *error);
void sj_config_file_deinit(sj_config_file *config);

/* Writes "FILE:LINE: " into `text` if argv[index] is a line of the file, else "". */
void sj_config_file_place(const sj_config_file *config, int index, char *text, size_t capacity);

/* Prints all given options as a configuration file, in their order. Names of `options` that were
 * not given follow as comments. --config, --print-config, --help and --version are left out. Uses
 * getopt_long, so it is not thread-safe. */
void sj_config_file_print(const sj_config_file *config, const struct option *options, FILE *output);

#endif
