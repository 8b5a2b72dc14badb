/* The monitor of Mono's methods: asks the recorder which of them are wanted. If wanted methods may
 * have been compiled ahead of time, an environment variable makes Mono compile them again. The
 * program then finds its environment as it was. */
#include "agent/inproc/mono/mono.h"
#include "agent/abi/agent_state.h"
#include "agent/abi/plan.h"
#include "agent/inproc/core/conversation.h"
#include "agent/inproc/core/environment.h"
#include "agent/inproc/core/modules.h"
#include "agent/inproc/core/monitor.h"
#include "agent/inproc/core/mono_lines.h"
#include "agent/inproc/core/mono_tasks.h"
#include "agent/inproc/hooks/rebind.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define OPTIONS "MONO_ENV_OPTIONS"
#define COMPILE_AGAIN "-O=-aot"
#define SJ_EXPORTED __attribute__((visibility("default")))

enum { OPTIONS_BYTES = 4096, PATH_BYTES = 4096, NAME_BYTES = 2048 };

extern char **environ;

/* The variable that Mono reads at its start, and the one that it replaces; NULL: none. */
static char options_text[OPTIONS_BYTES];
static char *original;
static bool wants_precompiled;
static bool was_started; /* True if it was tried, too. */
static bool is_started;
static bool has_lines; /* True if it is known whether lines are counted. */
/* Why lines are not counted. 0: they are, or the recorder has not asked. */
static sj_no_lines no_lines;

typedef struct assembly_question {
    const char *path;
    const uint8_t *id;
    uint32_t id_bytes;
    bool is_main;
    sj_mono_assembly *reply;
} assembly_question;

static sj_status read_assembly(const sj_link *link, sj_mono_assembly *reply)
{
    sj_link_container_added added;
    sj_link_skip skip;
    const uint32_t bytes = link->packet.payload_bytes;
    if (link->packet.type == SJ_LINK_SKIP && bytes == sizeof(skip)) {
        memcpy(&skip, link->payload, sizeof(skip));
        reply->is_unreadable = skip.reason == SJ_SKIP_UNDECODABLE;
        return SJ_OK;
    }
    if (link->packet.type != SJ_LINK_CONTAINER_ADDED || bytes < sizeof(added)) {
        return SJ_EPERM;
    }
    memcpy(&added, link->payload, sizeof(added));
    const uint32_t bits_bytes = (added.count + 7) / 8;
    const uint32_t values_bytes = added.value_count * (uint32_t)sizeof(sj_link_method_values);
    const size_t bits_and_values_bytes = sj_mono_assembly_bytes(added.count, added.value_count);
    if (added.count == 0 || added.count > SJ_LINK_CONTAINER_TOKENS || added.first_function == 0 ||
        added.value_count > sj_link_container_values(added.count) ||
        bytes != sizeof(added) + bits_bytes + values_bytes) {
        return SJ_ECORRUPT;
    }
    uint8_t *bits = sj_sys_map(NULL, bits_and_values_bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sj_sys_failed(bits)) {
        return SJ_ENOMEM;
    }
    memcpy(bits, link->payload + sizeof(added), bits_bytes);
    memcpy(bits + bits_and_values_bytes - values_bytes, link->payload + sizeof(added) + bits_bytes,
           values_bytes);
    reply->first_function = added.first_function;
    reply->count = added.count;
    reply->value_count = added.value_count;
    reply->has_lines = added.has_lines != 0;
    reply->wanted = bits;
    return SJ_OK;
}

static sj_status ask_assembly(sj_link *link, void *context)
{
    const assembly_question *question = context;
    sj_link_container container = {.language = SJ_LINK_LANGUAGE_MONO,
                                   .is_main = question->is_main,
                                   .id_bytes = question->id_bytes,
                                   .path_bytes = (uint32_t)strlen(question->path)};
    if (container.path_bytes >= PATH_BYTES) {
        return SJ_ELIMIT;
    }
    memcpy(container.id, question->id, question->id_bytes);
    uint8_t *payload = sj_link_payload(link);
    memcpy(payload, &container, sizeof(container));
    memcpy(payload + sizeof(container), question->path, container.path_bytes);
    SJ_TRY(
        sj_link_send(link, SJ_LINK_CONTAINER, (uint32_t)sizeof(container) + container.path_bytes));
    SJ_TRY(sj_link_receive(link));
    return read_assembly(link, question->reply);
}

static bool add_assembly(const char *path, const uint8_t *id, uint32_t id_bytes, bool is_main,
                         sj_mono_assembly *assembly)
{
    assembly_question question = {
        .path = path, .id = id, .id_bytes = id_bytes, .is_main = is_main, .reply = assembly};
    return sj_conversation_ask(ask_assembly, &question);
}

