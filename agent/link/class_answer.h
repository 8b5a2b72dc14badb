/* Answers an agent that asks for the probes of a Java class. */
#ifndef SJ_AGENT_LINK_CLASS_ANSWER_H
#define SJ_AGENT_LINK_CLASS_ANSWER_H

#include "agent/registry/registry.h"
#include "proto/base/cursor.h"

/* sj_link_answer_class takes the payload of a CLASS, whose class file is in `file`, puts the class
 * with probes (of a traced class which methods are wanted) there and sends CLASS_ADDED or SKIP to
 * `fd`. A `file` that is no memory file is not touched. SJ_ECORRUPT, SJ_ECLOSED, errors of
 * sj_registry_add_class but SJ_EUNSUPPORTED and SJ_ELIMIT, which are answered by SKIP. */
SJ_MUST_CHECK sj_status sj_link_answer_class(sj_registry *registry, uint64_t process,
                                             sj_reader *reader, int file, int fd);

/* sj_link_answer_classes takes the payload of a CLASSES and sends CLASSES_CHOSEN to `fd`.
 * SJ_ECORRUPT, SJ_ECLOSED. */
SJ_MUST_CHECK sj_status sj_link_answer_classes(sj_registry *registry, uint64_t process,
                                               sj_reader *reader, int fd);

/* sj_link_answer_tracer takes the payload of a TRACER, looks into the library that it names and
 * sends TRACER_FOUND or SKIP to `fd`. SJ_ECORRUPT, SJ_ECLOSED. */
SJ_MUST_CHECK sj_status sj_link_answer_tracer(sj_reader *reader, int fd);

/* sj_link_take_jvm_state takes the payload of a JVM_STATE. SJ_ECORRUPT; without room for the report
 * it is dropped, which is counted. */
SJ_MUST_CHECK sj_status sj_link_take_jvm_state(sj_registry *registry, uint64_t process,
                                               sj_reader *reader);

#endif
