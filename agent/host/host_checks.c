#include "agent/host/host_checks.h"

#include "agent/host/directories.h"
#include "agent/uplink/spool_aside.h"

#include "proto/base/units.h"

#include <inttypes.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { CONNECT_MS = 3000 };

static const uint64_t wanted_bytes = UINT64_C(256) << 20;

/* No device's clock is earlier than this program: 2025-01-01. */
static const time_t earliest = 1735689600;

void sj_doctor_add(json_t *checks, const char *check, bool ok, const char *found,
                   const char *advice)
{
    json_array_append_new(checks, json_pack("{ss sb ss ss}", "check", check, "ok", ok, "found",
                                            found, "advice", ok ? "" : advice));
}

/* Reads the first line of a file; "" if there is none. */
static void read_word(const char *path, char *word, size_t capacity)
{
    FILE *file = fopen(path, "re");
    word[0] = '\0';
    if (file != NULL) {
        if (fgets(word, (int)capacity, file) == NULL) {
            word[0] = '\0';
        }
        fclose(file);
        word[strcspn(word, "\n")] = '\0';
    }
}

void sj_doctor_check_ptrace(json_t *checks)
{
    char scope[16];
    char found[64];
    read_word("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope));
    const bool is_free = scope[0] == '\0' || scope[0] == '0';
    snprintf(found, sizeof(found), "kernel.yama.ptrace_scope %s, user %u",
             scope[0] != '\0' ? scope : "not there", (unsigned)geteuid());
    sj_doctor_add(checks, "ptrace scope", is_free || (geteuid() == 0 && scope[0] != '3'), found,
                  "attaching needs root, or \"sysctl kernel.yama.ptrace_scope=0\"; launching works "
                  "as it is");
}

void sj_doctor_check_files(json_t *checks, uint64_t wanted)
{
    struct rlimit files = {0};
    char found[64];
    char advice[96];
    getrlimit(RLIMIT_NOFILE, &files);
    snprintf(found, sizeof(found), "%" PRIu64 " open files", (uint64_t)files.rlim_max);
    snprintf(advice, sizeof(advice), "raise LimitNOFILE, or \"ulimit -n\", to at least %" PRIu64,
             wanted);
    sj_doctor_add(checks, "limits", files.rlim_max >= wanted, found, advice);
}

void sj_doctor_check_clock(json_t *checks)
{
    static const char *const trusted[] = {"tsc", "kvm-clock", "arch_sys_counter",
                                          "hyperv_clocksource_tsc_page"};
    char source[64];
    char moment[64] = "";
    bool ok = false;
    struct tm utc;
    const time_t now = time(NULL);
    read_word("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
              sizeof(source));
    for (size_t i = 0; i < sizeof(trusted) / sizeof(trusted[0]); i++) {
        ok = ok || strcmp(source, trusted[i]) == 0;
    }
    sj_doctor_add(checks, "clock", ok, source[0] != '\0' ? source : "unknown",
                  "the kernel does not trust this machine's counter: times between processors may "
                  "be off");
    if (gmtime_r(&now, &utc) != NULL) {
        strftime(moment, sizeof(moment), "%Y-%m-%d %H:%M:%S UTC", &utc);
    }
    sj_doctor_add(checks, "calendar", now > earliest, moment,
                  "set the time, or certificates and time ranges will not be understood");
}

void sj_doctor_check_space(json_t *checks, const char *check, const char *directory,
                           const char *advice)
{
    struct statvfs disk;
    char found[PATH_MAX + 64];
    if (statvfs(directory, &disk) != 0) {
        sj_doctor_add(checks, check, false, directory, "make this directory accessible");
        return;
    }
    const uint64_t bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    snprintf(found, sizeof(found), "%.4000s: %" PRIu64 " MB free", directory, bytes >> 20);
    sj_doctor_add(checks, check, bytes >= wanted_bytes, found, advice);
}

/* Refused frames of the sessions of a spool: the last session's data, and the number of
 * sessions. */
typedef struct refused_sessions {
    unsigned count;
    char text[SJ_ASIDE_TEXT_BYTES + 64];
} refused_sessions;

static void note_refused(void *context, const char *session, const char *directory,
                         const sj_spool_aside *aside)
{
    refused_sessions *refused = context;
    char text[SJ_ASIDE_TEXT_BYTES];
    refused->count++;
    snprintf(refused->text, sizeof(refused->text), "session %.32s: %s", session,
             sj_spool_aside_text(aside, directory, text));
}

void sj_doctor_check_refused(json_t *checks, const char *spool_root)
{
    refused_sessions refused = {.text = "none"};
    sj_spool_aside_each(spool_root, note_refused, &refused);
    if (refused.count > 1) {
        const size_t used = strlen(refused.text);
        snprintf(refused.text + used, sizeof(refused.text) - used, "; and %s",
                 SJ_COUNTED(refused.count - 1, "more session"));
    }
    sj_doctor_add(
        checks, "refused frames", refused.count == 0, refused.text,
        "these frames are in no database: look at the collector's log for the cause, then "
        "discard them with: sojourn flush --discard SESSION");
}

void sj_doctor_check_agent(json_t *checks)
{
    char path[PATH_MAX] = "";
    sj_error error = {0};
    const bool ok = sj_agent_find(NULL, NULL, path, sizeof(path), &error) == SJ_OK;
    sj_doctor_add(checks, "agent", ok, ok ? path : error.text, "reinstall Sojourn");
}

/* Tries one address. */
static bool can_connect(const struct addrinfo *place)
{
    int problem = 1;
    socklen_t size = sizeof(problem);
    const int file =
        socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, place->ai_protocol);
    if (file < 0) {
        return false;
    }
    struct pollfd polled = {.fd = file, .events = POLLOUT};
    (void)connect(file, place->ai_addr, place->ai_addrlen);
    const bool connected = poll(&polled, 1, CONNECT_MS) == 1 &&
                           getsockopt(file, SOL_SOCKET, SO_ERROR, &problem, &size) == 0 &&
                           problem == 0;
    close(file);
    return connected;
}

