/* Which lines of Mono's methods run: asked of the runtime, reported to the recorder. */
#ifndef SJ_AGENT_INPROC_CORE_MONO_LINES_H
#define SJ_AGENT_INPROC_CORE_MONO_LINES_H

#include "agent/abi/link.h"

#include <stdbool.h>
#include <stdint.h>

/* sj_mono_lines_start has the runtime count lines, before main. 0, or why it does not. */
sj_no_lines sj_mono_lines_start(void);

/* sj_mono_lines_report_why_not reports the reason to the recorder, sj_mono_lines_send what ran, as
 * the words of an sj_link_lines. Without a recorder nothing happens. Blocking. */
void sj_mono_lines_report_why_not(sj_no_lines reason);
void sj_mono_lines_send(const uint32_t *words, uint32_t count, bool is_last);

#endif
