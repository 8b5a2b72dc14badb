/* Asks the recorder which methods of an assembly are recorded, which function id a method without a
 * file has, and how code is patched. */
#include "agent/inproc/mono/internal.h"

#include "agent/abi/plan.h"
#include "agent/inproc/link/conversation.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>
#include <sys/mman.h>

enum { PATH_BYTES = 4096, NAME_BYTES = 2048 };

static sj_mono_hook *hook;

void sj_mono_set_hook(sj_mono_hook *hook_generated)
{
    hook = hook_generated;
}

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

bool sj_mono_ask_assembly(const char *path, const uint8_t *id, uint32_t id_bytes, bool is_main,
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
    at[name_bytes] = 0; /* False: its module is not excluded. */
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

bool sj_mono_ask_method(const char *container, const char *name, uint32_t *function)
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
    SJ_TRY(hook(link, code->functions[0].address, last->address + last->bytes, code->runs,
                code->marks));
    /* If hooks failed, waits until the recorder has received their report: the program may end
     * soon. */
    return is_all_hooked(code) ? SJ_OK : sj_conversation_finish(link);
}

void sj_mono_plan_code(const sj_mono_code *code)
{
    const sj_conversation_question question = {
        .send = send_code, .take = receive_plan, .context = code};
    (void)sj_conversation_ask_at_once(&question);
}

sj_no_lines sj_mono_no_lines;

static sj_status send_no_lines(sj_link *link, void *context)
{
    (void)context;
    const sj_link_no_lines message = {.reason = sj_mono_no_lines};
    memcpy(sj_link_payload(link), &message, sizeof(message));
    return sj_link_send(link, SJ_LINK_NO_LINES, sizeof(message));
}

void sj_mono_report_no_lines(void)
{
    if (sj_mono_no_lines != 0) {
        (void)sj_conversation_ask(send_no_lines, NULL);
        sj_mono_no_lines = 0;
    }
}
