/* sojourn-device: the daemon of a device that a collector manages. */
#include "agent/daemon/daemon.h"
#include "agent/daemon/doctor.h"
#include "agent/daemon/enrolment.h"
#include "agent/daemon/json_memory.h"
#include "agent/daemon/worker.h"
#include "proto/base/config_file.h"
#include "proto/base/units.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE = 2, LEAST_SPOOL_BYTES = 1 << 20 };

static int print_help(void)
{
    printf("Usage: sojourn-device COMMAND [OPTIONS]\n\n"
           "Records programs on this device for a collector, and keeps what the collector has not "
           "yet taken.\n"
           "Nothing here listens on the network: the device asks the collector.\n\n"
           "Commands:\n"
           "  enroll --token-file FILE [--collector URL] [--name NAME] [--tag KEY=VALUE]... "
           "[--also]\n"
           "                        enrol by an invitation (\"sojourn device invite\" makes it);\n"
           "                        --also: keep the other collectors, and use this one\n"
           "                        for new sessions while they are away\n"
           "  forget URL            remove one of several collectors\n"
           "  run [--spool-bytes N] run until SIGTERM (recordings continue); all sessions\n"
           "                        that the collector has not taken may have N bytes (default 4 "
           "GiB)\n"
           "      [--config FILE]   read options from a file, one a line: NAME = VALUE\n"
           "      [--print-config]  print all options in that form, and end\n"
           "  set [--name NAME] [--tag KEY=VALUE]...\n"
           "                        change the name and tags of the device; KEY= removes a tag\n"
           "  doctor [--json]       say what could keep it from working, and what to do\n"
           "  --help, --version\n\n"
           "State lies in $XDG_STATE_HOME/sojourn; apps are listed in device/apps.json there.\n\n"
           "Examples:\n"
           "  sojourn-device enroll --token-file phone7.invitation --tag site=berlin\n"
           "  sojourn-device run --spool-bytes 1073741824\n");
    return EXIT_SUCCESS;
}

/* The arguments of `run`: lines of a configuration file, and the command line. */
static sj_config_file config;

static int usage_error(const char *problem, const char *word)
{
    char place[PATH_MAX];
    sj_config_file_place(&config, optind - 1, place, sizeof(place));
    fprintf(stderr, "sojourn-device: %s%s: %s\nTry \"sojourn-device --help\".\n", place, word,
            problem);
    return EXIT_USAGE;
}

static int fail(const sj_error *error)
{
    fprintf(stderr, "sojourn-device: %s\n", error->text);
    return EXIT_FAILURE;
}

/* The arguments of `enroll` and `set`. */
typedef struct named_options {
    const char *file;
    const char *collector;
    bool is_further;
    sj_enrolment_names names;
} named_options;

/* Parses the options. Returns -1 to continue, or the exit code. */
static int parse_names(int argc, char **argv, bool is_enrolment, named_options *options)
{
    static const struct option long_options[] = {{"name", required_argument, NULL, 'n'},
                                                 {"tag", required_argument, NULL, 'g'},
                                                 {"token-file", required_argument, NULL, 't'},
                                                 {"collector", required_argument, NULL, 'l'},
                                                 {"also", no_argument, NULL, 'f'},
                                                 {NULL, 0, NULL, 0}};
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (option == 'n') {
            options->names.name = optarg;
        } else if (option == 'g' && options->names.tag_count < SJ_DEVICE_TAGS) {
            options->names.tags[options->names.tag_count++] = optarg;
        } else if (option == 't' && is_enrolment) {
            options->file = optarg;
        } else if (option == 'l' && is_enrolment) {
            options->collector = optarg;
        } else if (option == 'f' && is_enrolment) {
            options->is_further = true;
        } else {
            return usage_error("unknown option, no value, or too many", argv[optind - 1]);
        }
    }
    return optind == argc ? -1 : usage_error("unexpected argument", argv[optind]);
}

static int enroll(int argc, char **argv)
{
    named_options options = {0};
    char hint[SJ_ERROR_TEXT_BYTES];
    sj_error error = {0};
    const int code = parse_names(argc, argv, true, &options);
    if (code >= 0) {
        return code;
    }
    if (options.file == NULL) {
        return usage_error("needs --token-file FILE", "enroll");
    }
    if (sj_enrolment_make(options.file, options.collector, options.is_further, &options.names, hint,
                          &error) != SJ_OK) {
        return fail(&error);
    }
    printf("This device is enrolled; \"sojourn-device run\" (or its systemd unit) starts it.\n");
    if (hint[0] != '\0') {
        printf("Note: %s.\n", hint);
    }
    return EXIT_SUCCESS;
}

