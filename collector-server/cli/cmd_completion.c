#include "collector-server/cli/commands.h"
#include "collector-server/cli/completion.h"
#include "collector-server/cli/query_command.h"

#include <stdio.h>
#include <string.h>

typedef struct completion_options {
    const char *words;
    const char *file;
} completion_options;

static int print_script(int count, char **words)
{
    static const struct {
        const char *shell;
        void (*print)(void);
    } scripts[] = {
        {"bash", sj_completion_bash}, {"zsh", sj_completion_zsh}, {"fish", sj_completion_fish}};
    for (size_t i = 0; count == 1 && i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        if (strcmp(words[0], scripts[i].shell) == 0) {
            scripts[i].print();
            return SJ_EXIT_OK;
        }
    }
    return sj_command_usage_error(&sj_command_completion, "the shell is bash, zsh or fish");
}

static int run_completion(int argc, char **argv)
{
    completion_options options = {0};
    int first = 0;
    const int code = sj_options_parse(&sj_command_completion, argc, argv, &options, &first);
    if (code >= 0) {
        return code;
    }
    if (options.words != NULL && !sj_completion_words(options.words, options.file)) {
        return sj_command_usage_error(&sj_command_completion,
                                      "words are sessions, functions or processes");
    }
    const int printed =
        options.words != NULL ? SJ_EXIT_OK : print_script(argc - first, argv + first);
    return printed != SJ_EXIT_OK || (fflush(stdout) == 0 && !ferror(stdout))
               ? printed
               : sj_command_error(&sj_command_completion, SJ_EXIT_FAILED,
                                  "cannot write the completion");
}

static const sj_option completion_table[] = {
    SJ_DATABASE_OPTION(offsetof(completion_options, file)),
    {.name = "words",
     .argument = "KIND",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(completion_options, words),
     .help = "print the words that the scripts offer: sessions, functions or processes"},
    {0}};

const sj_command sj_command_completion = {
    .name = "completion",
    .summary = "print the script by which a shell completes commands, options and values",
    .usage = "sojourn completion bash|zsh|fish",
    .help = "`cmake --install` puts the scripts where the shells look for them.\n",
    .options = completion_table,
    .examples = "Examples:\n"
                "  source <(sojourn completion bash)\n"
                "  sojourn completion zsh > ~/.zfunc/_sojourn\n"
                "  sojourn completion fish > ~/.config/fish/completions/sojourn.fish\n",
    .run = run_completion,
};
