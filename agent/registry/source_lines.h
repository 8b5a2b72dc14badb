/* Source lines of a container's methods. All lines come from its symbol file; the agent reports
 * which of them were entered. The reports of the monitor "lines" become rows of the view
 * source_lines. */
#ifndef SJ_AGENT_REGISTRY_SOURCE_LINES_H
#define SJ_AGENT_REGISTRY_SOURCE_LINES_H

#include "agent/runtimes/runtime.h"
#include "agent/session/frame_writer.h"

typedef struct sj_source_lines sj_source_lines;

/* Reads the symbol file of the container at `path`. `id` is the container's module id. The caller
 * owns `*lines`. Returns SJ_ENOTFOUND if the symbol file does not exist or is damaged. Returns
 * SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_source_lines_read(const sj_runtime *runtime, const char *path,
                                             sj_slice id, sj_source_lines **lines);

/* sj_source_lines_new makes an empty list. sj_source_lines_add adds a position in the code. Call
 * sj_source_lines_sort once after the last position. Returns SJ_ENOMEM if out of memory. Returns
 * SJ_ELIMIT if the list is full. */
SJ_MUST_CHECK sj_status sj_source_lines_new(sj_source_lines **lines);
SJ_MUST_CHECK sj_status sj_source_lines_add(sj_source_lines *lines, const sj_container_line *line);
void sj_source_lines_sort(sj_source_lines *lines);
bool sj_source_lines_is_empty(const sj_source_lines *lines);

void sj_source_lines_free(sj_source_lines *lines); /* NULL is allowed */

/* Stores that the instruction at an offset of a method's code has run. */
void sj_source_lines_enter(sj_source_lines *lines, uint32_t token, uint32_t offset);

/* The lines that a report covers. */
typedef enum sj_source_lines_kind {
    SJ_SOURCE_LINES_THERE,
    SJ_SOURCE_LINES_ENTERED /* lines of entered instructions that were not reported yet */
} sj_source_lines_kind;

/* Sends lines of module number `module`, by file. After the entered lines, sends a report with an
 * empty file name, which confirms that all of them were reported. Returns SJ_ENOMEM, or errors of
 * sj_frame_writer_report. */
SJ_MUST_CHECK sj_status sj_source_lines_report(sj_source_lines *lines, sj_source_lines_kind kind,
                                               sj_frame_writer *writer, uint32_t module,
                                               uint64_t now_ticks);

#endif
