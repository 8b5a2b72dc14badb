#include "collector-server/cli/commands.h"
#include "collector-server/cli/completion.h"

#include <stdio.h>
#include <string.h>

const char *sj_completion_kind(const sj_option *option)
{
    static const struct {
        const char *name; /* name of the option; NULL: any */
        const char *argument;
        const char *kind;
    } kinds[] = {
        {"session", NULL, "sessions"},  {"function", NULL, "functions"},
        {"callers", NULL, "functions"}, {NULL, "PID", "processes"},
        {NULL, "FILE", "files"},        {NULL, "DIR", "files"},
        {NULL, "OUT", "files"},         {NULL, "FILE|NAME", "files"},
        {NULL, "FILE|SET", "files"},
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && option->argument != NULL; i++) {
        const bool is_name = kinds[i].name == NULL || strcmp(kinds[i].name, option->name) == 0;
        const bool is_argument =
            kinds[i].argument == NULL || strcmp(kinds[i].argument, option->argument) == 0;
        if (is_name && is_argument) {
            return kinds[i].kind;
        }
    }
    return "";
}

static bool accepts_process(const sj_command *command)
{
    return strcmp(command->name, "attach") == 0 || strcmp(command->name, "detach") == 0;
}

/* The end of the script, after the tables of words. The script completes nothing after "--", where
 * a program and its arguments follow. */
static const char bash_end[] =
    "    local i\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        [[ ${COMP_WORDS[i]} == -- ]] && return\n"
    "    done\n"
    "    if ((COMP_CWORD == 1)) || [[ $COMP_CWORD == 2 && $command == help ]]; then\n"
    "        COMPREPLY=($(compgen -W \"$commands\" -- \"$current\"))\n"
    "    elif [[ $current == -* ]]; then\n"
    "        COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
    "    else\n"
    "        case ${COMP_WORDS[COMP_CWORD - 1]} in\n"
    "        --session) kind=sessions ;;\n"
    "        --function | --callers) kind=functions ;;\n"
    "        esac\n"
    "        [[ -n $kind ]] || return\n"
    "        local IFS=$'\\n'\n"
    "        COMPREPLY=($(compgen -W \"$(sojourn completion --words $kind 2>/dev/null)\" -- "
    "\"$current\"))\n"
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
    printf("%s'%s ;;\n", sj_command_has_common(command) ? " --help-all" : "",
           accepts_process(command) ? " kind=processes" : "");
}