typedef struct method_question {
    const char *container;
    const char *name;
    uint32_t *function;
} method_question;

static sj_status ask_method(sj_link *link, void *context)
{
    const method_question *question = context;
    const size_t container_bytes = strnlen(question->container, NAME_BYTES) + 1;
    const size_t name_bytes = strnlen(question->name, NAME_BYTES) + 1;
    const sj_link_methods methods = {.count = 1,
                                     .lineage_bytes = (uint32_t)container_bytes,
                                     .names_bytes = (uint32_t)name_bytes,
                                     .language = SJ_LINK_LANGUAGE_MONO};
    uint8_t *at = sj_link_payload(link);
    memcpy(at, &methods, sizeof(methods));
    at += sizeof(methods);
    memcpy(at, question->container, container_bytes - 1);
    at[container_bytes - 1] = 0;
    at += container_bytes;
    memcpy(at, question->name, name_bytes - 1);
    at[name_bytes - 1] = 0;
    at[name_bytes] = 0; /* its module is not excluded */
    SJ_TRY(sj_link_send(link, SJ_LINK_METHODS,
                        (uint32_t)(sizeof(methods) + container_bytes + name_bytes + 1)));
    SJ_TRY(sj_link_receive(link));
    sj_link_methods_added added;
    if (link->packet.type != SJ_LINK_METHODS_ADDED ||
        link->packet.payload_bytes != sizeof(added) + 1) {
        return SJ_EPERM;
    }
    memcpy(&added, link->payload, sizeof(added));
    *question->function = link->payload[sizeof(added)] != 0 ? added.first_function : 0;
    return SJ_OK;
}

static bool add_method(const char *container, const char *name, uint32_t *function)
{
    method_question question = {.container = container, .name = name, .function = function};
    return sj_conversation_ask(ask_method, &question);
}

/* Appends the functions and their bytes to the payload. */
static void append_code(const sj_mono_code *code, uint8_t *at)
{
    const size_t bytes = code->head.count * sizeof(*code->functions);
    memcpy(at, code->functions, bytes);
    at += bytes;
    for (uint32_t i = 0; i < code->head.count; i++) {
        const sj_link_code_function *function = &code->functions[i];
        memcpy(at, (const void *)(uintptr_t)function->address, function->bytes);
        at += function->bytes;
    }
}

static sj_status send_code(sj_link *link, const void *context)
{
    const sj_mono_code *code = context;
    uint8_t *payload = sj_link_payload(link);
    memcpy(payload, &code->head, sizeof(code->head));
    if (code->file >= 0) {
        return sj_link_send_file(link, SJ_LINK_CODE, sizeof(code->head), code->file);
    }
    append_code(code, payload + sizeof(code->head));
    return sj_link_send(link, SJ_LINK_CODE, (uint32_t)sizeof(code->head) + code->head.file_bytes);
}

static bool is_all_hooked(const sj_mono_code *code)
{
    uint32_t hooked = 0;
    while (hooked < code->head.count && code->marks[hooked] != 0) {
        hooked++;
    }
    return hooked == code->head.count;
}

static sj_status receive_plan(sj_link *link, const void *context)
{
    const sj_mono_code *code = context;
    const sj_link_code_function *last = &code->functions[code->head.count - 1];
    if (link->packet.type != SJ_LINK_PLAN) {
        return link->packet.type == SJ_LINK_SKIP ? SJ_OK : SJ_ECORRUPT;
    }
    SJ_TRY(sj_modules_hook_generated(link, code->functions[0].address, last->address + last->bytes,
                                     code->runs, code->marks));
    /* Failed hooks have been reported; the program may end when this returns. */
    return is_all_hooked(code) ? SJ_OK : sj_conversation_finish(link);
}

static void plan_code(const sj_mono_code *code)
{
    const sj_conversation_question question = {
        .send = send_code, .receive_reply = receive_plan, .context = code};
    (void)sj_conversation_ask_at_once(&question);
}

/* Restores the variable in the C library's list, which may have moved meanwhile. */
static void restore_environment(void)
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

/* The runtime has read its options and the environment. */
static void on_runtime_up(void)
{
    restore_environment();
    if (no_lines != 0) {
        sj_mono_lines_report_why_not(no_lines);
        no_lines = 0;
    }
}

static const sj_mono_registrar registrar = {.add_assembly = add_assembly,
                                            .add_method = add_method,
                                            .plan_code = plan_code,
                                            .runtime_is_up = on_runtime_up,
                                            .add_lines = sj_mono_lines_send};

static bool is_file(const char *path)
{
    return SJ_SYS(SYS_faccessat, AT_FDCWD, path, 0, 0, 0, 0) == 0;
}

