/* The companion's answer to a CONTAINER of an agent. */
#ifndef SJ_AGENT_LINK_CONTAINER_ANSWER_H
#define SJ_AGENT_LINK_CONTAINER_ANSWER_H

#include "agent/registry/registry.h"
#include "proto/base/cursor.h"

/* sj_link_answer_container takes the payload of a CONTAINER, makes functions of the container's
 * methods and sends CONTAINER_ADDED or SKIP to `fd`. SJ_ECORRUPT, SJ_ECLOSED, errors of
 * sj_registry_add_container but SJ_EUNSUPPORTED and SJ_ENOTFOUND, which are answered by SKIP. */
SJ_MUST_CHECK sj_status sj_link_answer_container(sj_registry *registry, uint64_t process,
                                                 sj_reader *reader, int fd);

/* sj_link_take_report takes the payload of a LINES, NO_LINES or NO_METHODS of a process.
 * SJ_ECORRUPT, SJ_ENOMEM; without room for a report SJ_OK. */
SJ_MUST_CHECK sj_status sj_link_take_report(sj_registry *registry, uint64_t process, uint16_t type,
                                            sj_reader *reader);

#endif
