/* Lines of a container's methods: where they are, as its symbol file says, and which were entered,
 * as the agent says. Both become reports of the monitor "lines", of which the view source_lines
 * makes rows. */
#ifndef SJ_AGENT_REGISTRY_SOURCE_LINES_H
#define SJ_AGENT_REGISTRY_SOURCE_LINES_H

#include "agent/runtimes/runtime.h"
#include "agent/session/frame_writer.h"

typedef struct sj_source_lines sj_source_lines;

/* sj_source_lines_read reads the symbol file of a container; `*lines` is owned. SJ_ENOTFOUND: there
 * is none, or it is damaged; SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_source_lines_read(const sj_runtime *runtime, const char *path,
                                             sj_slice id, sj_source_lines **lines);

/* sj_source_lines_new makes an empty list, sj_source_lines_add adds a place to it. Then
 * sj_source_lines_sort, once. SJ_ENOMEM; SJ_ELIMIT: it has as many as one may have. */
SJ_MUST_CHECK sj_status sj_source_lines_new(sj_source_lines **lines);
SJ_MUST_CHECK sj_status sj_source_lines_add(sj_source_lines *lines, const sj_container_line *line);
void sj_source_lines_sort(sj_source_lines *lines);
bool sj_source_lines_is_empty(const sj_source_lines *lines);

void sj_source_lines_free(sj_source_lines *lines); /* NULL is fine */

/* sj_source_lines_enter notes that the instruction at an offset of a method's code was run. */
void sj_source_lines_enter(sj_source_lines *lines, uint32_t token, uint32_t offset);

/* Which lines a report is about. */
typedef enum sj_source_lines_kind {
    SJ_SOURCE_LINES_THERE,
    SJ_SOURCE_LINES_ENTERED /* those of entered instructions that were not reported yet */
} sj_source_lines_kind;

/* sj_source_lines_report sends lines of module number `module` by file. Those entered end with a
 * report of no file (''): only then it is known that no other was. SJ_ENOMEM, errors of
 * sj_frame_writer_report. */
SJ_MUST_CHECK sj_status sj_source_lines_report(sj_source_lines *lines, sj_source_lines_kind kind,
                                               sj_frame_writer *writer, uint32_t module,
                                               uint64_t now_ticks);

#endif
