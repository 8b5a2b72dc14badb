/* A plan from a reply of the recorder. */
#ifndef SJ_AGENT_INPROC_CORE_RECEIVED_PLAN_H
#define SJ_AGENT_INPROC_CORE_RECEIVED_PLAN_H

#include "agent/inproc/hooks/ready.h"
#include "agent/inproc/link/link_client.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct sj_received_plan {
    sj_link_plan head;
    const char *path;   /* path of its file; NULL: the reply contained the plan */
    sj_ready_plan file; /* identity of the mapped file */
    void *bytes;        /* NULL: not read yet, or unreadable */
    size_t size_bytes;
    bool is_mapped;
} sj_received_plan;

/* Reads a plan from the reply in `link` into a zeroed `*plan`. A plan inside the packet is copied,
 * because the packet's memory is needed for the reply. The copy and the path are valid until the
 * next call. Only one conversation at a time. Returns SJ_ECORRUPT. */
SJ_MUST_CHECK sj_status sj_received_plan_read(const sj_link *link, sj_received_plan *plan);

/* Maps the file of a plan that has one. `bytes` stays NULL if it cannot be read. The caller unmaps
 * it. */
void sj_received_plan_map(sj_received_plan *plan);

#endif
