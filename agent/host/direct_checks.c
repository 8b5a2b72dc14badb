#include "agent/host/direct_checks.h"

#include "agent/host/directories.h"
#include "agent/host/host_checks.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SUBJECT "/bin/true"

enum { OUTPUT_BYTES = 2048, MAX_OPEN_FOLDERS = 8, MAX_PARENT_BYTES = 60 };

typedef struct direct_trial {
    char folder[MAX_PARENT_BYTES + 32]; /* for spool and log */
    char library[PATH_MAX];
    char output[OUTPUT_BYTES]; /* text of the library's log and of standard error */
} direct_trial;

static int remove_entry(const char *path, const struct stat *about, int type, struct FTW *parent)
{
    (void)about;
    (void)type;
    (void)parent;
    return remove(path);
}

/* Sets the variables of direct mode in this process, a child, and redirects its standard files. */
static bool prepare_child(const direct_trial *trial)
{
    char value[PATH_MAX + 96];
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    snprintf(value, sizeof(value), "%s/errors", trial->folder);
    const int errors = open(value, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bool ok = null >= 0 && errors >= 0 && dup2(null, 0) == 0 && dup2(null, 1) == 1 &&
              dup2(errors, 2) == 2 && setenv("LD_PRELOAD", trial->library, 1) == 0 &&
              setenv("SOJOURN_DIRECT_WAIT", "0", 1) == 0;
    snprintf(value, sizeof(value), "ipc://%s/nobody", trial->folder);
    ok = ok && setenv("SOJOURN_DIRECT", value, 1) == 0;
    snprintf(value, sizeof(value), "%s/spool", trial->folder);
    ok = ok && setenv("SOJOURN_DIRECT_SPOOL", value, 1) == 0;
    snprintf(value, sizeof(value), "%s/log", trial->folder);
    return ok && setenv("SOJOURN_DIRECT_LOG", value, 1) == 0;
}

static bool run_subject(const direct_trial *trial)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        if (prepare_child(trial)) {
            execl(SUBJECT, SUBJECT, (char *)NULL);
        }
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Appends the text of a file in the trial's folder to `output`. */
static void read_output(direct_trial *trial, const char *name)
{
    char path[MAX_PARENT_BYTES + 64];
    const size_t used = strlen(trial->output);
    snprintf(path, sizeof(path), "%s/%s", trial->folder, name);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        const size_t bytes = fread(trial->output + used, 1, sizeof(trial->output) - used - 1, file);
        trial->output[used + bytes] = '\0';
        fclose(file);
    }
}

/* Returns the last message="..." of the text, or its first line if it has none. */
static const char *message_of(char *text)
{
    static const char begin[] = "message=\"";
    char *found = NULL;
    for (char *at = strstr(text, begin); at != NULL; at = strstr(at + 1, begin)) {
        found = at + sizeof(begin) - 1;
    }
    if (found == NULL) {
        found = text;
    }
    found[strcspn(found, "\"\n")] = '\0';
    return found[0] != '\0' ? found : "the program ran and nothing was recorded";
}

static void check_recording(json_t *checks, direct_trial *trial)
{
    const bool ran = run_subject(trial);
    read_output(trial, "errors");
    read_output(trial, "log");
    /* No collector listens, so the library logs "undelivered" if it recorded the program. */
    if (ran && strstr(trial->output, "event=undelivered") != NULL) {
        sj_doctor_add(checks, "direct mode", true, trial->library, "");
        return;
    }
    sj_doctor_add(checks, "direct mode", false,
                  ran ? message_of(trial->output) : "the library keeps programs from starting",
                  "programs cannot record themselves here (sojourn-direct(7)) until this is fixed; "
                  "\"sojourn record\" and sojourn-device(8) need none of it");
}

void sj_doctor_check_direct(json_t *checks)
{
    direct_trial trial = {.output = ""};
    const char *parent = getenv("TMPDIR");
    /* The path of a UNIX socket has at most 107 characters. */
    const bool use_tmp = parent == NULL || parent[0] != '/' || strlen(parent) > MAX_PARENT_BYTES;
    sj_error error = {0};
    if (sj_library_find("libsojourn-direct.so", trial.library, sizeof(trial.library), &error) !=
        SJ_OK) {
        sj_doctor_add(checks, "direct mode", false, error.text,
                      "install the library where programs are to record themselves; others do not "
                      "need it");
        return;
    }
    snprintf(trial.folder, sizeof(trial.folder), "%s/sojourn-doctor-XXXXXX",
             use_tmp ? "/tmp" : parent);
    if (mkdtemp(trial.folder) == NULL) {
        sj_doctor_add(checks, "direct mode", false, trial.folder, "make this directory writable");
        return;
    }
    check_recording(checks, &trial);
    (void)nftw(trial.folder, remove_entry, MAX_OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}
