#include "collector-server/cli/commands.h"

#include <stdio.h>
#include <string.h>

/* What comes after the tables of words. Behind "--" stands a program with its own arguments. */
static const char bash_end[] =
    "    local i\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        [[ ${COMP_WORDS[i]} == -- ]] && return\n"
    "    done\n"
    "    if ((COMP_CWORD == 1)) || [[ $COMP_CWORD == 2 && $command == help ]]; then\n"
    "        COMPREPLY=($(compgen -W \"$commands\" -- \"$current\"))\n"
    "    elif [[ $current == -* ]]; then\n"
    "        COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
    "    fi\n"
    "}\n"
    "complete -o default -F _sojourn sojourn\n";

static void print_bash_options(const sj_command *command)
{
    printf("    %s) options='--help", command->name);
    for (const sj_option *option = sj_option_first(command->options, false); option != NULL;
         option = sj_option_next(option, false)) {
        if (option->name != NULL) {
            printf(" --%s", option->name);
        }
    }
    puts("' ;;");
}

/* Names of commands and options are letters, digits and dashes: nothing needs quoting. */
static void print_bash(void)
{
    puts("# Completion of sojourn's commands and options, made by `sojourn completion bash`.\n"
         "_sojourn() {\n"
         "    local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} options=--help\n"
         "    COMPREPLY=()");
    fputs("    local commands='", stdout);
    for (size_t i = 0; sj_commands[i] != NULL; i++) {
        printf("%s%s", i == 0 ? "" : " ", sj_commands[i]->name);
    }
    puts("'\n    case $command in");
    for (size_t i = 0; sj_commands[i] != NULL; i++) {
        print_bash_options(sj_commands[i]);
    }
    puts("    esac");
    fputs(bash_end, stdout);
}

static int run_completion(int argc, char **argv)
{
    int first = 0;
    const int code = sj_options_parse(&sj_command_completion, argc, argv, NULL, &first);
    if (code >= 0) {
        return code;
    }
    if (argc - first != 1 || strcmp(argv[first], "bash") != 0) {
        return sj_command_usage_error(&sj_command_completion, "the shell is bash");
    }
    print_bash();
    return fflush(stdout) == 0 && !ferror(stdout)
               ? SJ_EXIT_OK
               : sj_command_error(&sj_command_completion, SJ_EXIT_FAILED,
                                  "cannot write the completion");
}

const sj_command sj_command_completion = {
    .name = "completion",
    .summary = "print what completes commands and options in a shell",
    .usage = "sojourn completion bash",
    .help = "`cmake --install` puts it where bash-completion looks for it.\n",
    .examples = "Examples:\n"
                "  source <(sojourn completion bash)\n"
                "  sojourn completion bash > ~/.local/share/bash-completion/completions/sojourn\n",
    .run = run_completion,
};
