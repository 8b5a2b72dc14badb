#include "agent/link/class_reply.h"

#include "agent/abi/agent_state.h"
#include "agent/link/memory_file.h"
#include "agent/runtimes/jvm/tracer.h"

#include "agent/host/clock.h"

#include <limits.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static sj_status send_class_reply(int fd, sj_link_type type, const void *payload, size_t bytes)
{
    const sj_link_packet head = {
        .version = SJ_LINK_VERSION, .type = (uint16_t)type, .payload_bytes = (uint32_t)bytes};
    struct iovec parts[] = {{.iov_base = (void *)(uintptr_t)&head, .iov_len = sizeof(head)},
                            {.iov_base = (void *)(uintptr_t)payload, .iov_len = bytes}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)(sizeof(head) + bytes)
               ? SJ_OK
               : SJ_ECLOSED;
}

static sj_status send_reply(int file, int fd, const sj_class_reply *reply)
{
    sj_link_class_added added = {.first_function = reply->first_function,
                                 .count = reply->count,
                                 .rewritten = reply->rewritten,
                                 .class_bytes = (uint32_t)reply->size,
                                 .selection = reply->selection};
    if (reply->size > SJ_LINK_CLASS_BYTES ||
        !sj_memory_file_write(file, reply->bytes, reply->size)) {
        added.rewritten = 0;
        added.class_bytes = 0;
        added.selection = SJ_CLASS_NOTHING;
    }
    return send_class_reply(fd, SJ_LINK_CLASS_ADDED, &added, sizeof(added));
}

static sj_slice read_text(sj_reader *reader, uint32_t bytes)
{
    return (sj_slice){.data = sj_read_bytes(reader, bytes), .size = bytes};
}

sj_status sj_link_reply_class(sj_registry *registry, uint64_t process, sj_reader *reader, int file,
                              int fd)
{
    sj_link_class class;
    sj_class_reply made = {0};
    const uint8_t *head = sj_read_bytes(reader, sizeof(class));
    if (head == NULL || !sj_memory_file_is(file)) {
        return SJ_ECORRUPT;
    }
    memcpy(&class, head, sizeof(class));
    const sj_class_texts texts = {.loader = read_text(reader, class.loader_bytes),
                                  .host = read_text(reader, class.host_bytes)};
    if (reader->bad || class.loader_bytes > SJ_LINK_LOADER_BYTES ||
        class.host_bytes > SJ_LINK_CLASS_NAME_BYTES || class.class_bytes == 0 ||
        class.class_bytes > SJ_LINK_CLASS_BYTES ||
        class.least_function > SJ_AGENT_STATE_MUTED_FUNCTIONS) {
        return SJ_ECORRUPT;
    }
    uint8_t *bytes = malloc(class.class_bytes);
    if (bytes == NULL) {
        return SJ_ENOMEM;
    }
    sj_status status = SJ_ECORRUPT;
    if (sj_memory_file_read(file, bytes, class.class_bytes)) {
        const sj_slice slice = {.data = bytes, .size = class.class_bytes};
        status = sj_registry_add_class(registry, process, &class, &texts, slice, sj_clock_ticks(),
                                       &made);
    }
    free(bytes);
    if (status == SJ_EUNSUPPORTED || status == SJ_ELIMIT) {
        const sj_link_skip skip = {.reason = SJ_SKIP_MODULE};
        return send_class_reply(fd, SJ_LINK_SKIP, &skip, sizeof(skip));
    }
    if (status == SJ_OK) {
        status = send_reply(file, fd, &made);
    }
    free(made.bytes);
    return status;
}

sj_status sj_link_reply_classes(sj_registry *registry, uint64_t process, sj_reader *reader, int fd)
{
    uint8_t chosen[SJ_LINK_CLASSES_MAX];
    sj_link_classes head;
    const uint8_t *bytes = sj_read_bytes(reader, sizeof(head));
    if (bytes == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(&head, bytes, sizeof(head));
    if (head.count == 0 || head.count > SJ_LINK_CLASSES_MAX) {
        return SJ_ECORRUPT;
    }
    for (uint32_t i = 0; i < head.count; i++) {
        sj_link_loaded_class loaded;
        bytes = sj_read_bytes(reader, sizeof(loaded));
        if (bytes == NULL) {
            return SJ_ECORRUPT;
        }
        memcpy(&loaded, bytes, sizeof(loaded));
        const sj_class_texts texts = {.name = read_text(reader, loaded.name_bytes),
                                      .loader = read_text(reader, loaded.loader_bytes),
                                      .lineage = read_text(reader, loaded.lineage_bytes)};
        if (reader->bad || loaded.name_bytes > SJ_LINK_CLASS_NAME_BYTES ||
            loaded.loader_bytes > SJ_LINK_LOADER_BYTES ||
            loaded.lineage_bytes > SJ_LINK_LINEAGE_BYTES) {
            return SJ_ECORRUPT;
        }
        chosen[i] = sj_registry_choose_class(registry, process, &loaded, &texts);
    }
    return send_class_reply(fd, SJ_LINK_CLASSES_CHOSEN, chosen, head.count);
}

static sj_status find_tracer(const char *path, sj_link_tracer_found *found)
{
    sj_elf elf = {0};
    sj_tracer tracer;
    sj_status status = sj_elf_open(path, &elf, NULL);
    if (status == SJ_OK) {
        status = sj_tracer_find(&elf, &tracer);
        sj_elf_close(&elf);
    }
    if (status == SJ_OK) {
        *found = (sj_link_tracer_found){.entry = tracer.entry, .exit = tracer.exit};
    }
    return status;
}

sj_status sj_link_reply_tracer(sj_reader *reader, int fd)
{
    char path[PATH_MAX];
    sj_link_tracer asked;
    sj_link_tracer_found found = {0};
    const uint8_t *head = sj_read_bytes(reader, sizeof(asked));
    if (head == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(&asked, head, sizeof(asked));
    const sj_slice text = read_text(reader, asked.path_bytes);
    if (text.data == NULL || text.size == 0 || text.size >= sizeof(path) ||
        asked.language != SJ_LINK_LANGUAGE_JVM) {
        return SJ_ECORRUPT;
    }
    memcpy(path, text.data, text.size);
    path[text.size] = '\0';
    if (find_tracer(path, &found) != SJ_OK) {
        const sj_link_skip skip = {.reason = SJ_SKIP_UNDEFINED};
        return send_class_reply(fd, SJ_LINK_SKIP, &skip, sizeof(skip));
    }
    return send_class_reply(fd, SJ_LINK_TRACER_FOUND, &found, sizeof(found));
}

sj_status sj_link_read_jvm_state(sj_registry *registry, uint64_t process, sj_reader *reader)
{
    sj_link_jvm_state state;
    const uint8_t *bytes = sj_read_bytes(reader, sizeof(state));
    if (bytes == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(&state, bytes, sizeof(state));
    const sj_status status = sj_registry_report_jvm(registry, process, &state, sj_clock_ticks());
    return status == SJ_EFULL ? SJ_OK : status;
}
