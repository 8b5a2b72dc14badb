/* Decides whether lines of methods that run are counted. */
#include "agent/inproc/mono/internal.h"

#include "agent/inproc/link/conversation.h"
#include "agent/inproc/link/environment.h"
#include "agent/inproc/recorder/sys.h"

#include <fcntl.h>
#include <string.h>

enum { TEXT_BYTES = 4096 };

#define DEBUG_OPTION "--debug" /* A prefix: also matches longer options, such as --debug=casts. */

static long read_text(const char *path, char text[TEXT_BYTES])
{
    const long file = sj_sys_open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    const long got = file >= 0 ? sj_sys_read((int)file, text, TEXT_BYTES - 1) : 0;
    if (file >= 0) {
        (void)sj_sys_close((int)file);
    }
    text[got > 0 ? got : 0] = '\0';
    return got > 0 ? got : 0;
}

/* True if the runtime was started with --debug. Its own options come before the program's name. */
static bool is_debugged(void)
{
    char arguments[TEXT_BYTES];
    const long bytes = read_text("/proc/self/cmdline", arguments);
    bool is_option = true;
    for (long at = 0; at < bytes; at += (long)strlen(arguments + at) + 1) {
        is_option = at == 0 || (is_option && arguments[at] == '-');
        if (at != 0 && is_option &&
            strncmp(arguments + at, DEBUG_OPTION, sizeof(DEBUG_OPTION) - 1) == 0) {
            return true;
        }
    }
    for (char **at = sj_program_environment; at != NULL && *at != NULL; at++) {
        const char *options = sj_environment_value(*at, "MONO_ENV_OPTIONS");
        if (options != NULL) {
            return strstr(options, DEBUG_OPTION) != NULL;
        }
    }
    return false;
}

/* True if the executable is not `mono` but embeds the runtime. It may make the runtime read symbol
 * files at any time. */
static bool is_embedded(void)
{
    static const char *const names[] = {"mono", "mono-sgen", "mono-boehm"};
    char path[TEXT_BYTES];
    const long got = SJ_SYS(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, TEXT_BYTES - 1, 0, 0);
    path[got > 0 ? got : 0] = '\0';
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; slash != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(slash + 1, names[i]) == 0) {
            return false;
        }
    }
    return true;
}

void sj_mono_start_lines(bool is_launched)
{
    sj_mono_no_lines = !is_launched            ? SJ_NO_LINES_ATTACHED
                       : is_embedded()         ? SJ_NO_LINES_EMBEDDED
                       : is_debugged()         ? SJ_NO_LINES_DEBUGGED
                       : sj_mono_count_lines() ? 0
                                               : SJ_NO_LINES_REFUSED;
}
