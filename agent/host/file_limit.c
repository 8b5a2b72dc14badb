#include "agent/host/file_limit.h"

#include <signal.h>
#include <stdbool.h>

static bool is_ignored;
static void (*original_action)(int);

void sj_file_limit_ignore(void)
{
    if (!is_ignored) {
        is_ignored = true;
        original_action = signal(SIGXFSZ, SIG_IGN);
    }
}

void sj_file_limit_restore(void)
{
    if (is_ignored) {
        (void)signal(SIGXFSZ, original_action);
    }
}
