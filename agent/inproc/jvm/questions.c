#include "agent/inproc/jvm/questions.h"

#include "agent/inproc/jvm/internal.h"
#include "agent/inproc/jvm/virtual_threads.h"
#include "agent/inproc/link/conversation.h"
#include "agent/inproc/recorder/sys.h"

#include <linux/memfd.h>
#include <string.h>

static bool write_file(int file, const uint8_t *bytes, uint32_t size)
{
    for (uint32_t at = 0; at < size;) {
        const long put = SJ_SYS(SYS_pwrite64, file, bytes + at, size - at, at, 0, 0);
        if (put <= 0) {
            return false;
        }
        at += (uint32_t)put;
    }
    return true;
}

static sj_status read_reply(const sj_link *link, int file, sj_jvm_rewritten *rewritten)
{
    sj_link_class_added added;
    if (link->packet.type == SJ_LINK_SKIP) {
        return SJ_OK;
    }
    if (link->packet.type != SJ_LINK_CLASS_ADDED || link->packet.payload_bytes != sizeof(added)) {
        return SJ_EPERM;
    }
    memcpy(&added, link->payload, sizeof(added));
    if (added.class_bytes > SJ_LINK_CLASS_BYTES) {
        return SJ_ECORRUPT;
    }
    *rewritten = (sj_jvm_rewritten){.file = file,
                                    .size = added.class_bytes,
                                    .selection = added.selection,
                                    .first_function = added.first_function,
                                    .function_count = added.count};
    return SJ_OK;
}

static uint32_t append(uint8_t *payload, uint32_t at, const void *bytes, uint32_t count)
{
    if (count != 0) {
        memcpy(payload + at, bytes, count);
    }
    return at + count;
}

static sj_status ask_to_rewrite(sj_link *link, const sj_jvm_class *class, int file,
                                sj_jvm_rewritten *rewritten)
{
    const sj_link_class asked = {.loader = class->loader,
                                 .is_system = class->is_system ? 1 : 0,
                                 .listing = (uint32_t) class->listing,
                                 .class_bytes = class->size,
                                 .loader_bytes = (uint32_t)strlen(class->loader_name),
                                 .host_bytes = class->host_bytes,
                                 .least_function = sj_jvm.least_function};
    SJ_TRY(sj_conversation_open_again(link));
    uint8_t *payload = sj_link_payload(link);
    uint32_t bytes = append(payload, 0, &asked, sizeof(asked));
    bytes = append(payload, bytes, class->loader_name, asked.loader_bytes);
    bytes = append(payload, bytes, class->host, asked.host_bytes);
    SJ_TRY(sj_link_send_file(link, SJ_LINK_CLASS, bytes, file));
    SJ_TRY(sj_link_receive(link));
    sj_jvm_rewritten answered = {.file = -1, .selection = SJ_CLASS_NOTHING};
    SJ_TRY(read_reply(link, file, &answered));
    SJ_TRY(sj_conversation_finish(link));
    *rewritten = answered;
    return SJ_OK;
}

bool sj_jvm_rewrite_class(const sj_jvm_class *class, sj_jvm_rewritten *rewritten)
{
    sj_link link = {.socket = -1};
    sj_status status = SJ_ELIMIT;
    if (class->size > SJ_LINK_CLASS_BYTES) {
        return false;
    }
    const long file = SJ_SYS(SYS_memfd_create, "sojourn-class", MFD_CLOEXEC, 0, 0, 0, 0);
    if (file < 0) {
        return false;
    }
    if (write_file((int)file, class->bytes, class->size) && sj_conversation_begin()) {
        status = ask_to_rewrite(&link, class, (int)file, rewritten);
        sj_link_close(&link);
        sj_conversation_end();
    }
    if (status != SJ_OK || rewritten->size == 0) {
        (void)sj_sys_close((int)file);
    }
    return status == SJ_OK;
}

typedef struct tracer_question {
    const char *path;
    sj_link_tracer_found *found;
} tracer_question;

