/* Replies to a CONTAINER packet of an agent. */
#ifndef SJ_AGENT_LINK_CONTAINER_REPLY_H
#define SJ_AGENT_LINK_CONTAINER_REPLY_H

#include "agent/registry/registry.h"
#include "proto/base/cursor.h"

/* Handles a CONTAINER packet: creates functions for the container's methods and sends
 * CONTAINER_ADDED or SKIP to `fd`. Returns SJ_ECORRUPT, SJ_ECLOSED, and errors of
 * sj_registry_add_container. Sends SKIP for SJ_EUNSUPPORTED and SJ_ENOTFOUND. */
SJ_MUST_CHECK sj_status sj_link_reply_container(sj_registry *registry, uint64_t process,
                                                sj_reader *reader, int fd);

/* Handles a LINES, NO_LINES or NO_METHODS packet of a process. Returns SJ_ECORRUPT, SJ_ENOMEM.
 * Returns SJ_OK if there is no space for a report. */
SJ_MUST_CHECK sj_status sj_link_read_report(sj_registry *registry, uint64_t process, uint16_t type,
                                            sj_reader *reader);

#endif