bool sj_doctor_check_reach(json_t *checks, const char *url)
{
    char host[256];
    const char *begin = strstr(url, "tcp://");
    if (begin == NULL || strlen(begin) >= sizeof(host)) {
        return true;
    }
    snprintf(host, sizeof(host), "%s", begin + strlen("tcp://"));
    char *port = strrchr(host, ':');
    struct addrinfo *places = NULL;
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM};
    bool ok = false;
    if (port != NULL) {
        *port++ = '\0';
        char *name = host;
        if (name[0] == '[') { /* IPv6 */
            name++;
            name[strcspn(name, "]")] = '\0';
        }
        if (getaddrinfo(name, port, &wanted, &places) == 0) {
            for (struct addrinfo *place = places; place != NULL && !ok; place = place->ai_next) {
                ok = can_connect(place);
            }
            freeaddrinfo(places);
        }
    }
    sj_doctor_add(
        checks, "reachability", ok, url,
        "nothing answers at this address: is sojournd running there, does the name "
        "resolve, does a firewall stand between? Devices keep sessions on disk meanwhile");
    return ok;
}

static const char *text_of(const json_t *check, const char *key)
{
    const char *text = json_string_value(json_object_get(check, key));
    return text != NULL ? text : "";
}

bool sj_doctor_print(const json_t *checks, bool as_json, FILE *output)
{
    size_t index;
    json_t *check;
    bool all_ok = true;
    json_array_foreach((json_t *)(uintptr_t)checks, index, check)
    {
        const bool ok = json_is_true(json_object_get(check, "ok"));
        all_ok = all_ok && ok;
        if (!as_json) {
            fprintf(output, "%-8s %-14s %s\n", ok ? "fine" : "PROBLEM", text_of(check, "check"),
                    text_of(check, "found"));
        }
        if (!as_json && !ok) {
            fprintf(output, "         -> %s\n", text_of(check, "advice"));
        }
    }
    if (as_json) {
        json_t *rows = json_pack("{si sO}", "schema", 1, "rows", checks);
        (void)json_dumpf(rows, output, JSON_INDENT(2));
        json_decref(rows);
        fputc('\n', output);
    }
    return all_ok;
}
