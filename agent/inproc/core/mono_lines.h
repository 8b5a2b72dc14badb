/* Lines of Mono's methods that ran: counted by the runtime, reported to the recorder. */
#ifndef SJ_AGENT_INPROC_CORE_MONO_LINES_H
#define SJ_AGENT_INPROC_CORE_MONO_LINES_H

#include "agent/abi/link.h"

#include <stdbool.h>
#include <stdint.h>

/* Makes the runtime count lines; call it before main. Returns 0, or the reason why it does not. */
sj_no_lines sj_mono_lines_start(void);

/* sj_mono_lines_report_why_not reports that reason to the recorder. sj_mono_lines_send reports
 * lines that ran, as words of an sj_link_lines. Without a recorder they do nothing. Blocking. */
void sj_mono_lines_report_why_not(sj_no_lines reason);
void sj_mono_lines_send(const uint32_t *words, uint32_t count, bool is_last);

#endif
