/* The `sojourn` program. */
#include "agent/host/file_limit.h"
#include "agent/host/own_limits.h"
#include "collector-server/cli/commands.h"
#include "collector-server/http/question_worker.h"

#include <stdio.h>
#include <string.h>

static int report_unknown(const char *name)
{
    const char *nearest = sj_command_nearest(name);
    fprintf(stderr, "sojourn: unknown command \"%s\"", name);
    if (nearest != NULL) {
        fprintf(stderr, "; did you mean \"%s\"?\n", nearest);
    } else {
        fprintf(stderr, "; \"sojourn help\" lists them\n");
    }
    return SJ_EXIT_USAGE;
}

/* Checks the resource limits of this process if the command records. Returns -1 if they suffice,
 * else an exit code after a message. */
static int check_limits(const sj_command *command)
{
    sj_error error;
    const bool launches = command == &sj_command_record || command == &sj_command_bench;
    if ((!launches && command != &sj_command_attach) || sj_own_limits_check(&error) == SJ_OK) {
        return -1;
    }
    return sj_command_error(command, launches ? SJ_EXIT_RECORD_FAILED : SJ_EXIT_FAILED, "%s",
                            error.text);
}

int main(int argc, char **argv)
{
    sj_question_worker_main(argc, argv);
    const char *name = argc > 1 ? argv[1] : NULL;
    sj_file_limit_ignore();
    sj_own_limits_raise();
    if (name == NULL) {
        (void)sj_command_help_page.run(argc, argv);
        return SJ_EXIT_USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        name = sj_command_help_page.name;
    } else if (strcmp(name, "--version") == 0) {
        name = sj_command_version.name;
    }
    const sj_command *command = sj_command_find(name);
    if (command == NULL) {
        return report_unknown(name);
    }
    const int refused = check_limits(command);
    return refused >= 0 ? refused : command->run(argc - 1, argv + 1);
}
