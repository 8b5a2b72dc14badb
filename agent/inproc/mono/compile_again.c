/* Makes Mono ignore code that was compiled ahead of time (AOT), by an option in MONO_ENV_OPTIONS.
 * The variable is set before main, and restored after Mono has read it at its start. */
#include "agent/inproc/mono/internal.h"

#include "agent/inproc/hooks/rebind.h"
#include "agent/inproc/link/conversation.h"
#include "agent/inproc/link/environment.h"
#include "agent/inproc/recorder/sys.h"

#include <fcntl.h>
#include <string.h>

#define OPTIONS "MONO_ENV_OPTIONS"
#define COMPILE_AGAIN "-O=-aot"

enum { OPTIONS_BYTES = 4096, PATH_BYTES = 4096 };

extern char **environ;

/* The variable that Mono reads at its start. `original` is the string that it replaces in the
 * environment, or NULL. */
static char options_text[OPTIONS_BYTES];
static char *original;
static bool wants_precompiled;

void sj_mono_want_precompiled(void)
{
    wants_precompiled = true;
}

void sj_mono_restore_environment(void)
{
    for (char **at = environ; at != NULL && *at != NULL; at++) {
        if (*at != options_text) {
            continue;
        }
        *at = original;
        while (original == NULL && *at != NULL) {
            at[0] = at[1];
            at++;
        }
        return;
    }
}

static bool is_file(const char *path)
{
    return SJ_SYS(SYS_faccessat, AT_FDCWD, path, 0, 0, 0, 0) == 0;
}

static size_t append_text(char *text, size_t used, size_t capacity, const char *more)
{
    while (*more != '\0' && used + 1 < capacity) {
        text[used++] = *more++;
    }
    text[used] = '\0';
    return used;
}

/* True if a file with precompiled code is next to the assembly, or in the system's cache. */
static bool is_precompiled(const char *assembly)
{
    char path[PATH_BYTES];
    const char *slash = strrchr(assembly, '/');
    size_t used = append_text(path, 0, sizeof(path), assembly);
    (void)append_text(path, used, sizeof(path), ".so");
    if (is_file(path)) {
        return true;
    }
    used = append_text(path, 0, sizeof(path), "/usr/lib/mono/aot-cache/amd64/");
    used = append_text(path, used, sizeof(path), slash != NULL ? slash + 1 : assembly);
    (void)append_text(path, used, sizeof(path), ".so");
    return is_file(path);
}

/* True if the program that `mono` runs is precompiled. The program is the first argument that ends
 * in
 * ".exe". */
static bool is_program_precompiled(void)
{
    enum { ENDING_BYTES = 4 };
    char arguments[PATH_BYTES];
    const long file = sj_sys_open_at(AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0);
    const long got = file >= 0 ? sj_sys_read((int)file, arguments, sizeof(arguments) - 1) : 0;
    if (file >= 0) {
        (void)sj_sys_close((int)file);
    }
    arguments[got > 0 ? got : 0] = '\0';
    for (long at = 0; at < got;) {
        const size_t bytes = strlen(arguments + at);
        if (at != 0 && bytes > ENDING_BYTES &&
            strcmp(arguments + at + bytes - ENDING_BYTES, ".exe") == 0) {
            return is_precompiled(arguments + at);
        }
        at += (long)bytes + 1;
    }
    return false;
}

void sj_mono_set_compile_again(void)
{
    char **at = sj_program_environment;
    size_t used = append_text(options_text, 0, OPTIONS_BYTES, OPTIONS "=");
    if (at == NULL || sj_rebind_find("mono_profiler_create") == 0 ||
        !(wants_precompiled || is_program_precompiled())) {
        return;
    }
    while (*at != NULL && sj_environment_value(*at, OPTIONS) == NULL) {
        at++;
    }
    original = *at;
    if (original != NULL) {
        used = append_text(options_text, used, OPTIONS_BYTES - sizeof(COMPILE_AGAIN),
                           sj_environment_value(original, OPTIONS));
        used = append_text(options_text, used, OPTIONS_BYTES, " ");
    } else {
        at[1] = NULL;
    }
    (void)append_text(options_text, used, OPTIONS_BYTES, COMPILE_AGAIN);
    *at = options_text;
}
