/* Replies to an agent that requests the probes of a Java class. */
#ifndef SJ_AGENT_LINK_CLASS_REPLY_H
#define SJ_AGENT_LINK_CLASS_REPLY_H

#include "agent/registry/registry.h"
#include "proto/base/cursor.h"

/* Handles a CLASS packet, whose class file is in `file`. Writes the class with probes to `file`,
 * and sends CLASS_ADDED or SKIP to `fd`. For a class whose methods the JVM traces (tracer.h),
 * writes which methods are wanted instead.
 *
 * Does not touch a `file` that is not a memory file, and returns SJ_ECORRUPT for it. Also returns
 * SJ_ECLOSED, SJ_ENOMEM, and errors of sj_registry_add_class. Sends SKIP for SJ_EUNSUPPORTED and
 * SJ_ELIMIT. */
SJ_MUST_CHECK sj_status sj_link_reply_class(sj_registry *registry, uint64_t process,
                                            sj_reader *reader, int file, int fd);

/* Handles a CLASSES packet and sends CLASSES_CHOSEN to `fd`. Returns SJ_ECORRUPT, SJ_ECLOSED. */
SJ_MUST_CHECK sj_status sj_link_reply_classes(sj_registry *registry, uint64_t process,
                                              sj_reader *reader, int fd);

/* Handles a TRACER packet: reads the library that it names, and sends TRACER_FOUND or SKIP to `fd`.
 * Returns SJ_ECORRUPT, SJ_ECLOSED. */
SJ_MUST_CHECK sj_status sj_link_reply_tracer(sj_reader *reader, int fd);

/* Handles a JVM_STATE packet. Returns SJ_ECORRUPT. If there is no space for the report, drops it;
 * the frame writer counts that. */
SJ_MUST_CHECK sj_status sj_link_read_jvm_state(sj_registry *registry, uint64_t process,
                                               sj_reader *reader);

#endif