static sj_status ask_tracer(sj_link *link, void *context)
{
    const tracer_question *question = context;
    const sj_link_tracer asked = {.language = SJ_LINK_LANGUAGE_JVM,
                                  .path_bytes = (uint32_t)strlen(question->path)};
    memcpy(sj_link_payload(link), &asked, sizeof(asked));
    memcpy(sj_link_payload(link) + sizeof(asked), question->path, asked.path_bytes);
    SJ_TRY(sj_link_send(link, SJ_LINK_TRACER, (uint32_t)sizeof(asked) + asked.path_bytes));
    SJ_TRY(sj_link_receive(link));
    if (link->packet.type != SJ_LINK_TRACER_FOUND ||
        link->packet.payload_bytes != sizeof(*question->found)) {
        return SJ_ENOTFOUND;
    }
    memcpy(question->found, link->payload, sizeof(*question->found));
    return SJ_OK;
}

bool sj_jvm_ask_tracer(const char *path, sj_link_tracer_found *found)
{
    tracer_question question = {.path = path, .found = found};
    return sj_conversation_ask(ask_tracer, &question);
}

/* Maximum size of a question. It leaves space for the head of the packet. */
enum { QUESTION_BYTES = SJ_LINK_MAX_BYTES - 64 };

_Static_assert(sizeof(sj_link_packet) + sizeof(sj_link_classes) + sizeof(sj_link_loaded_class) +
                       SJ_LINK_CLASS_NAME_BYTES + SJ_LINK_LOADER_BYTES + SJ_LINK_LINEAGE_BYTES <=
                   QUESTION_BYTES,
               "every class fits a packet");

/* Writes as many of `*count` classes as fit into one packet. Sets `*count` to the number of classes
 * that it has written. Returns the size in bytes. */
static uint32_t write_question(uint8_t *payload, const sj_jvm_loaded *classes, uint32_t *count)
{
    uint32_t bytes = sizeof(sj_link_classes);
    uint32_t written = 0;
    for (; written < *count && written < SJ_LINK_CLASSES_MAX; written++) {
        const sj_jvm_loaded *class = &classes[written];
        const sj_link_loaded_class loaded = {.loader = class->loader,
                                             .is_system = class->is_system ? 1 : 0,
                                             .selection = class->selection,
                                             .name_bytes = class->name_bytes,
                                             .loader_bytes = (uint32_t)strlen(class->loader_name),
                                             .lineage_bytes = class->lineage_bytes};
        if (bytes + sizeof(loaded) + loaded.name_bytes + loaded.loader_bytes +
                loaded.lineage_bytes >
            QUESTION_BYTES) {
            break;
        }
        bytes = append(payload, bytes, &loaded, sizeof(loaded));
        bytes = append(payload, bytes, class->name, loaded.name_bytes);
        bytes = append(payload, bytes, class->loader_name, loaded.loader_bytes);
        bytes = append(payload, bytes, class->lineage, loaded.lineage_bytes);
    }
    const sj_link_classes head = {.count = written};
    memcpy(payload, &head, sizeof(head));
    *count = written;
    return bytes;
}

static sj_status ask_which_chosen(sj_link *link, const sj_jvm_loaded *classes, uint32_t count,
                                  uint8_t *chosen)
{
    SJ_TRY(sj_conversation_open_again(link));
    for (uint32_t at = 0; at < count;) {
        uint32_t asked = count - at;
        const uint32_t bytes = write_question(sj_link_payload(link), classes + at, &asked);
        SJ_TRY(sj_link_send(link, SJ_LINK_CLASSES, bytes));
        SJ_TRY(sj_link_receive(link));
        if (link->packet.type != SJ_LINK_CLASSES_CHOSEN || link->packet.payload_bytes != asked ||
            asked == 0) {
            return SJ_EPERM;
        }
        memcpy(chosen + at, link->payload, asked);
        at += asked;
    }
    return sj_conversation_finish(link);
}

bool sj_jvm_choose_classes(const sj_jvm_loaded *classes, uint32_t count, uint8_t *chosen)
{
    sj_link link = {.socket = -1};
    sj_status status = SJ_EPERM;
    if (sj_conversation_begin()) {
        status = ask_which_chosen(&link, classes, count, chosen);
        sj_link_close(&link);
        sj_conversation_end();
    }
    return status == SJ_OK;
}

uint32_t sj_jvm_ask_runtimes(void)
{
    sj_link link = {.socket = -1};
    uint32_t runtimes = 0;
    if (sj_conversation_begin()) {
        if (sj_conversation_open_again(&link) == SJ_OK) {
            runtimes = link.runtimes;
            (void)!sj_conversation_finish(&link);
        }
        sj_link_close(&link);
        sj_conversation_end();
    }
    return runtimes;
}