static size_t append(char *text, size_t used, size_t capacity, const char *more)
{
    while (*more != '\0' && used + 1 < capacity) {
        text[used++] = *more++;
    }
    text[used] = '\0';
    return used;
}

/* True if precompiled code lies beside the assembly, or in the system's cache. */
static bool is_precompiled(const char *assembly)
{
    char path[PATH_BYTES];
    const char *slash = strrchr(assembly, '/');
    size_t used = append(path, 0, sizeof(path), assembly);
    (void)append(path, used, sizeof(path), ".so");
    if (is_file(path)) {
        return true;
    }
    used = append(path, 0, sizeof(path), "/usr/lib/mono/aot-cache/amd64/");
    used = append(path, used, sizeof(path), slash != NULL ? slash + 1 : assembly);
    (void)append(path, used, sizeof(path), ".so");
    return is_file(path);
}

/* True if the program that `mono` runs is precompiled: its name is the first argument that ends in
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

/* Call it before main only: the runtime reads its options when it starts. */
static void set_compile_again(void)
{
    char **at = sj_program_environment;
    size_t used = append(options_text, 0, OPTIONS_BYTES, OPTIONS "=");
    if (at == NULL || sj_rebind_find("mono_profiler_create") == 0 ||
        !(wants_precompiled || is_program_precompiled())) {
        return;
    }
    while (*at != NULL && sj_environment_value(*at, OPTIONS) == NULL) {
        at++;
    }
    original = *at;
    if (original != NULL) {
        used = append(options_text, used, OPTIONS_BYTES - sizeof(COMPILE_AGAIN),
                      sj_environment_value(original, OPTIONS));
        used = append(options_text, used, OPTIONS_BYTES, " ");
    } else {
        at[1] = NULL;
    }
    (void)append(options_text, used, OPTIONS_BYTES, COMPILE_AGAIN);
    *at = options_text;
}

static bool was_launched(void)
{
    return atomic_load(&sojourn_agent_state.phase) == SJ_AGENT_STATE_LAUNCHED;
}

static void start_late(void)
{
    sj_monitors_start_late(SJ_LINK_RUNTIME_MONO);
}

/* A program may open the runtime later. */
static void watch_for_launch(void)
{
    if (was_launched() && !is_started) {
        sj_mono_watch_for_launch(start_late);
    }
}

static sj_status send_no_methods(sj_link *link, void *context)
{
    memcpy(sj_link_payload(link), context, sizeof(sj_link_no_methods));
    return sj_link_send(link, SJ_LINK_NO_METHODS, sizeof(sj_link_no_methods));
}

/* Reports once that a runtime lacks a function, because that does not change. */
static void report_no_methods(void)
{
    static bool is_reported;
    sj_link_no_methods lacking;
    if (!is_reported && sj_mono_find_lacking(&lacking)) {
        is_reported = sj_conversation_ask(send_no_methods, &lacking);
    }
}

static bool start_methods(void)
{
    const bool is_launched = was_launched();
    if (!was_started && is_launched) {
        set_compile_again();
    }
    was_started = true;
    if (sj_mono_start(&registrar, !is_launched) != SJ_OK) {
        report_no_methods();
        return false;
    }
    is_started = true;
    if (sj_monitors_are_chosen(SJ_LINK_RUNTIME_MONO_IN_PLACE)) {
        sj_mono_prefer_in_place();
    }
    if (!has_lines && sj_monitors_are_chosen(SJ_LINK_RUNTIME_MONO_LINES)) {
        has_lines = true;
        no_lines = is_launched ? sj_mono_lines_start() : SJ_NO_LINES_ATTACHED;
    }
    const bool is_done = is_launched || sj_mono_plan_compiled();
    atomic_store(&sojourn_agent_state.bind_again, is_done ? 0 : 1);
    return true;
}

SJ_EXPORTED void sojourn_agent_select_mono(void)
{
    if (sj_recorder_is_armed() && is_started) {
        const bool is_done = sj_mono_reselect();
        atomic_store(&sojourn_agent_state.bind_again, is_done ? 0 : 1);
    }
}

static void want_precompiled(void)
{
    wants_precompiled = true;
}

const sj_monitor sj_monitor_mono = {.bit = SJ_LINK_RUNTIME_MONO,
                                    .name = "Mono",
                                    .start = start_methods,
                                    .on_modules = watch_for_launch,
                                    .after_fork = sj_mono_after_fork,
                                    .stop = sj_mono_stop,
                                    .waits_for_module = true};

const sj_monitor sj_monitor_mono_anew = {.bit = SJ_LINK_RUNTIME_MONO_ANEW,
                                         .name = "Mono, methods compiled ahead of time",
                                         .prepare = want_precompiled};