void sj_completion_bash(void)
{
    puts("# Completion of sojourn's commands, options and their values, made by\n"
         "# `sojourn completion bash`.\n"
         "_sojourn() {\n"
         "    local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} options=--help\n"
         "    local kind=\n"
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

/* Prints the first line of a text, escaped for single quotes of a shell. Prints a backslash before
 * each character of `special`. */
static void print_text(const char *text, const char *special)
{
    for (; *text != '\0' && *text != '\n'; text++) {
        if (*text == '\'') {
            fputs("'\\''", stdout);
            continue;
        }
        if (strchr(special, *text) != NULL) {
            putchar('\\');
        }
        putchar(*text);
    }
}

static void print_zsh_option(const sj_option *option)
{
    const char *kind = sj_completion_kind(option);
    fputs("        '--", stdout);
    fputs(option->name, stdout);
    fputs(option->argument == NULL ? "[" : option->is_optional ? "=-[" : "=[", stdout);
    print_text(option->help != NULL ? option->help : "", "[]:\\");
    putchar(']');
    if (option->argument != NULL) {
        fputs(option->is_optional ? "::" : ":", stdout);
        print_text(option->argument, "[]:\\");
        if (strcmp(kind, "files") == 0) {
            fputs(":_files", stdout);
        } else if (kind[0] != '\0') {
            printf(":_sojourn_words %s", kind);
        } else {
            fputs(": ", stdout);
        }
    }
    fputs("' \\\n", stdout);
}

static void print_zsh_options(const sj_command *command)
{
    printf("    %s) _arguments -S \\\n", command->name);
    for (const sj_option *option = sj_option_first(command->options, false); option != NULL;
         option = sj_option_next(option, false)) {
        if (option->name != NULL) {
            print_zsh_option(option);
        }
    }
    const char *rest = accepts_process(command)             ? "_sojourn_words processes"
                       : strcmp(command->name, "help") == 0 ? "_sojourn_commands"
                       : command->stops_at_argument         ? "_normal"
                                                            : "_files";
    printf("        '--help[this text]' %s'*:: :%s' ;;\n",
           sj_command_has_common(command) ? "'--help-all[all options]' " : "", rest);
}

void sj_completion_zsh(void)
{
    puts("#compdef sojourn\n"
         "# Completion of sojourn's commands, options and their values, made by\n"
         "# `sojourn completion zsh`.\n"
         "_sojourn_words() {\n"
         "    local -a found\n"
         "    found=(${(f)\"$(sojourn completion --words $1 2>/dev/null)\"})\n"
         "    compadd -a found\n"
         "}\n"
         "_sojourn_commands() {\n"
         "    local -a commands\n"
         "    commands=(");
    for (size_t i = 0; sj_commands[i] != NULL; i++) {
        printf("        '%s:", sj_commands[i]->name);
        print_text(sj_commands[i]->summary, "\\");
        puts("'");
    }
    puts("    )\n"
         "    _describe command commands\n"
         "}\n"
         "_sojourn() {\n"
         "    if ((CURRENT == 2)); then\n"
         "        _sojourn_commands\n"
         "        return\n"
         "    fi\n"
         "    shift words\n"
         "    ((CURRENT--))\n"
         "    case $words[1] in");
    for (size_t i = 0; sj_commands[i] != NULL; i++) {
        print_zsh_options(sj_commands[i]);
    }
    puts("    esac\n"
         "}\n"
         "if [[ $funcstack[1] == _sojourn ]]; then\n"
         "    _sojourn \"$@\"\n"
         "else\n"
         "    compdef _sojourn sojourn\n"
         "fi");
}

static void print_fish_option(const sj_command *command, const sj_option *option)
{
    const char *kind = sj_completion_kind(option);
    printf("complete -c sojourn -n '__fish_seen_subcommand_from %s' -l %s", command->name,
           option->name);
    if (option->letter != '\0') {
        printf(" -s %c", option->letter);
    }
    if (option->argument != NULL && !option->is_optional) {
        fputs(strcmp(kind, "files") == 0 ? " -r" : " -x", stdout);
        if (kind[0] != '\0' && strcmp(kind, "files") != 0) {
            printf(" -a '(sojourn completion --words %s 2>/dev/null)'", kind);
        }
    }
    fputs(" -d '", stdout);
    for (const char *at = option->help != NULL ? option->help : ""; *at != '\0' && *at != '\n';
         at++) {
        printf(*at == '\'' || *at == '\\' ? "\\%c" : "%c", *at);
    }
    puts("'");
}

void sj_completion_fish(void)
{
    puts("# Completion of sojourn's commands, options and their values, made by\n"
         "# `sojourn completion fish`.");
    for (size_t i = 0; sj_commands[i] != NULL; i++) {
        const sj_command *command = sj_commands[i];
        printf("complete -c sojourn -f -n '__fish_use_subcommand' -a %s -d '", command->name);
        print_text(command->summary, "");
        puts("'");
        for (const sj_option *option = sj_option_first(command->options, false); option != NULL;
             option = sj_option_next(option, false)) {
            if (option->name != NULL) {
                print_fish_option(command, option);
            }
        }
        printf("complete -c sojourn -n '__fish_seen_subcommand_from %s' -l help -d 'this text'\n",
               command->name);
        if (sj_command_has_common(command)) {
            printf("complete -c sojourn -n '__fish_seen_subcommand_from %s' -l help-all -d 'all "
                   "options'\n",
                   command->name);
        }
        if (accepts_process(command)) {
            printf("complete -c sojourn -f -n '__fish_seen_subcommand_from %s' -a "
                   "'(sojourn completion --words processes 2>/dev/null)'\n",
                   command->name);
        }
    }
}
