/* Takes what an agent says of a thread that does not answer. */
#ifndef SJ_AGENT_LINK_STALL_H
#define SJ_AGENT_LINK_STALL_H

#include "agent/registry/registry.h"
#include "proto/base/cursor.h"

typedef struct sj_reported_stall {
    char name[SJ_LINK_MARK_NAME_BYTES + 1];
    uint64_t waited_ns;
} sj_reported_stall;

/* sj_link_take_stall takes the payload of a STALL, whose report is in `file`, and sends the report.
 * A `file` that is no memory file is not touched. SJ_ECORRUPT, SJ_ENOMEM; without room for the
 * report it is dropped, which is counted. */
SJ_MUST_CHECK sj_status sj_link_take_stall(sj_registry *registry, uint64_t process,
                                           sj_reader *reader, int file, sj_reported_stall *stall);

#endif
