#include "agent/lifecycle/objc.h"

#include "agent/lifecycle/agent.h"
#include "agent/lifecycle/link_client.h"
#include "agent/lifecycle/modules.h"
#include "agent/runtimes/objc/dispatch.h"

#include <string.h>

enum { METHODS_ROOM = SJ_LINK_MAX_BYTES - sizeof(sj_link_packet) - sizeof(sj_link_methods) };

_Static_assert(SJ_OBJC_BATCH_BYTES + SJ_OBJC_LINEAGE_BYTES + SJ_OBJC_BATCH_METHODS <= METHODS_ROOM,
               "a batch fits one packet");

static sj_status ask(sj_link *link, const char *lineage, uint32_t lineage_bytes, const char *names,
                     uint32_t names_bytes, const uint64_t *codes, uint32_t count,
                     uint32_t *first_function, uint8_t *wanted)
{
    uint8_t *payload = sj_link_make(link);
    const sj_link_methods methods = {
        .count = count, .lineage_bytes = lineage_bytes, .names_bytes = names_bytes};
    memcpy(payload, &methods, sizeof(methods));
    memcpy(payload + sizeof(methods), lineage, lineage_bytes);
    memcpy(payload + sizeof(methods) + lineage_bytes, names, names_bytes);
    /* Modules that are left alone as a whole are so for their messages, too. */
    uint8_t *left_alone = payload + sizeof(methods) + lineage_bytes + names_bytes;
    for (uint32_t i = 0; i < count; i++) {
        left_alone[i] = sj_modules_is_left_alone(codes[i]) ? 1 : 0;
    }
    SJ_TRY(sj_link_send(link, SJ_LINK_METHODS,
                        (uint32_t)(sizeof(methods) + lineage_bytes + names_bytes + count)));
    SJ_TRY(sj_link_receive(link));
    sj_link_methods_added added;
    if (link->packet.type != SJ_LINK_METHODS_ADDED ||
        link->packet.payload_bytes != sizeof(added) + count) {
        return SJ_EPERM;
    }
    memcpy(&added, link->payload, sizeof(added));
    if (added.count != count || added.first_function == 0) {
        return SJ_ECORRUPT;
    }
    *first_function = added.first_function;
    memcpy(wanted, link->payload + sizeof(added), count);
    return SJ_OK;
}

static bool register_methods(void *context, const char *lineage, uint32_t lineage_bytes,
                             const char *names, uint32_t names_bytes, const uint64_t *codes,
                             uint32_t count, uint32_t *first_function, uint8_t *wanted)
{
    sj_link link = {.socket = -1};
    (void)context;
    if (!sj_agent_begin_conversation()) {
        return false;
    }
    sj_status status = sj_agent_greet_again(&link);
    if (status == SJ_OK) {
        status = ask(&link, lineage, lineage_bytes, names, names_bytes, codes, count,
                     first_function, wanted);
    }
    if (status == SJ_OK) {
        status = sj_agent_part(&link);
    }
    sj_link_close(&link);
    sj_agent_end_conversation();
    return status == SJ_OK;
}

bool sj_objc_attach(void)
{
    /* Without a runtime there is nothing to do, and without memory for stubs messages are not
     * recorded: no reason to give up the rest. */
    return sj_objc_start(register_methods, NULL) == SJ_OK;
}