static sj_status send_state(sj_link *link, sj_link_jvm_moment moment, const sj_jvm_figures *figures)
{
    const sj_link_jvm_state state = {.moment = moment,
                                     .classes = atomic_load(&sj_jvm.classes),
                                     .unanswered = atomic_load(&sj_jvm.unanswered),
                                     .leaf_stubs = atomic_load(&sj_jvm.linked_wrappers),
                                     .wrappers = atomic_load(&sj_jvm.plain_wrappers),
                                     .is_unknown = atomic_load(&sj_jvm.is_unknown) != 0 ? 1 : 0,
                                     .examined = figures->examined,
                                     .retransformed = figures->retransformed,
                                     .refused = figures->refused,
                                     .batches = figures->batches,
                                     .is_traced = sj_jvm.is_traced ? 1 : 0,
                                     .fixed = figures->fixed,
                                     .total_ns = figures->total_ns,
                                     .longest_ns = figures->longest_ns,
                                     .virtual_calls = sj_virtual_threads_calls()};
    SJ_TRY(sj_conversation_open_again(link));
    memcpy(sj_link_payload(link), &state, sizeof(state));
    SJ_TRY(sj_link_send(link, SJ_LINK_JVM_STATE, sizeof(state)));
    return sj_conversation_finish(link);
}

void sj_jvm_report(sj_link_jvm_moment moment, const sj_jvm_figures *figures)
{
    sj_link link = {.socket = -1};
    if (sj_conversation_begin()) {
        (void)!send_state(&link, moment, figures); /* It fails if the recorder is gone. */
        sj_link_close(&link);
        sj_conversation_end();
    }
}

static sj_status send_unloaded(sj_link *link, const uint64_t *loaders, uint32_t count)
{
    SJ_TRY(sj_conversation_open_again(link));
    for (uint32_t i = 0; i < count; i++) {
        const sj_link_module module = {.bias = loaders[i]};
        memcpy(sj_link_payload(link), &module, sizeof(module));
        SJ_TRY(sj_link_send(link, SJ_LINK_UNLOADED, sizeof(module)));
    }
    return sj_conversation_finish(link);
}

void sj_jvm_report_unloaded(const uint64_t *loaders, uint32_t count)
{
    sj_link link = {.socket = -1};
    if (sj_conversation_begin()) {
        (void)!send_unloaded(&link, loaders, count); /* It fails if the recorder is gone. */
        sj_link_close(&link);
        sj_conversation_end();
    }
}

static bool write_stall_report(int file, const sj_jvm_stall *stall)
{
    uint64_t at = 0;
    for (uint32_t part = 0; part < 2; part++) {
        for (uint32_t done = 0; done < stall->part_bytes[part];) {
            const long put = SJ_SYS(SYS_pwrite64, file, stall->parts[part] + done,
                                    stall->part_bytes[part] - done, at, 0, 0);
            if (put <= 0) {
                return false;
            }
            done += (uint32_t)put;
            at += (uint64_t)put;
        }
    }
    return true;
}

static sj_status send_stall(sj_link *link, const sj_jvm_stall *stall, int file)
{
    const sj_link_stall message = {.waited_ns = stall->age_ns,
                                   .report_bytes = stall->part_bytes[0] + stall->part_bytes[1],
                                   .name_bytes = stall->name_bytes};
    SJ_TRY(sj_conversation_open_again(link));
    memcpy(sj_link_payload(link), &message, sizeof(message));
    memcpy(sj_link_payload(link) + sizeof(message), stall->name, stall->name_bytes);
    SJ_TRY(sj_link_send_file(link, SJ_LINK_STALL, (uint32_t)sizeof(message) + stall->name_bytes,
                             file));
    return sj_conversation_finish(link);
}

void sj_jvm_report_stall(const sj_jvm_stall *stall)
{
    sj_link link = {.socket = -1};
    const long file = SJ_SYS(SYS_memfd_create, "sojourn-stall", MFD_CLOEXEC, 0, 0, 0, 0);
    if (file < 0) {
        return;
    }
    if (write_stall_report((int)file, stall) && sj_conversation_begin()) {
        (void)!send_stall(&link, stall, (int)file); /* It fails if the recorder is gone. */
        sj_link_close(&link);
        sj_conversation_end();
    }
    (void)sj_sys_close((int)file);
}
