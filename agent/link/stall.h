/* Handles an agent's report of a thread that does not respond. */
#ifndef SJ_AGENT_LINK_STALL_H
#define SJ_AGENT_LINK_STALL_H

#include "agent/registry/registry.h"
#include "proto/base/cursor.h"

typedef struct sj_reported_stall {
    char name[SJ_LINK_MARK_NAME_BYTES + 1];
    uint64_t waited_ns;
} sj_reported_stall;

/* Handles a STALL packet, whose report is in `file`, and sends the report. Does not touch a `file`
 * that is not a memory file. Returns SJ_ECORRUPT if the packet or the file is not valid, or
 * SJ_ENOMEM. If there is no space for the report, drops it; the frame writer counts that. */
SJ_MUST_CHECK sj_status sj_link_read_stall(sj_registry *registry, uint64_t process,
                                           sj_reader *reader, int file, sj_reported_stall *stall);

#endif