static int set(int argc, char **argv)
{
    named_options options = {0};
    sj_error error = {0};
    const int code = parse_names(argc, argv, false, &options);
    if (code >= 0) {
        return code;
    }
    if (options.names.name == NULL && options.names.tag_count == 0) {
        return usage_error("needs --name or --tag", "set");
    }
    return sj_enrolment_rename(&options.names, &error) == SJ_OK ? EXIT_SUCCESS : fail(&error);
}

static int forget(int argc, char **argv)
{
    sj_error error = {0};
    if (argc != 2) {
        return usage_error("needs the URL of a collector", "forget");
    }
    return sj_enrolment_forget(argv[1], &error) == SJ_OK ? EXIT_SUCCESS : fail(&error);
}

static const struct option run_options[] = {{"spool-bytes", required_argument, NULL, 's'},
                                            {"config", required_argument, NULL, 'c'},
                                            {"print-config", no_argument, NULL, 'p'},
                                            {NULL, 0, NULL, 0}};

/* Parses the options of `run`. Returns -1 to continue, else the exit code. */
static int take_run_options(sj_daemon_options *options)
{
    bool is_printed = false;
    int option;
    opterr = 0;
    while ((option = getopt_long(config.argc, config.argv, "", run_options, NULL)) != -1) {
        if (option == 'p') {
            is_printed = true;
        } else if (option != 's') {
            return usage_error("unknown option or no value", config.argv[optind - 1]);
        } else if (!sj_size_parse(optarg, &options->spool_bytes)) {
            return usage_error("not a size as 1048576, 64M or 1G", optarg);
        } else if (options->spool_bytes < LEAST_SPOOL_BYTES) {
            return usage_error("a spool has at least 1048576 bytes", optarg);
        }
    }
    if (optind != config.argc) {
        return usage_error("unexpected argument", config.argv[optind]);
    }
    if (is_printed) {
        sj_config_file_print(&config, run_options, stdout);
        return EXIT_SUCCESS;
    }
    return -1;
}

static int run(int argc, char **argv)
{
    sj_daemon_options options = {0};
    sj_error error = {0};
    int code = EXIT_USAGE;
    const sj_status status = sj_config_file_read(argc, argv, run_options, &config, &error);
    if (status != SJ_OK) {
        const int failed = fail(&error);
        code = status == SJ_ENOMEM ? failed : EXIT_USAGE;
    } else {
        code = take_run_options(&options);
    }
    if (code < 0) {
        code = sj_daemon_run(&options, &error) == SJ_OK ? EXIT_SUCCESS : fail(&error);
    }
    sj_config_file_deinit(&config);
    return code;
}

static int doctor(int argc, char **argv)
{
    const bool as_json = argc == 2 && strcmp(argv[1], "--json") == 0;
    if (argc > 2 || (argc == 2 && !as_json)) {
        return usage_error("takes --json only", "doctor");
    }
    json_t *checks = sj_device_doctor();
    const bool all_ok = checks != NULL && sj_doctor_print(checks, as_json, stdout);
    json_decref(checks);
    return all_ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    sj_json_memory_watch();
    if (strcmp(command, "enroll") == 0) {
        return enroll(argc - 1, argv + 1);
    }
    if (strcmp(command, "forget") == 0) {
        return forget(argc - 1, argv + 1);
    }
    if (strcmp(command, "run") == 0) {
        return run(argc - 1, argv + 1);
    }
    if (strcmp(command, "doctor") == 0) {
        return doctor(argc - 1, argv + 1);
    }
    if (strcmp(command, "set") == 0) {
        return set(argc - 1, argv + 1);
    }
    if (strcmp(command, "session") == 0 && argc == 2) {
        return sj_worker_main();
    }
    if (strcmp(command, "--help") == 0 || strcmp(command, "help") == 0) {
        return print_help();
    }
    if (strcmp(command, "--version") == 0) {
        printf("sojourn-device %s\n", SJ_VERSION);
        return EXIT_SUCCESS;
    }
    return usage_error("unknown command", argc > 1 ? command : "(none)");
}
